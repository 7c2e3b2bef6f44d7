package collector

import (
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// emptyDefinition deletes all objects of the definition with the metadata m, and then the
// definition. If finalizers delay the deletion of an object, emptyDefinition is called again when
// the object is gone.
func (c *Collector) emptyDefinition(from Resource, m *listwatch.Metadata) error {
	if !slices.Contains(m.Finalizers, rules.DefinitionFinalizer) {
		return nil
	}
	reason, message := "NeverEstablished", "resource was never established"
	if r, found := c.Resources.Named(m.Name); found {
		begin := func(definition []byte) ([]byte, error) {
			return rules.Terminating(definition, v1.ConditionTrue, "InstanceDeletionInProgress",
				"CustomResource deletion is in progress")
		}
		if err := c.update(from, m, begin); err != nil {
			return ignoreGone(err)
		}
		if remain, err := c.DeleteAll(r, "", metav1.DeleteOptions{}); err != nil || len(remain) > 0 {
			return err
		}
		reason, message = "InstanceDeletionCompleted", "removed all instances"
	}
	return ignoreGone(c.update(from, m, func(definition []byte) ([]byte, error) {
		next, err := rules.Terminating(definition, v1.ConditionFalse, reason, message)
		if err != nil {
			return nil, err
		}
		return rules.WithoutFinalizer(next, rules.DefinitionFinalizer)
	}))
}
