// Package table renders objects as the tables that kubectl get shows, and as their metadata
// only. These are the representations Table, PartialObjectMetadata and
// PartialObjectMetadataList of Kubernetes' API. [New] compiles the columns of a resource.
// [Table.Represent] offers the representations for a request.
package table

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
)

// A Column is a column of the tables that kubectl get shows, like an entry of
// additionalPrinterColumns in a CustomResourceDefinition.
type Column struct {
	// Name is the heading, which kubectl shows in capitals. It is required.
	Name string
	// Type is the type of the cells: string, integer, number, boolean or date. If empty, string is
	// used. A date is shown as the time since that date.
	Type string
	// Format is an OpenAPI format that refines Type. It may be empty.
	Format string
	// Description explains the column to users.
	Description string
	// Priority is zero for columns that are always shown. kubectl shows columns with a
	// greater priority only with -o wide.
	Priority int
	// Path is the JSON path of the cell's value in the syntax of kubectl, such as ".spec.replicas",
	// ".metadata.labels['a/b']" or ".status.conditions[?(@.type=="Ready")].status". If the path
	// matches several values, the first one is used. If the value is missing or has another type,
	// the cell is empty. A string that is not a date is shown as "<invalid>" in a column of dates.
	Path string
	// Cell appends the cell to dst as JSON, for cells that no Path can describe. If it is
	// not nil, Path is ignored. object is compact JSON and must not be modified. Cell is
	// called concurrently.
	Cell func(dst, object []byte, now time.Time) []byte

	cell cellFunc // takes precedence over Cell and Path
}

// A cellFunc appends the cell of a row.
type cellFunc func(dst []byte, r *row) []byte

// nameColumn is the first column of every table. If kubectl shows several kinds, it adds
// the kind to the cells of this column.
var nameColumn = Column{
	Name: "Name", Type: "string", Format: "name", Description: "The name of the object, unique in its namespace.",
	cell: nameCell,
}

// AgeColumn returns the column that shows the time since the object was created.
func AgeColumn() Column { return ageColumn }

var ageColumn = Column{
	Name: "Age", Type: "string", Description: "The time since the object was created.",
	cell: func(dst []byte, r *row) []byte { return appendAge(dst, r.at("metadata", "creationTimestamp"), r.now) },
}

func nameCell(dst []byte, r *row) []byte {
	name := r.at("metadata", "name")
	if len(name) == 0 {
		return append(dst, `""`...) // the object of a bookmark has no name
	}
	return append(dst, name...)
}

// A Table is the compiled form of a resource's columns. It is immutable. The cache
// of frames compares Tables by address.
type Table struct {
	definitions []byte // in JSON
	cells       []cellFunc
}

// New compiles columns, and adds a first column with the object's name. If columns is nil, New also
// adds a column with the age. An invalid column is an error of code Invalid.
func New(columns []Column) (*Table, error) {
	if columns == nil {
		columns = []Column{ageColumn}
	}
	// The members of metav1.TableColumnDefinition. All of them are present even if they are
	// empty.
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

// cellTypes are the valid values of [Column.Type].
var cellTypes = []string{"string", "integer", "number", "boolean", "date"}

func (c Column) compile() (cellFunc, error) {
	if c.Name == "" || !slices.Contains(cellTypes, c.Type) {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf(
				"column %q of type %q: the name must not be empty and the type must be one of %q", c.Name, c.Type,
				cellTypes),
		}
	}
	if c.cell != nil {
		return c.cell, nil
	}
	if c.Cell != nil {
		return func(dst []byte, r *row) []byte { return c.Cell(dst, r.object, r.now) }, nil
	}
	path, err := parsePath(c.Path)
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("column %q: %v", c.Name, err)}
	}
	return func(dst []byte, r *row) []byte { return c.appendCell(dst, path, r) }, nil
}

// appendCell appends the value at path as a cell.
func (c Column) appendCell(dst []byte, path cellPath, r *row) []byte {
	raw := r.at(path.names...)
	if path.rest == "" && c.Type == "string" && len(raw) > 0 && raw[0] == '"' {
		return append(dst, raw...)
	}
	value, ok := path.find(raw)
	if !ok {
		return append(dst, "null"...)
	}
	switch c.Type {
	case "string":
		return rawjson.AppendString(dst, printed(value))
	case "date":
		if text, ok := value.(string); ok {
			return appendDate(dst, text, r.now)
		}
	default:
		if cell, err := json.Marshal(convert(value, c.Type)); err == nil {
			return append(dst, cell...)
		}
	}
	return append(dst, "null"...)
}

// A row is an object whose cells are rendered at a given time. It caches parsed parts of the
// object, which several cells may use.
type row struct {
	object jsonvalue.Value
	now    time.Time
	node   rawjson.Node
	pod    *podSummary // nil until a cell of a pod needs it
}

func newRow(object []byte, now time.Time) *row {
	return &row{object: object, now: now, node: rawjson.NewNode(object)}
}

// at returns the value at a path of member names.
func (r *row) at(path ...string) jsonvalue.Value { return r.node.Lookup(path...) }

// A podSummary is the state of a pod as kubectl shows it in one line.
type podSummary struct {
	reason       string
	ready, total int
	restarts     int64
	lastRestart  time.Time // zero if unknown
}
