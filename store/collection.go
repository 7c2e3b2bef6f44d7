package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Collection is a set of objects of one kind that can be written, listed and watched. It is
// a [listwatch.Source], and safe for concurrent use.
//
// Objects are written as JSON and kept compact, on one line. Their members, numbers and
// strings keep the order and the spelling of the writer. The collection sets metadata.uid,
// resourceVersion, generation and creationTimestamp, and fills in kind and apiVersion. It
// refuses an object with a duplicate member, and one whose metadata does not have the types
// of Kubernetes' ObjectMeta.
//
// Errors are [*listwatch.Error] with the codes and texts of Kubernetes: Invalid (status 400
// if the object cannot be read, 422 with causes if it breaks rules), NotFound, AlreadyExists
// and Conflict. Errors of a context and of functions passed in by the caller are returned
// unchanged.
type Collection struct {
	// Immutable after construction.
	spec    CollectionSpec
	backend Backend
	dryRun  bool // writes are checked but not performed
	quota   *quota
}

var _ listwatch.Store = (*Collection)(nil)

// New returns the collection that s declares, with its objects in b. Empty fields of s get
// their defaults. If b is or wraps a [listwatch.Describer], the collection has the epoch that b
// describes.
func New(s CollectionSpec, b Backend) *Collection {
	return &Collection{spec: s.WithDefaults(), backend: b, quota: new(quota)}
}

// CollectionOf returns the Collection that s is or wraps, such as the Store of the typed.Collection
// that memory.New returns. It returns nil if there is none.
func CollectionOf(s listwatch.Source) *Collection {
	c, _ := listwatch.As[*Collection](s)
	return c
}

// Spec returns the declaration of the collection, with defaults.
func (c *Collection) Spec() CollectionSpec { return c.spec }

// Backend returns the backend of the collection. Writes to the backend bypass the rules of the
// collection, so only callers with rules of their own should use it.
func (c *Collection) Backend() Backend { return c.backend }

// Describe implements [listwatch.Describer].
func (c *Collection) Describe() listwatch.Description {
	return c.spec.Description(listwatch.Describe(c.backend).Epoch)
}

// List implements [listwatch.Source].
func (c *Collection) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return c.backend.List(ctx, q)
}

// Watch implements [listwatch.Source].
func (c *Collection) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return c.backend.Watch(ctx, q)
}

// A sized is a backend that knows the sizes of its collection.
type sized interface{ Stats() listwatch.Stats }

// Stats returns the current sizes of the collection. If the backend has no method Stats and wraps
// none that has, all sizes are zero.
func (c *Collection) Stats() listwatch.Stats {
	if b, ok := listwatch.As[sized](c.backend); ok {
		return b.Stats()
	}
	return listwatch.Stats{}
}

// Get returns the newest object at key. If there is none, the error has code NotFound.
func (c *Collection) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	o, err := c.backend.Get(ctx, key)
	if err == nil && o == nil {
		err = c.spec.notFound(key)
	}
	return o, err
}

// maxNameTries is the number of generated names that a create tries.
const maxNameTries = 8

// Create writes a new object. If it has metadata.generateName and no name, its name is the
// generateName followed by five random characters. Create overwrites the members that the
// collection sets, such as metadata.uid. It refuses an object with a nonzero resourceVersion,
// because only an existing object has one.
func (c *Collection) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	return c.CreateIn(ctx, "", data)
}

// CreateIn is like Create, for a request that names a namespace. An object without a namespace gets
// the namespace of the request. If the object has another namespace, the error has code Invalid.
func (c *Collection) CreateIn(ctx context.Context, namespace string, data []byte) (*listwatch.Object, error) {
	end, err := budget.BeginTurn(ctx, len(data))
	if err != nil {
		return nil, err
	}
	s, err := c.spec.parseSubmission(data, listwatch.Key{Namespace: namespace})
	end()
	if err != nil {
		return nil, err
	}
	if version, err := s.doc.metadataString("resourceVersion"); err != nil || version != "" && version != "0" {
		return nil, badRequest("resourceVersion should not be set on objects to be created")
	}
	for try := 1; ; try++ {
		if s.isGenerated && try > 1 {
			s.key.Name = generateName(s.generateName)
		}
		s.prepareCreate(time.Now())
		o, err := c.commit(ctx, Change{Key: s.key, New: c.spec.draft(s)})
		if !errors.Is(err, listwatch.Conflict) {
			return o, err
		}
		switch {
		case s.isGenerated && try < maxNameTries:
		case s.generateName != "":
			return nil, c.spec.generateNameConflict(s.key)
		default:
			return nil, c.spec.alreadyExists(s.key)
		}
	}
}

