// Package abac reads authorization policies in Kubernetes' ABAC format (Kubernetes, "Using ABAC
// Authorization") and evaluates them. [Policy.Authorize] is a [kubeapi.Authorizer], and
// [Policy.RulesFor] lists the permissions of a user.
//
// A policy has one JSON object on each line:
//
//	{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy",
//	 "spec": {"group": "writers", "namespace": "team-a", "resource": "*", "apiGroup": "*"}}
//
// A request is allowed if at least one line allows it. The members of spec are:
//
//   - user and group: the users to whom the line applies. If both are set, both must match. "*"
//     and the group system:authenticated mean every authenticated user. Requests without
//     credentials come from the user system:anonymous in the group system:unauthenticated.
//   - resource, apiGroup and namespace: the plural name of the resource, such as "pods", its group,
//     and the namespace. "*" matches everything. Without apiGroup, the line matches the core
//     group. Without namespace, it matches cluster-scoped resources and requests for all
//     namespaces. A line about a resource also covers its subresources.
//   - nonResourcePath: a path that is not the path of a resource, such as /version. A "*" at the
//     end matches any suffix.
//   - readonly: if true, the line allows only get, list and watch.
package abac

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
)

const (
	apiVersion = "abac.authorization.kubernetes.io/v1beta1"
	kind       = "Policy"
)

// maxLine is the maximum length of a line in bytes.
const maxLine = 1 << 20

// A Policy decides which requests are allowed. [Read] creates it. It is immutable, and so safe for
// concurrent use.
type Policy struct{ rules []rule }

// A rule is the spec of one line.
type rule struct {
	user, group                   string
	resource, apiGroup, namespace string
	nonResourcePath               string
	readonly                      bool
}

// Read reads a policy. It ignores empty lines and lines that start with "#". The error for an
// invalid policy has code Invalid and names the line. Unlike Kubernetes, Read accepts neither
// unknown or repeated members nor a line that can never match, because a misspelt restriction would
// grant too much.
func Read(r io.Reader) (*Policy, error) {
	p := new(Policy)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		rule, err := parseRule(line)
		if err != nil {
			return nil, &listwatch.Error{
				Code: listwatch.Invalid, Op: "read policy", Message: fmt.Sprintf("line %d: %v", n, err),
			}
		}
		p.rules = append(p.rules, rule)
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = &listwatch.Error{
			Code: listwatch.Invalid, Op: "read policy", Message: fmt.Sprintf("line %d: must be shorter than 1 MiB", n),
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func parseRule(line []byte) (r rule, err error) {
	compact, err := rawjson.Compact(line)
	if err != nil {
		return r, fmt.Errorf("must be a JSON object: %w", err)
	}
	if repeated := rawjson.Inspect(compact).Dropped; len(repeated) > 0 {
		return r, fmt.Errorf("%s is repeated", repeated[0])
	}
	var version, what string
	var spec json.RawMessage
	err = members(compact, "", map[string]any{"apiVersion": &version, "kind": &what, "spec": &spec})
	switch {
	case err != nil:
		return r, err
	case version != apiVersion || what != kind:
		return r, fmt.Errorf("apiVersion %q and kind %q: must be %q and %q", version, what, apiVersion, kind)
	case spec == nil:
		return r, errors.New("spec is missing")
	}
	err = members(spec, "spec.", map[string]any{
		"user": &r.user, "group": &r.group, "resource": &r.resource, "apiGroup": &r.apiGroup, "namespace": &r.namespace,
		"nonResourcePath": &r.nonResourcePath, "readonly": &r.readonly,
	})
	switch {
	case err != nil:
	case r.user == "" && r.group == "":
		err = errors.New(
			`spec has neither user nor group, so it matches no request; "user": "*" means every authenticated user`)
	case r.resource == "" && r.nonResourcePath == "":
		err = errors.New(
			`spec has neither resource nor nonResourcePath, so it matches no request; "resource": "*" means every resource`)
	case r.resource == "" && (r.namespace != "" || r.apiGroup != ""):
		err = errors.New("spec has a namespace or an apiGroup but no resource")
	}
	return r, err
}

// members decodes the members of the JSON object in data. to maps their names to pointers. Unlike
// encoding/json, members compares names exactly and rejects unknown names. In errors, prefix
// precedes the name of the member.
func members(data []byte, prefix string, to map[string]any) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return errors.New("a line, and its member spec, must be JSON objects")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) { // sorted, so that errors are reproducible
		value := all[name]
		target, known := to[name]
		if !known {
			return fmt.Errorf("unknown member %q: must be one of %s", prefix+name, names(to))
		}
		if err := json.Unmarshal(value, target); err != nil {
			return fmt.Errorf("%s%s: must be a %s", prefix, name, wanted(target))
		}
	}
	return nil
}

