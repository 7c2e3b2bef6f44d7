package kubeapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/store/memory"
)

// BenchmarkReplace measures a PUT of a pod of about 2 KiB with all checks, without a
// network. Tracked objects have managedFields, because of an apply.
func BenchmarkReplace(b *testing.B) {
	for _, tracked := range []bool{false, true} {
		b.Run(fmt.Sprintf("tracked=%v", tracked), func(b *testing.B) { benchmarkReplace(b, tracked) })
	}
}

func benchmarkReplace(b *testing.B, tracked bool) {
	r, _ := FindResource(DefaultResources(), "pods")
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err != nil {
		b.Fatal(err)
	}
	h := new(Handler)
	if err := h.Add(r, c); err != nil {
		b.Fatal(err)
	}
	body := benchPod()
	do := func(method, path, mediaType, body string, code int) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", mediaType)
		h.ServeHTTP(w, r)
		if w.Code != code {
			b.Fatal(w.Body)
		}
	}
	do(http.MethodPost, pods, "application/json", body, http.StatusCreated)
	if tracked {
		config := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","labels":{"x":"y"}}}`
		do(http.MethodPatch, pods+"/one?fieldManager=m", applyPatchType, config, http.StatusOK)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		do(http.MethodPut, pods+"/one", "application/json", body, http.StatusOK)
	}
}

// benchPod returns a pod of about 2 KiB.
func benchPod() string {
	return `{"metadata":{"name":"one","namespace":"default","labels":{"app":"web"},"annotations":{"note":"` + strings.Repeat("n", 300) + `"}},"spec":{"containers":[{"name":"web",` +
		`"image":"registry.example/web:1.2.3","env":[` + strings.Repeat(`{"name":"A","value":"b"},`, 60) + `{"name":"Z","value":"z"}]}]}}`
}
