package schema

import (
	"reflect"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kubernetes returns the type with the given OpenAPI name, such as
// "io.k8s.api.core.v1.Pod", or nil if it is unknown. It knows the types of the kinds
// that controllers use, from the groups core, admissionregistration.k8s.io, apps, autoscaling/v2,
// batch, coordination.k8s.io, discovery.k8s.io, events.k8s.io, networking.k8s.io, node.k8s.io,
// policy, rbac.authorization.k8s.io, scheduling.k8s.io and storage.k8s.io, and the types that they
// contain.
func Kubernetes(name string) *Type { return kubernetes()[name] }

// kinds holds a value of the Go type of each kind that Kubernetes knows.
var kinds = []any{
	corev1.ConfigMap{},
	corev1.Endpoints{},
	corev1.Event{},
	corev1.LimitRange{},
	corev1.Namespace{},
	corev1.Node{},
	corev1.PersistentVolume{},
	corev1.PersistentVolumeClaim{},
	corev1.Pod{},
	corev1.PodTemplate{},
	corev1.ReplicationController{},
	corev1.ResourceQuota{},
	corev1.Secret{},
	corev1.Service{},
	corev1.ServiceAccount{},
	admissionv1.MutatingAdmissionPolicy{},
	admissionv1.MutatingAdmissionPolicyBinding{},
	admissionv1.MutatingWebhookConfiguration{},
	admissionv1.ValidatingAdmissionPolicy{},
	admissionv1.ValidatingAdmissionPolicyBinding{},
	admissionv1.ValidatingWebhookConfiguration{},
	appsv1.ControllerRevision{},
	appsv1.DaemonSet{},
	appsv1.Deployment{},
	appsv1.ReplicaSet{},
	appsv1.StatefulSet{},
	autoscalingv2.HorizontalPodAutoscaler{},
	batchv1.CronJob{},
	batchv1.Job{},
	coordinationv1.Lease{},
	discoveryv1.EndpointSlice{},
	eventsv1.Event{},
	networkingv1.Ingress{},
	networkingv1.IngressClass{},
	networkingv1.NetworkPolicy{},
	nodev1.RuntimeClass{},
	policyv1.PodDisruptionBudget{},
	rbacv1.ClusterRole{},
	rbacv1.ClusterRoleBinding{},
	rbacv1.Role{},
	rbacv1.RoleBinding{},
	schedulingv1.PriorityClass{},
	storagev1.CSIDriver{},
	storagev1.CSINode{},
	storagev1.CSIStorageCapacity{},
	storagev1.StorageClass{},
	storagev1.VolumeAttachment{},
}

// kubernetes reads the Go types of Kubernetes' clients once.
var kubernetes = sync.OnceValue(func() map[string]*Type {
	all := goTypes{}
	for _, kind := range kinds {
		all.field(reflect.TypeOf(kind))
	}
	for path, rule := range applyRules {
		name, member, _ := strings.Cut(path, ":")
		if t := all["io.k8s."+name]; member == "" {
			t.Atomic = true
		} else {
			f := t.Fields[member]
			rule(&f)
			t.Fields[member] = f
		}
	}
	return all
})

// goTypes collects the types of Go structs by their names in OpenAPI.
type goTypes map[string]*Type

// scalars are the Go types whose JSON does not follow from their fields.
var scalars = map[reflect.Type]Scalar{
	reflect.TypeFor[metav1.Time]():          Time,
	reflect.TypeFor[metav1.MicroTime]():     MicroTime,
	reflect.TypeFor[intstr.IntOrString]():   IntOrString,
	reflect.TypeFor[resource.Quantity]():    Quantity,
	reflect.TypeFor[[]byte]():               Bytes,
	reflect.TypeFor[metav1.FieldsV1]():      "",
	reflect.TypeFor[runtime.RawExtension](): "",
}

// field returns the description of a value of type t.
func (g goTypes) field(t reflect.Type) Field {
	if s, ok := scalars[t]; ok {
		return Field{Scalar: s}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.field(t.Elem())
	case reflect.Slice:
		f := g.field(t.Elem())
		f.List = true
		return f
	case reflect.Map:
		f := g.field(t.Elem())
		return Field{Type: &Type{AdditionalProperties: &f}}
	case reflect.Struct:
		return Field{Type: g.object(t)}
	case reflect.Bool:
		return Field{Scalar: Boolean}
	case reflect.Int32:
		return Field{Scalar: Int32}
	case reflect.Int, reflect.Int64:
		return Field{Scalar: Integer}
	}
	return Field{Scalar: String}
}

func (g goTypes) object(t reflect.Type) *Type {
	name := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }).OpenAPIModelName()
	if g[name] == nil {
		g[name] = &Type{Name: name, Fields: map[string]Field{}}
		g.addMembers(g[name].Fields, t)
	}
	return g[name]
}

