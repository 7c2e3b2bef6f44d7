// Package access serves requests for the collection of a store: it applies the rights of the user,
// and shows only the objects that exist for the user.
package access

import (
	"context"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// A Call is an admitted request for a collection. A handler calls Restrict, and then Read for a
// list or a watch, and Begin for any other verb.
type Call struct {
	Admitted *apihttp.Admitted
	// Verb is Kubernetes' verb of the request.
	Verb string
	// Key holds the namespace and the name in the path. Without a name, the path stands for all
	// objects.
	Key listwatch.Key
	// Collection is the collection or, after Restrict, the part of it that exists for the user.
	Collection *store.Collection
	// View returns a Source with its objects in the encoding of the response. If nil, they are
	// JSON.
	View func(listwatch.Source) listwatch.Source
	// Form is the form of the response. Begin sets it.
	Form    apihttp.BodyForm
	Started time.Time

	recheck func(ctx context.Context, user watchserver.User) error // nil if there are no rights
}

// Rights returns the part of a collection that exists for the user. It returns an error if the user
// may not make the request.
type Rights func(ctx context.Context, user watchserver.User) (listwatch.Selection, error)

// Restrict applies the rights of the user in ctx. If rights is nil, every user may make the
// request, and all objects exist for every user. An open watch keeps rights in memory, to call it
// again, so rights should not refer to c.
func (c *Call) Restrict(ctx context.Context, rights Rights) error {
	if rights == nil {
		return nil
	}
	scope, err := rights(ctx, watchserver.UserOf(ctx))
	if err != nil {
		return err
	}
	key := scope.Key()
	if key != "" {
		c.Collection = c.Collection.Within(scope)
	}
	c.recheck = func(ctx context.Context, user watchserver.User) error {
		switch now, err := rights(ctx, user); {
		case err != nil:
			return err
		case now.Key() != key: // the client lists the objects of the new scope
			return &listwatch.Error{
				Code: listwatch.Expired, Message: "the objects that exist for the user have changed; list again",
			}
		}
		return nil
	}
	return nil
}

// Read responds to a list or a watch. e has the properties of the endpoint that do not depend on
// the user.
func (c *Call) Read(w http.ResponseWriter, r *http.Request, s *watchserver.Server, e watchserver.Endpoint) {
	e.Source, e.Namespace, e.Name, e.Recheck = c.Collection, c.Key.Namespace, c.Key.Name, c.recheck
	if c.View != nil {
		e.Source = c.View(e.Source)
	}
	s.Serve(w, r, e)
}

// Begin takes a seat for a get, and chooses the form of the response. This happens before a write,
// so that a write is refused if the client could not read its response.
func (c *Call) Begin() (err error) {
	if c.Verb == "get" {
		if err := c.Admitted.Begin(); err != nil {
			return err
		}
	}
	var d listwatch.Description
	if c.View != nil {
		d = listwatch.Describe(c.View(c.Collection))
	}
	c.Form, err = c.Admitted.ChooseBody(c.Verb == "deletecollection", d)
	return err
}

// Wrote reports a write to the hooks of the server. to is Collection, or a dry run of it. o is the
// written object, or nil after a write to the whole collection.
func (c *Call) Wrote(r *http.Request, to *store.Collection, o *listwatch.Object) {
	change := apihttp.Change{Verb: c.Verb, Key: c.Key, DryRun: to != c.Collection, Took: time.Since(c.Started)}
	if o != nil {
		change.Key, change.Version = o.Key, o.Version
	}
	c.Admitted.Changed(r, change)
}
