package rules

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/internal/jsonvalue"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A ruleset has a few of the defaults and checks of kube-apiserver for a built-in kind: those that
// controllers see.
type ruleset struct {
	group, kind string
	// hasSpec and hasStatus are true if every object has the member, even if it is empty.
	hasSpec, hasStatus bool
	// root and spec are JSON objects with the defaults for absent members of the object and of its
	// spec.
	root, spec string
	// status is the status of a new object. If empty, it has none.
	status string
	// required and immutable are paths of members.
	required, immutable [][]string
	// convert changes an object, after the defaults were filled in, as Kubernetes does when it
	// decodes the object. It may be nil.
	convert func(data []byte) ([]byte, error)
	// change changes a complete object before it is stored. It may be nil.
	change func(old *listwatch.Object, data []byte) ([]byte, error)
	// validate returns the faults of an object that is complete. It may be nil.
	validate func(data []byte) (field.ErrorList, error)
	// warnings returns the warnings about a valid object. It may be nil.
	warnings func(data []byte) []string
}

var (
	containers = []string{"spec", "containers"}
	selector   = []string{"spec", "selector"}
	roleRef    = [][]string{{"roleRef"}}
	template   = []string{"spec", "template", "spec", "containers"}
)

// allRules holds the rules of the kinds that have any, by qualified name.
var allRules = map[string]ruleset{
	"namespaces": {status: `{"phase":"Active"}`, convert: labelNamespace, change: completeNamespace},
	"nodes": {
		status: `{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"",` +
			`"bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"",` +
			`"kubeProxyVersion":"","operatingSystem":"","architecture":""}}`,
	},
	"persistentvolumeclaims": {
		spec: `{"volumeMode":"Filesystem"}`, status: `{"phase":"Pending"}`,
		required: [][]string{{"spec", "accessModes"}},
	},
	"persistentvolumes": {
		spec:   `{"volumeMode":"Filesystem","persistentVolumeReclaimPolicy":"Retain"}`,
		status: `{"phase":"Pending"}`, required: [][]string{{"spec", "capacity"}},
	},
	"pods": {
		spec: `{"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler",` +
			`"terminationGracePeriodSeconds":30,"enableServiceLinks":true,"securityContext":{}}`,
		status: `{"phase":"Pending","qosClass":"BestEffort"}`, required: [][]string{containers},
	},
	"replicationcontrollers": {spec: `{"replicas":1}`, status: `{"replicas":0}`, convert: completeController},
	"secrets": {
		root: `{"type":"Opaque"}`, immutable: [][]string{{"type"}}, convert: completeSecret,
	},
	"services": {
		spec:   `{"type":"ClusterIP","sessionAffinity":"None","internalTrafficPolicy":"Cluster"}`,
		status: `{"loadBalancer":{}}`,
	},
	"daemonsets.apps": {
		spec: `{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}},` +
			`"revisionHistoryLimit":10}`,
		status:   `{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}`,
		required: [][]string{selector, template}, immutable: [][]string{selector},
	},
	"deployments.apps": {
		spec: `{"replicas":1,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}},` +
			`"revisionHistoryLimit":10,"progressDeadlineSeconds":600}`,
		required: [][]string{selector, template}, immutable: [][]string{selector},
	},
	"replicasets.apps": {
		spec: `{"replicas":1}`, status: `{"replicas":0}`,
		required: [][]string{selector}, immutable: [][]string{selector},
	},
	"statefulsets.apps": {
		spec: `{"replicas":1,"podManagementPolicy":"OrderedReady","revisionHistoryLimit":10,` +
			`"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}`,
		status:   `{"replicas":0,"availableReplicas":0}`,
		required: [][]string{selector, template}, immutable: [][]string{selector, {"spec", "serviceName"}},
	},
	"horizontalpodautoscalers.autoscaling": {spec: `{"minReplicas":1}`, required: [][]string{{"spec", "maxReplicas"}}},
	"cronjobs.batch": {
		spec:     `{"concurrencyPolicy":"Allow","suspend":false,"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1}`,
		required: [][]string{{"spec", "schedule"}, {"spec", "jobTemplate", "spec", "template", "spec", "containers"}},
	},
	"jobs.batch": {
		spec:     `{"parallelism":1,"completions":1,"backoffLimit":6,"completionMode":"NonIndexed","suspend":false}`,
		required: [][]string{template}, immutable: [][]string{{"spec", "template"}},
	},
	"ingresses.networking.k8s.io": {status: `{"loadBalancer":{}}`},
	"runtimeclasses.node.k8s.io":  {required: [][]string{{"handler"}}, immutable: [][]string{{"handler"}}},
	"csidrivers.storage.k8s.io": {
		spec: `{"attachRequired":true,"podInfoOnMount":false,"storageCapacity":false,"requiresRepublish":false,` +
			`"fsGroupPolicy":"ReadWriteOnceWithFSType","volumeLifecycleModes":["Persistent"],"seLinuxMount":false}`,
	},
	"csistoragecapacities.storage.k8s.io": {
		required:  [][]string{{"storageClassName"}},
		immutable: [][]string{{"storageClassName"}, {"nodeTopology"}},
	},
	"volumeattachments.storage.k8s.io": {
		status:   `{"attached":false}`,
		required: [][]string{{"spec", "attacher"}, {"spec", "nodeName"}}, immutable: [][]string{{"spec"}},
	},
	"storageclasses.storage.k8s.io": {
		root: `{"reclaimPolicy":"Delete","volumeBindingMode":"Immediate"}`, required: [][]string{{"provisioner"}},
	},
	"validatingwebhookconfigurations." + admission: {
		convert: completed(completeValidatingWebhooks), validate: checked(checkWebhooks), warnings: warnOfReviews,
	},
	"mutatingwebhookconfigurations." + admission: {
		convert: completed(completeMutatingWebhooks), validate: checked(checkWebhooks), warnings: warnOfReviews,
	},
	"validatingadmissionpolicies." + admission: {
		convert: completed(completeValidatingPolicy), validate: checked(checkValidatingPolicy),
	},
	"mutatingadmissionpolicies." + admission: {
		convert: completed(completeMutatingPolicy), validate: checked(checkMutatingPolicy),
	},
	"validatingadmissionpolicybindings." + admission: {
		convert: completed(completeValidatingBinding), validate: checked(checkValidatingBinding),
	},
	"mutatingadmissionpolicybindings." + admission: {
		convert: completed(completeMutatingBinding), validate: checked(checkMutatingBinding),
	},
	"priorityclasses.scheduling.k8s.io":             {root: `{"preemptionPolicy":"PreemptLowerPriority"}`},
	"rolebindings.rbac.authorization.k8s.io":        {required: roleRef, immutable: roleRef},
	"clusterrolebindings.rbac.authorization.k8s.io": {required: roleRef, immutable: roleRef},
}

