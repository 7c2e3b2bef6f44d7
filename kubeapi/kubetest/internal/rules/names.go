package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/listwatch/listwatch"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Names are the names of a CustomResourceDefinition, as the controllers of a cluster determine
// them.
type Names struct {
	// Accepted becomes status.acceptedNames: the names in the spec that no other definition has,
	// and otherwise the names that the definition had before.
	Accepted v1.CustomResourceDefinitionNames
	// Condition is the condition NamesAccepted.
	Condition v1.CustomResourceDefinitionCondition
	// Established is true if the definition has been established before. Its resource is then
	// served with the accepted names, also after a conflict.
	Established bool
}

// Conflict returns an error if the spec has names that were not accepted.
func (n *Names) Conflict() error {
	if n.Condition.Status == v1.ConditionTrue {
		return nil
	}
	return fmt.Errorf("spec.names: %s: %s", n.Condition.Reason, n.Condition.Message)
}

// AcceptNames returns the names of a definition. all are the definitions of the cluster, including
// this one.
func AcceptNames(definition []byte, all []*listwatch.Object) (n Names, err error) {
	c, err := parseDefinition(definition)
	if err != nil {
		return n, err
	}
	taken, err := namesOf(c.Spec.Group, all)
	if err != nil {
		return n, err
	}
	n.Accepted, n.Established = c.Status.AcceptedNames, apihelpers.IsCRDConditionTrue(&c, v1.Established)
	n.Condition = v1.CustomResourceDefinitionCondition{
		Type: v1.NamesAccepted, Status: v1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found",
	}
	want := c.Spec.Names
	n.claim("PluralConflict", &n.Accepted.Plural, want.Plural, taken.resources)
	n.claim("SingularConflict", &n.Accepted.Singular, want.Singular, taken.resources)
	n.claimShortNames(want.ShortNames, taken.resources)
	n.claim("KindConflict", &n.Accepted.Kind, want.Kind, taken.kinds)
	n.claim("ListKindConflict", &n.Accepted.ListKind, want.ListKind, taken.kinds)
	n.Accepted.Categories = want.Categories
	return n, nil
}

// GainsNames reports whether a definition whose names were not all accepted gets other names now.
func GainsNames(definition []byte, all []*listwatch.Object) bool {
	c, err := parseDefinition(definition)
	if err != nil || !apihelpers.IsCRDConditionFalse(&c, v1.NamesAccepted) {
		return false
	}
	n, err := AcceptNames(definition, all)
	return err == nil && (n.Conflict() == nil || !reflect.DeepEqual(n.Accepted, c.Status.AcceptedNames))
}

// claim sets name to want, unless a definition in taken has that name.
func (n *Names) claim(reason string, name *string, want string, taken []string) {
	if err := checkFree(want, taken); err != nil && *name != want {
		n.refuse(reason, err)
		return
	}
	*name = want
}

// claimShortNames accepts either all short names in want or none.
func (n *Names) claimShortNames(want, taken []string) {
	var errs []error
	for _, name := range want {
		if err := checkFree(name, taken); err != nil && !slices.Contains(n.Accepted.ShortNames, name) {
			errs = append(errs, err)
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		n.refuse("ShortNamesConflict", err)
		return
	}
	n.Accepted.ShortNames = want
}

func checkFree(name string, taken []string) error {
	if slices.Contains(taken, name) {
		return fmt.Errorf("%q is already in use", name)
	}
	return nil
}

// refuse sets the condition. As in Kubernetes, the last of several conflicts counts.
func (n *Names) refuse(reason string, err error) {
	n.Condition.Status, n.Condition.Reason, n.Condition.Message = v1.ConditionFalse, reason, err.Error()
}

// usedNames are the accepted names of the definitions of a group.
type usedNames struct{ resources, kinds []string }

func namesOf(group string, all []*listwatch.Object) (used usedNames, err error) {
	for _, o := range all {
		c, err := parseDefinition(o.Data)
		if err != nil {
			return used, err
		}
		if names := c.Status.AcceptedNames; c.Spec.Group == group {
			used.resources = append(append(used.resources, names.Plural, names.Singular), names.ShortNames...)
			used.kinds = append(used.kinds, names.Kind, names.ListKind)
		}
	}
	return used, nil
}

// parseDefinition decodes a CustomResourceDefinition, and sets its defaults.
func parseDefinition(data []byte) (c v1.CustomResourceDefinition, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, err
	}
	v1.SetDefaults_CustomResourceDefinition(&c)
	return c, nil
}
