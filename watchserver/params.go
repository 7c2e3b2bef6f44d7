package watchserver

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
)

// params are the query parameters of a request. err is the error of the first parameter that
// cannot be parsed.
type params struct {
	url.Values
	err error
}

func newParams(query url.Values) (*params, error) {
	for name, all := range query {
		for _, v := range append(all, name) {
			if !utf8.ValidString(v) {
				return nil, &listwatch.Error{
					Code: listwatch.Invalid, Message: fmt.Sprintf("parameter %q: %q is not valid UTF-8", name, v),
				}
			}
		}
	}
	return &params{Values: query}, nil
}

func (p *params) fail(name, problem string) {
	if p.err == nil {
		p.err = &listwatch.Error{Code: listwatch.Invalid, Message: name + ": " + problem}
	}
}

// watch parses the parameter watch. In addition to booleans it accepts "yes", which old Kubernetes
// documents use, an empty value, which users of curl write, and True and False, which the Python
// client writes. If the parameter is absent or false, the result is byPath.
func (p *params) watch(byPath bool) bool {
	if !p.Has("watch") {
		return byPath
	}
	switch v := p.Get("watch"); strings.ToLower(v) {
	case "1", "true", "yes", "":
		return true
	case "0", "false":
		return byPath
	default:
		p.fail("watch", fmt.Sprintf("%q must be 1, true, yes, 0 or false", v))
		return false
	}
}

// boolean parses a parameter that is false if absent, and true if present and empty, as in
// Kubernetes.
func (p *params) boolean(name string) bool {
	v := p.Get(name)
	if v == "" {
		return p.Has(name)
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		p.fail(name, fmt.Sprintf("%q must be true or false", v))
	}
	return b
}

// integer parses a parameter that is a limit. A value beyond 31 bits is lowered, because such a
// limit is never reached. Any negative value becomes -1.
func (p *params) integer(name string) int {
	v := p.Get(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64) // as in Kubernetes, the number may have a plus sign
	if err != nil {
		p.fail(name, fmt.Sprintf("%q must be an integer of 64 bits", v))
	}
	return int(max(-1, min(n, math.MaxInt32)))
}

func (p *params) seconds(name string) time.Duration {
	n := p.integer(name)
	if n < 0 {
		p.fail(name, fmt.Sprintf("%q must not be negative", p.Get(name)))
	}
	return time.Duration(n) * time.Second
}
