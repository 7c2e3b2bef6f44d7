package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Collection is a set of objects of one kind that can be written, listed and watched. It is a [listwatch.Source], and safe for
// concurrent use.
//
// Objects go in as JSON of any layout and are kept compact, on one line, with members, numbers and strings as their writer
// spelled them. The collection sets metadata.uid, resourceVersion, generation and creationTimestamp and keeps kind and
// apiVersion; an object in which the name of a member comes twice is refused, and one whose metadata is not of the types of Kubernetes'
// ObjectMeta.
//
// Errors are [*listwatch.Error] with Kubernetes' codes and words: Invalid (400 where the object can't be read, 422 with causes where
// it breaks rules), NotFound, AlreadyExists, Conflict. Errors of a context, and those of functions that callers pass in, come back
// unchanged.
type Collection struct {
	// Immutable after construction.
	resource CollectionSpec
	backend  Backend
	dry      bool // writes go nowhere
}

// New returns the collection that r declares, kept by b. The defaults of r are filled in. Where b is a [listwatch.Describer], its epoch
// is that of the collection.
func New(r CollectionSpec, b Backend) *Collection {
	return &Collection{resource: r.WithDefaults(), backend: b}
}

// Preconditions are what must hold of an object before it is changed. The zero Preconditions always hold.
type Preconditions struct {
	// UID is the metadata.uid that the object must have; empty: any. It tells an object from a later one of the same name.
	UID string
	// Version is the one that the object must be at; zero: any.
	Version listwatch.Version
}

// Resource returns what the collection was declared as.
func (c *Collection) Spec() CollectionSpec { return c.resource }

// Backend returns what keeps the collection. What is written there obeys none of its rules: it is for those who have their own.
func (c *Collection) Backend() Backend { return c.backend }

// Describe says what the collection holds.
func (c *Collection) Describe() listwatch.Description {
	epoch := ""
	if b, ok := c.backend.(listwatch.Describer); ok {
		epoch = b.Describe().Epoch
	}
	return c.resource.Description(epoch)
}

// List returns the state of a selection at one version.
func (c *Collection) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	return c.backend.List(ctx, q)
}

// Watch follows a selection.
func (c *Collection) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	return c.backend.Watch(ctx, q)
}

// Get returns the newest object at key.
func (c *Collection) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	o, err := c.backend.Get(ctx, key)
	if err == nil && o == nil {
		err = c.resource.notFound(key)
	}
	return o, err
}

// nameTries is how many generated names may be taken before a create gives up.
const nameTries = 8

// Create writes a new object. Where it has metadata.generateName and no name, a name is made of that and five random characters.
// What the writer gave for the members that the collection sets is replaced; a resourceVersion is refused, for it says that the object is
// there already.
func (c *Collection) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	return c.CreateIn(ctx, "", data)
}

// CreateIn is Create for a request that names the namespace: an object that names none gets it, one that names another is Invalid.
func (c *Collection) CreateIn(ctx context.Context, namespace string, data []byte) (*listwatch.Object, error) {
	d, err := c.resource.readDraft(data, listwatch.Key{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	if version, err := d.doc.metaText("resourceVersion"); err != nil || version != "" && version != "0" {
		return nil, badRequest("resourceVersion should not be set on objects to be created")
	}
	for try := 1; ; try++ {
		if d.generateName != "" {
			d.key.Name = generated(d.generateName)
		}
		d.create(time.Now())
		o, err := c.commit(ctx, Change{Key: d.key, New: c.resource.seal(d)})
		if !errors.Is(err, listwatch.Conflict) {
			return o, err
		}
		if d.generateName == "" || try == nameTries {
			return nil, c.resource.alreadyExists(d.key)
		}
	}
}

// Update changes the object at key into what change makes of it. Where somebody else changes it in between, change is called
// again with the newer state, until ctx ends or a hundred tries have failed with Conflict; with Preconditions.Version there is one
// try. What change returns must have the name of old, and its resourceVersion is ignored. A change that changes nothing writes
// nothing, and old is returned.
//
// metadata.uid and creationTimestamp stay; metadata.generation grows by one when anything but metadata and status changes. Where the
// object is to be deleted and the change takes its last finalizer, it is deleted, and what the change made of it is returned.
func (c *Collection) Update(ctx context.Context, key listwatch.Key, p Preconditions, change func(old *listwatch.Object) ([]byte, error)) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		data, err := change(old)
		if err != nil {
			return nil, callersError{err}
		}
		draft, last, err := c.redraft(old, data)
		if err != nil || draft == nil {
			return old, err
		}
		if !last {
			return c.commit(ctx, Change{Key: key, Old: old, New: draft})
		}
		gone, err := c.commit(ctx, Change{Key: key, Old: old})
		if err != nil {
			return nil, err
		}
		return draft.Seal(gone.Version), nil
	})
}

