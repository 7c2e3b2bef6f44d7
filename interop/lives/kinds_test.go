//go:build !race

package lives

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	demoGroup       = "demo.example.com"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// noUID is a UID that no object has.
	noUID = "00000000-0000-4000-8000-000000000000"
)

// A kind is a kind of the objects whose lives are compared.
type kind struct {
	group, version, plural, kind string
	// cluster is true if the objects have no namespace.
	cluster bool
	// content has the members of a new object apart from metadata. change is a merge patch of the
	// content, and status one of the status. They may be empty.
	content, change, status string
}

const (
	podTemplate  = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	labelApp     = `"selector":{"matchLabels":{"app":"a"}}`
	jobTemplate  = `"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`
	configChange = `{"webhooks":[{"name":"a.example.com","clientConfig":{"url":"https://example.com/"},` +
		`"admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore"}]}`
)

// matchNothing are the constraints of a policy for objects that do not exist.
const matchNothing = `"matchConstraints":{"resourceRules":[{"apiGroups":["none.example.com"],"apiVersions":["v1"],` +
	`"operations":["CREATE"],"resources":["none"]}]}`

// kinds are the built-in kinds that kubetest serves, and the custom resources of definitionsFile.
var kinds = []kind{
	{"", "v1", "configmaps", "ConfigMap", false, `"data":{"a":"b"}`, `{"data":{"a":"c"}}`, ""},
	{
		"", "v1", "pods", "Pod", false, `"spec":{"containers":[{"name":"c","image":"i"}]}`,
		`{"spec":{"containers":[{"name":"c","image":"j"}]}}`, `{"status":{"phase":"Running"}}`,
	},
	{"", "v1", "namespaces", "Namespace", true, "", "", `{"status":{"conditions":[{"type":"A","status":"True"}]}}`},
	{
		"", "v1", "services", "Service", false, `"spec":{"ports":[{"port":80}]}`,
		`{"spec":{"sessionAffinity":"ClientIP"}}`,
		`{"status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
	},
	{"", "v1", "secrets", "Secret", false, `"data":{"a":"Yg=="}`, `{"data":{"a":"Yw=="}}`, ""},
	{"", "v1", "serviceaccounts", "ServiceAccount", false, "", `{"automountServiceAccountToken":false}`, ""},
	{
		"", "v1", "endpoints", "Endpoints", false, "",
		`{"subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":80}]}]}`, "",
	},
	{"", "v1", "events", "Event", false, `"involvedObject":{"namespace":"NAME"},"reason":"A"`, `{"count":2}`, ""},
	{
		"", "v1", "limitranges", "LimitRange", false, `"spec":{"limits":[{"type":"Pod","max":{"cpu":"1"}}]}`,
		`{"spec":{"limits":[{"type":"Pod","max":{"cpu":"2"}}]}}`, "",
	},
	{"", "v1", "nodes", "Node", true, "", `{"spec":{"unschedulable":true}}`, `{"status":{"phase":"Running"}}`},
	{
		"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", false,
		`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`,
		`{"spec":{"volumeName":"v"}}`, `{"status":{"phase":"Bound"}}`,
	},
	{
		"", "v1", "persistentvolumes", "PersistentVolume", true,
		`"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/a"}}`,
		`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`, `{"status":{"phase":"Available"}}`,
	},
	{
		"", "v1", "podtemplates", "PodTemplate", false, `"template":` + podTemplate,
		`{"template":{"spec":{"nodeName":"n"}}}`, "",
	},
	{
		"", "v1", "replicationcontrollers", "ReplicationController", false,
		`"spec":{"selector":{"app":"a"},"template":` + podTemplate + `}`,
		`{"spec":{"replicas":2}}`, `{"status":{"replicas":1}}`,
	},
	{
		"", "v1", "resourcequotas", "ResourceQuota", false, `"spec":{"hard":{"pods":"100"}}`,
		`{"spec":{"hard":{"pods":"200"}}}`,
		`{"status":{"hard":{"pods":"100"}}}`,
	},
	{
		"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", true, "",
		configChange, "",
	},
	{
		"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", true,
		"", configChange, "",
	},
	{
		"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", true,
		`"spec":{` + matchNothing + `,"validations":[{"expression":"true"}]}`,
		`{"spec":{"failurePolicy":"Ignore"}}`, `{"status":{"conditions":[{"type":"A","status":"True","reason":"R",` +
			`"message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
	},
	{
		"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding",
		true,
		`"spec":{"policyName":"none","validationActions":["Deny"]}`, `{"spec":{"validationActions":["Warn"]}}`, "",
	},
	{
		"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", true,
		`"spec":{` + matchNothing + `,"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration",` +
			`"applyConfiguration":{"expression":"Object{}"}}]}`,
		`{"spec":{"failurePolicy":"Ignore"}}`, "",
	},
	{
		"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", true,
		`"spec":{"policyName":"none"}`, `{"spec":{"policyName":"other"}}`, "",
	},
	{
		"apps", "v1", "controllerrevisions", "ControllerRevision", false, `"data":{"a":1},"revision":1`,
		`{"revision":2}`, "",
	},
	{
		"apps", "v1", "daemonsets", "DaemonSet", false, `"spec":{` + labelApp + `,"template":` + podTemplate + `}`,
		`{"spec":{"minReadySeconds":2}}`, `{"status":{"numberReady":1}}`,
	},
	{
		"apps", "v1", "deployments", "Deployment", false, `"spec":{` + labelApp + `,"template":` + podTemplate + `}`,
		`{"spec":{"minReadySeconds":2}}`, `{"status":{"replicas":1}}`,
	},
	{
		"apps", "v1", "replicasets", "ReplicaSet", false, `"spec":{` + labelApp + `,"template":` + podTemplate + `}`,
		`{"spec":{"replicas":2}}`, `{"status":{"replicas":1}}`,
	},
	{
		"apps", "v1", "statefulsets", "StatefulSet", false,
		`"spec":{"serviceName":"s",` + labelApp + `,"template":` + podTemplate + `}`,
		`{"spec":{"replicas":2}}`, `{"status":{"replicas":1}}`,
	},
	{
		"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", false,
		`"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}`,
		`{"spec":{"maxReplicas":4}}`, `{"status":{"desiredReplicas":1}}`,
	},
	{
		"batch", "v1", "cronjobs", "CronJob", false,
		`"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{` + jobTemplate + `}}}`,
		`{"spec":{"suspend":true}}`, `{"status":{"lastScheduleTime":"2026-01-02T03:04:05Z"}}`,
	},
	{
		"batch", "v1", "jobs", "Job", false, `"spec":{` + jobTemplate + `}`, `{"spec":{"parallelism":3}}`,
		`{"status":{"active":1}}`,
	},
	{"coordination.k8s.io", "v1", "leases", "Lease", false, "", `{"spec":{"holderIdentity":"a"}}`, ""},
	{
		"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", false,
		`"addressType":"IPv4","endpoints":[{"addresses":["192.0.2.2"]}]`,
		`{"endpoints":[{"addresses":["192.0.2.1"]}]}`, "",
	},
	{
		"networking.k8s.io", "v1", "ingresses", "Ingress", false,
		`"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}`,
		`{"spec":{"defaultBackend":{"service":{"name":"t"}}}}`,
		`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`,
	},
	{
		"networking.k8s.io", "v1", "ingressclasses", "IngressClass", true, `"spec":{"controller":"example.com/c"}`,
		`{"spec":{"parameters":{"kind":"K","name":"n"}}}`, "",
	},
	{
		"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", false, `"spec":{"podSelector":{}}`,
		`{"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`, "",
	},
	{
		"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", true, `"handler":"h"`,
		`{"scheduling":{"nodeSelector":{"a":"b"}}}`, "",
	},
	{
		"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", false,
		`"spec":{"minAvailable":1,` + labelApp + `}`,
		`{"spec":{"minAvailable":2}}`, `{"status":{"currentHealthy":1}}`,
	},
	{
		"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", true,
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}`,
		`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"u"}]}`, "",
	},
	{
		"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", true,
		`"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}]`,
		`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, "",
	},
	{
		"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", false,
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}`,
		`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"u"}]}`, "",
	},
	{
		"rbac.authorization.k8s.io", "v1", "roles", "Role", false,
		`"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}]`,
		`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, "",
	},
	{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", true, `"value":1`, `{"description":"a"}`, ""},
	{
		"storage.k8s.io", "v1", "csidrivers", "CSIDriver", true, `"spec":{"attachRequired":true}`,
		`{"spec":{"requiresRepublish":true}}`, "",
	},
	{
		"storage.k8s.io", "v1", "csinodes", "CSINode", true,
		`"spec":{"drivers":[{"name":"d","nodeID":"n","topologyKeys":["a"]}]}`,
		`{"spec":{"drivers":[{"name":"d","nodeID":"n","topologyKeys":["a"]},{"name":"e","nodeID":"n","topologyKeys":["a"]}]}}`,
		"",
	},
	{
		"storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", false, `"storageClassName":"c"`,
		`{"capacity":"1Gi"}`, "",
	},
	{
		"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", true,
		`"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"v"}}`, "", `{"status":{"attached":true}}`,
	},
	{
		"storage.k8s.io", "v1", "storageclasses", "StorageClass", true, `"provisioner":"example.com/p"`,
		`{"allowVolumeExpansion":true}`, "",
	},
	{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", true, "", "", ""},
	{
		demoGroup, "v1", "widgets", "Widget", false, `"spec":{"color":"red","ports":[{"port":80}]}`,
		`{"spec":{"color":"blue"}}`,
		`{"status":{"phase":"A"}}`,
	},
	{demoGroup, "v1", "gadgets", "Gadget", true, `"spec":{"color":"red"}`, `{"spec":{"color":"blue"}}`, ""},
}

