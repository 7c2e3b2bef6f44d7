//go:build unix

package logical

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/postgres"
)

const orders = `CREATE TABLE orders (id bigint PRIMARY KEY, tenant text NOT NULL, status text, note text,
	created timestamptz NOT NULL DEFAULT '2026-01-02 03:04:05.6+00')`

func TestRowsAreObjects(t *testing.T) {
	d := newDatabase(t, orders, "INSERT INTO orders VALUES (1, 'acme', 'new', 'a \"b\"'), (2, 'bolt', NULL, NULL)")
	db := d.open(postgres.Options{}, postgres.Table{
		Name: "orders", APIVersion: "shop.example.com/v1", Kind: "Order", Namespace: "tenant",
		Labels: []string{"status"}, Created: "created", Columns: []string{"status", "note"},
		Fields: []string{"spec.status"},
	})
	source := db.Source("orders")
	var got []string
	for _, o := range d.list(source) {
		got = append(got, strings.Replace(string(o.Data), o.Version.String(), "V", 1))
	}
	want := []string{
		`{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{"resourceVersion":"V","name":"1",` +
			`"namespace":"acme","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"status":"new"}},` +
			`"spec":{"status":"new","note":"a \"b\""}}`,
		`{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{"resourceVersion":"V","name":"2",` +
			`"namespace":"bolt","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"status":null,"note":null}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A row that belongs to no tenant is not shown to any, and does no harm to the others. PostgreSQL
// does not send a long value that an update leaves as it was; the table need not be read again for
// it.
func TestRowsWithoutNamespaceAreNotShown(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE orders (id int PRIMARY KEY, tenant text, status text, note text)",
		"ALTER TABLE orders ALTER note SET STORAGE EXTERNAL",
		"INSERT INTO orders SELECT id, NULL, 'new', repeat('x', 9000) FROM generate_series(4, 6) id",
		"INSERT INTO orders VALUES (1, 'acme'), (2, NULL), (3, '')")
	db := d.open(postgres.Options{}, postgres.Table{Name: "orders", Namespace: "tenant"})
	source := db.Source("orders")
	if got := d.list(source); len(got) != 1 || got[0].Key.Name != "1" {
		t.Errorf("got %v, want only row 1", got)
	}
	w, err := source.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d.exec(
		"INSERT INTO orders VALUES (7, NULL)",
		"UPDATE orders SET tenant = 'acme' WHERE id = 2",
		"UPDATE orders SET status = 'paid'",
		"UPDATE orders SET tenant = NULL WHERE id = 1",
		"BEGIN", "UPDATE orders SET tenant = NULL WHERE id = 2",
		"UPDATE orders SET tenant = 'bolt' WHERE id = 2", "COMMIT",
		"DELETE FROM orders WHERE id = 7",
		"UPDATE orders SET tenant = 'acme' WHERE id = 4",
	)
	var got []string
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Type, " ", e.Object.Key))
		if id := e.Object.Key.Name; id >= "4" {
			if !strings.Contains(string(e.Object.Data), `"status":"paid","note":"xxx`) {
				t.Errorf("got %.200s, want the status and the note", e.Object.Data)
			}
			if id == "6" {
				break
			}
			d.exec("UPDATE orders SET tenant = 'acme' WHERE id = 1 + " + id)
		}
	}
	want := []string{
		"ADDED acme/1", "ADDED acme/2", "MODIFIED acme/1", "MODIFIED acme/2", "DELETED acme/1", "DELETED acme/2",
		"ADDED bolt/2", "ADDED acme/4", "ADDED acme/5", "ADDED acme/6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := db.Stats().Loads; n != 1 {
		t.Errorf("the table was read %d times, want 1", n)
	}
}

func TestChangesAreEvents(t *testing.T) {
	d := newDatabase(t, orders, "INSERT INTO orders VALUES (1, 'acme', 'new', 'x')")
	source := d.open(postgres.Options{}, postgres.Table{Name: "orders", Namespace: "tenant"}).Source("orders")
	w, err := source.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d.exec(
		"INSERT INTO orders VALUES (2, 'acme', 'new', 'y')",
		"UPDATE orders SET status = 'paid'",
		"UPDATE orders SET status = status",
		"UPDATE orders SET tenant = 'bolt' WHERE id = 1",
		"UPDATE orders SET id = 3 WHERE id = 2",
		"DELETE FROM orders WHERE id = 3",
		"BEGIN", "INSERT INTO orders VALUES (7, 'acme')", "DELETE FROM orders WHERE id = 7", "COMMIT",
		"INSERT INTO orders VALUES (8, 'bolt')",
		"TRUNCATE orders",
		"INSERT INTO orders VALUES (9, 'end')",
	)
	var got []string
	last := listwatch.Version(0)
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Type, " ", e.Object.Key))
		if e.Version <= last {
			t.Errorf("%s: version %d follows %d", got[len(got)-1], e.Version, last)
		}
		last = e.Version
		if e.Object.Key.Name == "9" {
			break
		}
	}
	want := []string{
		"ADDED acme/1", "ADDED acme/2", "MODIFIED acme/1", "MODIFIED acme/2", "DELETED acme/1", "ADDED bolt/1",
		"DELETED acme/2", "ADDED acme/3", "DELETED acme/3", "ADDED bolt/8", "DELETED bolt/1", "DELETED bolt/8",
		"ADDED end/9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
