package rbac

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// IsAggregated reports whether a cluster role gets its rules from other cluster roles.
func IsAggregated(role []byte) bool { return rawjson.Lookup(role, "aggregationRule") != nil }

// Aggregate returns role with the rules of the cluster roles in all that its aggregationRule
// selects, or role itself if it already has these rules (Kubernetes, "Using RBAC Authorization",
// Aggregated ClusterRoles). all is sorted by name.
func Aggregate(role []byte, all []*listwatch.Object) ([]byte, error) {
	var r rbacv1.ClusterRole
	if err := json.Unmarshal(role, &r); err != nil {
		return nil, err
	}
	if r.AggregationRule == nil {
		return role, nil
	}
	var rules []rbacv1.PolicyRule
	for i := range r.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if o.Key.Name == r.Name || !selector.Matches(labels.Set(o.Labels)) {
				continue
			}
			var part rbacv1.ClusterRole
			if err := json.Unmarshal(o.Data, &part); err != nil {
				return nil, err
			}
			for _, rule := range part.Rules {
				same := func(other rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, other) }
				if !slices.ContainsFunc(rules, same) {
					rules = append(rules, rule)
				}
			}
		}
	}
	if len(rules)+len(r.Rules) == 0 || reflect.DeepEqual(rules, r.Rules) {
		return role, nil
	}
	patch, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(role, patch)
}
