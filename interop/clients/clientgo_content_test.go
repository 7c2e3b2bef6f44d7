package clients

import (
	stdcmp "cmp"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/interop/internal/testapi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
)

// contentTypes are common configurations of a client's content types.
var contentTypes = map[string]func(*rest.Config){
	"default": func(*rest.Config) {},
	"protobuf": func(c *rest.Config) {
		c.ContentType = runtime.ContentTypeProtobuf
	},
	"protobuf or JSON": func(c *rest.Config) {
		c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		c.ContentType = runtime.ContentTypeProtobuf
	},
	"protobuf accepted, JSON sent": func(c *rest.Config) {
		c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		c.ContentType = runtime.ContentTypeJSON
	},
}

// The server responds in JSON to every client that accepts JSON, even if the client prefers
// another format.
func TestReadsFallBackToJSON(t *testing.T) {
	s := testapi.Start(t)
	testkit.Must(newClientset(t, s.Config(testapi.HTTP1)).CoreV1().ConfigMaps("default").Create(t.Context(),
		configMap("a", nil, nil), metav1.CreateOptions{}))(t)
	for name, set := range contentTypes {
		t.Run(name, func(t *testing.T) {
			c := s.Config(testapi.HTTP1)
			set(c)
			var recorder requestRecorder
			maps := newClientset(t, recorder.record(c)).CoreV1().ConfigMaps("default")
			testkit.Must(maps.Get(t.Context(), "a", metav1.GetOptions{}))(t)
			if list := testkit.Must(maps.List(t.Context(), metav1.ListOptions{}))(t); len(list.Items) != 1 {
				t.Errorf("the list has %d items, want 1", len(list.Items))
			}
			w := testkit.Must(maps.Watch(t.Context(), metav1.ListOptions{}))(t)
			defer w.Stop()
			if e := <-w.ResultChan(); e.Type != watch.Added {
				t.Errorf("the watch returned %v, want ADDED", e)
			}
			for _, r := range recorder.requests("/configmaps") {
				if !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
					t.Errorf("the client sent Accept %q, want protobuf first: this test is about the fallback",
						r.Header.Get("Accept"))
				}
			}
		})
	}
}

// The result of a write does not depend on the content type. By default, client-go's clientset
// writes Protocol Buffers.
func TestWritesAreEqualInAllContentTypes(t *testing.T) {
	preferCBOR(t)
	all := maps.Clone(contentTypes)
	all["CBOR"] = func(c *rest.Config) { c.ContentType, c.AcceptContentTypes = cborType, cborType }
	var first *appsv1.Deployment
	for name, set := range all {
		t.Run(name, func(t *testing.T) {
			c := testapi.Start(t).Config(testapi.HTTP1)
			set(c)
			var recorder requestRecorder
			d := writeInAllWays(t, newClientset(t, recorder.record(c)).AppsV1().Deployments("default"))
			want := stdcmp.Or(c.ContentType, runtime.ContentTypeProtobuf)
			written := 0
			for _, r := range recorder.requests("") {
				if r.Method == http.MethodGet {
					continue
				}
				written++
				if got := r.Header.Get("Content-Type"); got != want {
					t.Errorf("%s sent Content-Type %s, want %s", r.Method, got, want)
				}
			}
			if written != 6 {
				t.Errorf("got %d writes, want 6", written)
			}
			if first == nil {
				first = d
			}
			assigned := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp")
			if diff := cmp.Diff(first, d, assigned); diff != "" {
				t.Errorf("the object differs from that of another configuration (-other +this):\n%s", diff)
			}
		})
	}
}

// writeInAllWays creates, updates, scales and deletes a deployment. It returns the last
// state before the deletion.
func writeInAllWays(t *testing.T, deployments typedappsv1.DeploymentInterface) *appsv1.Deployment {
	t.Helper()
	ctx := t.Context()
	d := deployment("a")
	d.Annotations = map[string]string{"note": "<é>\n"}
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxSurge:       new(intstr.FromString("25%")),
		MaxUnavailable: new(intstr.FromInt32(1)),
	}
	container := &d.Spec.Template.Spec.Containers[0]
	container.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}},
	}
	d = testkit.Must(deployments.Create(ctx, d, metav1.CreateOptions{}))(t)
	d.Spec.Paused = true
	d = testkit.Must(deployments.Update(ctx, d, metav1.UpdateOptions{}))(t)
	d.Status = appsv1.DeploymentStatus{
		Replicas: 2,
		Conditions: []appsv1.DeploymentCondition{{
			Type:           appsv1.DeploymentAvailable,
			LastUpdateTime: metav1.Unix(1e9, 0),
		}},
	}
	testkit.Must(deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{}))(t)
	scale := testkit.Must(deployments.GetScale(ctx, "a", metav1.GetOptions{}))(t)
	scale.Spec.Replicas = 3
	testkit.Must(deployments.UpdateScale(ctx, "a", scale, metav1.UpdateOptions{}))(t)
	d = testkit.Must(deployments.Get(ctx, "a", metav1.GetOptions{}))(t)
	if !d.Spec.Paused || d.Status.Replicas != 2 || *d.Spec.Replicas != 3 {
		t.Errorf("got %v, want all changes", d)
	}
	if err := deployments.Delete(ctx, "a",
		*metav1.NewPreconditionDeleteOptions("another")); !apierrors.IsConflict(err) {
		t.Errorf("delete with another uid: got %v, want a conflict", err)
	}
	if err := deployments.Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions(string(d.UID))); err != nil {
		t.Error(err)
	}
	return d
}

// Kinds outside Kubernetes' stable versions can be written in JSON only. client-go does not retry
// in JSON, so the error message must name the setting to change.
func TestProtobufOfUnknownKindsIsRefused(t *testing.T) {
	s := testapi.Start(t, "servicecidrs.v1beta1.networking.k8s.io=ServiceCIDR,cluster")
	cidr := &networkingv1beta1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c := s.Config(testapi.HTTP1)
	_, err := newClientset(t, c).NetworkingV1beta1().ServiceCIDRs().Create(t.Context(), cidr, metav1.CreateOptions{})
	if !apierrors.IsUnsupportedMediaType(err) || !strings.Contains(err.Error(), "ContentType") {
		t.Errorf("got %v, want a 415 that names ContentType", err)
	}
	c.ContentType = runtime.ContentTypeJSON
	testkit.Must(newClientset(t, c).NetworkingV1beta1().ServiceCIDRs().Create(t.Context(), cidr,
		metav1.CreateOptions{}))(t)
}

// client-go asks for Protocol Buffers by default, and our API has them for its built-in kinds.
func TestResponsesAreInProtobuf(t *testing.T) {
	var received string
	c := testapi.Start(t).Config(testapi.HTTP1)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				received = response.Header.Get("Content-Type")
			}
			return response, err
		})
	})
	testkit.Must(newClientset(t, c).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}))(t)
	if received != runtime.ContentTypeProtobuf {
		t.Errorf("got Content-Type %s, want %s", received, runtime.ContentTypeProtobuf)
	}
}
