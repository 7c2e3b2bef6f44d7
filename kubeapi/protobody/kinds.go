package protobody

import (
	"fmt"
	"reflect"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kindTable holds the Go types of kinds, and the messages that they contain. It is immutable.
type kindTable struct {
	scheme   *runtime.Scheme
	messages messages
}

// scheme returns the kinds of the stable versions. It collects them once.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	all := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme,
		eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, storagemigrationv1.AddToScheme,
	)
	if err := builder.AddToScheme(all); err != nil {
		panic("protobody: the groups of Kubernetes do not collide: " + err.Error())
	}
	return all
})

// kinds returns the kinds of the stable versions with their messages. It collects them once.
var kinds = sync.OnceValue(func() *kindTable {
	types := &kindTable{scheme(), messages{}}
	types.messages.add(envelope, "")
	types.messages.add(reflect.TypeFor[metav1.DeleteOptions](), "")
	for _, t := range types.scheme.AllKnownTypes() {
		types.messages.add(t, "")
	}
	return types
})

// new returns an empty object of a kind. DeleteOptions belong to every group.
func (k *kindTable) new(kind schema.GroupVersionKind) (runtime.Object, error) {
	if kind.Kind == "DeleteOptions" {
		return &metav1.DeleteOptions{}, nil
	}
	if o, err := k.scheme.New(kind); err == nil {
		return o, nil
	}
	return nil, unknownError(fmt.Sprintf("the kind %q of %q is unknown", kind.Kind, kind.GroupVersion()))
}

func (k *kindTable) messageOf(o runtime.Object) *message {
	return k.messages[reflect.TypeOf(o).Elem()]
}
