package watchserver_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/watchserver"
)

// sizedSource is a store of a size that a test sets.
type sizedSource struct{ stats listwatch.Stats }

func (s *sizedSource) Stats() listwatch.Stats { return s.stats }

func TestStoredDataLeavesLessMemoryForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := &sizedSource{listwatch.Stats{ObjectBytes: 1 << 20, HistoryBytes: 1 << 20}}
		s := &watchserver.Server{Limits: watchserver.Limits{Memory: 8 << 20, Stored: []apihttp.Sized{stored}}}
		write := func(method string, size int) error {
			r := httptest.NewRequest(method, "/", strings.NewReader(strings.Repeat("x", size)))
			return admit(s, r, func(w http.ResponseWriter, r *http.Request, a *apihttp.Admitted) error {
				_, err := a.ReadBody(w, r, -1)
				return err
			})
		}
		// 6 MiB are left. One client may take half of them, and a body counts four times.
		if err := write(http.MethodPost, 700<<10); err != nil {
			t.Errorf("a body below the limit: %v", err)
		}
		wantBusy(t, write(http.MethodPost, 800<<10), "memory")
		used, limit := s.Usage()
		if used.StoredBytes != 2<<20 || used.HistoryBytes != 1<<20 || limit.StoredBytes != 6<<20 ||
			limit.RequestBytes != 6<<20 || used.RequestBytes != 0 {
			t.Errorf("got usage %+v of %+v", used, limit)
		}

		stored.stats.HistoryBytes = 7 << 20
		time.Sleep(time.Second) // the size is read again
		err := write(http.MethodPost, 10)
		e, ok := errors.AsType[*apihttp.LimitError](err)
		w := httptest.NewRecorder()
		watchserver.WriteError(w, httptest.NewRequest("POST", "/", nil), err)
		if !ok || e.Name != "stored_bytes" {
			t.Errorf("got %v, want the limit stored_bytes", err)
		}
		if w.Code != http.StatusInsufficientStorage || w.Header().Get("Retry-After") != "10" {
			t.Errorf("got status %d, %v, want 507 and Retry-After: 10", w.Code, w.Header())
		}
		if parsed := kubestatus.Parse(w.Body.Bytes()); parsed.Code != listwatch.Unavailable {
			t.Errorf("the client reads code %v, want Unavailable", parsed.Code)
		}
		if err := write(http.MethodDelete, 10); err != nil {
			t.Errorf("a delete with options: %v", err)
		}
		if err := begin(s, "192.0.2.1"); err != nil {
			t.Errorf("a read: %v", err)
		}
	})
}
