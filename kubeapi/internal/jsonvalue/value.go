// Package jsonvalue reads values from the compact JSON of an object, by member names or by
// the JSON paths of Kubernetes' printer columns.
package jsonvalue

import (
	"strconv"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A Value is a part of an object's compact JSON, or nil if it does not exist. The methods
// treat a value of an unexpected type as missing, so that the rest of a malformed object
// can still be shown.
type Value []byte

// At returns the value at a path of member names.
func (v Value) At(path ...string) Value { return rawjson.Lookup(v, path...) }

// Text returns the content of a string, or "" if v is not a string.
func (v Value) Text() string {
	if len(v) == 0 || v[0] != '"' {
		return ""
	}
	s, err := rawjson.String(v)
	if err != nil {
		return ""
	}
	return s
}

// Int returns v as an integer, or zero if v is not an integer.
func (v Value) Int() int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Elements calls f with each element of v if v is an array.
func (v Value) Elements(f func(Value)) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	_ = rawjson.Elements(v, func(s rawjson.Span) error {
		f(s.Of(v))
		return nil
	})
}

// Members calls f with each member of v if v is an object.
func (v Value) Members(f func(name string, member Value)) {
	if len(v) == 0 || v[0] != '{' {
		return
	}
	_ = rawjson.Members(v, func(name string, s rawjson.Span) error {
		f(name, s.Of(v))
		return nil
	})
}

// Len returns the number of elements or members of v.
func (v Value) Len() int {
	n := 0
	v.Elements(func(Value) { n++ })
	v.Members(func(string, Value) { n++ })
	return n
}

// Time returns v as a time, or the zero Time if v is not a string in the format of RFC 3339.
func (v Value) Time() time.Time {
	t, err := time.Parse(time.RFC3339, v.Text())
	if err != nil {
		return time.Time{}
	}
	return t
}
