package kubeapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/store/memory"
)

// BenchmarkReplace measures a PUT of a pod of about 2 KiB with all checks, without a network: of a
// pod that has changed, of one that has not, and of one that also has managedFields, because of an
// apply.
func BenchmarkReplace(b *testing.B) {
	b.Run("tracked=false", func(b *testing.B) { benchmarkReplace(b, false, benchPod("v")) })
	b.Run("tracked=true", func(b *testing.B) { benchmarkReplace(b, true, benchPod("v")) })
	b.Run("changed", func(b *testing.B) { benchmarkReplace(b, false, benchPod("v"), benchPod("w")) })
}

// benchmarkReplace sends the bodies in turn.
func benchmarkReplace(b *testing.B, tracked bool, bodies ...string) {
	do := serveBenchPods(b)
	do(http.MethodPost, pods, "application/json", bodies[0], http.StatusCreated)
	if tracked {
		config := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","labels":{"x":"y"}}}`
		do(http.MethodPatch, pods+"/one?fieldManager=m", applyPatchType, config, http.StatusOK)
	}
	b.SetBytes(int64(len(bodies[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		do(http.MethodPut, pods+"/one", "application/json", bodies[i%len(bodies)], http.StatusOK)
	}
}

// BenchmarkCreate measures a POST of a pod of about 2 KiB that is not stored.
func BenchmarkCreate(b *testing.B) {
	do, body := serveBenchPods(b), benchPod("v")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		do(http.MethodPost, pods+"?dryRun=All", "application/json", body, http.StatusCreated)
	}
}

// serveBenchPods serves pods, and returns a function that sends a request and checks its status.
func serveBenchPods(b *testing.B) func(method, path, mediaType, body string, code int) {
	r, _ := FindResource(DefaultResources(), "pods")
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err != nil {
		b.Fatal(err)
	}
	h := new(Handler)
	if err := h.Add(r, c); err != nil {
		b.Fatal(err)
	}
	return func(method, path, mediaType, body string, code int) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", mediaType)
		h.ServeHTTP(w, r)
		if w.Code != code {
			b.Fatal(w.Body)
		}
	}
}

// benchPod returns a pod of about 2 KiB with an environment variable of the given value.
func benchPod(value string) string {
	return `{"metadata":{"name":"one","namespace":"default","labels":{"app":"web"},"annotations":{"note":"` +
		strings.Repeat("n", 300) +
		`"}},"spec":{"containers":[{"name":"web","image":"registry.example/web:1.2.3","env":[` +
		strings.Repeat(`{"name":"A","value":"b"},`, 60) + `{"name":"Z","value":"` + value + `"}]}]}}`
}
