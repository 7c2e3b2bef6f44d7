package postgres

import (
	"bytes"
	"errors"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// sqlText returns the text of a JSON value as PostgreSQL reads it for type t, or nil for NULL. It
// is the reverse of appendValue. PostgreSQL checks what the JSON type does not tell.
func sqlText(t *dataType, raw []byte) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	isString := raw[0] == '"'
	switch t.form {
	case asBool:
		if s := string(raw); s != "true" && s != "false" {
			return nil, errors.New("must be true or false")
		}
		return raw, nil
	case asNumber:
		if c := raw[0]; c == '-' || c >= '0' && c <= '9' {
			return raw, nil
		}
		if s, err := rawjson.String(raw); !isString || err != nil || s != "NaN" && s != "Infinity" && s != "-Infinity" {
			return nil, errors.New("must be a number")
		}
	case asJSON:
		return raw, nil
	case asArray:
		if raw[0] != '[' {
			return nil, errors.New("must be an array")
		}
		return appendArray(nil, t, raw, 0)
	case asComposite:
		return nil, errors.New("values of this type can be read, but not written")
	}
	if !isString {
		return nil, errors.New("must be a string")
	}
	s, err := rawjson.String(raw)
	if err == nil && bytes.IndexByte([]byte(s), 0) >= 0 {
		err = errors.New("must not contain the character U+0000, which PostgreSQL cannot store")
	}
	return append([]byte{}, s...), err // not nil if it is empty
}

// appendArray appends a JSON array as PostgreSQL reads it ("Array Input and Output Syntax").
func appendArray(dst []byte, t *dataType, raw []byte, depth int) ([]byte, error) {
	if t.element.form == asJSON || depth > maxNesting {
		return nil, errors.New("arrays of JSON values can be read, but not written")
	}
	dst = append(dst, '{')
	first := true
	err := rawjson.Elements(raw, func(span rawjson.Span) (err error) {
		if !first {
			dst = append(dst, t.delimiter)
		}
		first = false
		element := span.Of(raw)
		if element[0] == '[' {
			dst, err = appendArray(dst, t, element, depth+1)
			return err
		}
		text, err := sqlText(t.element, element)
		if err != nil || text == nil {
			dst = append(dst, "NULL"...)
			return err
		}
		dst = append(dst, '"')
		for _, c := range text {
			if c == '"' || c == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c)
		}
		dst = append(dst, '"')
		return nil
	})
	return append(dst, '}'), err
}
