package kubeapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/kubeapi"
)

// The connection must close after a request with a chunked body, as the conformance case
// limit/smuggling requires. internal/httpbody explains why.
func TestConnectionClosesAfterChunkedRequest(t *testing.T) {
	for encoding, want := range map[string]string{"": "", "chunked": "close"} {
		r := httptest.NewRequest("POST", "/api/v1/namespaces/default/pods", strings.NewReader("{}"))
		if encoding != "" {
			r.TransferEncoding = []string{encoding}
		}
		w := httptest.NewRecorder()
		new(kubeapi.Handler).ServeHTTP(w, r)
		if got := w.Header().Get("Connection"); got != want {
			t.Errorf("Transfer-Encoding %q: got Connection %q, want %q", encoding, got, want)
		}
	}
}
