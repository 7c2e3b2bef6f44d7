package main

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/spf13/pflag"
)

// selection says what to list or to watch: flags that get and watch share.
type selection struct {
	connection
	namespace     string
	allNamespaces bool
	labels        string
	fields        string
	version       string
	output        string
}

func (s *selection) addFlags(f *pflag.FlagSet) {
	s.connection.addFlags(f)
	f.StringVarP(&s.namespace, "namespace", "n", "default", "the namespace")
	f.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	f.StringVarP(&s.labels, "selector", "l", "", "labels that the objects must have, as in app=web,tier!=test")
	f.StringVar(&s.fields, "field-selector", "", "fields that the objects must have, as in metadata.name=one")
	f.StringVarP(&s.output, "output", "o", "", "json, name or wide; empty: a line for people")
}

const whatArgument = `The first argument is the URL of a collection, or a resource of --server: pods, services, configmaps, deployments, namespaces, events, their
short names, or in full as widgets.v1.demo.example.com. A second one is the name of one object.`

// target is what the arguments and flags say.
type target struct {
	url   string
	query listwatch.Query
	what  string // for messages
	// namespaces is true where the objects may be of several.
	namespaces bool
}

func (s *selection) target(ctx context.Context, args []string, f *pflag.FlagSet) (*target, error) {
	switch s.output {
	case "", "json", "name", "wide":
	default:
		return nil, usagef("-o %q: want json, name or wide", s.output)
	}
	t := &target{}
	err := s.locate(ctx, t, args, f)
	if err != nil {
		return nil, err
	}
	if t.query.Labels, err = listwatch.ParseLabelSelector(s.labels); err != nil {
		return nil, usageError{err}
	}
	if t.query.Fields, err = listwatch.ParseFieldSelector(s.fields); err != nil {
		return nil, usageError{err}
	}
	if s.version == "" {
		return t, nil
	}
	if t.query.Version, err = listwatch.ParseVersion(s.version); err != nil {
		return nil, usagef("--resource-version: %w", err)
	}
	t.query.Start = listwatch.At
	if t.query.Version == 0 {
		t.query.Start = listwatch.Any
	}
	return t, nil
}

// locate finds the URL.
func (s *selection) locate(ctx context.Context, t *target, args []string, f *pflag.FlagSet) error {
	what := args[0]
	if kind, name, ok := strings.Cut(what, "/"); ok && len(args) == 1 {
		if _, known := kubeapi.FindResource(kubeapi.DefaultResources(), kind); known {
			args, what = []string{kind, name}, kind
		}
	}
	if strings.Contains(what, "/") {
		if len(args) > 1 {
			return usagef("a name (%s) can't follow a URL; it goes into --field-selector metadata.name=%[1]s", args[1])
		}
		for _, name := range []string{"namespace", "all-namespaces", "server"} {
			if f.Changed(name) {
				return usagef("--%s can't be given with a URL", name)
			}
		}
		return s.locateURL(t, what)
	}
	r, known, err := findResource(what)
	if err != nil {
		return err
	}
	base, err := parseURL(s.server)
	if err != nil {
		return err
	}
	if !known && !s.allNamespaces {
		r.Namespaced = s.namespaced(ctx, base, r)
	}
	namespace := s.namespace
	if s.allNamespaces || !r.Namespaced {
		namespace = ""
	}
	if err := listwatch.CheckNamespace(namespace); namespace != "" && err != nil {
		return usageError{err}
	}
	if namespace == "" && f.Changed("namespace") && s.allNamespaces {
		return usagef("-n and -A exclude each other")
	}
	t.url = base.JoinPath(r.Path(namespace)).String()
	t.what, t.namespaces = r.QualifiedName(), namespace == "" && r.Namespaced
	if len(args) > 1 {
		t.query.Name = args[1]
	}
	return nil
}

// locateURL takes a URL as people paste it from curl: what it says beside the selection goes into the query and the flags.
func (s *selection) locateURL(t *target, text string) error {
	u, err := parseURL(text)
	if err != nil {
		return err
	}
	if v := u.Query().Get("resourceVersion"); s.version == "" {
		s.version = v
	}
	t.url, t.what, t.namespaces = u.String(), u.Path, true
	return nil
}

// parseURL takes a URL with or without http://.
func parseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("want one like http://127.0.0.1:8080")
	}
	if err != nil {
		return nil, usagef("URL %q: %w", text, err)
	}
	return u, nil
}

// findResource finds a resource by its name; known is whether all of it is known.
func findResource(name string) (r kubeapi.Resource, known bool, err error) {
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
	return r, false, usagef("resource %q is unknown here: want %s, another one in full, as in widgets.v1.demo.example.com, or a URL",
		name, strings.Join(names, ", "))
}
