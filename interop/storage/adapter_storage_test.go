package storage

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
)

// Storage is a [kube.Interface] over one of our collections. It is safe for concurrent use,
// except for Transform.
type Storage struct {
	// Immutable after construction.
	backend      store.Backend
	floor        func() listwatch.Version // the oldest version in the history
	initialFloor listwatch.Version        // the floor at the start

	coder
}

var _ kube.Interface = (*Storage)(nil)

// Options configures a Storage. All fields are required.
type Options struct {
	// Prefix is the prefix of every key, with a slash at both ends, for example "/pods/".
	Prefix string
	// New returns an empty object.
	New func() runtime.Object
	// Codec encodes objects as JSON.
	Codec runtime.Codec
}

// New returns a Storage over c. The store of c must report the oldest version that can be watched.
func New(c *store.Collection, o Options) (*Storage, error) {
	backend := c.Backend()
	log, ok := backend.(interface{ Stats() listwatch.Stats })
	if !ok {
		return nil, errors.New("the store does not report the floor of its history")
	}
	s := &Storage{backend: backend, coder: coder{Options: o, resource: c.Spec()}}
	s.floor = func() listwatch.Version { return log.Stats().Oldest }
	s.initialFloor = s.floor()
	return s, nil
}

// Transform replaces the transformer of stored objects until undo is called. Neither
// Transform nor undo may be called during an operation other than a watch.
func (s *Storage) Transform(replace func(value.Transformer) value.Transformer) (undo func()) {
	old := s.transformer
	s.transformer = replace(old)
	return func() { s.transformer = old }
}

// Versioner implements [kube.Interface].
func (s *Storage) Versioner() kube.Versioner { return versioner }

// Stats implements [kube.Interface]. Sizes are not estimated.
func (s *Storage) Stats(ctx context.Context) (kube.Stats, error) {
	page, err := s.backend.List(ctx, listwatch.Query{Limit: 1})
	return kube.Stats{ObjectCount: int64(len(page.Items) + page.Remaining)}, err
}

// GetCurrentResourceVersion implements [kube.Interface].
func (s *Storage) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	page, err := s.backend.List(ctx, listwatch.Query{Limit: 1})
	return uint64(page.Version), err
}

// CompactRevision implements [kube.Interface].
func (s *Storage) CompactRevision() int64 {
	if floor := s.floor(); floor > s.initialFloor {
		return int64(floor)
	}
	return 0
}

// ReadinessCheck implements [kube.Interface].
func (s *Storage) ReadinessCheck() error { return nil }

// RequestWatchProgress implements [kube.Interface]. It does nothing, because watches send
// bookmarks every [bookmarkInterval].
func (s *Storage) RequestWatchProgress(context.Context) error { return nil }

// EnableResourceSizeEstimation implements [kube.Interface].
func (s *Storage) EnableResourceSizeEstimation(kube.KeysFunc) error {
	return errors.New("sizes are not estimated")
}
