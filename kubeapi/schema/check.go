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

// Check returns an error of code Invalid that says where doc, compact JSON, holds a value of another type than t says: what a client that
// decodes into t's Go type could not read, with the list that it is in. Members that t does not know may be anything; null is what is not
// there. A nil Type finds nothing wrong.
func (t *Type) Check(doc []byte) error {
	if m := t.check(doc); m != nil {
		return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf("%s: want %s, got %s", m.where(), m.want, shown(m.got))}
	}
	return nil
}

// A mismatch is where a value is not what it must be, below the one that was looked at.
type mismatch struct {
	path, want string
	got        []byte
}

func (m *mismatch) below(step string) *mismatch {
	if m != nil {
		m.path = step + m.path
	}
	return m
}

func (m *mismatch) where() string {
	if m.path == "" {
		return "the object"
	}
	return m.path[1:] // without the dot in front
}

func (t *Type) check(v []byte) (bad *mismatch) {
	switch {
	case t == nil:
		return nil
	case len(v) == 0 || v[0] != '{':
		return &mismatch{want: "an object", got: v}
	}
	_ = rawjson.Members(v, func(name string, value rawjson.Span) error {
		if bad != nil {
			return nil
		}
		step := "." + name
		if t.Fields == nil {
			step = "[" + strconv.Quote(name) + "]" // the writer's names may have dots in them
		}
		f := t.Field(name)
		bad = f.check(value.Of(v)).below(step)
		return nil
	})
	return bad
}

func (f Field) check(v []byte) (bad *mismatch) {
	switch {
	case string(v) == "null":
		return nil
	case !f.List:
		return f.checkOne(v)
	case v[0] != '[':
		return &mismatch{want: "a list", got: v}
	}
	i := 0
	_ = rawjson.Elements(v, func(value rawjson.Span) error {
		if e := value.Of(v); bad == nil && string(e) != "null" {
			bad = f.checkOne(e).below("[" + strconv.Itoa(i) + "]")
		}
		i++
		return nil
	})
	return bad
}

func (f Field) checkOne(v []byte) *mismatch {
	if f.Type != nil {
		return f.Type.check(v)
	}
	want := f.Scalar.check(v)
	if want == "" {
		return nil
	}
	return &mismatch{want: want, got: v}
}

// quantity is Kubernetes' syntax of numbers with a unit (k8s.io/apimachinery/pkg/api/resource).
var quantity = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,9})?$`)

// check returns what v must be and is not; empty: it is.
func (s Scalar) check(v []byte) (want string) {
	isText, isNumber := v[0] == '"', v[0] == '-' || v[0] >= '0' && v[0] <= '9'
	text := ""
	if isText {
		text, _ = rawjson.String(v) // it is a string
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
		want, ok = "a whole number of 64 bits", isWhole(v, 64)
	case Int32:
		want, ok = "a whole number of 32 bits", isWhole(v, 32)
	case IntOrString:
		want, ok = "a whole number of 32 bits or a string", isText || isWhole(v, 32)
	case Quantity:
		number := bytes.TrimSpace(bytes.Trim(v, `"`)) // escapes are not read
		want, ok = `a quantity such as "100m" or "2Gi"`, (isText || isNumber) && quantity.Match(number)
	case Time:
		_, err := time.Parse(time.RFC3339, text)
		want, ok = `a time such as "2006-01-02T15:04:05Z"`, isText && err == nil
	case MicroTime:
		_, err := time.Parse("2006-01-02T15:04:05.000000Z07:00", text)
		want, ok = `a time such as "2006-01-02T15:04:05.000000Z"`, isText && err == nil
	case Bytes:
		_, err := base64.StdEncoding.DecodeString(text)
		want, ok = "a string in base64", isText && err == nil
	}
	if ok {
		return ""
	}
	return want
}

func isWhole(v []byte, bits int) bool {
	_, err := strconv.ParseInt(string(v), 10, bits)
	return err == nil
}

// shown tells what a value is, for a message.
func shown(v []byte) string {
	const most = 40
	switch {
	case len(v) == 0:
		return "nothing"
	case v[0] == '{':
		return "an object"
	case v[0] == '[':
		return "a list"
	case len(v) > most:
		return fmt.Sprintf("%.40s…", v)
	}
	return string(v)
}
