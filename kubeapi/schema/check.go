package schema

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

// Check returns an error of code Invalid that names the first value in doc with a wrong
// type. doc is compact JSON. A client that decodes into the corresponding Go type could not
// decode such an object or a list that contains it. Unknown members may have any value, and
// null counts as missing. A nil Type accepts everything.
func (t *Type) Check(doc []byte) error {
	if m := t.check(doc); m != nil {
		return &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("%s: want %s, got %s", m.where(), m.want, describe(m.got)),
		}
	}
	return nil
}

// Unknown returns the paths of the fields in doc that t does not describe, such as
// "spec.containers[0].imag". doc is compact JSON of the right types. A nil Type, and a Type without
// Fields, describes every field.
func (t *Type) Unknown(doc []byte) []string {
	if t == nil || t.Fields == nil && t.AdditionalProperties == nil || len(doc) == 0 || doc[0] != '{' {
		return nil
	}
	var unknown []string
	_ = rawjson.MemberBytes(doc, func(name []byte, value rawjson.Span) error {
		f, known := t.find(name)
		if !known {
			unknown = append(unknown, string(name))
			return nil
		}
		for _, path := range f.unknown(value.Of(doc)) {
			unknown = append(unknown, string(name)+path)
		}
		return nil
	})
	return unknown
}

// unknown returns the paths of the unknown fields in a value. Each path starts with a dot or a
// bracket.
func (f Field) unknown(v []byte) (paths []string) {
	if !f.List || len(v) == 0 || v[0] != '[' {
		for _, path := range f.Type.Unknown(v) {
			paths = append(paths, "."+path)
		}
		return paths
	}
	element, i := Field{Type: f.Type}, 0
	if f.Elements != nil {
		element = *f.Elements
	}
	_ = rawjson.Elements(v, func(value rawjson.Span) error {
		for _, path := range element.unknown(value.Of(v)) {
			paths = append(paths, "["+strconv.Itoa(i)+"]"+path)
		}
		i++
		return nil
	})
	return paths
}

// A typeError describes a value of a wrong type. The path is relative to the value that was
// checked.
type typeError struct {
	path, want string
	got        []byte
}

func (t *typeError) within(step string) *typeError {
	if t != nil {
		t.path = step + t.path
	}
	return t
}

func (t *typeError) where() string {
	if t.path == "" {
		return "the object"
	}
	return t.path[1:] // without the leading dot
}

func (t *Type) check(v []byte) (bad *typeError) {
	switch {
	case t == nil:
		return nil
	case len(v) == 0 || v[0] != '{':
		return &typeError{want: "an object", got: v}
	}
	_ = rawjson.MemberBytes(v, func(name []byte, value rawjson.Span) error {
		if bad != nil {
			return nil
		}
		f, _ := t.find(name)
		if bad = f.check(value.Of(v)); bad == nil {
			return nil
		}
		step := "." + string(name)
		if t.Fields == nil {
			// Quote the names of additional properties, because users choose them and they may
			// contain dots.
			step = "[" + strconv.Quote(string(name)) + "]"
		}
		bad = bad.within(step)
		return nil
	})
	return bad
}

func (f Field) check(v []byte) (bad *typeError) {
	switch {
	case string(v) == "null":
		return nil
	case !f.List:
		return f.checkOne(v)
	case v[0] != '[':
		return &typeError{want: "a list", got: v}
	}
	i := 0
	_ = rawjson.Elements(v, func(value rawjson.Span) error {
		if e := value.Of(v); bad == nil && string(e) != "null" {
			if bad = f.checkOne(e); bad != nil {
				bad = bad.within("[" + strconv.Itoa(i) + "]")
			}
		}
		i++
		return nil
	})
	return bad
}

func (f Field) checkOne(v []byte) *typeError {
	if f.Elements != nil {
		return f.Elements.check(v)
	}
	if f.Type != nil {
		return f.Type.check(v)
	}
	want := f.Scalar.check(v)
	if want == "" {
		return nil
	}
	return &typeError{want: want, got: v}
}

// quantity is the syntax of Kubernetes' numbers with a unit
// (k8s.io/apimachinery/pkg/api/resource).
var quantity = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,9})?$`)

// check returns "" if v has the required type, and otherwise a description of that type.
func (s Scalar) check(v []byte) (want string) {
	isText, isNumber := v[0] == '"', v[0] == '-' || v[0] >= '0' && v[0] <= '9'
	text := ""
	if isText && (s == Time || s == MicroTime || s == Bytes) {
		text, _ = rawjson.String(v) // v is a string, so there is no error
	}
	ok := true
	switch s {
	case String:
		want, ok = "a string", isText
	case Boolean:
		want, ok = "true or false", v[0] == 't' || v[0] == 'f'
	case Number:
		want, ok = "a number", isNumber
	case Integer:
		want, ok = "a 64-bit integer", isInteger(v, 64)
	case Int32:
		want, ok = "a 32-bit integer", isInteger(v, 32)
	case IntOrString:
		want, ok = "a 32-bit integer or a string", isText || isInteger(v, 32)
	case Quantity:
		number := bytes.TrimSpace(bytes.Trim(v, `"`)) // escape sequences are not supported
		want, ok = `a quantity such as "100m" or "2Gi"`, (isText || isNumber) && quantity.Match(number)
	case Time:
		_, err := time.Parse(time.RFC3339, text)
		want, ok = `a time such as "2006-01-02T15:04:05Z"`, isText && err == nil
	case MicroTime:
		_, err := time.Parse("2006-01-02T15:04:05.000000Z07:00", text)
		want, ok = `a time such as "2006-01-02T15:04:05.000000Z"`, isText && err == nil
	case Bytes:
		_, err := base64.StdEncoding.DecodeString(text)
		want, ok = "a base64 string", isText && err == nil
	}
	if ok {
		return ""
	}
	return want
}

func isInteger(v []byte, bits int) bool {
	_, err := strconv.ParseInt(string(v), 10, bits)
	return err == nil
}

// describe formats a value for an error message.
func describe(v []byte) string {
	const limit = 40
	switch {
	case len(v) == 0:
		return "nothing"
	case v[0] == '{':
		return "an object"
	case v[0] == '[':
		return "a list"
	case len(v) > limit:
		return fmt.Sprintf("%.40s…", v)
	}
	return string(v)
}
