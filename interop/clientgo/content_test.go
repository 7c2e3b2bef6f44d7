package clientgo

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
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

// contents are the configurations of content that people have.
var contents = map[string]func(*rest.Config){
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

// Whatever a client asks for first, it can have JSON: lists, single objects and watches.
func TestReadsFallToJSON(t *testing.T) {
	s := kubetest.Start(t)
	must(typed(t, s.Config(kubetest.HTTP1)).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a", nil, nil), metav1.CreateOptions{}))(t)
	for name, set := range contents {
		t.Run(name, func(t *testing.T) {
			c := s.Config(kubetest.HTTP1)
			set(c)
			var asked recorder
			maps := typed(t, asked.wrap(c)).CoreV1().ConfigMaps("default")
			must(maps.Get(t.Context(), "a", metav1.GetOptions{}))(t)
			if list := must(maps.List(t.Context(), metav1.ListOptions{}))(t); len(list.Items) != 1 {
				t.Errorf("listed %d, want 1", len(list.Items))
			}
			w := must(maps.Watch(t.Context(), metav1.ListOptions{}))(t)
			defer w.Stop()
			if e := <-w.ResultChan(); e.Type != watch.Added {
				t.Errorf("watched %v, want ADDED", e)
			}
			for _, r := range asked.requests("/configmaps") {
				if !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
					t.Errorf("Accept %q: the test wants to know what follows where protobuf is liked best", r.Header.Get("Accept"))
				}
			}
		})
	}
}

// The clientset of client-go writes protobuf unless its configuration says otherwise.
func TestWhatIsWrittenIsTheSameInJSONAndInProtobuf(t *testing.T) {
	var first *appsv1.Deployment
	for name, set := range contents {
		t.Run(name, func(t *testing.T) {
			c := kubetest.Start(t).Config(kubetest.HTTP1)
			set(c)
			var asked recorder
			d := writeAll(t, typed(t, asked.wrap(c)).AppsV1().Deployments("default"))
			want := runtime.ContentTypeProtobuf
			if c.ContentType == runtime.ContentTypeJSON {
				want = runtime.ContentTypeJSON
			}
			written := 0
			for _, r := range asked.requests("") {
				if r.Method == http.MethodGet {
					continue
				}
				written++
				if got := r.Header.Get("Content-Type"); got != want {
					t.Errorf("%s in %s, want %s", r.Method, got, want)
				}
			}
			if written != 6 {
				t.Errorf("%d writes, want six", written)
			}
			if first == nil {
				first = d
			}
			unlike := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp")
			if diff := cmp.Diff(first, d, unlike); diff != "" {
				t.Errorf("another object than with the other configurations (-other +this):\n%s", diff)
			}
		})
	}
}

// writeAll writes a deployment in every way there is, and returns what it was before it was deleted.
func writeAll(t *testing.T, deployments typedappsv1.DeploymentInterface) *appsv1.Deployment {
	t.Helper()
	ctx := t.Context()
	d := deployment("a")
	d.Annotations = map[string]string{"note": "<é>\n"}
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr(intstr.FromString("25%")), MaxUnavailable: ptr(intstr.FromInt32(1))}
	container := &d.Spec.Template.Spec.Containers[0]
	container.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}}
	d = must(deployments.Create(ctx, d, metav1.CreateOptions{}))(t)
	d.Spec.Paused = true
	d = must(deployments.Update(ctx, d, metav1.UpdateOptions{}))(t)
	d.Status = appsv1.DeploymentStatus{Replicas: 2, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, LastUpdateTime: metav1.Unix(1e9, 0)}}}
	must(deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{}))(t)
	scale := must(deployments.GetScale(ctx, "a", metav1.GetOptions{}))(t)
	scale.Spec.Replicas = 3
	must(deployments.UpdateScale(ctx, "a", scale, metav1.UpdateOptions{}))(t)
	d = must(deployments.Get(ctx, "a", metav1.GetOptions{}))(t)
	if !d.Spec.Paused || d.Status.Replicas != 2 || *d.Spec.Replicas != 3 {
		t.Errorf("got %v, want all that was written", d)
	}
	if err := deployments.Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions("another")); !apierrors.IsConflict(err) {
		t.Errorf("the delete of another uid: got %v, want a conflict", err)
	}
	if err := deployments.Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions(string(d.UID))); err != nil {
		t.Error(err)
	}
	return d
}

// What is not among the kinds of Kubernetes' stable versions can be written in JSON alone: what to set must be in the message, for
// client-go does not try again.
func TestProtobufOfOtherKindsIsRefused(t *testing.T) {
	s := kubetest.Start(t, "servicecidrs.v1beta1.networking.k8s.io=ServiceCIDR,cluster")
	cidr := &networkingv1beta1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c := s.Config(kubetest.HTTP1)
	_, err := typed(t, c).NetworkingV1beta1().ServiceCIDRs().Create(t.Context(), cidr, metav1.CreateOptions{})
	if !apierrors.IsUnsupportedMediaType(err) || !strings.Contains(err.Error(), "ContentType") {
		t.Errorf("got %v, want a 415 that names ContentType", err)
	}
	c.ContentType = runtime.ContentTypeJSON
	must(typed(t, c).NetworkingV1beta1().ServiceCIDRs().Create(t.Context(), cidr, metav1.CreateOptions{}))(t)
}

func TestJSONIsWhatAnswersAre(t *testing.T) {
	var answered string
	c := kubetest.Start(t).Config(kubetest.HTTP1)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil {
				answered = answer.Header.Get("Content-Type")
			}
			return answer, err
		})
	})
	must(typed(t, c).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}))(t)
	if answered != runtime.ContentTypeJSON {
		t.Errorf("the answer is %s, want JSON", answered)
	}
}
