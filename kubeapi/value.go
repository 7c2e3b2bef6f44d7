package kubeapi

import (
	"strconv"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A value is a piece of an object's compact JSON; nil where there is none. Looking into one that is of another kind finds nothing:
// what a table shows of an odd object is as much as can be seen.
type Value []byte

// at returns the value at a path of member names.
func (v Value) At(path ...string) Value { return rawjson.Lookup(v, path...) }

// text returns a string; empty where v is none.
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

// number returns a whole number; zero where v is none.
func (v Value) Int() int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// elements calls f with those of an array.
func (v Value) Elements(f func(Value)) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	_ = rawjson.Elements(v, func(s rawjson.Span) error {
		f(s.Of(v))
		return nil
	})
}

// members calls f with those of an object.
func (v Value) Members(f func(name string, member Value)) {
	if len(v) == 0 || v[0] != '{' {
		return
	}
	_ = rawjson.Members(v, func(name string, s rawjson.Span) error {
		f(name, s.Of(v))
		return nil
	})
}

// size returns how many elements or members v has.
func (v Value) Len() int {
	n := 0
	v.Elements(func(Value) { n++ })
	v.Members(func(string, Value) { n++ })
	return n
}

// time returns an RFC 3339 time; zero where v is none.
func (v Value) Time() time.Time {
	t, err := time.Parse(time.RFC3339, v.Text())
	if err != nil {
		return time.Time{}
	}
	return t
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
