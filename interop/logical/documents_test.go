//go:build unix

package logical

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/pgtest"
	"github.com/listwatch/listwatch/interop/internal/program"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/postgres"
)

func TestDocumentsAreAStore(t *testing.T) {
	server := pgtest.Start(t)
	conformance.TestSource(t, func(t conformance.T, historyBytes int64) conformance.Database {
		url, err := server.CreateSchema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := postgres.Options{History: listwatch.Retention{Bytes: historyBytes}, Publication: t.Name()}
		db, err := postgres.Open(t.Context(), url, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() }) // always nil
		return db
	}, conformance.Exceptions{
		"consecutive-versions":  "a version is a position in the log of PostgreSQL",
		"expires":               "documents have no time to live",
		"resume/server-restart": "the case loses its data: the new table is in the same database, so the epoch is the same",
	})
}

var flagSpec = store.CollectionSpec{Kind: "Flag", Namespaced: true, Fields: []string{"spec.on"}}

// flags opens the collection of flags.
func (d *database) flags(o postgres.Options) (*postgres.DB, *store.Collection) {
	d.Helper()
	db := d.open(o)
	return db, testkit.Must(db.Collection(flagSpec))(d)
}

func flagNamed(name, rest string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":%q},"spec":{%s}}`, name, rest)
}

// serveFlags starts a server whose resources are in PostgreSQL, and returns its URL of the flags.
func (d *database) serveFlags(path string) string {
	d.Helper()
	p := program.Start(d, path, "serve", "--addr", "127.0.0.1:0", "--postgres", d.url, "--resource",
		"flags.v1.demo.example.com=Flag")
	return p.URL() + "/apis/demo.example.com/v1/namespaces/a/flags"
}

// listwatch serve keeps all resources in PostgreSQL. Servers that start at the same time share one
// table, which one of them creates.
func TestServersOfTheProgramShareDocuments(t *testing.T) {
	path := program.Build(t)
	d := newDatabase(t)
	urls := make([]string, 3)
	var starting sync.WaitGroup
	for i := range urls {
		starting.Go(func() { urls[i] = d.serveFlags(path) })
	}
	starting.Wait()
	for i, url := range urls {
		body := strings.NewReader(fmt.Sprintf(`{"metadata":{"generateName":"f-"},"spec":{"n":%d}}`, i))
		response, err := http.Post(url, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			t.Errorf("POST: status %d", response.StatusCode)
		}
	}
	want := ""
	for i, url := range urls {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || strings.Count(string(body), `"kind":"Flag"`) != 3 {
			t.Errorf("server %d lists %s (%v), want three flags", i, body, err)
		}
		if i == 0 {
			want = string(body)
		} else if diff := cmp.Diff(want, string(body)); diff != "" {
			t.Errorf("server %d has another list: %s", i, diff)
		}
	}
}

// The servers of one table show the same objects at the same versions. A client resumes at any of
// them.
func TestServersShareDocuments(t *testing.T) {
	d := newDatabase(t)
	_, first := d.flags(postgres.Options{})
	_, second := d.flags(postgres.Options{})
	created := testkit.Must(first.Create(t.Context(), flagNamed("x", `"on":true`)))(t)
	read := testkit.Must(second.Get(t.Context(), created.Key))(t)
	if diff := cmp.Diff(created, read); diff != "" {
		t.Errorf("the other server has another object: %s", diff)
	}
	if _, err := second.Create(t.Context(), flagNamed("x", "")); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("a second create of the same name: got %v, want AlreadyExists", err)
	}
	updated := testkit.Must(second.Replace(t.Context(), created.Key,
		[]byte(strings.Replace(string(read.Data), "true", "false", 1))))(t)
	if _, err := first.Replace(t.Context(), created.Key, created.Data); !errors.Is(err, listwatch.Conflict) {
		t.Errorf("a write with the version before: got %v, want Conflict", err)
	}
	deleted := testkit.Must(first.Delete(t.Context(), created.Key, listwatch.Preconditions{}))(t)
	for i, c := range []*store.Collection{first, second} {
		w := testkit.Must(c.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: created.Version}))(t)
		var got []string
		for e, err := range listwatch.All(t.Context(), w) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(e.Type, " ", e.Version, " ", string(e.Object.Data)))
			if e.Type == listwatch.Deleted {
				break
			}
		}
		want := []string{
			fmt.Sprint("MODIFIED ", updated.Version, " ", string(updated.Data)),
			fmt.Sprint("DELETED ", deleted.Version, " ", string(deleted.Data)),
		}
		if !slices.Equal(got, want) {
			t.Errorf("server %d resumes with %q, want %q", i, got, want)
		}
		_ = w.Close()
	}
}
