package kubetest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/listwatch/listwatch/internal/testkit"
)

// builtIn returns the objects of a built-in resource in the namespace. If the resource is not
// namespaced, namespace is empty.
func (c *cluster) builtIn(group, version, plural, namespace string) dynamic.ResourceInterface {
	r := c.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &u
}

// The generations after a create, a change of the content, of an annotation and of a label, as
// kube-apiserver has them.
func TestGenerationsAreThoseOfACluster(t *testing.T) {
	const template = `{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	for _, k := range []struct {
		group, version, plural, namespace, object, change string
		want                                              [4]int64
	}{
		{"", "v1", "configmaps", "default", `{"kind":"ConfigMap"}`, `{"data":{"a":"b"}}`, [4]int64{}},
		{
			"", "v1", "services", "default", `{"kind":"Service","spec":{"ports":[{"port":1}]}}`,
			`{"spec":{"ports":[{"port":2}]}}`,
			[4]int64{},
		},
		{"", "v1", "nodes", "", `{"kind":"Node"}`, `{"spec":{"unschedulable":true}}`, [4]int64{}},
		{"", "v1", "namespaces", "", `{"kind":"Namespace"}`, `{"metadata":{"labels":{"x":"y"}}}`, [4]int64{}},
		{
			"coordination.k8s.io", "v1", "leases", "default", `{"kind":"Lease","spec":{}}`,
			`{"spec":{"holderIdentity":"a"}}`,
			[4]int64{},
		},
		{
			"rbac.authorization.k8s.io", "v1", "roles", "default", `{"kind":"Role","rules":[]}`,
			`{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`,
			[4]int64{},
		},
		{
			"storage.k8s.io", "v1", "storageclasses", "", `{"kind":"StorageClass","provisioner":"p"}`,
			`{"mountOptions":["x"]}`,
			[4]int64{},
		},
		{
			"storage.k8s.io", "v1", "volumeattachments", "",
			`{"kind":"VolumeAttachment","spec":{"attacher":"p","nodeName":"n","source":{"persistentVolumeName":"v"}}}`,
			`{"status":{"attached":true}}`,
			[4]int64{},
		},
		{
			"storage.k8s.io", "v1", "csidrivers", "", `{"kind":"CSIDriver","spec":{"attachRequired":true}}`,
			`{"spec":{"requiresRepublish":true}}`,
			[4]int64{0, 1, 1, 1},
		},
		{
			"node.k8s.io", "v1", "runtimeclasses", "", `{"kind":"RuntimeClass","handler":"h"}`,
			`{"scheduling":{"nodeSelector":{"a":"b"}}}`,
			[4]int64{},
		},
		{
			"apps", "v1", "deployments", "default",
			`{"kind":"Deployment","spec":{"selector":{"matchLabels":{"a":"b"}},"template":` + template + `}}`,
			`{"spec":{"replicas":2}}`,
			[4]int64{1, 2, 3, 3},
		},
		{
			"apps", "v1", "replicasets", "default",
			`{"kind":"ReplicaSet","spec":{"selector":{"matchLabels":{"a":"b"}},"template":` + template + `}}`,
			`{"spec":{"replicas":2}}`,
			[4]int64{1, 2, 2, 2},
		},
		{
			"discovery.k8s.io", "v1", "endpointslices", "default",
			`{"kind":"EndpointSlice","addressType":"IPv4","endpoints":[],"ports":[]}`,
			`{"endpoints":[{"addresses":["1.2.3.4"]}]}`,
			[4]int64{1, 2, 2, 3},
		},
		{
			"scheduling.k8s.io", "v1", "priorityclasses", "", `{"kind":"PriorityClass","value":1}`,
			`{"description":"x"}`,
			[4]int64{1, 1, 1, 1},
		},
		{
			"networking.k8s.io", "v1", "networkpolicies", "default",
			`{"kind":"NetworkPolicy","spec":{"podSelector":{}}}`,
			`{"spec":{"policyTypes":["Ingress"]}}`,
			[4]int64{1, 2, 2, 2},
		},
	} {
		t.Run(k.plural, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				api := c.builtIn(k.group, k.version, k.plural, k.namespace)
				o := decode(t, k.object)
				o.SetAPIVersion(schema.GroupVersion{Group: k.group, Version: k.version}.String())
				o.SetName("a")
				got := [4]int64{testkit.Must(api.Create(t.Context(), o, metav1.CreateOptions{}))(t).GetGeneration()}
				for i, patch := range []string{
					k.change, `{"metadata":{"annotations":{"n":"1"}}}`,
					`{"metadata":{"labels":{"n":"1"}}}`,
				} {
					got[i+1] = testkit.Must(api.Patch(t.Context(), "a", types.MergePatchType, []byte(patch),
						metav1.PatchOptions{}))(t).GetGeneration()
				}
				if got != k.want {
					t.Errorf("got the generations %v, want %v", got, k.want)
				}
			})
		})
	}
}

func TestFieldLabelsAreThoseOfACluster(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`
		testkit.Must(c.builtIn("", "v1", "pods", "default").Create(t.Context(), decode(t, pod),
			metav1.CreateOptions{}))(t)
		testkit.Must(c.builtIn("", "v1", "nodes", "").Create(t.Context(),
			decode(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`), metav1.CreateOptions{}))(t)
		const job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
		testkit.Must(c.builtIn("batch", "v1", "jobs", "default").Create(t.Context(), decode(t, job),
			metav1.CreateOptions{}))(t)
		testkit.Must(c.builtIn("batch", "v1", "jobs", "default").Patch(t.Context(), "a", types.MergePatchType,
			[]byte(`{"status":{"succeeded":1}}`), metav1.PatchOptions{}, "status"))(t)
		const event = `{"apiVersion":"v1","kind":"Event","metadata":{"name":"a"},"involvedObject":{"namespace":"default"},"source":{"component":"kubelet"}}`
		testkit.Must(c.builtIn("", "v1", "events", "default").Create(t.Context(), decode(t, event),
			metav1.CreateOptions{}))(t)
		for _, q := range []struct {
			group, plural, selector string
			want                    int // -1 if the field is not supported
		}{
			{"", "pods", "spec.hostNetwork=false", 1},
			{"", "pods", "spec.hostNetwork=true", 0},
			{"", "pods", "spec.host=n", 1},
			{"", "pods", "status.podIPs=1.2.3.4", 0},
			{"", "nodes", "spec.unschedulable=false", 1},
			{"", "nodes", "spec.unschedulable!=false", 0},
			{"", "events", "source=kubelet", 1},
			{"", "events", "source.component=kubelet", -1},
			{"batch", "jobs", "status.successful=1", 1},
			{"batch", "jobs", "status.successful=0", 0},
			{"apps", "replicasets", "status.replicas=0", -1},
			{"events.k8s.io", "events", "regarding.apiVersion=v1", 0},
			{"events.k8s.io", "events", "regarding.namespace=default", 1},
			{"events.k8s.io", "events", "source=kubelet", -1},
		} {
			list, err := c.builtIn(q.group, "v1", q.plural, "").List(t.Context(),
				metav1.ListOptions{FieldSelector: q.selector})
			if q.want < 0 {
				if !apierrors.IsBadRequest(err) {
					t.Errorf("%s %s: got %v, want 400", q.plural, q.selector, err)
				}
			} else if err != nil || len(list.Items) != q.want {
				t.Errorf("%s %s: got %d objects, %v, want %d", q.plural, q.selector, len(list.Items), err, q.want)
			}
		}
	})
}

func TestBothGroupsShowTheSameEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		older, newer := c.CoreV1().Events("default"), c.EventsV1().Events("default")
		w := testkit.Must(older.Watch(t.Context(), metav1.ListOptions{}))(t)
		defer w.Stop()
		about := corev1.ObjectReference{Kind: "Widget", Namespace: "default", Name: "a"}
		e := testkit.Must(newer.Create(t.Context(), &eventsv1.Event{
			ObjectMeta: named("e"), Regarding: about, Note: "one", Reason: "Tested", ReportingController: "test",
			EventTime: metav1.NowMicro(),
		}, metav1.CreateOptions{}))(t)
		testkit.Must(newer.Patch(t.Context(), "e", types.StrategicMergePatchType,
			[]byte(`{"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.678901Z"}}`), metav1.PatchOptions{}))(t)
		selected := metav1.ListOptions{FieldSelector: "involvedObject.name=a"}
		got := testkit.Must(older.List(t.Context(), selected))(t).Items
		if len(got) != 1 || got[0].UID != e.UID || got[0].Message != "one" || got[0].InvolvedObject != about ||
			got[0].ReportingController != "test" || got[0].Series.Count != 2 {
			t.Errorf("got the core events %v", got)
		}
		if first := (<-w.ResultChan()).Object.(*corev1.Event); first.Message != "one" {
			t.Errorf("a watch of core events shows %v", first)
		}
		testkit.Must(older.Patch(t.Context(), "e", types.MergePatchType, []byte(`{"message":"two","count":3}`),
			metav1.PatchOptions{}))(t)
		e = testkit.Must(newer.Get(t.Context(), "e", metav1.GetOptions{}))(t)
		if e.Note != "two" || e.DeprecatedCount != 3 || e.Regarding != about {
			t.Errorf("got the event %v of events.k8s.io", e)
		}
		if err := newer.Delete(t.Context(), "e", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if n := len(testkit.Must(older.List(t.Context(), metav1.ListOptions{}))(t).Items); n != 0 {
			t.Errorf("%d core events remain", n)
		}
	})
}

func TestFinalizersOfBuiltInKindsAreQualified(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		m := named("a")
		m.Finalizers = []string{"example.com/hold", "hold"}
		_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: m},
			metav1.CreateOptions{})
		want := `metadata.finalizers[1]: Invalid value: "hold": name is neither a standard finalizer name nor is it fully qualified`
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestControllersHaveTheLabelsOfTheirTemplate(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		rc := &corev1.ReplicationController{ObjectMeta: named("a"), Spec: corev1.ReplicationControllerSpec{
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}},
		}}
		rc = testkit.Must(c.CoreV1().ReplicationControllers("default").Create(t.Context(), rc,
			metav1.CreateOptions{}))(t)
		if rc.Labels["app"] != "a" {
			t.Errorf("got the labels %v, want those of the template", rc.Labels)
		}
	})
}

func TestStorageKindsHaveTheirDefaults(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		driver := decode(t, `{"apiVersion":"storage.k8s.io/v1","kind":"CSIDriver","metadata":{"name":"a"},`+
			`"spec":{"podInfoOnMount":true}}`)
		driver = testkit.Must(c.builtIn("storage.k8s.io", "v1", "csidrivers", "").Create(t.Context(), driver,
			metav1.CreateOptions{}))(t)
		const want = "map[attachRequired:true fsGroupPolicy:ReadWriteOnceWithFSType podInfoOnMount:true " +
			"requiresRepublish:false seLinuxMount:false storageCapacity:false volumeLifecycleModes:[Persistent]]"
		if got := fmt.Sprint(driver.Object["spec"]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		attachment := decode(t, `{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":{"name":"a"},`+
			`"spec":{"attacher":"p","nodeName":"n","source":{"persistentVolumeName":"v"}},"status":{"attached":true}}`)
		attachments := c.builtIn("storage.k8s.io", "v1", "volumeattachments", "")
		attachment = testkit.Must(attachments.Create(t.Context(), attachment, metav1.CreateOptions{}))(t)
		if attached, _, _ := unstructured.NestedBool(attachment.Object, "status", "attached"); attached {
			t.Error("a new attachment is attached already")
		}
		if err := unstructured.SetNestedField(attachment.Object, "m", "spec", "nodeName"); err != nil {
			t.Fatal(err)
		}
		if _, err := attachments.Update(t.Context(), attachment, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("got %v, want that the spec of an attachment is immutable", err)
		}
	})
}
