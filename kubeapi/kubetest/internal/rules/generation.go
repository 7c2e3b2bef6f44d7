package rules

import (
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store"
)

// generations holds the rules for metadata.generation of the built-in kinds that do not follow the
// general rule. In Kubernetes, the methods PrepareForCreate and PrepareForUpdate in pkg/registry
// implement these rules.
var generations = func() map[string]store.GenerationRule {
	all := map[string]store.GenerationRule{
		"deployments.apps":                  {Metadata: []string{"annotations"}},
		"endpointslices.discovery.k8s.io":   {Metadata: []string{"labels"}},
		"priorityclasses.scheduling.k8s.io": {Fixed: true},
		"csidrivers.storage.k8s.io":         {OnlyUpdates: true},
	}
	for _, name := range []string{
		"configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims",
		"persistentvolumes", "resourcequotas", "secrets", "serviceaccounts", "services", "controllerrevisions.apps",
		"leases.coordination.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
		"clusterroles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
		"roles.rbac.authorization.k8s.io", "runtimeclasses.node.k8s.io", "csinodes.storage.k8s.io",
		"csistoragecapacities.storage.k8s.io", "storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io",
	} {
		all[name] = store.GenerationRule{None: true}
	}
	return all
}()

// Generation returns the rule for metadata.generation of the objects of a built-in kind.
func Generation(r kubeapi.Resource) store.GenerationRule { return generations[r.QualifiedName()] }
