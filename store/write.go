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
	"github.com/listwatch/listwatch/internal/reflector"
)

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
	if err := c.checkScope(cmp.Or(namespace, c.scope.Namespace)); err != nil {
		return nil, err
	}
	d, err := parseInTurn(ctx, data)
	if err != nil {
		return nil, err
	}
	return c.CreateDocument(ctx, namespace, d)
}

// CreateDocument is like CreateIn for an object that has been parsed.
func (c *Collection) CreateDocument(
	ctx context.Context, namespace string, d *Document,
) (*listwatch.Object, error) {
	namespace = cmp.Or(namespace, c.scope.Namespace)
	if err := c.checkScope(namespace); err != nil {
		return nil, err
	}
	s, err := c.spec.submit(d, listwatch.Key{Namespace: namespace})
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
		if err := c.spec.checkRules(s, true); err != nil {
			return nil, err
		}
		admitted, err := c.spec.admit(ctx, nil, s)
		if err != nil {
			return nil, err
		}
		admitted.prepareCreate(c.spec.Generation, time.Now())
		o, err := c.commit(ctx, Change{Key: s.key, New: c.spec.draft(admitted)})
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

// Update replaces the object at key with the result of change. The result must have the same
// name. The resourceVersion of the result is ignored. If another writer changes the object in
// between, Update calls change again with the newer state. It returns Conflict after a hundred
// tries, or after one if Preconditions.Version is set. If the result has the same value,
// perhaps with members in another order or strings with other escapes, nothing is written and the
// old object is returned. That renews the object, as [Collection.Renew] does.
//
// metadata.uid and creationTimestamp keep their values, and metadata.generation grows by one if
// anything changes that [CollectionSpec.Generation] selects. If the object is being deleted and the
// change removes its last finalizer, the object is deleted and its last state is returned.
func (c *Collection) Update(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
	change func(old *listwatch.Object) ([]byte, error),
) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		data, err := change(old) // without a turn, because it may wait
		if err != nil {
			return nil, callerError{err}
		}
		return c.apply(ctx, old, len(data), func(*Document) (*submission, error) {
			d, err := parseUnique(data)
			if err != nil {
				return nil, err
			}
			return c.spec.submit(d, key)
		})
	})
}

// UpdateDocument is like Update, with a change that returns a Document. change also receives the
// stored object as a Document, which was not inspected for duplicates and numbers. size is the
// size of the data that change reads in addition to the object, such as the length of a patch. If
// the data or the object are large, change is called when it is the turn of the request to use a
// processor, so change must not wait.
func (c *Collection) UpdateDocument(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions, size int,
	change func(old *listwatch.Object, stored *Document) (*Document, error),
) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		return c.apply(ctx, old, size, func(stored *Document) (*submission, error) {
			d, err := change(old, stored)
			if err != nil {
				return nil, callerError{err}
			}
			return c.spec.submit(d, key)
		})
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
func (c *Collection) ReplaceIf(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions, data []byte,
) (*listwatch.Object, error) {
	d, err := parseInTurn(ctx, data)
	if err != nil {
		return nil, err
	}
	first, err := c.spec.submit(d, key)
	if err != nil {
		return nil, err
	}
	own, err := d.preconditions()
	if err == nil {
		p, err = bothPreconditions(p, own)
	}
	if err != nil {
		return nil, err
	}
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		return c.apply(ctx, old, len(data), func(*Document) (s *submission, err error) {
			if s, first = first, nil; s == nil { // a retry
				s, err = c.spec.submit(d, key)
			}
			return s, err
		})
	})
}

// bothPreconditions returns preconditions that hold if both p and own hold. own comes from the body
// of the request.
func bothPreconditions(p, own listwatch.Preconditions) (listwatch.Preconditions, error) {
	if p.UID != "" && own.UID != "" && p.UID != own.UID || p.Version != 0 && own.Version != 0 &&
		p.Version != own.Version {
		return p, badRequest("the preconditions (uid %q, version %d) contradict the object (uid %q, version %d)",
			p.UID, p.Version, own.UID, own.Version)
	}
	p.UID, p.Version = cmp.Or(p.UID, own.UID), cmp.Or(p.Version, own.Version)
	return p, nil
}

