package rules

import (
	"cmp"
	"errors"
	"strings"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/schema"
	"k8s.io/apimachinery/pkg/api/validation/path"
)

// A kind is a built-in kind, in short form.
type kind struct {
	group, version, plural, kind string
	// short holds the short names, separated by spaces. An asterisk stands for the category "all".
	short string
	// flags is a set of: c for cluster-scoped, s for a status subresource, r for a scale
	// subresource, and p if a name may be any segment of a path.
	flags  string
	fields []string
}

const admission = "admissionregistration.k8s.io"

// kinds are the built-in kinds that kubeapi.DefaultResources does not have.
var kinds = []kind{
	{"", "v1", "endpoints", "Endpoints", "ep", "", nil},
	{"", "v1", "limitranges", "LimitRange", "limits", "", nil},
	{"", "v1", "nodes", "Node", "no", "cs", []string{"spec.unschedulable"}},
	{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "s", nil},
	{"", "v1", "persistentvolumes", "PersistentVolume", "pv", "cs", nil},
	{"", "v1", "podtemplates", "PodTemplate", "", "", nil},
	{"", "v1", "replicationcontrollers", "ReplicationController", "rc *", "s", []string{"status.replicas"}},
	{"", "v1", "resourcequotas", "ResourceQuota", "quota", "s", nil},
	{"", "v1", "secrets", "Secret", "", "", []string{"type"}},
	{"", "v1", "serviceaccounts", "ServiceAccount", "sa", "", nil},
	{admission, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", "", "c", nil},
	{admission, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "", "c", nil},
	{admission, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "", "c", nil},
	{admission, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "", "cs", nil},
	{admission, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "", "c", nil},
	{admission, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "", "c", nil},
	{"apps", "v1", "controllerrevisions", "ControllerRevision", "", "", nil},
	{"apps", "v1", "daemonsets", "DaemonSet", "ds *", "s", nil},
	{"apps", "v1", "replicasets", "ReplicaSet", "rs *", "sr", nil},
	{"apps", "v1", "statefulsets", "StatefulSet", "sts *", "sr", nil},
	{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa *", "s", nil},
	{"batch", "v1", "cronjobs", "CronJob", "cj *", "s", nil},
	{"batch", "v1", "jobs", "Job", "*", "s", []string{"status.successful"}},
	{"coordination.k8s.io", "v1", "leases", "Lease", "", "", nil},
	{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "", "", nil},
	{"networking.k8s.io", "v1", "ingresses", "Ingress", "ing", "s", nil},
	{"networking.k8s.io", "v1", "ingressclasses", "IngressClass", "", "c", nil},
	{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol", "", nil},
	{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "", "c", nil},
	{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", "s", nil},
	{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", "", "cp", nil},
	{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", "cp", nil},
	{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "", "p", nil},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", "", "p", nil},
	{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc", "c", nil},
	{"storage.k8s.io", "v1", "csidrivers", "CSIDriver", "", "c", nil},
	{"storage.k8s.io", "v1", "csinodes", "CSINode", "", "c", nil},
	{"storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", "", "", nil},
	{"storage.k8s.io", "v1", "storageclasses", "StorageClass", "sc", "c", nil},
	{"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", "", "cs", nil},
}

// resource returns the resource of k.
func (k kind) resource() kubeapi.Resource {
	has := func(flag string) bool { return strings.Contains(k.flags, flag) }
	r := kubeapi.Resource{
		Group: k.group, Version: k.version, Plural: k.plural, Kind: k.kind, Namespaced: !has("c"),
		Fields: k.fields, NoStatus: !has("s"),
	}
	for _, name := range strings.Fields(k.short) {
		if name == "*" {
			r.Categories = []string{"all"}
		} else {
			r.ShortNames = append(r.ShortNames, name)
		}
	}
	group, _, _ := strings.Cut(k.group, ".")
	r.Schema = schema.Kubernetes("io.k8s.api." + cmp.Or(group, "core") + "." + k.version + "." + k.kind)
	if has("r") {
		r.Scale = &kubeapi.Scale{
			SpecReplicasPath: ".spec.replicas", DefaultReplicas: 1,
			StatusReplicasPath: ".status.replicas", LabelSelectorPath: ".spec.selector",
		}
	}
	if has("p") {
		r.CheckName = checkPathSegment
	}
	return r
}

// checkPathSegment accepts names such as "system:node", which roles may have.
func checkPathSegment(name string) error {
	if faults := path.IsValidPathSegmentName(name); len(faults) > 0 {
		return errors.New(strings.Join(faults, "; "))
	}
	return nil
}

// noStatus names the kinds of kubeapi.DefaultResources without a status subresource in Kubernetes.
var noStatus = map[string]bool{"ConfigMap": true, "Event": true}

// deprecated are the warnings of Kubernetes about deprecated kinds.
var deprecated = map[string]string{
	"endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}

// Kinds returns the resources of all built-in kinds. [BuiltIn] adds their other versions.
func Kinds() []kubeapi.Resource {
	all := kubeapi.DefaultResources()
	for i := range all {
		all[i].NoStatus = noStatus[all[i].Kind]
	}
	for _, k := range kinds {
		all = append(all, k.resource())
	}
	for i := range all {
		all[i] = withBehavior(all[i])
	}
	return all
}

// withBehavior returns r with what built-in kinds have in common, and with its warning and its rule
// for deletes.
func withBehavior(r kubeapi.Resource) kubeapi.Resource {
	r.SeparateStatus = true
	r.Warning = deprecated[r.QualifiedName()]
	r.Deletes = deletions[r.QualifiedName()]
	return r
}