// Replace is Update with the object itself. Where data holds metadata.resourceVersion or metadata.uid, they are preconditions, so that what
// was read, changed and sent back replaces only what was read.
func (c *Collection) Replace(ctx context.Context, key listwatch.Key, data []byte) (*listwatch.Object, error) {
	p, err := c.preconditionsOf(data)
	if err != nil {
		return nil, err
	}
	return c.Update(ctx, key, p, func(*listwatch.Object) ([]byte, error) { return data, nil })
}

// Delete removes the object at key and returns its last state, at the version of the delete. An object with metadata.finalizers
// stays: it gets metadata.deletionTimestamp, and is returned as it is then. It goes when an Update takes its last finalizer.
func (c *Collection) Delete(ctx context.Context, key listwatch.Key, p Preconditions) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		draft, held := c.resource.mark(old, time.Now())
		if held && draft == nil {
			return old, nil
		}
		return c.commit(ctx, Change{Key: key, Old: old, New: draft})
	})
}

// redraft returns the draft that makes data of old; nil where that would change nothing. last is true where the object ends with it.
func (c *Collection) redraft(old *listwatch.Object, data []byte) (next *Draft, last bool, err error) {
	d, err := c.resource.readDraft(data, old.Key)
	if err != nil {
		return nil, false, err
	}
	before, err := splitDocument(old.Data)
	if err != nil {
		return nil, false, &listwatch.Error{Code: listwatch.Corrupt, Message: c.resource.quoted(old.Key.Name) + " as it is kept", Err: err}
	}
	if err := c.resource.checkFinalizers(d, before); err != nil {
		return nil, false, err
	}
	if !d.update(before, time.Now()) {
		return nil, false, nil
	}
	return c.resource.seal(d), before.marked() && len(d.finalizers) == 0, nil
}

func (c *Collection) preconditionsOf(data []byte) (p Preconditions, err error) {
	compact, err := compactObject(data)
	if err != nil {
		return p, err
	}
	doc, err := splitDocument(compact) // all else is checked when it is written
	if err != nil {
		return p, err
	}
	if p.UID, err = doc.metaText("uid"); err != nil {
		return p, err
	}
	version, err := doc.metaText("resourceVersion")
	if err != nil {
		return p, err
	}
	p.Version, err = listwatch.ParseVersion(version)
	return p, err
}

// callersError is an error of a function that the caller passed in. It is no news about the object, even where its code says so.
type callersError struct{ err error }

func (e callersError) Error() string { return e.err.Error() }

// writeTries bounds how often a write is made anew, so that a backend that always finds a conflict can't hold a caller forever.
const writeTries = 100

// retry calls write with the state at key, again as long as it fails with Conflict.
func (c *Collection) retry(ctx context.Context, key listwatch.Key, p Preconditions, write func(old *listwatch.Object) (*listwatch.Object, error)) (*listwatch.Object, error) {
	for try := 1; ; try++ {
		old, err := c.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := c.check(old, p); err != nil {
			return nil, err
		}
		o, err := write(old)
		if e, ok := errors.AsType[callersError](err); ok {
			return nil, e.err
		}
		if !errors.Is(err, listwatch.Conflict) {
			if err != nil {
				o = nil
			}
			return o, err
		}
		if p.Version != 0 || try == writeTries {
			return nil, c.resource.conflict(key, modified)
		}
		if err := pause(ctx, try); err != nil {
			return nil, err
		}
	}
}

// check holds p against old.
func (c *Collection) check(old *listwatch.Object, p Preconditions) error {
	if p.UID != "" {
		uid, err := rawjson.String(rawjson.Lookup(old.Data, "metadata", "uid"))
		if err != nil || uid != p.UID {
			return c.resource.conflict(old.Key, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", p.UID, uid))
		}
	}
	if p.Version != 0 && p.Version != old.Version {
		return c.resource.conflict(old.Key, modified)
	}
	return nil
}

// pause spreads writers that lost to each other, ever wider: at most 10 ms apart.
func pause(ctx context.Context, try int) error {
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