// Delete removes the object at key and returns its last state, at the version of the delete.
// An object with metadata.finalizers is not removed but gets a metadata.deletionTimestamp,
// and is returned with it. It is removed by the Update that removes its last finalizer.
func (c *Collection) Delete(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
) (*listwatch.Object, error) {
	return c.DeleteAs(ctx, key, p, func(old *listwatch.Object) ([]byte, error) { return old.Data, nil })
}

// DeleteAs is like Delete, but treats the object as if its data were the result of change. The
// result may have other finalizers than the stored object, and may differ in any other member but
// the name and the labels. If the result has finalizers, it is written together with the
// deletionTimestamp, unless it already has one. The change also applies to an object that is being
// deleted: if no finalizers are left, the object is removed.
func (c *Collection) DeleteAs(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
	change func(old *listwatch.Object) ([]byte, error),
) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) {
		data, err := change(old)
		if err != nil {
			return nil, callerError{err}
		}
		draft, hasFinalizers := c.spec.draftMarked(old, data, time.Now())
		if hasFinalizers && draft == nil {
			return old, nil
		}
		return c.commit(ctx, Change{Key: key, Old: old, New: draft})
	})
}

// Renew starts the TTL of the object at key again, and returns the object. It writes nothing: the
// object keeps its version, and watchers receive no event. An update that changes nothing does the
// same. If the object does not expire, Renew only returns it. If there is none, the error has code
// NotFound. If the object does not meet p, for example because another one has replaced it, the
// error has code Conflict.
func (c *Collection) Renew(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
) (*listwatch.Object, error) {
	return c.retry(ctx, key, p, func(old *listwatch.Object) (*listwatch.Object, error) { return c.renew(ctx, old) })
}

// renew starts the TTL of o again, unless c is a dry run.
func (c *Collection) renew(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error) {
	if c.spec.TTL == nil || c.dryRun {
		return o, nil
	}
	r, err := c.renewer()
	if err != nil {
		return nil, err
	}
	return o, r.Renew(ctx, o)
}

// renewer returns the Renewer that is the backend of c, or that this backend wraps.
func (c *Collection) renewer() (Renewer, error) {
	r, ok := listwatch.As[Renewer](c.backend)
	if !ok {
		return nil, &listwatch.Error{
			Code: listwatch.Unsupported,
			Message: fmt.Sprintf("%s has a TTL, but its backend %T cannot renew objects: it must be a store.Renewer",
				c.spec.QualifiedName(), c.backend),
		}
	}
	return r, nil
}

// parseInTurn is like ParseDocument, but refuses duplicate members. If data is large, it first
// waits for a turn.
func parseInTurn(ctx context.Context, data []byte) (*Document, error) {
	end, err := budget.BeginTurn(ctx, len(data))
	if err != nil {
		return nil, err
	}
	defer end()
	return parseUnique(data)
}

// apply replaces old with the result of change, which is called in a turn. It deletes the object
// if it is being deleted and has no finalizers left, and only renews it if nothing would change.
// size is the size of the data that change reads in addition to old.
func (c *Collection) apply(
	ctx context.Context, old *listwatch.Object, size int, change func(stored *Document) (*submission, error),
) (*listwatch.Object, error) {
	draft, deletes, err := c.draftUpdate(ctx, old, size, change)
	switch {
	case err != nil:
		return nil, err
	case draft == nil:
		return c.renew(ctx, old)
	case !deletes:
		return c.commit(ctx, Change{Key: old.Key, Old: old, New: draft})
	}
	deleted, err := c.commit(ctx, Change{Key: old.Key, Old: old})
	if err != nil {
		return nil, err
	}
	return draft.Seal(deleted.Version), nil
}

