// Package rbac decides by the roles and bindings of a cluster what its users may do (Kubernetes,
// "Using RBAC Authorization").
package rbac

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	rbacv1 "k8s.io/api/rbac/v1"
)

// The groups of users to which Kubernetes gives a meaning.
const (
	Masters       = "system:masters" // may do everything
	Authenticated = "system:authenticated"
)

// The qualified names of the resources that a Policy consists of.
const (
	ClusterRoles        = "clusterroles." + rbacv1.GroupName
	Roles               = "roles." + rbacv1.GroupName
	ClusterRoleBindings = "clusterrolebindings." + rbacv1.GroupName
	roleBindings        = "rolebindings." + rbacv1.GroupName
)

// Resources are the qualified names of all resources of a Policy.
var Resources = []string{ClusterRoles, Roles, ClusterRoleBindings, roleBindings}

// A Policy holds the roles and the bindings of a cluster at one moment. It is immutable.
type Policy struct {
	// rules are the rules of the roles. A cluster role has no namespace.
	rules map[listwatch.Key][]rbacv1.PolicyRule
	// bindings are the bindings by namespace. Those of the whole cluster have no namespace.
	bindings map[string][]binding
}

// A binding gives its subjects the rules of a role.
type binding struct {
	subjects []rbacv1.Subject
	role     rbacv1.RoleRef
}

// New returns the Policy of a cluster. objects returns the objects of a resource by its qualified
// name. An object that cannot be decoded is an error.
func New(objects func(resource string) []*listwatch.Object) (*Policy, error) {
	p := &Policy{rules: map[listwatch.Key][]rbacv1.PolicyRule{}, bindings: map[string][]binding{}}
	for _, resource := range Resources {
		for _, o := range objects(resource) {
			// The types of roles and bindings have the members of both kinds of objects.
			var both struct {
				Rules    []rbacv1.PolicyRule `json:"rules"`
				Subjects []rbacv1.Subject    `json:"subjects"`
				RoleRef  rbacv1.RoleRef      `json:"roleRef"`
			}
			if err := json.Unmarshal(o.Data, &both); err != nil {
				return nil, fmt.Errorf("%s %s: %w", resource, o.Key, err)
			}
			if resource == ClusterRoles || resource == Roles {
				p.rules[o.Key] = both.Rules
				continue
			}
			p.bindings[o.Key.Namespace] = append(p.bindings[o.Key.Namespace], binding{both.Subjects, both.RoleRef})
		}
	}
	return p, nil
}

// IsMaster reports whether u may do everything.
func IsMaster(u kubeapi.User) bool { return slices.Contains(u.Groups, Masters) }

// Check returns an error if u may not make the request that a describes; see [kubeapi.Authorizer].
// The error names the roles that bindings of u refer to and that do not exist.
func (p *Policy) Check(u kubeapi.User, a kubeapi.Attributes) error {
	if IsMaster(u) {
		return nil
	}
	rules, missing := p.RulesFor(u, a.Namespace)
	if slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return allows(r, a) }) {
		return nil
	}
	if missing != nil {
		return listwatch.Cause{Message: "rbac: RBAC: " + missing.Error()}
	}
	return listwatch.Cause{}
}

// RulesFor returns the rules that apply to u in a namespace or, if it is empty, in the whole
// cluster. The error names the roles that do not exist.
func (p *Policy) RulesFor(u kubeapi.User, namespace string) (rules []rbacv1.PolicyRule, err error) {
	scopes := []string{""}
	if namespace != "" {
		scopes = append(scopes, namespace)
	}
	var missing []error
	for _, scope := range scopes {
		for _, b := range p.bindings[scope] {
			if !slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return includes(s, u, scope) }) {
				continue
			}
			more, err := p.RulesOf(b.role, scope)
			if err != nil {
				missing = append(missing, errors.New(listwatch.AsError(err).Message))
			}
			rules = append(rules, more...)
		}
	}
	return rules, errors.Join(missing...)
}

// RulesOf returns the rules of the role that a binding in the given namespace refers to. If there
// is no such role, the error has code NotFound.
func (p *Policy) RulesOf(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	key, resource := listwatch.Key{Name: ref.Name}, ClusterRoles
	if ref.Kind == "Role" {
		key.Namespace, resource = namespace, Roles
	}
	rules, found := p.rules[key]
	if !found {
		return nil, &listwatch.Error{
			Code: listwatch.NotFound, Message: fmt.Sprintf("%s %q not found", strings.Replace(resource, "s.", ".", 1),
				ref.Name),
		}
	}
	return rules, nil
}

// includes reports whether the subject s of a binding in the given namespace stands for u.
func includes(s rbacv1.Subject, u kubeapi.User, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return u.Name == s.Name
	case rbacv1.GroupKind:
		return slices.Contains(u.Groups, s.Name)
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		return namespace != "" && u.Name == ServiceAccount(listwatch.Key{Namespace: namespace, Name: s.Name})
	}
	return false
}

const serviceAccount = "system:serviceaccount:"

// ServiceAccount returns the name of the user that the service account at key is.
func ServiceAccount(key listwatch.Key) string { return serviceAccount + key.Namespace + ":" + key.Name }

// ParseServiceAccount returns the key of the service account that the user with the given name is.
func ParseServiceAccount(user string) (key listwatch.Key, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccount)
	if !ok {
		return key, false
	}
	key.Namespace, key.Name, ok = strings.Cut(rest, ":")
	return key, ok && key.Namespace != "" && key.Name != "" && !strings.Contains(key.Name, ":")
}

// GroupsOf returns the groups of a user, with the groups that Kubernetes adds.
func GroupsOf(user string, groups []string) []string {
	groups = slices.Clone(groups)
	if key, ok := ParseServiceAccount(user); ok && len(groups) == 0 {
		groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + key.Namespace}
	}
	all, none := Authenticated, kubeapi.Anonymous().Groups[0]
	if user == kubeapi.Anonymous().Name {
		all = none
	}
	if !slices.Contains(groups, all) && !slices.Contains(groups, none) {
		groups = append(groups, all)
	}
	return groups
}

// allows reports whether the rule r allows the request that a describes.
func allows(r rbacv1.PolicyRule, a kubeapi.Attributes) bool {
	if a.Path != "" {
		return has(r.Verbs, a.Verb) &&
			slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool { return matchesPath(pattern, a.Path) })
	}
	resource := a.Resource.Plural
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return has(r.Verbs, a.Verb) && has(r.APIGroups, a.Resource.Group) && hasResource(r.Resources, resource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
}

// has reports whether all contains the word or the asterisk, which stands for every word.
func has(all []string, word string) bool {
	return slices.Contains(all, "*") || slices.Contains(all, word)
}

// hasResource reports whether all contains a resource. An entry such as */scale stands for a
// subresource of every resource.
func hasResource(all []string, resource string) bool {
	_, subresource, ok := strings.Cut(resource, "/")
	return has(all, resource) || ok && slices.Contains(all, "*/"+subresource)
}

// matchesPath reports whether a path matches a pattern, which may end with an asterisk.
func matchesPath(pattern, path string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	return pattern == path || isPrefix && strings.HasPrefix(path, prefix)
}
