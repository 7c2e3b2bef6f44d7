package kubeapi

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// Each write that changes nothing renews the object: the version stays, and the TTL starts again.
// The patches that only name a precondition are not passed to Admit.
func TestEqualWritesRenewObjects(t *testing.T) {
	const path = "/apis/demo.example.com/v1/gadgets"
	synctest.Test(t, func(t *testing.T) {
		var admitted atomic.Int64
		var verbs []string
		r, err := ParseResource("gadgets.v1.demo.example.com=Gadget,cluster")
		if err != nil {
			t.Fatal(err)
		}
		spec := r.CollectionSpec()
		spec.TTL = func([]byte) time.Duration { return time.Minute }
		spec.Admit = func(_ context.Context, _ *listwatch.Object, data []byte) ([]byte, error) {
			admitted.Add(1)
			return data, nil
		}
		h := &Handler{Authorize: func(_ context.Context, _ watchserver.User, a Attributes) error {
			verbs = append(verbs, a.Verb)
			return nil
		}}
		c, err := memory.Open(memory.Options{}).Collection(spec)
		if err == nil {
			err = h.Add(r, c)
		}
		if err != nil {
			t.Fatal(err)
		}
		exchange := func(code int, method, path, body, mediaType, prefer string) *httptest.ResponseRecorder {
			t.Helper()
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", mediaType)
			r.Header.Set("Prefer", prefer)
			h.ServeHTTP(w, r)
			if w.Code != code {
				t.Fatalf("%s %s: got %d %s, want %d", method, body, w.Code, w.Body, code)
			}
			return w
		}
		send := func(code int, method, path, body, mediaType string) string {
			t.Helper()
			return exchange(code, method, path, body, mediaType, "").Body.String()
		}
		const apply = `{"apiVersion":"demo.example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"x":1}}`
		object := send(201, "PATCH", path+"/a?fieldManager=m", apply, applyPatchType)
		uid, version := metadata(t, object).UID, metadata(t, object).ResourceVersion
		for _, renewal := range []struct{ method, body, mediaType string }{
			{"PATCH", `{}`, mergePatchType},
			{"PATCH", fmt.Sprintf(`{"metadata": {"uid": %q, "resourceVersion": %q}}`, uid, version), mergePatchType},
			{"PATCH", `[]`, jsonPatchType},
			{"PATCH", `{"spec":{"x":1}}`, mergePatchType},
			{"PATCH", apply, applyPatchType},
			{"PUT", object, "application/json"},
		} {
			time.Sleep(40 * time.Second)
			before, parameters := admitted.Load(), ""
			if renewal.mediaType == applyPatchType {
				parameters = "?fieldManager=m"
			}
			got := metadata(t, send(200, renewal.method, path+"/a"+parameters, renewal.body, renewal.mediaType))
			if got.ResourceVersion != version || got.UID != uid {
				t.Errorf("%s %s: got version %s, want %s", renewal.method, renewal.body, got.ResourceVersion, version)
			}
			minimal := exchange(204, renewal.method, path+"/a"+parameters, renewal.body, renewal.mediaType,
				"return=minimal")
			if etag := minimal.Header().Get("ETag"); etag != `"`+version+`"` || minimal.Body.Len() != 0 {
				t.Errorf("%s %s: got ETag %s and %q, want the version %s", renewal.method, renewal.body, etag,
					minimal.Body, version)
			}
			isShort := renewal.mediaType == mergePatchType && renewal.body != `{"spec":{"x":1}}`
			if isShort != (admitted.Load() == before) {
				t.Errorf("%s: Admit was called %d times", renewal.body, admitted.Load()-before)
			}
		}
		send(409, "PATCH", path+"/a", `{"metadata":{"uid":"b"}}`, mergePatchType)
		send(409, "PATCH", path+"/a", `{"metadata":{"resourceVersion":"1"}}`, mergePatchType)
		time.Sleep(40 * time.Second)
		send(200, "PATCH", path+"/a?dryRun=All", `{}`, mergePatchType)
		time.Sleep(21 * time.Second)
		send(404, "PATCH", path+"/a", `{}`, mergePatchType)
		for _, verb := range verbs {
			if verb != "patch" && verb != "update" && verb != "create" {
				t.Errorf("got verb %q, want patch and update", verb)
			}
		}
	})
}
