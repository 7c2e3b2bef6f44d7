//go:build unix

package postgres

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/examples/postgres/settings"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/watchcache"
)

// serveTable serves the table over HTTP, and returns its Source and a client.
func serveTable(t *testing.T) (*settings.Source, *client.Remote, func(sql string)) {
	t.Helper()
	pool := newTable(t, pgtest.Start(t), settings.Schema)
	s := runSource(t, pool, watchcache.Options{})
	server := httptest.NewServer(&crudserver.Handler{Path: "/settings", Collection: s.Collection()})
	t.Cleanup(server.Close)
	remote := &client.Remote{URL: server.URL + "/settings"}
	t.Cleanup(func() { _ = remote.Close() })
	return s, remote, func(sql string) { execute(t, pool, sql) }
}

// A member without a column, such as a misspelled one, would be lost without an error.
func TestMembersWithoutColumnAreRefused(t *testing.T) {
	s, remote, _ := serveTable(t)
	for data, want := range map[string][]string{
		`{"metadata":{"name":"a","namespace":"n"},"spec":{},"specc":{}}`: {
			"specc",
		},
		`{"metadata":{"name":"a","namespace":"n","annotations":{"a":"b"}},"spec":{}}`: {
			"metadata.annotations",
		},
		`{"metadata":{"name":"a","namespace":"n","finalizers":["example.com/f"]},"status":{},"spec":{}}`: {
			"status", "metadata.finalizers",
		},
		`{"metadata":{"name":"a","namespace":"n"}}`: {
			"spec",
		},
		`{"metadata":{"name":"a","namespace":"n","annotations":{"a":"b"},"generateName":"b"},"x":1,"spec":null}`: {
			"x",
			"metadata.annotations", "metadata.generateName",
		},
	} {
		_, err := remote.Create(t.Context(), []byte(data))
		e := testkit.WantStatus(t, data, err, http.StatusUnprocessableEntity)
		if e.Details == nil {
			t.Errorf("%s: %v has no details", data, err)
			continue
		}
		var got []string
		for _, c := range e.Details.Causes {
			got = append(got, c.Field)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the response names %q, want %q", data, got, want)
		}
	}
	if page, err := s.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 1 {
		t.Errorf("the table has %d rows, %v, want only the old one", len(page.Items), err)
	}
}

func TestWritesChangeRows(t *testing.T) {
	s, remote, _ := serveTable(t)
	created, err := remote.Create(t.Context(),
		[]byte(`{"metadata":{"name":"a","namespace":"n","labels":{"color":"red"}},"spec":{"n":1}}`))
	if err != nil || created.Version != 2 || !strings.Contains(string(created.Data), `"uid":"2"`) {
		t.Fatalf("created %s at version %d, %v, want version 2 and the id as uid", created.Data, created.Version, err)
	}
	if _, err := remote.Create(t.Context(),
		[]byte(`{"metadata":{"name":"a","namespace":"n"},"spec":{}}`)); listwatch.CodeOf(
		err) != listwatch.AlreadyExists {
		t.Errorf("a second create: got %v, want AlreadyExists", err)
	}
	if same, err := remote.Replace(t.Context(), created.Key, created.Data); err != nil || same.Version != 2 {
		t.Errorf("a write without a change: got %+v, %v, want version 2", same, err)
	}
	if _, err := remote.Replace(t.Context(), created.Key,
		[]byte(strings.Replace(string(created.Data), `"n":1`, `"n":2`, 1))); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Replace(t.Context(), created.Key, created.Data); listwatch.CodeOf(err) != listwatch.Conflict {
		t.Errorf("a write from an old state: got %v, want Conflict", err)
	}
	if _, err := remote.Delete(t.Context(), created.Key, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Delete(t.Context(), created.Key,
		listwatch.Preconditions{}); listwatch.CodeOf(err) != listwatch.NotFound {
		t.Errorf("a second delete: got %v, want NotFound", err)
	}
	want := []string{`ADDED a {"n":1}}`, `MODIFIED a {"n":2}}`, `DELETED a {"n":2}}`}
	if got := events(t, s, 1, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Writers over HTTP and with SQL increment the same number. No increment may be lost.
func TestConcurrentWritersLoseNoUpdate(t *testing.T) {
	s, remote, sql := serveTable(t)
	sql(`UPDATE settings SET spec = '{"n":0}'`)
	key := listwatch.Key{Namespace: "default", Name: "old"}
	const writers, writes = 3, 20
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range writes {
				_, err := s.Collection().Update(t.Context(), key, listwatch.Preconditions{}, increment)
				if err != nil {
					t.Error(err)
				}
			}
		})
		writing.Go(func() {
			for range writes {
				sql(`UPDATE settings SET spec = json_build_object('n', (spec ->> 'n')::int + 1)`)
			}
		})
	}
	writing.Wait()
	o, err := remote.Get(context.Background(), key)
	if want := fmt.Sprintf(`"spec":{"n":%d}}`, 2*writers*writes); err != nil ||
		!strings.HasSuffix(string(o.Data), want) {
		t.Errorf("got %s, %v, want %s", o.Data, err, want)
	}
}

func increment(old *listwatch.Object) ([]byte, error) {
	before, after, _ := strings.Cut(string(old.Data), `"n":`)
	var n int
	if _, err := fmt.Sscan(strings.TrimRight(after, "}"), &n); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `%s"n":%d}}`, before, n+1), nil
}
