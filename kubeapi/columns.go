package kubeapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Column is a column of the tables that kubectl get shows: what additionalPrinterColumns are to a CustomResourceDefinition.
type Column struct {
	// Name is the heading; kubectl writes it in capitals.
	Name string
	// Type is that of the cells: string, integer, number, boolean or date. Empty: string. A date is shown as the time since then.
	Type string
	// Format refines Type, as OpenAPI has it; it may be empty.
	Format string
	// Description is for people.
	Description string
	// Priority is zero for what is always shown; what has a greater one kubectl shows with -o wide alone.
	Priority int
	// Path says where in the object the cell is, such as ".spec.replicas", ".metadata.labels['a/b']" or
	// ".status.conditions[?(@.type=="Ready")].status". A cell that isn't there, or is of another type, is empty; where there
	// are several, a string shows them all and other types the first.
	Path string
	// Cell appends the cell to dst, as JSON, where no path leads to it: object is compact JSON and must not be modified. Nil:
	// Path counts. It is called from many goroutines.
	Cell func(dst, object []byte, now time.Time) []byte

	cell cellFunc // where it is not nil, it counts
}

// A cellFunc appends a cell of a row.
type cellFunc func(dst []byte, r *row) []byte

// nameColumn is the first of every table: kubectl prints the kind before its cells where it shows several kinds.
var nameColumn = Column{Name: "Name", Type: "string", Format: "name", Description: "The name of the object, unique in its namespace.", cell: nameCell}

// ageColumn is when an object was created.
var ageColumn = Column{
	Name: "Age", Type: "string", Description: "The time since the object was created.",
	cell: func(dst []byte, r *row) []byte { return appendAge(dst, r.at("metadata", "creationTimestamp"), r.now) },
}

func nameCell(dst []byte, r *row) []byte {
	name := r.at("metadata", "name")
	if len(name) == 0 {
		return append(dst, `""`...) // a bookmark
	}
	return append(dst, name...)
}

// A table is what the columns of a resource come to. It never changes; its address is part of the wire form.
type Table struct {
	definitions []byte // in JSON
	cells       []cellFunc
}

// newTable returns the table of a resource: the name and then columns; where there are none, the age.
func New(columns []Column) (*Table, error) {
	if columns == nil {
		columns = []Column{ageColumn}
	}
	// The names are those of metav1.TableColumnDefinition, which leaves nothing out.
	type definition struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Format      string `json:"format"`
		Description string `json:"description"`
		Priority    int    `json:"priority"`
	}
	var definitions []definition
	t := &Table{}
	for _, c := range append([]Column{nameColumn}, columns...) {
		if c.Type == "" {
			c.Type = "string"
		}
		cell, err := c.compile()
		if err != nil {
			return nil, err
		}
		t.cells = append(t.cells, cell)
		definitions = append(definitions, definition{c.Name, c.Type, c.Format, c.Description, c.Priority})
	}
	var err error
	if t.definitions, err = json.Marshal(definitions); err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: "columns", Err: err}
	}
	return t, nil
}

// cellTypes are the values of [Column.Type].
var cellTypes = []string{"string", "integer", "number", "boolean", "date"}

func (c Column) compile() (cellFunc, error) {
	if c.Name == "" || !slices.Contains(cellTypes, c.Type) {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("column %q of type %q: want a name and a type of %q", c.Name, c.Type, cellTypes)}
	}
	if c.cell != nil {
		return c.cell, nil
	}
	if c.Cell != nil {
		return func(dst []byte, r *row) []byte { return c.Cell(dst, r.object, r.now) }, nil
	}
	path, err := ParsePath(c.Path)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("column %q", c.Name), Err: err}
	}
	names, rest := path.SplitMembers()
	return func(dst []byte, r *row) []byte {
		found := r.at(names...)
		if c.Type == "string" {
			return appendJoined(dst, rest, found)
		}
		start := len(dst)
		rest.Find(found, func(v Value) {
			if len(dst) == start {
				dst = c.appendCell(dst, v, r.now)
			}
		})
		if len(dst) == start {
			return append(dst, "null"...)
		}
		return dst
	}, nil
}

// appendCell appends v as a cell of a type that is no string.
func (c Column) appendCell(dst []byte, v Value, now time.Time) []byte {
	text, ok := string(v), false
	switch c.Type {
	case "integer":
		_, err := strconv.ParseInt(text, 10, 64)
		ok = err == nil
	case "number":
		ok = text[0] == '-' || text[0] >= '0' && text[0] <= '9'
	case "boolean":
		ok = text == "true" || text == "false"
	case "date":
		return appendAge(dst, v, now)
	}
	if !ok {
		return append(dst, "null"...)
	}
	return append(dst, text...)
}

// appendTexts appends what path leads to as one string: strings as they are, everything else as JSON.
func appendJoined(dst []byte, path Path, object Value) []byte {
	var all strings.Builder
	found := false
	path.Find(object, func(v Value) {
		if string(v) == "null" {
			return
		}
		if found {
			all.WriteByte(' ')
		}
		found = true
		if v[0] == '"' {
			all.WriteString(v.Text())
		} else {
			all.Write(v)
		}
	})
	if !found {
		return append(dst, "null"...)
	}
	return rawjson.AppendString(dst, all.String())
}
