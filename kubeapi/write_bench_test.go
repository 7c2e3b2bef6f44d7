package kubeapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/store/memory"
)

// BenchmarkReplace measures a PUT of a pod of about 2 KiB with all checks, without a
// network.
func BenchmarkReplace(b *testing.B) {
	r, _ := FindResource(DefaultResources(), "pods")
	c, err := memory.Open(memory.Options{}).Collection(r.CollectionSpec())
	if err != nil {
		b.Fatal(err)
	}
	h := new(Handler)
	if err := h.Add(r, c); err != nil {
		b.Fatal(err)
	}
	body := `{"metadata":{"name":"one","namespace":"default","labels":{"app":"web"},"annotations":{"note":"` + strings.Repeat("n", 300) + `"}},"spec":{"containers":[{"name":"web",` +
		`"image":"registry.example/web:1.2.3","env":[` + strings.Repeat(`{"name":"A","value":"b"},`, 60) + `{"name":"Z","value":"z"}]}]}}`
	do := func(method, path string, code int) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		if w.Code != code {
			b.Fatal(w.Body)
		}
	}
	do(http.MethodPost, pods, http.StatusCreated)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		do(http.MethodPut, pods+"/one", http.StatusOK)
	}
}
