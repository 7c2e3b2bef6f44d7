package kubetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	admissionv1 "k8s.io/api/admission/v1"
	conversionv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// convertedByWebhook returns options with the definition of testdata/versions.yaml and a patch for
// a webhook that is a service.
func convertedByWebhook(t *testing.T) kubetest.Options {
	t.Helper()
	const patch = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.demo.example.com}
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: system, name: webhook-service, path: /convert}, caBundle: Cg==}
`
	file := filepath.Join(t.TempDir(), "webhook_in_gears.yaml")
	if err := os.WriteFile(file, []byte(patch), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubetest.Options{CRDs: []string{"testdata/versions.yaml", file}}
}

// serveConversion makes the mux of c convert gears: v1beta1 has the material in upper case, and the
// color in the member old.
func serveConversion(c *cluster) {
	c.WebhookMux().HandleFunc("/convert", func(w http.ResponseWriter, r *http.Request) {
		var review conversionv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := &conversionv1.ConversionResponse{UID: review.Request.UID}
		response.Result.Status = metav1.StatusSuccess
		for _, o := range review.Request.Objects {
			var u unstructured.Unstructured
			err := json.Unmarshal(o.Raw, &u.Object)
			material, _, _ := unstructured.NestedString(u.Object, "spec", "material")
			switch {
			case err != nil || material == "unobtainium":
				response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "no such material"}
			case review.Request.DesiredAPIVersion == "demo.example.com/v1":
				material = strings.ToLower(material)
				rename(&u, "old", "color")
			default:
				material = strings.ToUpper(material)
				rename(&u, "color", "old")
			}
			if material != "" {
				_ = unstructured.SetNestedField(u.Object, material, "spec", "material")
			}
			u.SetAPIVersion(review.Request.DesiredAPIVersion)
			response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: &u})
		}
		review.Request, review.Response = nil, response
		_ = json.NewEncoder(w).Encode(review)
	})
}

// rename renames a member of the spec, if there is one.
func rename(u *unstructured.Unstructured, from, to string) {
	spec, _ := u.Object["spec"].(map[string]any)
	if value, ok := spec[from]; ok {
		spec[to] = value
		delete(spec, from)
	}
}

func TestWebhooksConvertObjects(t *testing.T) {
	t.Parallel()
	o := convertedByWebhook(t)
	synctest.Test(t, func(t *testing.T) {
		c := start(t, o)
		serveConversion(c)
		spec := map[string]any{"material": "BRASS", "teeth": int64(7)}
		created := testkit.Must(c.gears("v1beta1").Create(t.Context(), gear("v1beta1", "a", spec),
			metav1.CreateOptions{}))(t)
		if got := versionAndSpec(created); got != "v1beta1 map[material:BRASS teeth:7]" {
			t.Errorf("created %s", got)
		}
		for version, want := range map[string]string{"v1": "brass", "v1beta1": "BRASS"} {
			want = version + " map[material:" + want + " teeth:7]"
			list := testkit.Must(c.gears(version).List(t.Context(), metav1.ListOptions{}))(t)
			if len(list.Items) != 1 || versionAndSpec(&list.Items[0]) != want {
				t.Errorf("got %v, want %s", list.Items, want)
			}
			w := testkit.Must(c.gears(version).Watch(t.Context(), metav1.ListOptions{}))(t)
			if e := <-w.ResultChan(); versionAndSpec(e.Object.(*unstructured.Unstructured)) != want {
				t.Errorf("got the event %v, want %s", e.Object, want)
			}
			w.Stop()
		}
		if _, err := c.gears("v1").Apply(t.Context(), "a", gear("v1", "a", map[string]any{"material": "iron"}),
			metav1.ApplyOptions{FieldManager: "m", Force: true}); err != nil {
			t.Error(err)
		}
		got := testkit.Must(c.gears("v1beta1").Get(t.Context(), "a", metav1.GetOptions{}))(t)
		if versionAndSpec(got) != "v1beta1 map[material:IRON teeth:7]" {
			t.Errorf("after an apply in the other version: got %s", versionAndSpec(got))
		}
	})
}

func TestConversionsFail(t *testing.T) {
	t.Parallel()
	o := convertedByWebhook(t)
	synctest.Test(t, func(t *testing.T) {
		c := start(t, o)
		create := func(dryRun ...string) error {
			_, err := c.gears("v1beta1").Create(t.Context(), gear("v1beta1", "a",
				map[string]any{"material": "unobtainium"}), metav1.CreateOptions{DryRun: dryRun})
			return err
		}
		for _, want := range []string{"has no handler for /convert", "no such material"} {
			for _, err := range []error{create(), create("All")} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			serveConversionOnce(c)
		}
		if _, err := c.gears("v1beta1").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want that nothing was stored", err)
		}
		testkit.Must(c.gears("v1").Create(t.Context(), gear("v1", "a", map[string]any{"material": "unobtainium"}),
			metav1.CreateOptions{}))(t)
		_, err := c.gears("v1beta1").List(t.Context(), metav1.ListOptions{})
		const want = "conversion webhook for demo.example.com/v1, Kind=Gear failed: no such material"
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("a list: got %v, want %s", err, want)
		}
		byM := metav1.ApplyOptions{FieldManager: "m"}
		testkit.Must(c.gears("v1beta1").Apply(t.Context(), "b", gear("v1beta1", "b",
			map[string]any{"material": "BRASS"}), byM))(t)
		_, err = c.gears("v1").Apply(t.Context(), "b", gear("v1", "b", map[string]any{"material": "unobtainium"}), byM)
		if !strings.Contains(fmt.Sprint(err), "last applied version: "+want) {
			t.Errorf("an apply in the other version: got %v, want that it ends with %s", err, want)
		}
	})
}

// serveConversionOnce is like serveConversion, unless c already serves the conversion.
func serveConversionOnce(c *cluster) {
	r, _ := http.NewRequest(http.MethodPost, "/convert", nil) // the method and the URL are valid
	if _, pattern := c.WebhookMux().Handler(r); pattern == "" {
		serveConversion(c)
	}
}

// paint sets the color of a gear.
func paint(_ context.Context, _ *admissionv1.AdmissionRequest, r *admissionv1.AdmissionResponse) {
	patch := admissionv1.PatchTypeJSONPatch
	r.PatchType, r.Patch = &patch, []byte(`[{"op":"add","path":"/spec/color","value":"red"}]`)
}

// TestWebhooksChangeOtherVersions checks that a webhook for v1 changes an object that is created in
// v1beta1. Members that only v1 has must survive between the webhooks.
func TestWebhooksChangeOtherVersions(t *testing.T) {
	t.Parallel()
	o := convertedByWebhook(t)
	synctest.Test(t, func(t *testing.T) {
		c := start(t, o)
		serveConversion(c)
		var h hook
		h.serve(c, "/paint", paint)
		c.configure(t, "m", `
path: /paint
reinvocationPolicy: Never
rules: [{apiGroups: [demo.example.com], apiVersions: [v1], operations: [CREATE], resources: [gears]}]
`)
		created := testkit.Must(c.gears("v1beta1").Create(t.Context(),
			gear("v1beta1", "a", map[string]any{"teeth": int64(7)}), metav1.CreateOptions{}))(t)
		if got := versionAndSpec(created); got != "v1beta1 map[material:STEEL old:red teeth:7]" {
			t.Errorf("created %s", got)
		}
	})
}