// draftUpdate returns the draft that replaces old with the result of change, or nil if nothing
// would change. deletes reports whether the object must be deleted because it no longer has
// finalizers. All work is done in one turn, or in two if there is an Admit.
func (c *Collection) draftUpdate(
	ctx context.Context, old *listwatch.Object, size int, change func(stored *Document) (*submission, error),
) (draft *Draft, deletes bool, err error) {
	end, err := budget.BeginTurn(ctx, size+len(old.Data))
	if err != nil {
		return nil, false, err
	}
	defer func() { end() }()
	stored, err := c.readStored(old)
	if err != nil {
		return nil, false, err
	}
	s, err := change(stored)
	if err == nil {
		err = c.spec.checkRules(s, false)
	}
	if err != nil {
		return nil, false, err
	}
	if c.spec.Admit != nil {
		end() // because Admit may wait
		if s, err = c.spec.admit(ctx, old, s); err != nil {
			return nil, false, callerError{err}
		}
		if end, err = budget.BeginTurn(ctx, s.doc.size+len(old.Data)); err != nil {
			return nil, false, err
		}
	}
	if err := c.spec.checkFinalizers(s, &stored.parts); err != nil {
		return nil, false, err
	}
	if err := c.spec.checkDeletionMarks(s, &stored.parts); err != nil {
		return nil, false, err
	}
	if !s.prepareUpdate(&stored.parts, c.spec.Generation, time.Now()) {
		return nil, false, nil
	}
	return c.spec.draft(s), stored.parts.isBeingDeleted() && len(s.finalizers) == 0, nil
}

// readStored splits the stored object old.
func (c *Collection) readStored(old *listwatch.Object) (*Document, error) {
	d, err := splitDocument(old.Data)
	if err == nil && d.parts.metadata == nil {
		err = badRequest("the object has no metadata, which must hold its name")
	}
	if err != nil {
		return nil, &listwatch.Error{
			Code: listwatch.Corrupt, Err: err,
			Message: "the stored object " + c.spec.quotedName(old.Key.Name) + " cannot be read",
		}
	}
	return d, nil
}

// A callerError is an error of a function that the caller passed in. Even if its code is
// Conflict, the write is not retried.
type callerError struct{ err error }

func (e callerError) Error() string { return e.err.Error() }

// maxWriteTries limits the attempts of retry, in case the backend reports a conflict for every
// write.
const maxWriteTries = 100

// retry calls write with the newest object at key. It repeats this each time that write returns
// Conflict.
func (c *Collection) retry(
	ctx context.Context, key listwatch.Key, p listwatch.Preconditions,
	write func(old *listwatch.Object) (*listwatch.Object, error),
) (*listwatch.Object, error) {
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
		// The first retries do not wait. Later retries wait a random time, so that writers that
		// conflicted do not meet again.
		longest := min(10*time.Millisecond, 50*time.Microsecond<<min(try, 10))
		if ctx.Err() != nil || try > 2 && !reflector.Sleep(ctx, rand.N(longest)) {
			return nil, ctx.Err()
		}
	}
}

func (c *Collection) checkPreconditions(old *listwatch.Object, p listwatch.Preconditions) error {
	if p.UID != "" {
		uid, err := rawjson.String(rawjson.Lookup(old.Data, "metadata", "uid"))
		if err != nil || uid != p.UID {
			reason := fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", p.UID, uid)
			return c.spec.conflict(old.Key, reason)
		}
	}
	if p.Version == 0 || p.Version == old.Version {
		return nil
	}
	if b, ok := listwatch.As[unchanged](c.backend); ok && b.UnchangedSince(old, p.Version) {
		return nil
	}
	return c.spec.conflict(old.Key, modifiedMessage)
}

// unchanged is implemented by backends that may show the same state at different versions.
type unchanged interface {
	UnchangedSince(o *listwatch.Object, v listwatch.Version) bool
}
