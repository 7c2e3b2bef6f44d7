package crudserver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

// loginByHeader takes the name of the user from the header X-User.
func loginByHeader(r *http.Request) (watchserver.User, error) {
	return watchserver.User{Name: r.Header.Get("X-User")}, nil
}

// scopeOfTenant restricts each user to the objects whose label tenant is the user's name.
func scopeOfTenant(_ context.Context, user watchserver.User) (scope listwatch.Selection, err error) {
	scope.Labels, err = listwatch.LabelEquals("tenant", user.Name)
	return scope, err
}

func as(user string) http.Header { return http.Header{"X-User": {user}} }

func TestScopeRestrictsReadsAndWrites(t *testing.T) {
	h := &Handler{
		Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}), Scope: scopeOfTenant,
		Server: &watchserver.Server{Access: watchserver.Access{Authenticator: loginByHeader}},
	}
	const object = `{"metadata":{"name":"a","labels":{"tenant":"ada"}},"x":1}`
	for _, test := range []request{
		{"create for another tenant", "POST", "/flags", as("eve"), object, 403, "Forbidden"},
		{"dry run for another tenant", "POST", "/flags?dryRun=All", as("eve"), object, 403, "Forbidden"},
		{"create", "POST", "/flags", as("ada"), object, 201, ""},
		{"get", "GET", "/flags/a", as("ada"), "", 200, ""},
		{"get of another tenant", "GET", "/flags/a", as("eve"), "", 404, "NotFound"},
		{"update of another tenant", "PUT", "/flags/a", as("eve"), object, 404, "NotFound"},
		{
			"move to another tenant", "PUT", "/flags/a", as("ada"),
			`{"metadata":{"name":"a","labels":{"tenant":"eve"}}}`,
			403, "Forbidden",
		},
		{
			"patch of another tenant", "PATCH", "/flags/a",
			http.Header{"X-User": {"eve"}, "Content-Type": mergePatch},
			`{}`, 404, "NotFound",
		},
		{"patch", "PATCH", "/flags/a", http.Header{"X-User": {"ada"}, "Content-Type": mergePatch}, `{"x":2}`, 200, ""},
		{
			"patch to another tenant", "PATCH", "/flags/a",
			http.Header{"X-User": {"ada"}, "Content-Type": mergePatch},
			`{"metadata":{"labels":null}}`, 403, "Forbidden",
		},
		{"delete of another tenant", "DELETE", "/flags/a", as("eve"), "", 404, "NotFound"},
		{"delete", "DELETE", "/flags/a", as("ada"), "", 200, ""},
	} {
		test.do(t, h)
	}
	request{"create", "POST", "/flags", as("ada"), object, 201, ""}.do(t, h)
	for user, want := range map[string]int{"ada": 1, "eve": 0} {
		r := &client.Remote{
			URL:    serve(t, h) + "/flags",
			Header: func(context.Context, bool) (http.Header, error) { return as(user), nil },
		}
		page, err := r.List(t.Context(), listwatch.Query{})
		if err != nil || len(page.Items) != want {
			t.Errorf("list by %s: got %d objects, %v, want %d", user, len(page.Items), err, want)
		}
		_ = r.Close()
	}
}

