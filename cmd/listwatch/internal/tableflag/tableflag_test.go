package tableflag

import (
	"reflect"
	"testing"

	"github.com/listwatch/listwatch/store/postgres"
)

func TestFlagNamesColumns(t *testing.T) {
	table, err := parse("shop.line_items:namespace=tenant:label=status:label=city:field=spec.n:created=at:kind=Item")
	if err != nil {
		t.Fatal(err)
	}
	want := postgres.Table{
		Name: "shop.line_items", APIVersion: "tables.listwatch.dev/v1", Kind: "Item", Namespace: "tenant",
		Labels: []string{"status", "city"}, Fields: []string{"spec.n"}, Created: "at",
	}
	if !reflect.DeepEqual(table.Table, want) {
		t.Errorf("got %+v, want %+v", table.Table, want)
	}
	if table.QualifiedName() != "line-items.tables.listwatch.dev" || !table.Namespaced {
		t.Errorf("the resource is %s, namespaced %t", table.QualifiedName(), table.Namespaced)
	}
	const quoted = `shop."Items"`
	if table, err = parse(quoted); err != nil || table.Plural != "items" || table.Table.Name != quoted {
		t.Errorf("got %+v and %v, want a resource with a name in lower case", table, err)
	}
	table, err = parse("order_lines")
	if err != nil || table.Plural != "order-lines" || table.Table.Kind != "OrderLines" {
		t.Errorf("got %+v and %v, want order-lines of kind OrderLines", table.Resource, err)
	}
	if table, err = parse("parts"); err != nil || table.Namespaced || table.Resource.Kind != "Parts" {
		t.Errorf("got %+v, namespaced %t, %v, want Parts without namespaces", table.Resource, table.Namespaced, err)
	}
}

func TestUnknownOptionsAreRefused(t *testing.T) {
	for _, text := range []string{
		"orders:labl=status", "orders:label=", "orders:label", "orders:resource=x",
		"Orders!",
	} {
		if _, err := parse(text); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}