// addMembers adds the members of the struct t, and of the structs embedded in it, to fields.
func (g goTypes) addMembers(fields map[string]Field, t reflect.Type) {
	for i := range t.NumField() {
		member := t.Field(i)
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "" {
			g.addMembers(fields, member.Type)
			continue
		}
		f := g.field(member.Type)
		strategy := member.Tag.Get("patchStrategy")
		f.Merge, f.RetainKeys = strings.Contains(strategy, "merge"), strings.Contains(strategy, "retainKeys")
		f.MergeKey = member.Tag.Get("patchMergeKey")
		fields[name] = f
	}
}

// applyRules holds the rules of a server-side apply for some types and members. A type has no
// function and is replaced as a whole. The key of a member has the form TYPE:MEMBER. The Go types
// state these rules only in comments. A test in module interop compares the result with the schema
// of kube-apiserver.
var applyRules = map[string]func(f *Field){
	"api.admissionregistration.v1.MatchResources":          nil,
	"api.admissionregistration.v1.NamedRuleWithOperations": nil,
	"api.admissionregistration.v1.ParamKind":               nil,
	"api.admissionregistration.v1.ParamRef":                nil,
	"api.admissionregistration.v1.Variable":                nil,
	"api.core.v1.ConfigMapKeySelector":                     nil,
	"api.core.v1.EvictionResponder":                        nil,
	"api.core.v1.FileKeySelector":                          nil,
	"api.core.v1.LocalObjectReference":                     nil,
	"api.core.v1.NodeSelector":                             nil,
	"api.core.v1.NodeSelectorTerm":                         nil,
	"api.core.v1.ObjectFieldSelector":                      nil,
	"api.core.v1.ObjectReference":                          nil,
	"api.core.v1.ResourceFieldSelector":                    nil,
	"api.core.v1.SecretKeySelector":                        nil,
	"api.core.v1.TypedLocalObjectReference":                nil,
	"api.core.v1.EndpointAddress":                          nil,
	"api.core.v1.EndpointPort":                             nil,
	"api.core.v1.ScopeSelector":                            nil,
	"api.core.v1.SecretReference":                          nil,
	"api.core.v1.TopologySelectorTerm":                     nil,
	"api.discovery.v1.EndpointPort":                        nil,
	"api.networking.v1.ServiceBackendPort":                 nil,
	"api.rbac.v1.RoleRef":                                  nil,
	"api.rbac.v1.Subject":                                  nil,
	"apimachinery.pkg.apis.meta.v1.LabelSelector":          nil,
	"apimachinery.pkg.apis.meta.v1.OwnerReference":         nil,
	"api.core.v1.PodSpec:nodeSelector":                     atomic,
	"api.core.v1.PodStatus:hostIPs":                        atomic,
	"api.core.v1.ServiceSpec:selector":                     atomic,
	"api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec:validationActions": set,
	"api.admissionregistration.v1.ValidatingAdmissionPolicyStatus:conditions":             keys("type"),
	"api.core.v1.ContainerRestartRuleOnExitCodes:values":                                  set,
	"api.core.v1.NodeAllocatableResourceClaimStatus:containers":                           set,
	"api.core.v1.VolumeMount:bindMountOptions":                                            set,
	"api.core.v1.ContainerPort:protocol":                                                  tcp,
	"api.core.v1.ServicePort:protocol":                                                    tcp,
	"api.core.v1.Container:ports":                                                         keys("containerPort", "protocol"),
	"api.core.v1.EphemeralContainer:ports":                                                keys("containerPort", "protocol"),
	"api.core.v1.PodSpec:topologySpreadConstraints":                                       keys("topologyKey", "whenUnsatisfiable"),
	"api.core.v1.PodStatus:volumeHealth":                                                  keys("name"),
	"api.core.v1.PodVolumeHealth:healthConditions":                                        keys("status", "reason"),
	"api.core.v1.ResourceRequirements:claims":                                             keys("name"),
	"api.core.v1.ResourceStatus:resources":                                                keys("resourceID"),
	"api.core.v1.ServiceSpec:ports":                                                       keys("port", "protocol"),
	"api.batch.v1.JobStatus:conditions":                                                   atomic,
	"api.batch.v1.PodFailurePolicyOnExitCodesRequirement:values":                          set,
	"api.batch.v1.UncountedTerminatedPods:failed":                                         set,
	"api.batch.v1.UncountedTerminatedPods:succeeded":                                      set,
	"api.core.v1.NodePodPreemptionPolicy:disableResizePreemption":                         set,
	"api.core.v1.ReplicationControllerSpec:selector":                                      atomic,
	"api.core.v1.VolumeHealthStatus:healthConditions":                                     keys("status", "reason"),
	"api.node.v1.Scheduling:nodeSelector":                                                 atomic,
	"api.storage.v1.CSIDriverSpec:volumeLifecycleModes":                                   set,
	"api.discovery.v1.Endpoint:addresses":                                                 set,
}

func atomic(f *Field) { f.Atomic = true }

func set(f *Field) { f.Set = true }

func tcp(f *Field) { f.Default = string(corev1.ProtocolTCP) }

func keys(names ...string) func(*Field) { return func(f *Field) { f.Keys = names } }
