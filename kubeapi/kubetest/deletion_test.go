package kubetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// policy returns the options of a delete with a propagation policy.
func policy(p metav1.DeletionPropagation) metav1.DeleteOptions {
	if p == "" {
		return metav1.DeleteOptions{}
	}
	return metav1.DeleteOptions{PropagationPolicy: &p}
}

// warnings keeps the warnings of the API server.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// TestJobsLeaveTheirPods also deletes the other kinds whose default policy Kubernetes declares.
func TestJobsLeaveTheirPods(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		w := &warnings{}
		config := c.Config()
		config.WarningHandler = w
		clients := testkit.Must(kubernetes.NewForConfig(config))(t)
		pod := corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "a", Image: "a"}},
			RestartPolicy: corev1.RestartPolicyNever,
		}
		job := &batchv1.Job{ObjectMeta: named("j"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}
		jobs, rcs := clients.BatchV1().Jobs("default"), clients.CoreV1().ReplicationControllers("default")
		for name, create := range map[string]func() metav1.Object{
			"Job": func() metav1.Object {
				return testkit.Must(jobs.Create(t.Context(), job,
					metav1.CreateOptions{}))(t)
			},
			"ReplicationController": func() metav1.Object {
				return testkit.Must(rcs.Create(t.Context(), &corev1.ReplicationController{ObjectMeta: named("j")},
					metav1.CreateOptions{}))(t)
			},
		} {
			for _, p := range []metav1.DeletionPropagation{"", metav1.DeletePropagationBackground} {
				for _, collection := range []bool{false, true} {
					owner := create()
					version := map[string]string{"Job": "batch/v1", "ReplicationController": "v1"}[name]
					o := metav1.OwnerReference{APIVersion: version, Kind: name, Name: "j", UID: owner.GetUID()}
					testkit.Must(clients.CoreV1().Pods("default").Create(t.Context(),
						&corev1.Pod{ObjectMeta: named("p", o), Spec: pod}, metav1.CreateOptions{}))(t)
					w.texts = nil
					var err error
					switch {
					case collection && name == "Job":
						err = jobs.DeleteCollection(t.Context(), policy(p), metav1.ListOptions{})
					case collection:
						err = rcs.DeleteCollection(t.Context(), policy(p), metav1.ListOptions{})
					case name == "Job":
						err = jobs.Delete(t.Context(), "j", policy(p))
					default:
						err = rcs.Delete(t.Context(), "j", policy(p))
					}
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					left := testkit.Must(clients.CoreV1().Pods("default").List(t.Context(),
						metav1.ListOptions{}))(t).Items
					if got, want := len(left) == 1, p == ""; got != want {
						t.Errorf("%s, policy %q, of the collection %t: the pod is left: %t", name, p, collection, got)
					}
					if warned := len(w.texts) == 1 &&
						strings.HasPrefix(w.texts[0], "child pods are preserved by default"); warned != (p == "" &&
						name == "Job") {
						t.Errorf("%s, policy %q, of the collection %t: got the warnings %q", name, p, collection,
							w.texts)
					}
					if err := clients.CoreV1().Pods("default").DeleteCollection(t.Context(), metav1.DeleteOptions{},
						metav1.ListOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

// TestEventsIgnoreThePolicy shows that an event is deleted at once.
func TestEventsIgnoreThePolicy(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "e", Namespace: "default"},
			InvolvedObject: corev1.ObjectReference{Namespace: "default"},
		}
		testkit.Must(c.CoreV1().Events("default").Create(t.Context(), e, metav1.CreateOptions{}))(t)
		if err := c.CoreV1().Events("default").Delete(t.Context(), "e",
			policy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().Events("default").Get(t.Context(), "e",
			metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want the event to be gone", err)
		}
	})
}

// TestLaterPoliciesReplaceEarlierOnes deletes an object twice with different policies.
func TestLaterPoliciesReplaceEarlierOnes(t *testing.T) {
	const hold = "example.com/hold"
	foreground, orphan := metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, tt := range []struct {
			first, second metav1.DeletionPropagation
			before, after []string // the finalizers of the object at the start and at the end
		}{
			{"Foreground", "Background", nil, nil},
			{"Foreground", "Background", []string{hold}, []string{hold}},
			{"Foreground", "Orphan", []string{hold}, []string{hold, orphan}},
			{"Foreground", "", []string{hold}, []string{hold, foreground}},
			{"Orphan", "Foreground", []string{hold}, []string{hold, foreground}},
			{"Orphan", "", []string{hold}, []string{hold, orphan}},
			{"", "Orphan", []string{hold}, []string{hold, orphan}},
			{"", "", []string{hold, orphan}, []string{hold, orphan}},
			{"Background", "", []string{orphan, hold}, []string{hold}},
		} {
			m := named("a")
			m.Finalizers = tt.before
			c.createConfigMap(t, m)
			for _, p := range []metav1.DeletionPropagation{tt.first, tt.second} {
				if err := c.CoreV1().ConfigMaps("default").Delete(t.Context(), "a", policy(p)); err != nil {
					t.Fatal(err)
				}
			}
			o, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
			if tt.after == nil {
				if !apierrors.IsNotFound(err) {
					t.Errorf("%+v: got %v, %v, want the object to be gone", tt, o.Finalizers, err)
				}
				continue
			}
			if err != nil || !slices.Equal(o.Finalizers, tt.after) {
				t.Errorf("%+v: got %q, %v", tt, o.Finalizers, err)
			}
			testkit.Must(c.CoreV1().ConfigMaps("default").Patch(t.Context(), "a", types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
		}
	}, kubetest.Options{NoGarbageCollection: true})
}

// TestPoliciesAreWrittenWithTheMark shows that a delete is one write.
func TestPoliciesAreWrittenWithTheMark(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.createConfigMap(t, named("a"))
		w := testkit.Must(c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{}))(t)
		defer w.Stop()
		<-w.ResultChan() // ADDED
		c.deleteConfigMap(t, "a", metav1.DeletePropagationOrphan)
		e := <-w.ResultChan()
		o, _ := e.Object.(*corev1.ConfigMap)
		if e.Type != watch.Modified || o.DeletionTimestamp == nil ||
			!slices.Equal(o.Finalizers, []string{metav1.FinalizerOrphanDependents}) {
			t.Errorf("got %s %+v, want both in one event", e.Type, o)
		}
		if e := <-w.ResultChan(); e.Type != watch.Deleted {
			t.Errorf("got %s, want DELETED", e.Type)
		}
	})
}

