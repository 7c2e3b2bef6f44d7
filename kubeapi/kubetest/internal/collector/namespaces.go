package collector

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/rules"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// content counts the objects that remain in a namespace.
type content struct {
	resources  map[string]int // by plural name and group
	finalizers map[string]int // by the finalizers that hold them
}

func newContent() content { return content{map[string]int{}, map[string]int{}} }

// emptyNamespace deletes all objects in the namespace with the metadata m, reports what remains in
// the conditions of the namespace, and deletes the namespace if nothing remains. If finalizers
// delay the deletion of an object, emptyNamespace is called again when the object is gone.
func (c *Collector) emptyNamespace(from Resource, m *listwatch.Metadata) error {
	if !slices.Contains(m.Finalizers, rules.NamespaceFinalizer) {
		return nil
	}
	remain := newContent()
	if r, found := c.Resources.Named(pods); found {
		err := c.emptyResource(r, m.Name, remain)
		if err == nil && len(remain.resources) > 0 {
			// As in Kubernetes, the other objects stay until no pod needs them, and the conditions
			// do not count the pods.
			err = c.setConditions(from, m, newContent())
		}
		if err != nil || len(remain.resources) > 0 {
			return ignoreGone(err)
		}
	}
	for _, r := range c.Resources.All() {
		if err := c.emptyResource(r, m.Name, remain); err != nil {
			return err
		}
	}
	if err := c.setConditions(from, m, remain); err != nil || len(remain.resources) > 0 {
		return ignoreGone(err)
	}
	return ignoreGone(c.finalizeNamespace(from, m))
}

// finalizeNamespace removes the finalizer kubernetes from the spec of an empty namespace.
func (c *Collector) finalizeNamespace(from Resource, m *listwatch.Metadata) error {
	return c.update(from, m, func(namespace []byte) ([]byte, error) {
		var ns corev1.Namespace
		if err := json.Unmarshal(namespace, &ns); err != nil {
			return nil, err
		}
		isOwn := func(f corev1.FinalizerName) bool { return f == rules.NamespaceFinalizer }
		return rules.FinalizeNamespace(namespace, slices.DeleteFunc(ns.Spec.Finalizers, isOwn))
	})
}

// emptyResource deletes the objects of r in a namespace, and adds those that remain to counts.
func (c *Collector) emptyResource(r Resource, namespace string, counts content) error {
	if !r.Namespaced {
		return nil
	}
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	remain, err := c.DeleteAll(r, namespace, background)
	for _, o := range remain {
		counts.resources[r.Plural+"."+r.Group]++
		for _, name := range o.Finalizers {
			counts.finalizers[name]++
		}
	}
	return err
}

// DeleteAll deletes all objects of r in a namespace, or in all namespaces if namespace is empty. It
// returns the objects that remain, because of their finalizers.
func (c *Collector) DeleteAll(
	r Resource, namespace string, options metav1.DeleteOptions,
) (remain []*listwatch.Metadata, err error) {
	page, err := r.Source.List(c.worker.ctx, listwatch.Query{Selection: listwatch.Selection{Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	for _, o := range page.Items {
		last, isGone, err := r.Delete(c.worker.ctx, r.Collection, o.Key, listwatch.Preconditions{}, options)
		if err := ignoreGone(err); err != nil {
			return nil, err
		}
		if err != nil || isGone {
			continue
		}
		m, err := rules.Metadata(last.Data)
		if err != nil {
			return nil, err
		}
		remain = append(remain, m)
	}
	return remain, nil
}

// setConditions sets the conditions of a namespace that is being deleted. The texts are Kubernetes'
// own.
func (c *Collector) setConditions(from Resource, m *listwatch.Metadata, remain content) error {
	return c.update(from, m, func(namespace []byte) ([]byte, error) {
		var ns corev1.Namespace
		if err := json.Unmarshal(namespace, &ns); err != nil {
			return nil, err
		}
		before := slices.Clone(ns.Status.Conditions)
		for _, condition := range namespaceConditions(remain) {
			setCondition(&ns.Status.Conditions, condition)
		}
		if slices.Equal(before, ns.Status.Conditions) {
			return namespace, nil
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": ns.Status.Conditions}})
		if err != nil {
			return nil, err
		}
		return rawjson.Merge(namespace, patch)
	})
}

// namespaceConditions returns the conditions of a namespace that is being deleted.
func namespaceConditions(remain content) []corev1.NamespaceCondition {
	all := []corev1.NamespaceCondition{
		{
			Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered",
			Message: "All resources successfully discovered",
		},
		{
			Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions",
			Message: "All legacy kube types successfully parsed",
		},
		{
			Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted",
			Message: "All content successfully deleted, may be waiting on finalization",
		},
		{
			Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved",
			Message: "All content successfully removed",
		},
		{
			Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers",
			Message: "All content-preserving finalizers finished",
		},
	}
	for i := range all {
		all[i].Status = corev1.ConditionFalse
	}
	list := func(format string, of map[string]int) string {
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(of)) {
			texts = append(texts, fmt.Sprintf(format, name, of[name]))
		}
		return strings.Join(texts, ", ")
	}
	if len(remain.resources) > 0 {
		all[3].Status, all[3].Reason = corev1.ConditionTrue, "SomeResourcesRemain"
		all[3].Message = "Some resources are remaining: " + list("%s has %d resource instances", remain.resources)
	}
	if len(remain.finalizers) > 0 {
		all[4].Status, all[4].Reason = corev1.ConditionTrue, "SomeFinalizersRemain"
		all[4].Message = "Some content in the namespace has finalizers remaining: " +
			list("%s in %d resource instances", remain.finalizers)
	}
	return all
}

// setCondition adds c to all, or replaces the condition of its type.
func setCondition(all *[]corev1.NamespaceCondition, c corev1.NamespaceCondition) {
	c.LastTransitionTime = metav1.Now().Rfc3339Copy()
	i := slices.IndexFunc(*all, func(other corev1.NamespaceCondition) bool { return other.Type == c.Type })
	if i < 0 {
		*all = append(*all, c)
		return
	}
	if (*all)[i].Status == c.Status {
		c.LastTransitionTime = (*all)[i].LastTransitionTime
	}
	(*all)[i] = c
}
