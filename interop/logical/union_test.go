//go:build unix

package logical

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/watchserver"
)

// A client of two tables sees a transaction over both in one stream, and resumes within it.
func TestTablesAreOneWatch(t *testing.T) {
	d := newDatabase(t,
		"CREATE TABLE debit (id int PRIMARY KEY, n int)", "CREATE TABLE credit (id int PRIMARY KEY, n int)",
		"INSERT INTO debit VALUES (1, 5)", "INSERT INTO credit VALUES (1, 5)")
	db := d.open(postgres.Options{}, postgres.Table{Name: "debit"}, postgres.Table{Name: "credit"})
	var tables watchserver.Server
	mux := http.NewServeMux()
	for _, name := range []string{"debit", "credit"} {
		c := db.Table(name, store.CollectionSpec{Plural: name})
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			tables.Serve(w, r, watchserver.Endpoint{Source: c})
		})
	}
	mux.Handle("/both", tables.Union(mux))
	server := httptest.NewServer(mux)
	defer server.Close()

	const path = "/both?watch=1&of=/debit&of=/credit&resourceVersion="
	state, _ := readEvents(t, server.URL+path+"0", 2)
	if want := []string{"ADDED debit 1", "ADDED credit 1"}; !slices.Equal(state, want) {
		t.Fatalf("the state is %q, want %q", state, want)
	}
	before := fmt.Sprint(uint64(db.Stats().Version))
	d.exec("BEGIN", "UPDATE debit SET n = 4", "UPDATE credit SET n = 6", "COMMIT")
	changes, versions := readEvents(t, server.URL+path+before, 2)
	if want := []string{"MODIFIED debit 1", "MODIFIED credit 1"}; !slices.Equal(changes, want) {
		t.Errorf("the transaction is %q, want %q", changes, want)
	}
	rest, _ := readEvents(t, server.URL+path+versions[0], 1)
	if want := []string{"MODIFIED credit 1"}; !slices.Equal(rest, want) {
		t.Errorf("after the first change follows %q, want %q", rest, want)
	}
}

// A user who is restricted to a tenant sees the rows of this tenant in a union, too.
func TestUnionOfTablesObeysTheTenant(t *testing.T) {
	d := newDatabase(t,
		"CREATE TABLE debit (id int PRIMARY KEY, tenant text)", "CREATE TABLE credit (id int PRIMARY KEY, tenant text)",
		"INSERT INTO debit VALUES (1, 'a'), (2, 'b')", "INSERT INTO credit VALUES (1, 'a'), (2, 'b')")
	db := d.open(postgres.Options{},
		postgres.Table{Name: "debit", Namespace: "tenant"}, postgres.Table{Name: "credit", Namespace: "tenant"})
	var tables watchserver.Server
	mux := http.NewServeMux()
	for _, name := range []string{"debit", "credit"} {
		mux.Handle("/"+name, &crudserver.Handler{
			Path: "/" + name, Collection: db.Table(name, store.CollectionSpec{Plural: name}), Server: &tables,
			Scope: func(context.Context, watchserver.User) (listwatch.Selection, error) {
				return listwatch.Selection{Namespace: "b"}, nil
			},
		})
	}
	mux.Handle("/both", tables.Union(mux))
	server := httptest.NewServer(mux)
	defer server.Close()

	url := server.URL + "/both?watch=1&of=/debit&of=/credit&resourceVersion="
	state, _ := readEvents(t, url+"0", 2)
	if want := []string{"ADDED debit 2", "ADDED credit 2"}; !slices.Equal(state, want) {
		t.Errorf("the state is %q, want %q", state, want)
	}
	before := fmt.Sprint(uint64(db.Stats().Version))
	d.exec("INSERT INTO debit VALUES (3, 'a'), (4, 'b')")
	if changes, _ := readEvents(t, url+before, 1); changes[0] != "ADDED debit 4" {
		t.Errorf("the change is %q, want the row of tenant b", changes)
	}
}

// readEvents returns the first n events of a watch, and their versions.
func readEvents(t *testing.T, url string, n int) (events, versions []string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for len(events) < n && lines.Scan() {
		var e struct {
			Type   string
			Object struct {
				Kind     string
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		events = append(events, fmt.Sprint(e.Type, " ", e.Object.Kind, " ", e.Object.Metadata.Name))
		versions = append(versions, e.Object.Metadata.ResourceVersion)
	}
	if len(events) < n {
		t.Fatalf("%s ended after %q: %v", url, events, lines.Err())
	}
	return events, versions
}