// Update replaces the object at key with the result of the function change. The result must have
// the same name. The resourceVersion of the result is ignored. If another writer changes the object
// in between, Update calls change again with the newer state. It returns Conflict after a hundred
// tries, or after one if Preconditions.Version is set. If the result differs at most in the order
// of members, nothing is written and the old object is returned.
//
// metadata.uid and creationTimestamp keep their values, and metadata.generation grows by one
// if anything except metadata and status changes. If the object is being deleted and the
// change removes its last finalizer, the object is deleted and its last state is returned.
func (c *Collection) Update(ctx context.Context, key listwatch.Key, p listwatch.Preconditions, change func(old *listwatch.Object) ([]byte, error)) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		data, err := change(old)
		if err != nil {
			return nil, callerError{err}
		}
		draft, deletes, err := c.draftUpdate(ctx, old, data)
		if err != nil || draft == nil {
			return old, err
		}
		if !deletes {
			return c.commit(ctx, Change{Key: key, Old: old, New: draft})
		}
		deleted, err := c.commit(ctx, Change{Key: key, Old: old})
		if err != nil {
			return nil, err
		}
		return draft.Seal(deleted.Version), nil
	})
}

// Replace is like Update with a function that returns data. If data has metadata.resourceVersion or
// metadata.uid, they are preconditions, so that a client that reads an object, changes it and sends
// it back cannot overwrite another change. If data has another name or namespace than key, the
// error has code Invalid, even if there is no object at key, as in Kubernetes.
func (c *Collection) Replace(ctx context.Context, key listwatch.Key, data []byte) (*listwatch.Object, error) {
	return c.ReplaceIf(ctx, key, listwatch.Preconditions{}, data)
}

// ReplaceIf is like Replace. It also checks the preconditions p.
func (c *Collection) ReplaceIf(ctx context.Context, key listwatch.Key, p listwatch.Preconditions, data []byte) (*listwatch.Object, error) {
	end, err := budget.BeginTurn(ctx, len(data))
	if err != nil {
		return nil, err
	}
	own, err := c.preconditionsOf(data, key)
	end()
	switch {
	case err != nil:
		return nil, err
	case p.UID != "" && own.UID != "" && p.UID != own.UID, p.Version != 0 && own.Version != 0 && p.Version != own.Version:
		return nil, badRequest("the preconditions (uid %q, version %d) contradict the object (uid %q, version %d)", p.UID, p.Version, own.UID, own.Version)
	}
	p.UID, p.Version = cmp.Or(p.UID, own.UID), cmp.Or(p.Version, own.Version)
	return c.Update(ctx, key, p, func(*listwatch.Object) ([]byte, error) { return data, nil })
}

// Delete removes the object at key and returns its last state, at the version of the delete.
// An object with metadata.finalizers is not removed but gets a metadata.deletionTimestamp,
// and is returned with it. It is removed by the Update that removes its last finalizer.
func (c *Collection) Delete(ctx context.Context, key listwatch.Key, p listwatch.Preconditions) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		draft, hasFinalizers := c.spec.draftMarked(old, time.Now())
		if hasFinalizers && draft == nil {
			return old, nil
		}
		return c.commit(ctx, Change{Key: key, Old: old, New: draft})
	})
}

