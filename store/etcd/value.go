package etcd

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

// encode returns the object that d will be, without metadata.resourceVersion.
func encode(d *store.Draft) []byte {
	// Before ends with the name of the member and its colon. The name may be spelt with escapes, but holds no quote.
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

// decode returns the object that value is at version v. Its resourceVersion stands behind its uid, where Kubernetes has it, else at the end
// of its metadata. Its key is where it is, whatever it says itself: so it is in Kubernetes, too.
func decode(r store.CollectionSpec, key listwatch.Key, value []byte, v listwatch.Version) (*listwatch.Object, error) {
	if bytes.HasPrefix(value, []byte("k8s\x00")) {
		return nil, errProtobuf
	}
	o, err := listwatch.ParseObject(value)
	if err != nil {
		return nil, err
	}
	if kind := rawjson.Lookup(o.Data, "kind"); len(kind) > 0 {
		if s, err := rawjson.String(kind); err != nil || s != r.Kind {
			return nil, fmt.Errorf("its kind is %s, want %q", kind, r.Kind)
		}
	}
	d := &store.Draft{Key: key, Labels: o.Labels, Fields: r.ReadFields(o.Data)}
	if d.Before, d.After, err = split(o.Data); err != nil {
		return nil, err
	}
	return d.Seal(v), nil
}

// split takes data, compact JSON, apart where the value of metadata.resourceVersion is to be.
func split(data []byte) (before, after []byte, err error) {
	meta, err := rawjson.Find(data, "metadata")
	if err != nil {
		return nil, nil, err
	}
	var uid, version rawjson.Span
	members := 0
	err = rawjson.Members(meta.Of(data), func(name string, value rawjson.Span) error {
		members++
		switch name {
		case "uid":
			uid = value.Shift(meta.Start)
		case "resourceVersion":
			version = value.Shift(meta.Start)
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
		return append(data[:meta.End-1:meta.End-1], member...), data[meta.End-1:], nil
	}
	return append(data[:meta.End-1:meta.End-1], ","+member...), data[meta.End-1:], nil
}
