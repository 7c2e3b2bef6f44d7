package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/typed"
)

// newClients serves the example, and returns the collection of flags as the user of each token sees
// it.
func newClients(t *testing.T, s sessions) map[string]typed.Collection[Flag] {
	t.Helper()
	h, err := newHandler(s.authenticate)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	clients := map[string]typed.Collection[Flag]{}
	for token := range s {
		remote := &client.Remote{
			URL: server.URL + "/flags",
			Header: func(context.Context, bool) (http.Header, error) {
				return http.Header{"Authorization": {"Bearer " + token}}, nil
			},
		}
		t.Cleanup(func() { _ = remote.Close() })
		clients[token] = typed.Collection[Flag]{Store: remote}
	}
	return clients
}

func named(name string) Flag { return Flag{Metadata: listwatch.Metadata{Name: name}} }

func TestEachTenantHasItsOwnFlags(t *testing.T) {
	c := newClients(t, sessions{
		"ada": {Name: "ada", Groups: []string{"tenant:acme", "writers"}},
		"eve": {Name: "eve", Groups: []string{"tenant:acme"}},
		"bob": {Name: "bob", Groups: []string{"tenant:globex", "writers"}},
		"joe": {Name: "joe"},
	})
	ctx := t.Context()
	flag, err := c["ada"].Create(ctx, named("dark-mode"))
	if err != nil || flag.Salt != "dark-mode" || flag.Labels[tenantLabel] != "acme" {
		t.Fatalf("got %+v, %v, want the defaults", flag, err)
	}
	if got, err := c["eve"].Get(ctx, flag.Key()); err != nil || got.UID != flag.UID {
		t.Errorf("a reader of the tenant: got %+v, %v", got, err)
	}
	set := func(percent int, salt string) func(*Flag) error {
		return func(f *Flag) error { f.Percent, f.Salt = percent, salt; return nil }
	}
	for name, test := range map[string]struct {
		err  func() error
		want listwatch.Code
	}{
		"a reader may not write": {
			func() error { _, err := c["eve"].Create(ctx, named("b")); return err },
			listwatch.Forbidden,
		},
		"a user without a tenant": {
			func() error { _, err := c["joe"].Get(ctx, flag.Key()); return err },
			listwatch.Forbidden,
		},
		"another tenant does not see it": {
			func() error { _, err := c["bob"].Get(ctx, flag.Key()); return err },
			listwatch.NotFound,
		},
		"another tenant cannot delete it": {
			func() error { _, err := c["bob"].Delete(ctx, flag.Key(), 0); return err },
			listwatch.NotFound,
		},
		"invalid values are refused": {func() error {
			_,
				err := c["ada"].Update(ctx, flag.Key(), set(101, "x"))
			return err
		}, listwatch.Invalid},
		"nobody moves a flag": {func() error {
			_, err := c["ada"].Update(ctx, flag.Key(),
				func(f *Flag) error { f.Labels[tenantLabel] = "globex"; return nil })
			return err
		}, listwatch.Forbidden},
	} {
		err := test.err()
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if test.want == listwatch.Invalid && len(listwatch.AsError(err).Details.Causes) != 2 {
			t.Errorf("%s: got %v, want two causes", name, err)
		}
	}
	if flags, _, err := c["bob"].Items(ctx, listwatch.Query{}); err != nil || len(flags) != 0 {
		t.Errorf("a list of another tenant: got %+v, %v, want nothing", flags, err)
	}
}

func TestWatchEndsWhenCredentialsExpire(t *testing.T) {
	const lifetime = 500 * time.Millisecond
	s := sessions{"ada": {Name: "ada", Groups: []string{"tenant:acme", "writers"}, Expires: time.Now().Add(lifetime)}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last error
	for _, err := range newClients(t, s)["ada"].Events(ctx, listwatch.Query{}) {
		last = err
	}
	if !errors.Is(last, listwatch.Unauthorized) {
		t.Errorf("got %v, want Unauthorized", last)
	}
	if _, err := s.authenticate(&http.Request{Header: http.Header{"Authorization": {"Bearer x"}}}); err == nil {
		t.Error("an unknown token is accepted")
	}
}