func TestAuthorizeAndScopeAreCalledOnce(t *testing.T) {
	var got []string
	h := &Handler{
		Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag", Namespaced: true}),
		Server: &watchserver.Server{Access: watchserver.Access{Authenticator: loginByHeader}},
		Authorize: func(_ context.Context, user watchserver.User, verb string, key listwatch.Key) error {
			got = append(got, verb+" "+key.String())
			if verb != "get" && verb != "list" && user.Name != "ada" {
				return listwatch.Cause{Message: "only ada may write"}
			}
			return nil
		},
		Scope: func(context.Context, watchserver.User) (listwatch.Selection, error) {
			got = append(got, "scope")
			return listwatch.Selection{}, nil
		},
	}
	const object = `{"metadata":{"name":"a"}}`
	for _, test := range []request{
		{"create", "POST", "/flags/n", as("eve"), object, 403, "Forbidden"},
		{"create", "POST", "/flags/n", as("ada"), object, 201, ""},
		{"update", "PUT", "/flags/n/a", as("eve"), object, 403, "Forbidden"},
		{"delete", "DELETE", "/flags/n/a", as("eve"), "", 403, "Forbidden"},
		{"get", "GET", "/flags/n/a", as("eve"), "", 200, ""},
		{"list", "GET", "/flags/n", as("eve"), "", 200, ""},
		{"watch", "GET", "/flags/n?watch=1", as("eve"), "", 403, "Forbidden"},
	} {
		got = nil
		test.do(t, h)
		want := []string{test.name + " n/a"}
		if test.name == "create" || test.name == "list" || test.name == "watch" {
			want[0] = test.name + " n/"
		}
		if test.status < 300 {
			want = append(want, "scope")
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A client whose user gets another scope lists again, so it has no object of the old scope.
func TestChangedScopeExpiresWatches(t *testing.T) {
	tenant := "old"
	server := &watchserver.Server{Access: watchserver.Access{Authenticator: loginByHeader}}
	h := &Handler{
		Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}), Server: server,
		Scope: func(ctx context.Context, _ watchserver.User) (listwatch.Selection, error) {
			return scopeOfTenant(ctx, watchserver.User{Name: tenant})
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	remote := &client.Remote{
		URL:    serve(t, h) + "/flags",
		Header: func(context.Context, bool) (http.Header, error) { return as("ada"), nil },
	}
	defer remote.Close()
	w, err := remote.Watch(ctx, listwatch.Query{Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	events := make([]listwatch.Event, 4)
	if _, err := w.Next(ctx, events); err != nil {
		t.Fatal(err)
	}
	if n := server.Recheck(); n != 0 {
		t.Errorf("Recheck ended %d watches whose scope is the same", n)
	}
	tenant = "new"
	if n := server.Recheck(); n != 1 {
		t.Errorf("Recheck ended %d watches, want 1", n)
	}
	for err == nil {
		_, err = w.Next(ctx, events)
	}
	if !errors.Is(err, listwatch.Expired) {
		t.Errorf("got %v, want Expired", err)
	}
}

// The client resumes with a version of the old scope.
func TestClientThatReconnectsHasNewScope(t *testing.T) {
	var tenant atomic.Value
	tenant.Store("old")
	h := &Handler{
		Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"}),
		Server: &watchserver.Server{Access: watchserver.Access{Authenticator: loginByHeader}},
		Scope: func(ctx context.Context, _ watchserver.User) (listwatch.Selection, error) {
			return scopeOfTenant(ctx, watchserver.User{Name: tenant.Load().(string)})
		},
	}
	for _, name := range []string{"old", "new"} {
		data := `{"metadata":{"name":"` + name + `","labels":{"tenant":"` + name + `"}}}`
		if _, err := h.Collection.Create(t.Context(), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	remote := &client.Remote{
		URL: serve(t, h) + "/flags", Header: func(context.Context, bool) (http.Header, error) { return as("ada"), nil },
	}
	defer remote.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	i := &informer.Informer[listwatch.Metadata]{Source: remote}
	var running sync.WaitGroup
	running.Go(func() { _ = i.Run(ctx) }) // returns when ctx ends
	defer running.Wait()
	defer cancel()
	for _, name := range []string{"old", "new"} {
		other := map[string]string{"old": "new", "new": "old"}[name]
		for _, has := range []struct {
			name string
			want bool
		}{{name, true}, {other, false}} {
			key := listwatch.Key{Name: has.name}
			if err := i.WaitFor(ctx, key,
				func(_ listwatch.Metadata, ok bool) bool { return ok == has.want }); err != nil {
				t.Fatalf("in the scope %s: waiting for object %s, want %t: %v", name, has.name, has.want, err)
			}
		}
		tenant.Store("new")
		h.Server.End(func(watchserver.Watch) bool { return true }, nil) // the client reconnects
	}
}
