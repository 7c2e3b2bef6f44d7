package protobody

import (
	_ "embed" // for kubernetes.txt
	"fmt"
	"sync"
)

// kubernetes is the table of messages of Kubernetes' Go types. A test in module interop
// generates it and checks that it is current.
//
//go:embed kubernetes.txt
var kubernetes string

// kubernetesMessages parses the table once.
var kubernetesMessages = sync.OnceValues(func() (*messageTable, error) { return parse(kubernetes) })

// A messageTable holds the schemas of messages. It is immutable.
type messageTable struct {
	// kinds maps the kindKey of each kind to its schema.
	kinds map[string]*message
}

// anyVersion is the apiVersion of kinds that every group has, such as DeleteOptions.
const anyVersion = "*"

func kindKey(apiVersion, kind string) string { return apiVersion + " " + kind }

// kind returns the schema of a kind, or nil if the kind is unknown.
func (t *messageTable) kind(apiVersion, kind string) *message {
	if m := t.kinds[kindKey(apiVersion, kind)]; m != nil {
		return m
	}
	return t.kinds[kindKey(anyVersion, kind)]
}

// A message is the schema of a Protocol Buffers message that is an object in JSON.
type message struct {
	name     string // such as core.v1.Pod
	fields   []field
	byNumber map[uint64]int // index in fields
}

func (m *message) add(f field) error {
	if _, twice := m.byNumber[f.number]; twice {
		return fmt.Errorf("%s has two fields with number %d", m.name, f.number)
	}
	m.byNumber[f.number] = len(m.fields)
	m.fields = append(m.fields, f)
	return nil
}

// A field is the schema of one field of a message.
type field struct {
	number      uint64
	name        string // empty if the members of the message are inlined into its owner
	omit        omitRule
	cardinality cardinality
	scalar      scalarType // type of each value that is not a message
	message     *message   // type of each value otherwise
	entry       *message   // key and value of a mapped field
}

// An omitRule determines when a member is omitted from the JSON.
type omitRule byte

const (
	omitEmpty omitRule = iota // like omitempty of encoding/json: false, 0, nil or empty
	omitZero                  // only a zero time is omitted
	omitNever
)

// A cardinality determines how many values a field has.
type cardinality byte

const (
	single   cardinality = iota // a missing value means 0 or empty
	optional                    // a pointer in Go
	repeated
	mapped // keys are strings
)

// A scalarType is the type of a value that is not an object in JSON. Some of these values
// are messages on the wire.
type scalarType string

const (
	scalarBool      scalarType = "bool"
	scalarInt32     scalarType = "int32"
	scalarInt64     scalarType = "int64"
	scalarString    scalarType = "string"
	scalarBytes     scalarType = "bytes"
	scalarStrings   scalarType = "strings"   // a message whose field 1 is the list
	scalarJSON      scalarType = "json"      // a message whose field 1 is JSON
	scalarTime      scalarType = "time"      // a Timestamp with seconds
	scalarMicroTime scalarType = "microtime" // a Timestamp with microseconds
	scalarQuantity  scalarType = "quantity"  // a message whose field 1 is the quantity as text
	// a message with the kind of value, the number and the text
	scalarIntOrString scalarType = "intorstring"
)

// wire returns the wire type of the values.
func (s scalarType) wire() wireType {
	switch s {
	case scalarBool, scalarInt32, scalarInt64:
		return wireVarint
	}
	return wireBytes
}

// isPlain reports whether the values are also scalars on the wire.
func (s scalarType) isPlain() bool {
	return s.wire() == wireVarint || s == scalarString || s == scalarBytes
}

func (s scalarType) isKnown() bool {
	switch s {
	case scalarStrings, scalarJSON, scalarTime, scalarMicroTime, scalarQuantity, scalarIntOrString:
		return true
	}
	return s.isPlain()
}
