package protobody

import (
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fields returns the value at each of paths in message, an object of the given type without its
// envelope. A path consists of the names of members in JSON, separated by dots. The values are
// those of listwatch's field selectors: the text of a string, a number or a boolean. A value is
// empty if it is absent in JSON, if it has another type, if the path leads through an array or a
// map, or if the kind or the path is unknown.
func Fields(apiVersion, kind string, message []byte, paths []string) []string {
	values := make([]string, len(paths))
	types := kinds()
	m := types.messages[types.scheme.AllKnownTypes()[schema.FromAPIVersionAndKind(apiVersion, kind)]]
	if m == nil {
		return values
	}
	for i, path := range paths {
		values[i] = m.text(message, path)
	}
	return values
}

// text returns the value at path in data.
func (m *message) text(data []byte, path string) string {
	name, rest, isDeeper := strings.Cut(path, ".")
	number, ok := m.names[name]
	if !ok || name == "" {
		return m.inlinedText(data, path)
	}
	f := m.fields[number]
	if f.repeated || isDeeper != (f.message != nil) {
		return ""
	}
	if !isDeeper {
		return f.text(data, number)
	}
	value, _ := lastField(data, number, protowire.BytesType)
	return f.message.text(value, rest)
}

// inlinedText returns the value at path in the messages whose members are inlined into m.
func (m *message) inlinedText(data []byte, path string) string {
	for number, f := range m.fields {
		if f.name != "" || f.message == nil {
			continue
		}
		value, _ := lastField(data, number, protowire.BytesType)
		if text := f.message.text(value, path); text != "" {
			return text
		}
	}
	return ""
}

// text returns the text of the value of f, which has the given number in data.
func (f *field) text(data []byte, number protowire.Number) string {
	if f.scalar == reflect.String {
		value, _ := lastField(data, number, protowire.BytesType)
		return string(value)
	}
	value, ok := lastField(data, number, protowire.VarintType)
	v, _ := protowire.ConsumeVarint(value)
	switch isHidden := !ok || v == 0 && f.omitsZero; {
	case isHidden:
		return ""
	case f.scalar == reflect.Bool:
		return strconv.FormatBool(v != 0)
	case f.scalar == reflect.Int32:
		return strconv.FormatInt(int64(int32(v)), 10)
	case f.scalar == reflect.Int64:
		return strconv.FormatInt(int64(v), 10)
	}
	return ""
}

// lastField returns the last field with the given number and type, without its tag and length.
func lastField(data []byte, number protowire.Number, wire protowire.Type) (value []byte, ok bool) {
	for len(data) > 0 {
		n, t, size := protowire.ConsumeTag(data)
		if size < 0 {
			return nil, false
		}
		data = data[size:]
		if size = protowire.ConsumeFieldValue(n, t, data); size < 0 {
			return nil, false
		}
		if n == number && t == wire {
			if value, ok = data[:size], true; t == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
		}
		data = data[size:]
	}
	return value, ok
}