// kindOf returns the kind with the given plural name.
func kindOf(plural string) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.plural == plural })
	return kinds[i]
}

func (k kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural}
}

// name returns the qualified name of the resource.
func (k kind) name() string { return k.resource().GroupResource().String() }

func (k kind) apiVersion() string { return k.resource().GroupVersion().String() }

// isBuiltIn reports whether k is a built-in kind. kubetest has only a few of the defaults of these
// kinds.
func (k kind) isBuiltIn() bool { return k.group != demoGroup }

// path returns the path of an object, or of the collection if name is empty. The paths of
// cluster-wide objects contain no namespace.
func (k kind) path(namespace, name string) string {
	var b strings.Builder
	b.WriteString("/apis/" + k.apiVersion())
	if k.group == "" {
		b.Reset()
		b.WriteString("/api/v1")
	}
	if !k.cluster && namespace != "" {
		b.WriteString("/namespaces/" + namespace)
	}
	b.WriteString("/" + k.plural)
	if name != "" {
		b.WriteString("/" + name)
	}
	return b.String()
}

// object returns a new object. metadata has further members of the metadata.
func (k kind) object(name, metadata string) string {
	if metadata != "" {
		metadata = "," + metadata
	}
	content := k.content
	if content != "" {
		content = "," + content
	}
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s"%s}%s}`, k.apiVersion(), k.kind, name,
		metadata, content)
}
