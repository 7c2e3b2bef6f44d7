package storage

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apiserver/pkg/storage"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

// Our stores have no time to live: that of an object is taken and not kept.

// Create implements [kube.Interface].
func (s *Storage) Create(ctx context.Context, path string, o, out runtime.Object, _ uint64) error {
	key, err := s.keyOf(path)
	if err != nil {
		return err
	}
	if version, err := versioner.ObjectResourceVersion(o); err == nil && version != 0 {
		return kube.ErrResourceVersionSetOnCreate
	}
	err = s.put(ctx, key, nil, o, out)
	if errors.Is(err, listwatch.Conflict) {
		return kube.NewKeyExistsError(path, 0)
	}
	return err
}

// put writes o over old and reads it back into out, which may be nil.
func (s *Storage) put(ctx context.Context, key listwatch.Key, old *listwatch.Object, o, out runtime.Object) error {
	d, plain, err := s.draft(ctx, key, o)
	if err != nil {
		return err
	}
	written, err := s.backend.Commit(ctx, store.Change{Key: key, Old: old, New: d})
	if err != nil || out == nil {
		return err
	}
	return s.decodePlain(plain, written.Version, out)
}

// A state is an object that a write is to be made from.
type state struct {
	kept    *listwatch.Object // nil: there is none
	object  runtime.Object    // nil: it can't be read
	stale   bool              // it would be kept otherwise today
	current bool              // read from the store, not suggested
}

func (st *state) version() listwatch.Version {
	if st.kept == nil {
		return 0
	}
	return st.kept.Version
}

// read returns the state at path; nil where there is none.
func (s *Storage) read(ctx context.Context, path string) (st *state, unreadable, err error) {
	kept, err := s.get(ctx, path, "")
	if err != nil || kept == nil {
		return nil, nil, err
	}
	st = &state{kept: kept, object: s.New(), current: true}
	if st.stale, unreadable = s.decode(ctx, kept, st.object); unreadable != nil {
		st.object = nil
	}
	return st, unreadable, nil
}

// suggested returns o as the state that it was read from; nil where there is no o.
func (s *Storage) suggested(ctx context.Context, path string, o runtime.Object) (*state, error) {
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
	d, _, err := s.draft(ctx, key, o)
	if err != nil {
		return nil, err
	}
	return &state{kept: d.Seal(listwatch.Version(version)), object: o.DeepCopyObject()}, nil
}

// errReread says that a suggested state can't be trusted with what is to be done.
var errReread = &listwatch.Error{Code: listwatch.Conflict}

// settle calls write with st, where there is one, and with the newest state, until that is no longer in conflict with somebody
// else's write. An error of another kind counts only where it is about the newest state.
func settle(st *state, read func() (*state, error), write func(*state) error) error {
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
	read := func() (*state, error) {
		st, unreadable, err := s.read(ctx, path)
		switch {
		case err != nil:
			return nil, err
		case unreadable != nil:
			return nil, unreadable
		case st == nil && ignoreNotFound:
			return &state{object: s.New(), current: true}, nil
		case st == nil:
			return nil, kube.NewKeyNotFoundError(path, 0)
		}
		return st, nil
	}
	return settle(st, read, func(st *state) error {
		if err := p.Check(path, st.object); err != nil {
			return err
		}
		next, _, err := update(st.object, kube.ResponseMeta{ResourceVersion: uint64(st.version())})
		if err != nil {
			return err
		}
		same, err := s.same(ctx, st, next)
		switch {
		case err != nil:
			return err
		case !same:
			return s.put(ctx, key, st.kept, next, out)
		case !st.current:
			return errReread
		}
		_, err = s.decode(ctx, st.kept, out)
		return err
	})
}

// same reports whether to write next over st would leave the same bytes.
func (s *Storage) same(ctx context.Context, st *state, next runtime.Object) (bool, error) {
	if st.kept == nil || st.stale {
		return false, nil
	}
	d, _, err := s.draft(ctx, st.kept.Key, next)
	if err != nil {
		return false, err
	}
	before, after := withoutVersion(st.kept.Data)
	nextBefore, nextAfter := withoutVersion(d.Seal(st.kept.Version).Data)
	return bytes.Equal(slices.Concat(before, after), slices.Concat(nextBefore, nextAfter)), nil
}

// withoutVersion returns what is around metadata.resourceVersion, which a store may keep at another place than it was written at.
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
	read := func() (*state, error) {
		st, unreadable, err := s.read(ctx, path)
		switch {
		case err != nil:
			return nil, err
		case st == nil:
			return nil, kube.NewKeyNotFoundError(path, 0)
		case broken && unreadable == nil:
			return nil, kube.NewInvalidObjError(path, "the object can be read, and is deleted in no other way than others")
		case !broken && unreadable != nil:
			return nil, unreadable
		}
		return st, nil
	}
	return settle(st, read, func(st *state) error {
		if err := p.Check(path, st.object); err != nil {
			return err
		}
		if err := validate(ctx, st.object); err != nil {
			return err
		}
		gone, err := s.backend.Commit(ctx, store.Change{Key: st.kept.Key, Old: st.kept})
		if err != nil || broken {
			return err
		}
		_, err = s.decode(ctx, gone, out)
		return err
	})
}
