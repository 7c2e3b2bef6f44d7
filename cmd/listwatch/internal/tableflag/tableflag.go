// Package tableflag parses the flag --table, which names a table of PostgreSQL and its columns.
package tableflag

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/postgres"
)

// Usage describes the flag, which can be repeated.
const Usage = "`table` of --postgres, such as orders:namespace=tenant:label=status; further options are resource=NAME, " +
	"kind=KIND, labels=COLUMN, uid=COLUMN, created=COLUMN, spec=COLUMN, column=COLUMN and field=PATH (repeatable)"

// defaultGroup is the API group of tables without an option resource.
const defaultGroup = "tables.listwatch.dev"

// A Table is a table, and the resource that it is served as.
type Table struct {
	postgres.Table
	kubeapi.Resource
}

// ParseAll parses the values of all flags. Its errors are usage errors.
func ParseAll(values []string) ([]Table, error) {
	var all []Table
	for _, text := range values {
		t, err := parse(text)
		if err != nil {
			return nil, cli.Usagef("--table %s: %w", text, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// parse parses NAME and options of the form :key=value.
func parse(text string) (t Table, err error) {
	words := strings.Split(text, ":")
	name := words[0]
	t.Table.Name = name
	plain := strings.ToLower(name[strings.LastIndex(name, ".")+1:])
	plain = strings.NewReplacer("_", "-", " ", "-", `"`, "").Replace(plain)
	resource, kind := plain+".v1."+defaultGroup, ""
	for word := range strings.SplitSeq(plain, "-") {
		kind += strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
	}
	options := map[string]any{
		"resource": &resource, "kind": &kind, "namespace": &t.Table.Namespace, "label": &t.Table.Labels,
		"labels": &t.Table.LabelsFrom, "uid": &t.Table.UID, "created": &t.Table.Created, "spec": &t.Table.Spec,
		"column": &t.Table.Columns, "field": &t.Table.Fields,
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch target := options[key].(type) {
		case *string:
			*target = value
		case *[]string:
			*target = append(*target, value)
		}
		if options[key] == nil || value == "" {
			return t, fmt.Errorf("%q must be one of the options %s, and a value after =", word,
				strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
	}
	if t.Table.Namespace == "" {
		kind += ",cluster"
	}
	if t.Resource, err = kubeapi.ParseResource(resource + "=" + kind); err != nil {
		return t, err
	}
	t.Table.Kind, t.Table.APIVersion = t.Resource.Kind, t.Resource.APIVersion()
	return t, nil
}