// builtInRules returns the rules for the objects of a built-in kind.
func builtInRules(r kubeapi.Resource) ruleset {
	all := allRules[r.QualifiedName()]
	all.group, all.kind = r.Group, r.Kind
	all.hasSpec, all.hasStatus = r.Schema.Field("spec").Type != nil, r.Schema.Field("status").Type != nil
	return all
}

// NamespaceFinalizer keeps a deleted namespace until it is empty. A cluster has it in
// spec.finalizers.
const NamespaceFinalizer = "kubernetes"

// labelNamespace adds the label with the name of a namespace.
func labelNamespace(data []byte) ([]byte, error) {
	m, err := Metadata(data)
	if err != nil || m.Name == "" {
		return data, err
	}
	labels := m.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = m.Name
	value, err := json.Marshal(labels)
	if err != nil {
		return nil, err
	}
	return jsonvalue.SetMetadata(data, "labels", value), nil
}

// completeNamespace adds the finalizer that a namespace has until it is empty, and the label, which
// is missing if the name was generated.
func completeNamespace(old *listwatch.Object, data []byte) ([]byte, error) {
	data, err := completeSpecFinalizers(old, data)
	if err == nil {
		data, err = labelNamespace(data)
	}
	if err != nil {
		return nil, err
	}
	m, err := Metadata(data)
	if err != nil {
		return nil, err
	}
	if slices.Contains(m.Finalizers, NamespaceFinalizer) || old != nil && IsBeingDeleted(old.Data) {
		return data, nil
	}
	return jsonvalue.SetFinalizers(data, append(m.Finalizers, NamespaceFinalizer)), nil
}

// completeSpecFinalizers adds spec.finalizers to a new namespace. A later write does not change
// them, unless it sets an empty list, which FinalizeNamespace does.
func completeSpecFinalizers(old *listwatch.Object, data []byte) ([]byte, error) {
	value := rawjson.Lookup(data, "spec", "finalizers")
	switch {
	case string(value) == "[]" && old != nil:
		value = []byte("null")
	case value != nil:
		return data, nil
	case old == nil:
		value = []byte(`["` + NamespaceFinalizer + `"]`)
	default:
		if value = rawjson.Lookup(old.Data, "spec", "finalizers"); value == nil {
			return data, nil
		}
	}
	return rawjson.Merge(data, []byte(`{"spec":{"finalizers":`+string(value)+`}}`))
}

// FinalizeNamespace returns a namespace that has the given finalizers in its spec. If there are
// none, the namespace no longer waits until it is empty.
func FinalizeNamespace(data []byte, names []corev1.FinalizerName) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"finalizers": append([]corev1.FinalizerName{}, names...), // null would remove the member
	}})
	if err != nil {
		return nil, err
	}
	next, err := rawjson.Merge(data, patch)
	if err != nil || len(names) > 0 {
		return next, err
	}
	return WithoutFinalizer(next, NamespaceFinalizer)
}

// WithoutFinalizer returns object without one of its finalizers.
func WithoutFinalizer(object []byte, name string) ([]byte, error) {
	m, err := Metadata(object)
	if err != nil {
		return nil, err
	}
	remaining := slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == name })
	return jsonvalue.SetFinalizers(object, remaining), nil
}

// completeController gives a replication controller the labels of its template, unless it has some.
func completeController(data []byte) ([]byte, error) {
	labels := rawjson.Lookup(data, "spec", "template", "metadata", "labels")
	if labels == nil || rawjson.Lookup(data, "metadata", "labels") != nil {
		return data, nil
	}
	return jsonvalue.SetMetadata(data, "labels", labels), nil
}

// completeSecret moves stringData to data.
func completeSecret(data []byte) ([]byte, error) {
	raw := rawjson.Lookup(data, "stringData")
	if raw == nil {
		return data, nil
	}
	texts, err := rawjson.StringMap(raw)
	if err != nil {
		return nil, err
	}
	encoded := make(map[string]string, len(texts))
	for name, text := range texts {
		encoded[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	patch, err := json.Marshal(map[string]any{"data": encoded, "stringData": nil})
	if err != nil {
		return nil, err
	}
	return rawjson.Merge(data, patch)
}
