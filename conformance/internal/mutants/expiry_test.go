package mutants

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/store"
)

// expiryMutants are servers with one defect each, which the cases about expiry must detect.
var expiryMutants = []mutant{
	{
		Name: "expires-early", Breaks: []string{"expiry/deleted-once"},
		Defect: defect{Spec: func(s *store.CollectionSpec) {
			s.TTL = func([]byte) time.Duration { return time.Millisecond }
		}},
	},
	{
		Name: "expires-twice", Breaks: []string{"expiry/deleted-once"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			if e.Type == listwatch.Deleted {
				return []listwatch.Event{e, e}
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "renewals-are-changes", Breaks: []string{"expiry/renew-silent"},
		Defect: defect{Spec: func(s *store.CollectionSpec) {
			var writes atomic.Int64
			s.Admit = func(_ context.Context, _ *listwatch.Object, data []byte) ([]byte, error) {
				return rawjson.Merge(data, fmt.Appendf(nil, `{"spec":{"renewTime":%d}}`, writes.Add(1)))
			}
		}},
	},
	{
		Name: "renews-a-successor", Breaks: []string{"expiry/renew-uid"},
		Defect: defect{Handler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPatch {
					r = r.Clone(r.Context())
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
				}
				next.ServeHTTP(w, r)
			})
		}},
	},
	{
		Name: "expires-with-finalizers", Breaks: []string{"expiry/finalizers"},
		Defect: defect{Spec: func(s *store.CollectionSpec) {
			s.Admit = func(_ context.Context, _ *listwatch.Object, data []byte) ([]byte, error) {
				return rawjson.Merge(data, []byte(`{"metadata":{"finalizers":null}}`))
			}
		}},
	},
}
