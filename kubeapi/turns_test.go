package kubeapi

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/store/memory"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestLargeBodiesLeaveAProcessorFree(t *testing.T) {
	for _, tt := range []struct{ name, method, path, mediaType string }{
		{"create", "POST", "/apis/demo.example.com/v1/gadgets", jsonType},
		{"replace", "PUT", "/apis/demo.example.com/v1/gadgets/old", jsonType},
		{"merge patch", "PATCH", "/apis/demo.example.com/v1/gadgets/old", mergePatchType},
		{"apply", "PATCH", "/apis/demo.example.com/v1/gadgets/old?fieldManager=m&force=true", applyPatchType},
		{"apply of a new object", "PATCH", "/apis/demo.example.com/v1/gadgets/new?fieldManager=m", applyPatchType},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testLargeBodies(t, tt.method, tt.path, tt.mediaType) })
		})
	}
}

// testLargeBodies sends a small body while the validation of large bodies blocks. It checks that
// the large bodies leave one processor free, and that the small body is not delayed.
func testLargeBodies(t *testing.T, method, path, mediaType string) {
	var running atomic.Int64
	finish := make(chan struct{})
	gadget, err := ParseResource("gadgets.v1.demo.example.com=Gadget,cluster")
	if err != nil {
		t.Fatal(err)
	}
	gadget.Validate = func(data []byte, _ bool) field.ErrorList {
		if len(data) > 100_000 {
			running.Add(1)
			<-finish
		}
		return nil
	}
	c, err := memory.Open(memory.Options{}).Collection(gadget.CollectionSpec())
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{}
	if err := h.Add(gadget, c); err != nil {
		t.Fatal(err)
	}
	object := func(name string, size int) string {
		return fmt.Sprintf(`{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":%q},"x":%q}`, name,
			strings.Repeat("x", size))
	}
	send := func(method, path, mediaType, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", mediaType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	const collection = "/apis/demo.example.com/v1/gadgets"
	if code := send("POST", collection, jsonType, object("old", 10)); code != 201 {
		t.Fatalf("got %d, want 201", code)
	}
	name := "old"
	if method == "POST" || strings.Contains(path, "/new") {
		name = "new"
	}
	codes := make(chan int, 4*runtime.GOMAXPROCS(0))
	for range cap(codes) {
		go func() { // ends when finish is closed
			codes <- send(method, path, mediaType, object(name, 200_000))
		}()
	}
	synctest.Wait()
	if want := int64(max(1, runtime.GOMAXPROCS(0)-1)); running.Load() != want {
		t.Errorf("%d writes compute at once, want %d", running.Load(), want)
	}
	if code := send("POST", collection, jsonType, object("small", 10)); code != 201 {
		t.Errorf("a small write: got %d, want 201", code)
	}
	close(finish)
	for range cap(codes) {
		if code := <-codes; code >= 300 && code != 409 {
			t.Errorf("a large write: got %d, want success or a conflict", code)
		}
	}
}
