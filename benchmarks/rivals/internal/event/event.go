// Package event makes the objects and events that all rivals send.
package event

import (
	"fmt"
	"strings"
	"time"
)

// Mark is the byte that precedes the time stamp of an object. It occurs nowhere else in an event,
// but it may occur in the binary header of a frame.
const Mark = '!'

// StampLen is the length of a time stamp: nanoseconds since 1970, in decimal.
const StampLen = 19

// size is the approximate length of an event in bytes.
const size = 1024

// A Kind is the type of the objects.
type Kind struct{ APIVersion, Kind string }

// Default is the Kind of the objects of all rivals that do not prescribe one.
var Default = Kind{"v1", "Event"}

// An Object is one version of one object.
type Object struct {
	Name    string
	Version uint64
	// JSON is the object as JSON.
	JSON []byte
}

// New returns an object. at is its time stamp. If version is zero, the object has no
// resourceVersion.
func (k Kind) New(name string, version uint64, at time.Time) Object {
	rv := ""
	if version > 0 {
		rv = fmt.Sprintf(`,"resourceVersion":"%d"`, version)
	}
	head := fmt.Sprintf(
		`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"default"%s},"at":"%c%0*d","data":"`,
		k.APIVersion, k.Kind, name, rv, Mark, StampLen, at.UnixNano())
	const rest = len(`{"type":"MODIFIED","object":"}}`)
	return Object{name, version, []byte(head + strings.Repeat("x", max(0, size-rest-len(head))) + `"}`)}
}

// Added returns the event that adds o to the initial state of a watcher.
func (o Object) Added() []byte { return o.event("ADDED") }

// Modified returns the event that changes o.
func (o Object) Modified() []byte { return o.event("MODIFIED") }

func (o Object) event(kind string) []byte {
	return fmt.Appendf(make([]byte, 0, size), `{"type":%q,"object":%s}`, kind, o.JSON)
}

// Patch returns a merge patch that sets the time stamp of an object.
func Patch(at time.Time) []byte {
	return fmt.Appendf(nil, `{"at":"%c%0*d"}`, Mark, StampLen, at.UnixNano())
}

// A Generator changes its objects in turn: each call of Next makes a new version of the next
// object. It is not safe for concurrent use.
type Generator struct {
	Kind    Kind
	objects int // the number of objects, which Next changes in turn
	version uint64
}

// NewGenerator returns a Generator whose first version is 2, because an empty collection has
// version 1.
func NewGenerator() *Generator { return &Generator{Kind: Default, version: 1} }

// State returns the first versions of n objects. It must be called once, before Next.
func (g *Generator) State(n int) []Object {
	g.objects = n
	all := make([]Object, n)
	for i := range all {
		g.version++
		all[i] = g.Kind.New(fmt.Sprintf("object-%05d", i), g.version, time.Now())
	}
	return all
}

// Next returns the next version of one of the objects.
func (g *Generator) Next() Object {
	g.version++
	return g.Kind.New(fmt.Sprintf("object-%05d", g.version%uint64(g.objects)), g.version, time.Now())
}
