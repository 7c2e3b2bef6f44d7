package remote

import (
	"errors"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/kubeapi"
)

// ParseURL parses a URL. The scheme http:// may be omitted.
func ParseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("must be an http or https URL such as http://127.0.0.1:8080")
	}
	if err != nil {
		return nil, cli.Usagef("URL %q: %w", text, err)
	}
	return u, nil
}

// FindResource finds a resource by its name. If it is a built-in resource, known is true.
// Otherwise r contains only a group, a version and a plural name.
func FindResource(name string) (r kubeapi.Resource, known bool, err error) {
	defaults := kubeapi.DefaultResources()
	if r, known = kubeapi.FindResource(defaults, name); known {
		return r, true, nil
	}
	if r, err = kubeapi.ParseResourceName(name); err == nil {
		return r, false, nil
	}
	var names []string
	for _, r := range defaults {
		names = append(names, r.QualifiedName())
	}
	return r, false, cli.Usagef(
		"unknown resource %q: must be %s, a full name such as widgets.v1.demo.example.com, or a URL",
		name, strings.Join(names, ", "))
}
