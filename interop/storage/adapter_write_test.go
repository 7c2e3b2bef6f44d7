package storage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apiserver/pkg/storage"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

// Create implements [kube.Interface].
func (s *Storage) Create(ctx context.Context, path string, o, out runtime.Object, ttl uint64) error {
	key, err := s.keyOf(path)
	if err != nil {
		return err
	}
	if version, err := versioner.ObjectResourceVersion(o); err == nil && version != 0 {
		return kube.ErrResourceVersionSetOnCreate
	}
	err = s.put(ctx, key, nil, o, out, ttl)
	if errors.Is(err, listwatch.Conflict) {
		return kube.NewKeyExistsError(path, 0)
	}
	return err
}

// put replaces old with o, or creates o if old is nil. o has the given time to live in seconds; 0
// means forever. If out is not nil, put decodes the result into out.
func (s *Storage) put(
	ctx context.Context, key listwatch.Key, old *listwatch.Object, o, out runtime.Object, ttl uint64,
) error {
	d, plain, err := s.newDraft(ctx, key, o)
	if err != nil {
		return err
	}
	d.TTL = time.Duration(ttl) * time.Second
	written, err := s.backend.Commit(ctx, store.Change{Key: key, Old: old, New: d})
	if err != nil || out == nil {
		return err
	}
	return s.decodePlain(plain, written.Version, out)
}

// A baseState is the state of an object on which a write is based.
type baseState struct {
	stored  *listwatch.Object // nil if the object does not exist
	object  runtime.Object    // nil if the stored object cannot be decoded
	stale   bool              // the transformer would now store other bytes
	current bool              // the state was read from the store, not suggested by the caller
}

func (b *baseState) version() listwatch.Version {
	if b.stored == nil {
		return 0
	}
	return b.stored.Version
}

// read returns the state at path, or nil if the object does not exist. If the object cannot be
// decoded, read also returns the decoding error as unreadable.
func (s *Storage) read(ctx context.Context, path string) (st *baseState, unreadable, err error) {
	kept, err := s.get(ctx, path, "")
	if err != nil || kept == nil {
		return nil, nil, err
	}
	st = &baseState{stored: kept, object: s.New(), current: true}
	if st.stale, unreadable = s.decode(ctx, kept, st.object); unreadable != nil {
		st.object = nil
	}
	return st, unreadable, nil
}

// suggested returns a baseState made from o, which the caller of a write suggests as the current
// object. It may be outdated. If o is nil, suggested returns nil.
func (s *Storage) suggested(ctx context.Context, path string, o runtime.Object) (*baseState, error) {
	if o == nil {
		return nil, nil
	}
	key, err := s.keyOf(path)
	if err != nil {
		return nil, err
	}
	version, err := versioner.ObjectResourceVersion(o)
	if err != nil {
		return nil, err
	}
	d, _, err := s.newDraft(ctx, key, o)
	if err != nil {
		return nil, err
	}
	return &baseState{stored: d.Seal(listwatch.Version(version)), object: o.DeepCopyObject()}, nil
}

// errReread makes retryOnConflict call write again with the current state. write returns errReread
// if it would change nothing, but the state may be outdated.
var errReread = &listwatch.Error{Code: listwatch.Conflict}

// retryOnConflict calls write with st or, if st is nil, with the current state. If write returns a
// conflict, retryOnConflict calls it again with the current state. Any other error may be due to an
// outdated state, so retryOnConflict returns the error only if the state was current.
func retryOnConflict(st *baseState, read func() (*baseState, error), write func(*baseState) error) error {
	var failed error
	var at listwatch.Version
	for {
		if st == nil {
			var err error
			if st, err = read(); err != nil {
				return err
			}
			if failed != nil && st.version() == at {
				return failed
			}
		}
		err := write(st)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, listwatch.Conflict):
			failed = nil
		case st.current:
			return err
		default:
			failed, at = err, st.version()
		}
		st = nil
	}
}

