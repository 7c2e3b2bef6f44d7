package kubeapi

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/internal/accessreview"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/table"
)

// DefaultResources returns some resources that every cluster has, with their field
// selectors, columns and schemas.
func DefaultResources() []Resource {
	return []Resource{
		{
			Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true,
			Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"},
			Fields: []string{
				"spec.nodeName", "spec.host", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
				"spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
			},
			Columns: table.PodColumns(),
			Schema:  schema.Kubernetes("io.k8s.api.core.v1.Pod"),
		},
		{
			Version: "v1", Plural: "services", Kind: "Service", Namespaced: true,
			Singular: "service", ShortNames: []string{"svc"}, Categories: []string{"all"},
			Fields: []string{"spec.clusterIP", "spec.type"}, Columns: table.ServiceColumns(),
			Schema: schema.Kubernetes("io.k8s.api.core.v1.Service"),
		},
		{
			Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true,
			Singular: "configmap", ShortNames: []string{"cm"},
			Columns: table.ConfigMapColumns(),
			Schema:  schema.Kubernetes("io.k8s.api.core.v1.ConfigMap"),
		},
		{
			Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true,
			Singular: "deployment", ShortNames: []string{"deploy"}, Categories: []string{"all"},
			Columns: table.DeploymentColumns(),
			Schema:  schema.Kubernetes("io.k8s.api.apps.v1.Deployment"),
			Scale: &Scale{
				SpecReplicasPath: ".spec.replicas", DefaultReplicas: 1,
				StatusReplicasPath: ".status.replicas", LabelSelectorPath: ".spec.selector",
			},
		},
		{
			Version: "v1", Plural: "namespaces", Kind: "Namespace",
			Singular: "namespace", ShortNames: []string{"ns"},
			Fields: []string{"status.phase"}, Columns: table.NamespaceColumns(),
			CheckName: listwatch.CheckNamespace, Schema: schema.Kubernetes("io.k8s.api.core.v1.Namespace"),
		},
		eventResource(),
	}
}

// eventResource returns the resource of core/v1 Event. kubectl describe lists the events of
// an object, and fails for some kinds without this resource. A cluster deletes events after
// an hour. Here clients must delete them.
func eventResource() Resource {
	return Resource{
		Version: "v1", Plural: "events", Kind: "Event", Namespaced: true,
		Singular: "event", ShortNames: []string{"ev"},
		Fields: []string{
			"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
			"reason", "reportingComponent", "source", "type",
		},
		Columns: table.EventColumns(),
		Schema:  schema.Kubernetes("io.k8s.api.core.v1.Event"),
	}
}

// accessReviews and rulesReviews are the resources for reviews, from which clients learn what their
// user may do. They have no collections.
var (
	accessReviews = reviewResource("selfsubjectaccessreview", accessreview.Kind)
	rulesReviews  = reviewResource("selfsubjectrulesreview", accessreview.RulesKind)
	reviewVerbs   = []string{"create"}
)

func reviewResource(singular, kind string) Resource {
	return Resource{
		Group: accessreview.Group, Version: accessreview.Version, Plural: singular + "s", Kind: kind,
		Singular: singular, NoStatus: true,
	}
}

// isReview reports whether r is one of the resources for reviews.
func (r Resource) isReview() bool {
	return r.Group == accessreview.Group && (r.Plural == accessReviews.Plural || r.Plural == rulesReviews.Plural)
}
