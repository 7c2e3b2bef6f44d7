package postgres

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A dataType determines how the text of a value becomes JSON. The JSON is the same as in
// row_to_json.
type dataType struct {
	form      form
	element   *dataType // of an array
	delimiter byte      // between the elements of an array
	members   []member  // of a composite
}

// A member is a column of a composite type.
type member struct {
	name string
	dataType
}

// A form is a way to write the text of a value as JSON.
type form uint8

const (
	asString form = iota
	asBool
	asNumber // NaN and infinities are strings
	asJSON
	asTime  // a timestamp without time zone, with a T between date and time
	asTimeZ // a timestamp with time zone: T, and an offset with minutes
	asArray
	asComposite
)

// maxNesting limits the nesting depth of composites and arrays.
const maxNesting = 32

// appendValue appends the JSON of a value of type t to dst.
func appendValue(dst []byte, t *dataType, text []byte) ([]byte, error) {
	switch t.form {
	case asBool:
		if string(text) == "t" {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case asNumber:
		if last := text[max(0, len(text)-1):]; len(last) == 1 && last[0] >= '0' && last[0] <= '9' {
			return append(dst, text...), nil
		}
	case asJSON:
		compact, err := rawjson.Compact(text)
		return append(dst, compact...), err
	case asTime, asTimeZ:
		return appendTime(dst, t.form, text)
	case asArray:
		l := literal{text: text}
		return l.array(dst, t)
	case asComposite:
		l := literal{text: text}
		return l.composite(dst, t)
	}
	return jsontext.AppendQuote(dst, text)
}

// appendTime appends a timestamp in the form of ISO 8601. The session's time zone is UTC, so that
// an offset is always +00. Infinities are left as PostgreSQL writes them, and so is BC at the end.
func appendTime(dst []byte, f form, text []byte) ([]byte, error) {
	date, clock, ok := bytes.Cut(text, []byte{' '})
	if !ok {
		return jsontext.AppendQuote(dst, text)
	}
	clock, era := bytes.CutSuffix(clock, []byte(" BC"))
	dst = append(append(append(append(dst, '"'), date...), 'T'), clock...)
	if f == asTimeZ {
		dst = append(dst, ":00"...)
	}
	if era {
		dst = append(dst, " BC"...)
	}
	return append(dst, '"'), nil
}

// A literal reads the text of an array or of a composite (PostgreSQL documentation, "Array Input
// and Output Syntax" and "Composite Type Input and Output Syntax").
type literal struct {
	text    []byte
	i       int
	scratch []byte
}

var errLiteral = errors.New("unexpected end or character")

func (l *literal) fail(what string) error { return fmt.Errorf("%s: %w at %d", what, errLiteral, l.i) }

// next returns the next byte, or zero at the end.
func (l *literal) next() byte {
	if l.i >= len(l.text) {
		return 0
	}
	return l.text[l.i]
}

func (l *literal) accept(c byte) bool {
	if l.next() != c || l.i >= len(l.text) {
		return false
	}
	l.i++
	return true
}

// array appends the whole text as an array. Its lower bounds, as in [0:1]={a,b}, are dropped.
func (l *literal) array(dst []byte, t *dataType) (_ []byte, err error) {
	if l.next() == '[' {
		start := bytes.IndexByte(l.text, '=')
		if start < 0 {
			return nil, l.fail("array")
		}
		l.i = start + 1
	}
	if dst, err = l.dimension(dst, t, 0); err != nil {
		return nil, err
	}
	if l.i != len(l.text) {
		return nil, l.fail("array")
	}
	return dst, nil
}

// dimension appends one dimension of an array.
func (l *literal) dimension(dst []byte, t *dataType, depth int) (_ []byte, err error) {
	if !l.accept('{') || depth > maxNesting {
		return nil, l.fail("array")
	}
	dst = append(dst, '[')
	for first := true; !l.accept('}'); first = false {
		if !first {
			if !l.accept(t.delimiter) {
				return nil, l.fail("array")
			}
			dst = append(dst, ',')
		}
		if l.next() == '{' {
			dst, err = l.dimension(dst, t, depth+1)
		} else {
			dst, err = l.element(dst, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (l *literal) element(dst []byte, t *dataType) ([]byte, error) {
	text, quoted := l.scan(t.delimiter, '}')
	if text == nil {
		return nil, l.fail("array")
	}
	if !quoted && string(text) == "NULL" {
		return append(dst, "null"...), nil
	}
	return appendValue(dst, t.element, text)
}

// composite appends the whole text as an object.
func (l *literal) composite(dst []byte, t *dataType) (_ []byte, err error) {
	if !l.accept('(') {
		return nil, l.fail("composite")
	}
	dst = append(dst, '{')
	for i := range t.members {
		m := &t.members[i]
		if i > 0 {
			if !l.accept(',') {
				return nil, l.fail("composite")
			}
			dst = append(dst, ',')
		}
		if dst, err = jsontext.AppendQuote(dst, m.name); err != nil {
			return nil, err
		}
		dst = append(dst, ':')
		text, quoted := l.scan(',', ')')
		switch {
		case text == nil:
			return nil, l.fail("composite")
		case len(text) == 0 && !quoted:
			dst = append(dst, "null"...)
		default:
			if dst, err = appendValue(dst, &m.dataType, text); err != nil {
				return nil, err
			}
		}
	}
	if !l.accept(')') || l.i != len(l.text) {
		return nil, l.fail("composite")
	}
	return append(dst, '}'), nil
}

// scan reads an element up to one of the delimiters, which it leaves. It resolves quotes, doubled
// quotes and backslashes. It returns nil if the text ends first. The result is valid until the next
// call.
func (l *literal) scan(delimiters ...byte) (text []byte, quoted bool) {
	l.scratch = append(l.scratch[:0], 0)[:0] // not nil
	inside := false
	for ; l.i < len(l.text); l.i++ {
		c := l.text[l.i]
		switch {
		case c == '\\' && l.i+1 < len(l.text):
			l.i++
			l.scratch = append(l.scratch, l.text[l.i])
		case c == '"' && inside && l.i+1 < len(l.text) && l.text[l.i+1] == '"':
			l.i++
			l.scratch = append(l.scratch, '"')
		case c == '"':
			inside, quoted = !inside, true
		case !inside && bytes.IndexByte(delimiters, c) >= 0:
			return l.scratch, quoted
		default:
			l.scratch = append(l.scratch, c)
		}
	}
	return nil, quoted
}
