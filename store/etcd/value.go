package etcd

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

// encode returns the JSON of d without metadata.resourceVersion.
func encode(d *store.Draft) []byte {
	// d.Before ends with the name of the member resourceVersion and a colon. The name may
	// contain escapes, but no quote.
	name := bytes.LastIndexByte(d.Before[:len(d.Before)-len(`":`)], '"')
	before, after := d.Before[:name], d.After
	switch {
	case after[0] == ',':
		after = after[1:]
	case before[len(before)-1] == ',':
		before = before[:len(before)-1]
	}
	return append(append(make([]byte, 0, len(before)+len(after)), before...), after...)
}

var errProtobuf = errors.New("it is Protocol Buffers, want JSON")

// decode returns the object whose JSON is value, at version v. It inserts resourceVersion after
// uid, as Kubernetes does, or at the end of metadata if there is no uid. As in Kubernetes, the
// object has the given key even if the JSON contains another name.
func decode(s store.CollectionSpec, key listwatch.Key, value []byte, v listwatch.Version) (*listwatch.Object, error) {
	if bytes.HasPrefix(value, []byte("k8s\x00")) {
		return nil, errProtobuf
	}
	o, err := listwatch.ParseObject(value)
	if err != nil {
		return nil, err
	}
	if kind := rawjson.Lookup(o.Data, "kind"); len(kind) > 0 {
		if text, err := rawjson.String(kind); err != nil || text != s.Kind {
			return nil, fmt.Errorf("its kind is %s, want %q", kind, s.Kind)
		}
	}
	d := &store.Draft{Key: key, Labels: o.Labels, Fields: s.ReadFields(o.Data)}
	if d.Before, d.After, err = split(o.Data); err != nil {
		return nil, err
	}
	return d.Seal(v), nil
}

// split returns the parts of the compact JSON in data that come before and after the value of
// metadata.resourceVersion.
func split(data []byte) (before, after []byte, err error) {
	metadata, err := rawjson.Find(data, "metadata")
	if err != nil {
		return nil, nil, err
	}
	var uid, version rawjson.Span
	members := 0
	err = rawjson.Members(metadata.Of(data), func(name string, value rawjson.Span) error {
		members++
		switch name {
		case "uid":
			uid = value.Shift(metadata.Start)
		case "resourceVersion":
			version = value.Shift(metadata.Start)
		}
		return nil
	})
	const member = `"resourceVersion":`
	switch {
	case err != nil:
		return nil, nil, err
	case !version.Empty():
		return data[:version.Start:version.Start], data[version.End:], nil
	case !uid.Empty():
		return append(data[:uid.End:uid.End], ","+member...), data[uid.End:], nil
	case members == 0:
		return append(data[:metadata.End-1:metadata.End-1], member...), data[metadata.End-1:], nil
	}
	return append(data[:metadata.End-1:metadata.End-1], ","+member...), data[metadata.End-1:], nil
}
