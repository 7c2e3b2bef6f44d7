package store

import (
	"context"
	"errors"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/digest"
	"github.com/listwatch/listwatch/internal/history"
)

// A Collection is a set of objects of one kind that can be written, listed and watched. It is
// a [listwatch.Source], and safe for concurrent use.
//
// Objects are written as JSON and kept compact, on one line. Their members, numbers and strings
// keep the order and the spelling of the writer. The collection sets metadata.uid,
// resourceVersion, generation and creationTimestamp, and fills in kind and apiVersion. It refuses
// an object with a duplicate member, and an object whose metadata does not have the types of
// Kubernetes' ObjectMeta.
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
	scope   listwatch.Selection
	quota   *quota
}

var (
	_ listwatch.Store  = (*Collection)(nil)
	_ listwatch.Uniter = (*Collection)(nil)
)

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

// Describe implements [listwatch.Describer]. Each view of [Collection.Within] has an epoch of its
// own, so that a client that resumes in another scope lists again.
func (c *Collection) Describe() listwatch.Description {
	return c.spec.Description(c.epoch(listwatch.Describe(c.backend).Epoch))
}

// List implements [listwatch.Source].
func (c *Collection) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	q, err := c.narrow(q)
	if err != nil {
		return listwatch.Page{}, err
	}
	return c.backend.List(ctx, q)
}

// Watch implements [listwatch.Source].
func (c *Collection) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	q, err := c.narrow(q)
	if err != nil {
		return nil, err
	}
	return c.backend.Watch(ctx, q)
}

// Stats returns the current sizes of the collection. If neither the backend nor a backend that it
// wraps has a method Stats, all sizes are zero.
func (c *Collection) Stats() listwatch.Stats {
	if b, ok := listwatch.As[sized](c.backend); ok {
		return b.Stats()
	}
	return listwatch.Stats{}
}

// Get returns the newest object at key. If there is none, the error has code NotFound.
func (c *Collection) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if err := c.checkScope(key.Namespace); err != nil {
		return nil, err
	}
	o, err := c.backend.Get(ctx, key)
	if err == nil && !c.scope.Matches(o) {
		return nil, c.spec.notFound(key)
	}
	return o, err
}

// Quota returns the quotas of c. Zero means that there is no quota.
func (c *Collection) Quota() (objects int, bytes int64) {
	return max(c.spec.MaxObjects, 0), max(c.spec.MaxBytes, 0)
}

// DryRun returns a view of c that applies all rules to writes but does not write. A write returns
// the object that a write to c would return, except for its version: an update keeps the version
// of the existing object, and a created object has no version. Reads return the content of c.
func (c *Collection) DryRun() *Collection {
	view := *c
	view.dryRun = true
	return &view
}

// WithDryRun returns c, or c.DryRun() if stages contains "All". stages holds the values of the
// query parameter dryRun of the Kubernetes API, where "All" is the only stage. For any other
// value, even an empty one, WithDryRun returns an error of code Invalid, because a client that
// sets the query parameter does not want a normal write.
func (c *Collection) WithDryRun(stages []string) (*Collection, error) {
	for _, stage := range stages {
		switch stage {
		case "All":
			c = c.DryRun()
		default:
			return nil, badRequest("dryRun %q is not supported; only All is; nothing was written", stage)
		}
	}
	return c, nil
}

// commit checks the scope and the quotas and passes change to the backend, unless c is a dry run.
func (c *Collection) commit(ctx context.Context, change Change) (*listwatch.Object, error) {
	if err := c.checkDraft(change.New); err != nil {
		return nil, err
	}
	if change.New != nil && c.spec.TTL != nil {
		if _, err := c.renewer(); err != nil {
			return nil, err
		}
	}
	release, err := c.quota.reserve(c.spec, c.backend, change)
	if err != nil {
		return nil, err
	}
	defer release()
	if !c.dryRun {
		o, err := c.backend.Commit(ctx, change)
		if _, refused := errors.AsType[listwatch.Cause](err); refused {
			err = c.spec.refused(change.Key.Name, err)
		}
		return o, err
	}
	old, err := c.backend.Get(ctx, change.Key)
	if err == nil {
		err = change.Check(old)
	}
	switch {
	case err != nil:
		return nil, err
	case change.New == nil:
		return change.Old, nil
	case change.Old == nil:
		return c.preview(ctx, change.New.Unversioned())
	}
	return c.preview(ctx, change.New.Seal(change.Old.Version))
}

