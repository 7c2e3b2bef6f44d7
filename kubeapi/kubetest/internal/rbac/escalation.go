package rbac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Everything are the rules that allow every request.
var Everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// CheckGrant returns an error if u does not have all the rights that the rules give, because users
// can only give rights that they have (Kubernetes, "Using RBAC Authorization", Privilege escalation
// prevention). The text of the error is for the user.
func (p *Policy) CheckGrant(u kubeapi.User, namespace string, rules []rbacv1.PolicyRule) error {
	own, _ := p.RulesFor(u, namespace) // a role that does not exist gives no rights
	missing := map[string][]string{}   // the verbs, by the rest of the rule
	for _, r := range rules {
		for _, part := range divide(r) {
			if !slices.ContainsFunc(own, func(o rbacv1.PolicyRule) bool { return covers(o, part) }) {
				verb := part.Verbs[0]
				part.Verbs = nil
				rest := describe(part)
				missing[rest] = append(missing[rest], verb)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var lines []string
	for rest, verbs := range maps.All(missing) {
		lines = append(lines, fmt.Sprintf("{%s, Verbs:%q}", rest, verbs))
	}
	slices.Sort(lines)
	return fmt.Errorf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		u.Name, u.Groups, strings.Join(lines, "\n"))
}

// divide returns rules that together allow what r allows. Each of them has one verb, and one path
// or one resource with at most one name.
func divide(r rbacv1.PolicyRule) (parts []rbacv1.PolicyRule) {
	names := [][]string{nil}
	if len(r.ResourceNames) > 0 {
		names = slices.Collect(slices.Chunk(r.ResourceNames, 1))
	}
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				for _, name := range names {
					parts = append(parts, rbacv1.PolicyRule{
						APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: name,
						Verbs: []string{verb},
					})
				}
			}
		}
	}
	for _, path := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			parts = append(parts, rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: []string{verb}})
		}
	}
	return parts
}

// covers reports whether the rule r allows all that part allows, which is a result of divide. An
// asterisk in part is covered only by an asterisk.
func covers(r, part rbacv1.PolicyRule) bool {
	if !has(r.Verbs, part.Verbs[0]) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		return slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool {
			return matchesPath(pattern, part.NonResourceURLs[0])
		})
	}
	return has(r.APIGroups, part.APIGroups[0]) && hasResource(r.Resources, part.Resources[0]) &&
		(len(r.ResourceNames) == 0 ||
			len(part.ResourceNames) > 0 && slices.Contains(r.ResourceNames, part.ResourceNames[0]))
}

// describe returns the parts of a rule other than its verbs, in Kubernetes' form.
func describe(r rbacv1.PolicyRule) string {
	var parts []string
	for _, p := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups},
		{"Resources", r.Resources},
		{"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames},
	} {
		if len(p.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", p.name, p.values))
		}
	}
	return strings.Join(parts, ", ")
}
