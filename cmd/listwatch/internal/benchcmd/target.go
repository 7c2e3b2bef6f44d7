package benchcmd

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
)

// A target is the collection to measure.
type target struct {
	url string
	// namespace is the namespace of the written objects. It is empty if the objects have none.
	namespace string
}

// locate determines the target from the argument and the flags.
func (o *options) locate(argument string, f *pflag.FlagSet) (target, error) {
	if err := listwatch.CheckNamespace(o.namespace); o.namespace != "" && err != nil {
		return target{}, cli.UsageError(err)
	}
	if strings.Contains(argument, "/") {
		if f.Changed("server") {
			return target{}, cli.Usagef("--server: not allowed with a URL")
		}
		return o.locateURL(argument, f.Changed("namespace"))
	}
	r, known, err := remote.FindResource(argument)
	if err != nil {
		return target{}, err
	}
	base, err := remote.ParseURL(o.Server)
	if err != nil {
		return target{}, err
	}
	r.Namespaced = r.Namespaced || !known
	namespace := o.namespace
	if namespace == "" && r.Namespaced && !f.Changed("namespace") {
		namespace = "default"
	}
	return target{base.JoinPath(r.Path(namespace)).String(), namespace}, nil
}

// locateURL returns the target at a URL. If the URL contains a namespace, it is the namespace of
// the target. changed reports whether --namespace is set.
func (o *options) locateURL(text string, changed bool) (target, error) {
	u, err := remote.ParseURL(text)
	if err != nil {
		return target{}, err
	}
	t := target{u.String(), o.namespace}
	_, after, found := strings.Cut(u.Path, "/namespaces/")
	inPath, _, _ := strings.Cut(after, "/")
	switch {
	case found && changed && o.namespace != inPath:
		return target{}, cli.Usagef("--namespace %q: the URL names the namespace %q", o.namespace, inPath)
	case found:
		t.namespace = inPath
	case !changed && (strings.HasPrefix(u.Path, "/api/") || strings.HasPrefix(u.Path, "/apis/")):
		t.namespace = "default"
	}
	return t, nil
}

// readTemplate reads an object from a JSON file.
func readTemplate(file string) (map[string]json.RawMessage, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--template: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("--template %s: must be a JSON object: %w", file, err)
	}
	return object, nil
}
