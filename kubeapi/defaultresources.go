package kubeapi

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"github.com/listwatch/listwatch/kubeapi/table"
)

// DefaultResources returns some resources that every cluster has, with their field
// selectors, columns and schemas.
func DefaultResources() []Resource {
	return []Resource{
		{
			Version: "v1", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}, Kind: "Pod", Namespaced: true,
			Categories: []string{"all"},
			Fields: []string{
				"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
				"status.phase", "status.podIP", "status.nominatedNodeName",
			},
			Columns: table.PodColumns(),
			Schema:  schema.Kubernetes("io.k8s.api.core.v1.Pod"),
		},
		{
			Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Kind: "Service", Namespaced: true,
			Categories: []string{"all"}, Fields: []string{"spec.clusterIP", "spec.type"}, Columns: table.ServiceColumns(),
			Schema: schema.Kubernetes("io.k8s.api.core.v1.Service"),
		},
		{
			Version: "v1", Plural: "configmaps", Singular: "configmap", ShortNames: []string{"cm"}, Kind: "ConfigMap", Namespaced: true,
			Columns: table.ConfigMapColumns(),
			Schema:  schema.Kubernetes("io.k8s.api.core.v1.ConfigMap"),
		},
		{
			Group: "apps", Version: "v1", Plural: "deployments", Singular: "deployment", ShortNames: []string{"deploy"},
			Kind: "Deployment", Namespaced: true, Categories: []string{"all"}, Columns: table.DeploymentColumns(),
			Scale:  &Scale{SpecReplicasPath: ".spec.replicas", DefaultReplicas: 1, StatusReplicasPath: ".status.replicas", LabelSelectorPath: ".spec.selector"},
			Schema: schema.Kubernetes("io.k8s.api.apps.v1.Deployment"),
		},
		{
			Version: "v1", Plural: "namespaces", Singular: "namespace", ShortNames: []string{"ns"}, Kind: "Namespace",
			Fields: []string{"status.phase"}, CheckName: listwatch.CheckNamespace, Columns: table.NamespaceColumns(),
			Schema: schema.Kubernetes("io.k8s.api.core.v1.Namespace"),
		},
		eventResource(),
	}
}

// eventResource returns the resource of core/v1 Event. kubectl describe lists the events of
// an object, and fails for some kinds without this resource. A cluster deletes events after
// an hour. Here clients must delete them.
func eventResource() Resource {
	return Resource{
		Version: "v1", Plural: "events", Singular: "event", ShortNames: []string{"ev"}, Kind: "Event", Namespaced: true,
		Fields: []string{
			"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
			"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source.component", "type",
		},
		Columns: table.EventColumns(),
		Schema:  schema.Kubernetes("io.k8s.api.core.v1.Event"),
	}
}