func names(of map[string]any) string { return strings.Join(slices.Sorted(maps.Keys(of)), ", ") }

func wanted(target any) string {
	if _, ok := target.(*bool); ok {
		return "boolean"
	}
	return "string"
}

// Authorize returns nil if the policy allows user to make the request that a describes. The method
// value can be used as a [kubeapi.Authorizer].
func (p *Policy) Authorize(_ context.Context, user kubeapi.User, a kubeapi.Attributes) error {
	authenticated := isAuthenticated(user)
	for i := range p.rules {
		if r := &p.rules[i]; r.appliesTo(user, authenticated) && r.allows(&a) {
			return nil
		}
	}
	return listwatch.Cause{Message: "no line of the policy allows it"}
}

// RulesFor returns the rules of the policy that apply to user in namespace, for the field RulesFor
// of a [kubeapi.Handler]. As in Kubernetes, it omits a line with resource but without namespace.
func (p *Policy) RulesFor(_ context.Context, user kubeapi.User, namespace string) (kubeapi.Rules, error) {
	var all kubeapi.Rules
	for i := range p.rules {
		r := &p.rules[i]
		if !r.appliesTo(user, isAuthenticated(user)) {
			continue
		}
		verbs := []string{"*"}
		if r.readonly {
			verbs = readVerbs
		}
		if r.resource != "" && matches(r.namespace, namespace) {
			all.Resources = append(all.Resources,
				kubeapi.ResourceRule{Verbs: verbs, Groups: []string{r.apiGroup}, Resources: []string{r.resource}})
		}
		if r.nonResourcePath != "" {
			all.Paths = append(all.Paths, kubeapi.PathRule{Verbs: verbs, Paths: []string{r.nonResourcePath}})
		}
	}
	return all, nil
}

// readVerbs are the verbs that a line with readonly allows.
var readVerbs = []string{"get", "list", "watch"}

func isAuthenticated(user kubeapi.User) bool {
	return user.Name != "" && !slices.Contains(user.Groups, "system:unauthenticated")
}

func (r *rule) appliesTo(user kubeapi.User, authenticated bool) bool {
	if (r.user == "*" || r.group == "*" || r.group == "system:authenticated") && !authenticated {
		return false
	}
	userMatches := r.user == "" || r.user == "*" || r.user == user.Name
	groupMatches := r.group == "" || r.group == "*" || r.group == "system:authenticated" ||
		slices.Contains(user.Groups, r.group)
	return userMatches && groupMatches
}

func (r *rule) allows(a *kubeapi.Attributes) bool {
	if r.readonly && !slices.Contains(readVerbs, a.Verb) {
		return false
	}
	if a.Path != "" {
		prefix, isPrefix := strings.CutSuffix(r.nonResourcePath, "*")
		return r.nonResourcePath == a.Path || isPrefix && strings.HasPrefix(a.Path, prefix)
	}
	return matches(r.resource, a.Resource.Plural) && matches(r.apiGroup, a.Resource.Group) &&
		matches(r.namespace, namespaceOf(a))
}

func matches(pattern, s string) bool { return pattern == "*" || pattern == s }

// namespaceOf returns the namespace of a request. As in Kubernetes, a request for a Namespace
// object counts as a request in that namespace.
func namespaceOf(a *kubeapi.Attributes) string {
	if a.Namespace == "" && a.Resource.Group == "" && a.Resource.Plural == "namespaces" {
		return a.Name
	}
	return a.Namespace
}
