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
// decode such an object or a list that contains it. null counts as missing. If the types are right,
// unknown has the paths of the members that t does not describe, such as "spec.containers[0].imag".
// They may have any value. A nil Type accepts and describes everything.
func (t *Type) Check(doc []byte) (unknown []string, err error) {
	if t == nil {
		return nil, nil
	}
	w := walk{path: make([]step, 0, 8)}
	w.object(t, doc)
	return w.unknown, w.err
}

// Unknown returns the same paths as Check, but continues after a value of a wrong type. It leaves
// out the members of such a value.
func (t *Type) Unknown(doc []byte) []string {
	if t == nil {
		return nil
	}
	w := walk{lenient: true, path: make([]step, 0, 8)}
	w.object(t, doc)
	return w.unknown
}

// Undeclared is like Unknown, but leaves out the members of objects for which t describes no
// members.
func (t *Type) Undeclared(doc []byte) []string {
	if t == nil {
		return nil
	}
	w := walk{lenient: true, declared: true}
	w.object(t, doc)
	return w.unknown
}

// A walk compares the values of a document with their descriptions. Its methods return false after
// a value of a wrong type, unless lenient is true.
type walk struct {
	lenient  bool
	declared bool   // ignores the members of objects without described members
	path     []step // to the current value
	unknown  []string
	err      error
}

// A step is a member name or, if name is nil, an index.
type step struct {
	name  []byte
	index int
	// chosen is true if a user has chosen the name, which may contain dots.
	chosen bool
}

// object checks v, which should be an object of type t.
func (w *walk) object(t *Type, v []byte) bool {
	if len(v) == 0 || v[0] != '{' {
		return w.wrong("an object", v)
	}
	depth := len(w.path)
	w.path = append(w.path, step{chosen: t.Fields == nil})
	_ = rawjson.MemberBytes(v, func(name []byte, value rawjson.Span) error {
		w.path[depth].name = name
		f, known := t.find(name)
		if !known && t.Fields != nil && !(w.declared && len(t.Fields) == 0) {
			w.unknown = append(w.unknown, w.text(false))
		}
		if !w.field(f, value.Of(v)) {
			return w.err
		}
		return nil
	})
	w.path = w.path[:depth]
	return w.err == nil
}

// field checks v, which should be a value of f.
func (w *walk) field(f Field, v []byte) bool {
	switch {
	case string(v) == "null":
		return true
	case !f.List:
		return w.value(f, v)
	case v[0] != '[':
		return w.wrong("a list", v)
	}
	depth := len(w.path)
	w.path = append(w.path, step{})
	_ = rawjson.Elements(v, func(value rawjson.Span) error {
		if e := value.Of(v); string(e) != "null" && !w.value(f, e) {
			return w.err
		}
		w.path[depth].index++
		return nil
	})
	w.path = w.path[:depth]
	return w.err == nil
}

// value checks v, which is not null and should be a value of f or, if f is a list, an element of
// it.
func (w *walk) value(f Field, v []byte) bool {
	switch {
	case f.Elements != nil:
		return w.field(*f.Elements, v)
	case f.Type != nil:
		return w.object(f.Type, v)
	}
	if f.Scalar == "" || w.lenient {
		return true
	}
	if want := f.Scalar.check(v); want != "" {
		return w.wrong(want, v)
	}
	return true
}

// wrong records that the current value is got and should be want.
func (w *walk) wrong(want string, got []byte) bool {
	if w.lenient {
		return true
	}
	where := "the object"
	if len(w.path) > 0 {
		where = w.text(true)
	}
	w.err = &listwatch.Error{
		Code: listwatch.Invalid, Message: fmt.Sprintf("%s: want %s, got %s", where, want, describe(got)),
	}
	return false
}

// text returns the path. If quote is true, the names that users choose are quoted in brackets.
func (w *walk) text(quote bool) string {
	var text []byte
	for i, s := range w.path {
		switch {
		case s.name == nil:
			text = append(strconv.AppendInt(append(text, '['), int64(s.index), 10), ']')
		case s.chosen && quote:
			text = append(strconv.AppendQuote(append(text, '['), string(s.name)), ']')
		default:
			if i > 0 {
				text = append(text, '.')
			}
			text = append(text, s.name...)
		}
	}
	return string(text)
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