// preview returns o, which a dry run would write, as it could be read after the write.
func (c *Collection) preview(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error) {
	type previewer interface {
		Preview(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error)
	}
	if b, ok := listwatch.As[previewer](c.backend); ok {
		return b.Preview(ctx, o)
	}
	return o, nil
}

// Union implements [listwatch.Uniter]. The parts must be different collections of one memory.DB or
// one bolt.DB, or of backends that can be united themselves. A part may be a view of
// [Collection.Within]; the union then has an epoch of its own, as the view has. Bookmarks of the
// union have kind List and apiVersion v1.
func (c *Collection) Union(parts ...listwatch.Part) (listwatch.Source, error) {
	narrowed := make([]listwatch.Part, len(parts))
	scopes := make([]string, 0, 2*len(parts))
	isScoped := false
	for i, p := range parts {
		c, ok := p.Source.(*Collection)
		if !ok {
			return nil, badRequest("a union needs collections of one database, not a %T", p.Source)
		}
		q, err := c.narrow(listwatch.Query{Selection: p.Selection})
		if err != nil {
			return nil, err
		}
		narrowed[i] = listwatch.Part{Source: c, Selection: q.Selection}
		scope := c.scope.Key()
		isScoped = isScoped || scope != ""
		scopes = append(scopes, c.spec.QualifiedName(), scope)
	}
	u, err := unionOfBackends(c.backend, narrowed)
	if err != nil || !isScoped {
		return u, err
	}
	return scopedUnion{u, digest.Of(scopes...)}, nil
}

// unionOfBackends returns the union of the objects that the selections of parts select in the
// backends of parts, which are collections. backend is the backend of one of them.
func unionOfBackends(backend Backend, parts []listwatch.Part) (listwatch.Source, error) {
	uniter, ok := listwatch.As[listwatch.Uniter](backend)
	if !ok {
		return unionOfLogs(parts)
	}
	for i, p := range parts {
		c := p.Source.(*Collection)
		if parts[i].Source, ok = listwatch.As[listwatch.Uniter](c.backend); !ok {
			return nil, badRequest("%s: a union needs collections of one database", c.spec.QualifiedName())
		}
	}
	return uniter.Union(parts...)
}

// unionOfLogs returns the union for backends that are the histories of one database.
func unionOfLogs(parts []listwatch.Part) (listwatch.Source, error) {
	logs := make([]history.Part, len(parts))
	var epoch string
	for i, p := range parts {
		c := p.Source.(*Collection)
		b, ok := c.backend.(interface{ History() *history.Log })
		if !ok {
			return nil, badRequest("%s: a union needs collections of one database in memory or in a file, not in a %T",
				c.spec.QualifiedName(), c.backend)
		}
		logs[i] = history.Part{Log: b.History(), Selection: p.Selection}
		epoch = b.History().Describe().Epoch
	}
	u, err := history.NewUnion(epoch, logs)
	if err != nil {
		return nil, err
	}
	return u, nil
}

// A scopedUnion is a union with parts that are views. A client that resumes in other scopes must
// list again, so scopes belongs to its epoch.
type scopedUnion struct {
	listwatch.Source
	scopes string
}

// Describe implements [listwatch.Describer].
func (u scopedUnion) Describe() listwatch.Description {
	d := listwatch.Describe(u.Source)
	d.Epoch += "." + u.scopes
	return d
}

// Unwrap returns the union without this epoch.
func (u scopedUnion) Unwrap() listwatch.Source { return u.Source }
