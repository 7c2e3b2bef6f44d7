package kubeapi

import (
	"strconv"
	"time"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// A value is a piece of an object's compact JSON; nil where there is none. Looking into one that is of another kind finds nothing:
// what a table shows of an odd object is as much as can be seen.
type value []byte

// at returns the value at a path of member names.
func (v value) at(path ...string) value { return rawjson.Lookup(v, path...) }

// text returns a string; empty where v is none.
func (v value) text() string {
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
func (v value) number() int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// elements calls f with those of an array.
func (v value) elements(f func(value)) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	_ = rawjson.Elements(v, func(s rawjson.Span) error {
		f(s.Of(v))
		return nil
	})
}

// members calls f with those of an object.
func (v value) members(f func(name string, member value)) {
	if len(v) == 0 || v[0] != '{' {
		return
	}
	_ = rawjson.Members(v, func(name string, s rawjson.Span) error {
		f(name, s.Of(v))
		return nil
	})
}

// size returns how many elements or members v has.
func (v value) size() int {
	n := 0
	v.elements(func(value) { n++ })
	v.members(func(string, value) { n++ })
	return n
}

// time returns an RFC 3339 time; zero where v is none.
func (v value) time() time.Time {
	t, err := time.Parse(time.RFC3339, v.text())
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
