package protoencoding

import (
	"encoding/json"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

const apiVersion, kind = "example.com/v1", "Reading"

// Readings is a collection of readings in two encodings. It is safe for concurrent use.
type Readings struct {
	// Protobuf and JSON are the same collection, at the same versions. A Source has one encoding,
	// so each has a path of its own.
	Protobuf, JSON *watchcache.Cache

	mu sync.Mutex
	// Guarded by mu.
	group   watchcache.Group
	version listwatch.Version
}

// New returns an empty collection.
func New() (*Readings, error) {
	r := &Readings{version: 1}
	d := listwatch.Description{APIVersion: apiVersion, Kind: kind}
	r.JSON = r.group.Cache(d, watchcache.Options{})
	d.Encoding = Encoding{}
	r.Protobuf = r.group.Cache(d, watchcache.Options{})
	return r, r.group.Replace(r.version, nil)
}

// Put creates or replaces the reading of a sensor, and sets the version of m. If the sensor has no
// name or a string is not UTF-8, the error has code [listwatch.Invalid], and nothing changes.
func (r *Readings) Put(m *Reading) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.Version = uint64(r.version + 1)
	data, err := marshaler.Marshal(m)
	if err != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Message: "not a Reading", Err: err}
	}
	encoded, err := Encoding{}.Read(data)
	if err != nil {
		return err
	}
	text, err := toJSON(m)
	if err != nil {
		return err
	}
	return r.apply(watchcache.Change{Object: encoded}, watchcache.Change{Object: text})
}

// Delete deletes the reading at key, if there is one.
func (r *Readings) Delete(key listwatch.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := watchcache.Change{Key: key, Version: r.version + 1}
	return r.apply(c, c)
}

// apply makes the same change in both encodings, at the next version. The caller holds mu.
func (r *Readings) apply(encoded, text watchcache.Change) error {
	err := r.group.Apply(r.version+1, map[*watchcache.Cache][]watchcache.Change{
		r.Protobuf: {encoded}, r.JSON: {text},
	})
	if err == nil {
		r.version++
	}
	return err
}

// toJSON returns m as a page reads it: with the metadata that every object in JSON has.
func toJSON(m *Reading) (*listwatch.Object, error) {
	data, err := json.Marshal(struct {
		APIVersion string             `json:"apiVersion"`
		Kind       string             `json:"kind"`
		Metadata   listwatch.Metadata `json:"metadata"`
		Celsius    float64            `json:"celsius"`
	}{
		apiVersion, kind,
		listwatch.Metadata{Name: m.GetSensor(), Namespace: m.GetRoom(), Labels: m.GetLabels()},
		m.GetCelsius(),
	})
	if err != nil {
		return nil, err
	}
	return listwatch.NewObject(data, listwatch.Version(m.GetVersion()), nil)
}

// Value returns the reading in o, an object of a client whose framing is [Framing].
func Value(o *listwatch.Object) (*Reading, error) {
	m := &Reading{}
	return m, proto.Unmarshal(o.Data, m)
}
