package etcd

import (
	"bytes"
	"errors"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

var errProtobuf = errors.New("it is Protocol Buffers, want JSON")

// decode returns the object whose JSON is value, at version v. As in Kubernetes, the object has the
// given key even if the JSON contains another name.
func decode(s store.CollectionSpec, key listwatch.Key, value []byte, v listwatch.Version) (*listwatch.Object, error) {
	if bytes.HasPrefix(value, []byte("k8s\x00")) {
		return nil, errProtobuf
	}
	d, err := s.Restore(key, value)
	if err != nil {
		return nil, err
	}
	return d.Seal(v), nil
}