// TestForegroundDeletionEnds deletes a, which owns x together with b. y is owned by x.
func TestForegroundDeletionEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a, b := c.createConfigMap(t, named("a")), c.createConfigMap(t, named("b"))
		x := c.createConfigMap(t, named("x", ownedBy(a), ownedBy(b)))
		c.createConfigMap(t, named("y", ownedBy(x)))
		c.deleteConfigMap(t, "a", metav1.DeletePropagationForeground)
		if got, want := c.configMaps(t), []string{"b", "x", "y"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		x = testkit.Must(c.CoreV1().ConfigMaps("default").Get(t.Context(), "x", metav1.GetOptions{}))(t)
		if len(x.OwnerReferences) != 1 || x.OwnerReferences[0].UID != b.UID {
			t.Errorf("got the owners %v, want only the one that remains", x.OwnerReferences)
		}
	})
}

// TestForegroundDeletionPropagates shows that a dependent with dependents of its own is deleted in
// the foreground, too.
func TestForegroundDeletionPropagates(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		x := c.createConfigMap(t, named("x", ownedBy(a)))
		m := named("y", ownedBy(x))
		m.Finalizers = []string{"example.com/hold"}
		c.createConfigMap(t, m)
		c.deleteConfigMap(t, "a", metav1.DeletePropagationForeground)
		if got, want := c.configMaps(t), []string{"a", "x", "y"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q while a finalizer holds the last one", got, want)
		}
		testkit.Must(c.CoreV1().ConfigMaps("default").Patch(t.Context(), "y", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
		synctest.Wait()
		if got := c.configMaps(t); got != nil {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

// TestCirclesAreDeletedInTheForeground deletes one of two objects that own each other.
func TestCirclesAreDeletedInTheForeground(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		b := c.createConfigMap(t, named("b", ownedBy(a)))
		a.OwnerReferences = []metav1.OwnerReference{ownedBy(b)}
		testkit.Must(c.CoreV1().ConfigMaps("default").Update(t.Context(), a, metav1.UpdateOptions{}))(t)
		c.deleteConfigMap(t, "a", metav1.DeletePropagationForeground)
		if got := c.configMaps(t); got != nil {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

// TestUnknownOwnersKeepObjects shows that nothing happens to an object with an owner of a kind
// that does not exist, even if its other owner is gone.
func TestUnknownOwnersKeepObjects(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := c.createConfigMap(t, named("a"))
		foreign := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Foreign", Name: "f", UID: "f"}
		c.createConfigMap(t, named("x", ownedBy(a), foreign))
		c.deleteConfigMap(t, "a", "")
		x := testkit.Must(c.CoreV1().ConfigMaps("default").Get(t.Context(), "x", metav1.GetOptions{}))(t)
		if len(x.OwnerReferences) != 2 {
			t.Errorf("got the owners %v, want both", x.OwnerReferences)
		}
	})
}

func TestDeletesRespondWithTheObjectOfSomeKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		s := &corev1.ServiceAccount{ObjectMeta: named("a")}
		testkit.Must(c.CoreV1().ServiceAccounts("default").Create(t.Context(), s, metav1.CreateOptions{}))(t)
		c.createConfigMap(t, named("a"))
		for plural, want := range map[string]string{"serviceaccounts": "ServiceAccount", "configmaps": "Status"} {
			body := testkit.Must(request(t.Context(), c, http.MethodDelete,
				"/api/v1/namespaces/default/"+plural+"/a"))(t)
			if got := fmt.Sprint(body["kind"]); got != want {
				t.Errorf("%s: got a %s, want a %s", plural, got, want)
			}
		}
	})
}

// request sends a request without a body, and returns the decoded response.
func request(ctx context.Context, c *cluster, method, path string) (body map[string]any, err error) {
	client := c.CoreV1().RESTClient().(*rest.RESTClient)
	text, err := client.Verb(method).AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	return body, err
}
