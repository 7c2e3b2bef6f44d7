package protobody

import (
	_ "embed" // for the table
	"fmt"
	"sync"
)

// kubernetes is what the Go types of Kubernetes say of their messages; a test beside the clients of Kubernetes writes it and holds it to
// them.
//
//go:embed kubernetes.txt
var kubernetes string

// known is the table, read once.
var known = sync.OnceValues(func() (*table, error) { return parse(kubernetes) })

// A table is what is known of messages. It never changes.
type table struct {
	// kinds are the messages of objects, by apiVersion and kind; see kindKey.
	kinds map[string]*message
}

// anyVersion is the apiVersion of what each group has, such as DeleteOptions.
const anyVersion = "*"

func kindKey(apiVersion, kind string) string { return apiVersion + " " + kind }

// kind returns the message of an object; nil where it is not known.
func (t *table) kind(apiVersion, kind string) *message {
	if m := t.kinds[kindKey(apiVersion, kind)]; m != nil {
		return m
	}
	return t.kinds[kindKey(anyVersion, kind)]
}

// A message is a JSON object.
type message struct {
	name     string // such as core.v1.Pod
	fields   []field
	byNumber map[uint64]int // of fields
}

func (m *message) add(f field) error {
	if _, twice := m.byNumber[f.number]; twice {
		return fmt.Errorf("%s has two fields %d", m.name, f.number)
	}
	m.byNumber[f.number] = len(m.fields)
	m.fields = append(m.fields, f)
	return nil
}

// A field is a member of a JSON object.
type field struct {
	number  uint64
	name    string // empty: the members of the message are members of its owner
	absence absence
	shape   shape
	scalar  scalar   // what each value is that is no message
	message *message // what each value is otherwise
	entry   *message // of a shapeMap: its key, and its value
}

// An absence says when a member is left out.
type absence byte

const (
	omitEmpty absence = iota // where its value is none, false, 0 or empty, as encoding/json understands omitempty
	omitZero                 // where it is a time that is not set
	omitNever
)

// A shape says how many values there are.
type shape byte

const (
	shapeOne      shape = iota // none is 0, or empty
	shapeOptional              // a pointer in Go
	shapeList
	shapeMap // of strings
)

// A scalar is a value that is no message in JSON. Some are one on the wire.
type scalar string

const (
	scalarBool        scalar = "bool"
	scalarInt32       scalar = "int32"
	scalarInt64       scalar = "int64"
	scalarString      scalar = "string"
	scalarBytes       scalar = "bytes"
	scalarStrings     scalar = "strings"     // a message whose field 1 is a list, which is what it is in JSON
	scalarJSON        scalar = "json"        // a message whose field 1 is JSON
	scalarTime        scalar = "time"        // a Timestamp, in seconds
	scalarMicroTime   scalar = "microtime"   // a Timestamp, in microseconds
	scalarQuantity    scalar = "quantity"    // a message whose field 1 is the quantity as text
	scalarIntOrString scalar = "intorstring" // a message: what it is, the number, the text
)

// wire returns how values are written.
func (s scalar) wire() wireType {
	switch s {
	case scalarBool, scalarInt32, scalarInt64:
		return wireVarint
	}
	return wireBytes
}

// isPlain reports whether values are what they are on the wire too, and no messages.
func (s scalar) isPlain() bool {
	return s.wire() == wireVarint || s == scalarString || s == scalarBytes
}

func (s scalar) isKnown() bool {
	switch s {
	case scalarStrings, scalarJSON, scalarTime, scalarMicroTime, scalarQuantity, scalarIntOrString:
		return true
	}
	return s.isPlain()
}
