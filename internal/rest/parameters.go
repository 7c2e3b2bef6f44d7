package rest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
)

// A Role is the part of a request that a parameter determines.
type Role uint8

const (
	// Selects marks the parameters of a [listwatch.Selection].
	Selects Role = iota + 1
	// Reads marks the parameter watch, and the parameters of the other fields of a
	// [listwatch.Query].
	Reads
	// Responds marks the parameters that determine how long a request may take, and the format
	// of its response.
	Responds
)

// parameters are all parameters of lists and watches.
var parameters = [...]struct {
	name string
	role Role
}{
	{"labelSelector", Selects},
	{"fieldSelector", Selects},
	{"fields", Selects},
	{"watch", Reads},
	{"resourceVersion", Reads},
	{"resourceVersionMatch", Reads},
	{"sendInitialEvents", Reads},
	{"allowWatchBookmarks", Reads},
	{"initialEventsSince", Reads},
	{"initialEventsState", Reads},
	{"conflate", Reads},
	{"limit", Reads},
	{"continue", Reads},
	{"timeoutSeconds", Responds},
	{"timeout", Responds},
	{"pretty", Responds},
}

// RoleOf returns the role of a parameter, or zero if lists and watches have no such parameter.
func RoleOf(name string) Role {
	for _, p := range parameters {
		if p.name == name {
			return p.role
		}
	}
	return 0
}

// Names returns the names of the parameters with one of the roles.
func Names(roles ...Role) []string {
	var names []string
	for _, p := range parameters {
		if slices.Contains(roles, p.role) {
			names = append(names, p.name)
		}
	}
	return names
}

// Params holds the parameters of one request. Each of the selectors is parsed once. It must be used
// by one goroutine only.
type Params struct {
	url.Values
	labels     parsed[listwatch.LabelSelector]
	fields     parsed[listwatch.FieldSelector]
	projection parsed[listwatch.Projection]
}

// parsed is the value of a parameter, which is parsed when it is needed first.
type parsed[T any] struct {
	done  bool
	value T
	err   error
}

func (p *parsed[T]) get(text string, parse func(string) (T, error)) (T, error) {
	if !p.done {
		p.value, p.err = parse(text)
		p.done = true
	}
	return p.value, p.err
}

// Labels returns the parameter labelSelector.
func (p *Params) Labels() (listwatch.LabelSelector, error) {
	return p.labels.get(p.Get("labelSelector"), listwatch.ParseLabelSelector)
}

// Fields returns the parameter fieldSelector.
func (p *Params) Fields() (listwatch.FieldSelector, error) {
	return p.fields.get(p.Get("fieldSelector"), listwatch.ParseFieldSelector)
}

// Projection returns the parameter fields.
func (p *Params) Projection() (listwatch.Projection, error) {
	return p.projection.get(p.Get("fields"), listwatch.ParseProjection)
}

// Selection returns the parameters of a selection that can be parsed, and the first error.
func (p *Params) Selection() (s listwatch.Selection, err error) {
	var errs [3]error
	s.Labels, errs[0] = p.Labels()
	s.Fields, errs[1] = p.Fields()
	s.Projection, errs[2] = p.Projection()
	for _, err := range errs {
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// WantsWatch reports whether the parameters request a watch. It does not validate the parameter.
func (p *Params) WantsWatch() bool {
	value := p.Get("watch")
	return p.Has("watch") && value != "0" && !strings.EqualFold(value, "false")
}

// checkText returns an error if a parameter is not UTF-8.
func (p *Params) checkText() error {
	for name, all := range p.Values {
		for _, v := range append(all, name) {
			if !utf8.ValidString(v) {
				return invalid("parameter %q: %q is not valid UTF-8", name, v)
			}
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}