// draftUpdate returns the draft that replaces old with data, or nil if nothing would change.
// deletes reports whether the object must be deleted because it no longer has finalizers.
func (c *Collection) draftUpdate(ctx context.Context, old *listwatch.Object, data []byte) (draft *Draft, deletes bool, err error) {
	end, err := budget.BeginTurn(ctx, len(data)+len(old.Data))
	if err != nil {
		return nil, false, err
	}
	defer end()
	s, err := c.spec.parseSubmission(data, old.Key)
	if err != nil {
		return nil, false, err
	}
	before, err := splitDocument(old.Data)
	if err != nil {
		return nil, false, &listwatch.Error{Code: listwatch.Corrupt, Message: "the stored object " + c.spec.quotedName(old.Key.Name), Err: err}
	}
	if err := c.spec.checkFinalizers(s, before); err != nil {
		return nil, false, err
	}
	if err := c.spec.checkDeletionMarks(s, before); err != nil {
		return nil, false, err
	}
	if !s.prepareUpdate(before, time.Now()) {
		return nil, false, nil
	}
	return c.spec.draft(s), before.isBeingDeleted() && len(s.finalizers) == 0, nil
}

// preconditionsOf returns the preconditions in data, the JSON of an object that must have the given
// key.
func (c *Collection) preconditionsOf(data []byte, key listwatch.Key) (p listwatch.Preconditions, err error) {
	compact, err := compactObject(data)
	if err != nil {
		return p, err
	}
	doc, err := splitDocument(compact) // the update checks everything else
	if err != nil {
		return p, err
	}
	var got listwatch.Key
	if got.Name, err = doc.metadataString("name"); err != nil {
		return p, err
	}
	if got.Namespace, err = doc.metadataString("namespace"); err != nil {
		return p, err
	}
	if err := checkKey(got, key); err != nil {
		return p, err
	}
	if p.UID, err = doc.metadataString("uid"); err != nil {
		return p, err
	}
	version, err := doc.metadataString("resourceVersion")
	if err != nil {
		return p, err
	}
	p.Version, err = listwatch.ParseVersion(version)
	return p, err
}

// A callerError is an error of a function that the caller passed in. Even if its code is
// Conflict, the write is not retried.
type callerError struct{ err error }

func (e callerError) Error() string { return e.err.Error() }

// maxWriteTries limits the retries for a backend that reports a conflict for every write.
const maxWriteTries = 100

// retry calls write with the newest object at key. It repeats this each time that write returns
// Conflict.
func (c *Collection) retry(ctx context.Context, key listwatch.Key, p listwatch.Preconditions, write func(old *listwatch.Object) (*listwatch.Object, error)) (*listwatch.Object, error) {
	for try := 1; ; try++ {
		old, err := c.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := c.checkPreconditions(old, p); err != nil {
			return nil, err
		}
		o, err := write(old)
		if e, ok := errors.AsType[callerError](err); ok {
			return nil, e.err
		}
		if !errors.Is(err, listwatch.Conflict) {
			if err != nil {
				o = nil
			}
			return o, err
		}
		if p.Version != 0 || try == maxWriteTries {
			return nil, c.spec.conflict(key, modifiedMessage)
		}
		if err := waitToRetry(ctx, try); err != nil {
			return nil, err
		}
	}
}

func (c *Collection) checkPreconditions(old *listwatch.Object, p listwatch.Preconditions) error {
	if p.UID != "" {
		uid, err := rawjson.String(rawjson.Lookup(old.Data, "metadata", "uid"))
		if err != nil || uid != p.UID {
			return c.spec.conflict(old.Key, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", p.UID, uid))
		}
	}
	if p.Version != 0 && p.Version != old.Version {
		return c.spec.conflict(old.Key, modifiedMessage)
	}
	return nil
}

// waitToRetry waits for a random time, so that writers that conflicted with each other do not retry
// at the same moment. The longest time grows with the number of tries, up to 10 ms. The first
// retries do not wait.
func waitToRetry(ctx context.Context, try int) error {
	if try < 3 {
		return ctx.Err()
	}
	longest := min(10*time.Millisecond, 50*time.Microsecond<<min(try, 10))
	t := time.NewTimer(rand.N(longest))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