// GuaranteedUpdate implements [kube.Interface].
func (s *Storage) GuaranteedUpdate(ctx context.Context, path string, out runtime.Object, ignoreNotFound bool,
	p *kube.Preconditions, update kube.UpdateFunc, suggestion runtime.Object,
) error {
	key, err := s.keyOf(path)
	if err != nil {
		return err
	}
	st, err := s.suggested(ctx, path, suggestion)
	if err != nil {
		return err
	}
	read := func() (*baseState, error) {
		st, unreadable, err := s.read(ctx, path)
		switch {
		case err != nil:
			return nil, err
		case unreadable != nil:
			return nil, unreadable
		case st == nil && ignoreNotFound:
			return &baseState{object: s.New(), current: true}, nil
		case st == nil:
			return nil, kube.NewKeyNotFoundError(path, 0)
		}
		return st, nil
	}
	return retryOnConflict(st, read, func(st *baseState) error {
		if err := p.Check(path, st.object); err != nil {
			return err
		}
		next, ttl, err := update(st.object, kube.ResponseMeta{ResourceVersion: uint64(st.version())})
		if err != nil {
			return err
		}
		same, err := s.unchanged(ctx, st, next)
		switch {
		case err != nil:
			return err
		case !same:
			return s.put(ctx, key, st.stored, next, out, *cmp.Or(ttl, new(uint64)))
		case !st.current:
			return errReread
		}
		_, err = s.decode(ctx, st.stored, out)
		return err
	})
}

// unchanged reports whether a write of the given object would leave the stored bytes as they are.
func (s *Storage) unchanged(ctx context.Context, st *baseState, next runtime.Object) (bool, error) {
	if st.stored == nil || st.stale {
		return false, nil
	}
	d, _, err := s.newDraft(ctx, st.stored.Key, next)
	if err != nil {
		return false, err
	}
	before, after := withoutVersion(st.stored.Data)
	nextBefore, nextAfter := withoutVersion(d.Seal(st.stored.Version).Data)
	return bytes.Equal(slices.Concat(before, after), slices.Concat(nextBefore, nextAfter)), nil
}

// withoutVersion returns the bytes before and after metadata.resourceVersion, whose
// position a store may change.
func withoutVersion(data []byte) (before, after []byte) {
	meta, err := rawjson.Find(data, "metadata")
	if err != nil {
		return data, nil
	}
	version, err := rawjson.Find(meta.Of(data), "resourceVersion")
	if err != nil || version.Empty() {
		return data, nil
	}
	version = version.Shift(meta.Start)
	before = bytes.TrimSuffix(data[:version.Start], []byte(`"resourceVersion":`))
	if rest, ok := bytes.CutPrefix(data[version.End:], []byte(",")); ok {
		return before, rest
	}
	return bytes.TrimSuffix(before, []byte(",")), data[version.End:]
}

// Delete implements [kube.Interface].
func (s *Storage) Delete(ctx context.Context, path string, out runtime.Object, p *kube.Preconditions,
	validate kube.ValidateObjectFunc, suggestion runtime.Object, o kube.DeleteOptions,
) error {
	broken := o.ExpectTransformOrDecodeError
	if broken {
		suggestion = nil
	}
	st, err := s.suggested(ctx, path, suggestion)
	if err != nil {
		return err
	}
	read := func() (*baseState, error) {
		st, unreadable, err := s.read(ctx, path)
		switch {
		case err != nil:
			return nil, err
		case st == nil:
			return nil, kube.NewKeyNotFoundError(path, 0)
		case broken && unreadable == nil:
			return nil, kube.NewInvalidObjError(path, "the object can be decoded, so it needs no unsafe deletion")
		case !broken && unreadable != nil:
			return nil, unreadable
		}
		return st, nil
	}
	return retryOnConflict(st, read, func(st *baseState) error {
		if err := p.Check(path, st.object); err != nil {
			return err
		}
		if err := validate(ctx, st.object); err != nil {
			return err
		}
		deleted, err := s.backend.Commit(ctx, store.Change{Key: st.stored.Key, Old: st.stored})
		if err != nil || broken {
			return err
		}
		_, err = s.decode(ctx, deleted, out)
		return err
	})
}
