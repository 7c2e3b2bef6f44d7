package protobody

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrTooLarge is returned if the JSON would exceed the limit.
var ErrTooLarge = errors.New("the JSON exceeds the limit")

// An unknownError describes an unknown kind, or an unknown field whose value would be lost.
type unknownError string

func (e unknownError) Error() string { return string(e) }

// messages describes the Protocol Buffers message of each Go type. The types' own decoders do not
// suffice: they skip unknown fields, and allocate memory for each element of a list, even if it is
// empty.
type messages map[reflect.Type]*message

// A message describes a Protocol Buffers message with the information in the tags of its Go type.
type message struct {
	name string // such as core.v1.Pod
	// fields is nil if the message is not decoded field by field, for example for a quantity.
	fields map[protowire.Number]field
	names  map[string]protowire.Number // the numbers of fields by name
}

// A field is a field of a message.
type field struct {
	name    string   // empty if the members of the message are inlined into its owner
	message *message // nil if the value is not a message
	// allocated is the memory of each value. It is zero if the value is a part of its owner.
	allocated memory
	scalar    reflect.Kind // of the values, if they are not messages
	repeated  bool         // the field is a list or a map
	omitsZero bool         // JSON does not show the zero value
}

// envelope is the type of the message that contains an encoded object.
var envelope = reflect.TypeFor[runtime.Unknown]()

// scalarSize is the approximate memory that each value needs in addition to field.allocated.
const scalarSize = 32

// add adds the message of t and the messages in it, and returns the message of t. It returns nil if
// a value of type t is not a message. owner is the name of the field of type t, for errors.
func (m messages) add(t reflect.Type, owner string) *message {
	found, known := m[t]
	switch {
	case known:
		return found
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && t.Name() == "":
		return m.add(t.Elem(), owner)
	case t.Kind() == reflect.Map:
		return m.addEntry(t, owner)
	case t.Kind() != reflect.Struct:
		return nil
	}
	added := &message{name: shortName(t)}
	m[t] = added
	if t != envelope && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return added
	}
	added.fields, added.names = map[protowire.Number]field{}, map[string]protowire.Number{}
	for i := range t.NumField() {
		f := t.Field(i)
		words := strings.Split(f.Tag.Get("protobuf"), ",") // wire type, number and options
		if len(words) < 2 {
			continue
		}
		number, _ := strconv.Atoi(words[1])
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		added.fields[protowire.Number(number)] = field{
			name, m.add(f.Type, added.name+"."+name), allocatedBy(f.Type), scalarOf(f.Type),
			f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map,
			strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Pointer,
		}
		added.names[name] = protowire.Number(number)
	}
	return added
}

// addEntry adds the message of an entry of a map.
func (m messages) addEntry(t reflect.Type, owner string) *message {
	return &message{name: "an entry of " + owner, fields: map[protowire.Number]field{
		1: {name: "key"},
		2: {name: "value", message: m.add(t.Elem(), owner), allocated: allocatedBy(t.Elem())},
	}}
}

// scalarOf returns the kind of t, or of the type to which it points.
func scalarOf(t reflect.Type) reflect.Kind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind()
}

// allocatedBy returns the memory of each value of a field of type t.
func allocatedBy(t reflect.Type) memory {
	const mapOverhead = 64
	switch t.Kind() {
	case reflect.Map:
		return memory(t.Key().Size() + t.Elem().Size() + mapOverhead)
	case reflect.Pointer, reflect.Slice:
		return memory(t.Elem().Size())
	}
	return 0
}

// shortName returns the package and the type name, with the group for a version of an API.
func shortName(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	if last := len(path) - 1; strings.HasPrefix(path[last], "v") {
		return path[last-1] + "." + t.String()
	}
	return t.String()
}

// memory is a number of bytes.
type memory int64

// check returns an error if data has a non-empty field that m does not have, or if the decoded
// message needs more memory than budget. It subtracts that memory from budget.
func (m *message) check(data []byte, budget *memory) error {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, wire, data[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		value := data[n : n+size]
		data = data[n+size:]
		f, known := m.fields[number]
		if !known && !isZero(wire, value) {
			return unknownError(fmt.Sprintf("field %d of %s is unknown", number, m.name))
		}
		if *budget -= scalarSize; *budget < 0 {
			return ErrTooLarge
		}
		if err := f.check(wire, value, budget); err != nil {
			return err
		}
	}
	return nil
}

func (f field) check(wire protowire.Type, value []byte, budget *memory) error {
	if f.message == nil || wire != protowire.BytesType {
		return nil
	}
	inner, _ := protowire.ConsumeBytes(value)
	*budget -= f.allocated
	var err error
	if f.message.fields != nil {
		err = f.message.check(inner, budget)
	} else if f.message.isTime() {
		err = checkTime(inner)
	}
	if err != nil && f.name != "" && err != ErrTooLarge {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return err
}

func (m *message) isTime() bool {
	return m.name == shortName(reflect.TypeFor[metav1.Time]()) ||
		m.name == shortName(reflect.TypeFor[metav1.MicroTime]())
}

// checkTime returns an error if a Timestamp cannot be written in the format of RFC 3339.
func checkTime(data []byte) error {
	var t metav1.Timestamp
	if err := t.Unmarshal(data); err != nil {
		return err
	}
	if year := time.Unix(t.Seconds, 0).UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("not a time of RFC 3339: %d seconds after 1970", t.Seconds)
	}
	return nil
}

// isZero reports whether the value of a field is zero or empty.
func isZero(wire protowire.Type, value []byte) bool {
	switch wire {
	case protowire.VarintType, protowire.BytesType:
		return len(value) == 1 && value[0] == 0
	case protowire.Fixed32Type, protowire.Fixed64Type:
		return strings.Trim(string(value), "\x00") == ""
	}
	return false
}
