package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rbac"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	"github.com/listwatch/listwatch/watchserver"
	rbacv1 "k8s.io/api/rbac/v1"
)

// changed makes the next request read the roles and bindings again.
func (a *authority) changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.policy = nil
}

// current returns the present roles and bindings.
func (a *authority) current() (*rbac.Policy, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.policy == nil {
		a.policy, err = rbac.New(a.objects)
	}
	return a.policy, err
}

// objects returns all objects of the resource with the given qualified name.
func (a *authority) objects(name string) []*listwatch.Object {
	// The store is in memory, so this cannot fail.
	page, _ := a.api.named(name).Source.List(context.Background(), listwatch.Query{})
	return page.Items
}

// authorize is the [kubeapi.Authorizer] of an Env.
func (a *authority) authorize(_ context.Context, user kubeapi.User, attributes kubeapi.Attributes) error {
	if rbac.IsMaster(user) {
		return nil
	}
	p, err := a.current()
	if err != nil {
		return err
	}
	return p.Check(user, attributes)
}

// rulesFor implements [kubeapi.Handler.RulesFor].
func (a *authority) rulesFor(_ context.Context, user kubeapi.User, namespace string) (all kubeapi.Rules, err error) {
	granted := rbac.Everything
	if !rbac.IsMaster(user) {
		var p *rbac.Policy
		if p, err = a.current(); err != nil {
			return all, err
		}
		if granted, err = p.RulesFor(user, namespace); err != nil {
			err = listwatch.Cause{Message: err.Error()}
		}
	}
	for _, r := range granted {
		if len(r.NonResourceURLs) > 0 {
			all.Paths = append(all.Paths, kubeapi.PathRule{Verbs: r.Verbs, Paths: r.NonResourceURLs})
			continue
		}
		all.Resources = append(all.Resources, kubeapi.ResourceRule{
			Verbs: r.Verbs, Groups: r.APIGroups, Resources: r.Resources, Names: r.ResourceNames,
		})
	}
	return all, err
}

// withoutEscalation returns the rules of admit for the objects of r, and the rule that a user gives
// no rights that the user does not have, if r has roles or bindings.
func (a *authority) withoutEscalation(r kubeapi.Resource, admit rules.Admit) rules.Admit {
	if r.Group != rbacv1.GroupName {
		return admit
	}
	return checkedForUsers(admit, func(
		_ context.Context, user kubeapi.User, old *listwatch.Object, data []byte,
	) error {
		m, err := rules.Metadata(data)
		if err == nil {
			err = a.checkGrant(user, r, m.Key(), old, data)
		}
		if err != nil && listwatch.CodeOf(err) == listwatch.Unknown {
			err = &listwatch.Error{
				Code:    listwatch.Forbidden,
				Message: fmt.Sprintf("%s %q is forbidden: %v", r.QualifiedName(), m.Name, err),
				Details: &listwatch.Details{Name: m.Name, Group: r.Group, Kind: r.Plural},
			}
		}
		return err
	})
}

// checkedForUsers returns the rules of admit, followed by check for writes of users who are not
// administrators.
func checkedForUsers(
	admit rules.Admit,
	check func(ctx context.Context, user kubeapi.User, old *listwatch.Object, data []byte) error,
) rules.Admit {
	return func(ctx context.Context, old *listwatch.Object, data []byte) ([]byte, error) {
		data, err := admit(ctx, old, data)
		user := watchserver.UserOf(ctx)
		if err != nil || user.Name == "" || rbac.IsMaster(user) {
			return data, err
		}
		return data, check(ctx, user, old, data)
	}
}

// checkGrant returns an error if user may not write data, a role or a binding, because it would
// give rights that the user does not have.
func (a *authority) checkGrant(
	user kubeapi.User, r kubeapi.Resource, key listwatch.Key, old *listwatch.Object, data []byte,
) error {
	type grant struct {
		Rules           []rbacv1.PolicyRule     `json:"rules"`
		AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
		Subjects        []rbacv1.Subject        `json:"subjects"`
		RoleRef         rbacv1.RoleRef          `json:"roleRef"`
	}
	var before, now grant
	err := json.Unmarshal(data, &now)
	if err == nil && old != nil {
		err = json.Unmarshal(old.Data, &before)
	}
	if err != nil || old != nil && equalForCollector(old.Data, data) {
		return err
	}
	p, err := a.current()
	if err != nil {
		return err
	}
	// may reports whether the user has one of the verbs for roles that allow to give any rights.
	may := func(verb, plural, name string) bool {
		return p.Check(user, kubeapi.Attributes{
			Verb: verb, Resource: kubeapi.Resource{Group: rbacv1.GroupName, Plural: plural},
			Namespace: key.Namespace, Name: name,
		}) == nil
	}
	granted := now.Rules
	if r.Plural == "rolebindings" || r.Plural == "clusterrolebindings" {
		plural := "clusterroles"
		if now.RoleRef.Kind == "Role" {
			plural = "roles"
		}
		if may("bind", plural, now.RoleRef.Name) {
			return nil
		}
		if granted, err = p.RulesOf(now.RoleRef, key.Namespace); err != nil {
			return &listwatch.Error{
				Code: listwatch.NotFound, Message: fmt.Sprintf("%s %q not found", r.QualifiedName(), key.Name),
				Details: &listwatch.Details{Name: key.Name, Group: r.Group, Kind: r.Plural}, Err: err,
			}
		}
	} else if may("escalate", r.Plural, key.Name) {
		return nil
	}
	if err := p.CheckGrant(user, key.Namespace, granted); err != nil {
		return err
	}
	aggregates := now.AggregationRule != nil || before.AggregationRule != nil
	if aggregates && p.CheckGrant(user, "", rbac.Everything) != nil {
		return errors.New("must have cluster-admin privileges to use the aggregationRule")
	}
	return nil
}

// equalForCollector reports whether two objects differ at most in the metadata that the garbage
// collection changes, and in the metadata that the store sets.
func equalForCollector(a, b []byte) bool {
	var objects [2]map[string]any
	for i, data := range [][]byte{a, b} {
		if err := json.Unmarshal(data, &objects[i]); err != nil {
			return false
		}
		metadata, _ := objects[i]["metadata"].(map[string]any)
		for _, name := range []string{"finalizers", "ownerReferences", "managedFields", "resourceVersion"} {
			delete(metadata, name)
		}
	}
	return reflect.DeepEqual(objects[0], objects[1])
}

// roleChanged is called after each write to a resource of a Policy. It aggregates cluster roles, as
// a controller of the cluster does.
func (a *authority) roleChanged(name string) {
	a.changed()
	if name != rbac.ClusterRoles || !a.started {
		return
	}
	all := a.objects(name)
	for _, o := range all {
		if !rbac.IsAggregated(o.Data) {
			continue
		}
		// An error means that the role was deleted, or that its selector is invalid.
		_, _ = a.api.named(name).Collection.Update(context.Background(), o.Key, listwatch.Preconditions{},
			func(old *listwatch.Object) ([]byte, error) { return rbac.Aggregate(old.Data, all) })
	}
}
