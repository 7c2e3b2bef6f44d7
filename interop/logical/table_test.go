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
