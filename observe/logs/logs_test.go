package logs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/observe/logs"
	"github.com/listwatch/listwatch/watchserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func newLogger(out *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(out, nil)) }

func TestWatchEndIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := watchserver.Watch{
			Request: watchserver.Request{
				Client: "10.0.0.1", User: "ann", Path: "/pods",
				Resource: watchserver.Resource{Name: "pods"},
			},
			ID: 7, Transport: "h2", Opened: time.Now(), Events: 3, Bytes: 99,
		}
		time.Sleep(90 * time.Second)
		logs.Watches(newLogger(&out), 0).Closed(t.Context(), w, watchserver.EndTooSlow, errors.New("timeout"))
		for _, want := range []string{
			"client=10.0.0.1", "user=ann", "resource=pods", "path=/pods ", "id=7",
			"took=1m30s", "events=3", "bytes=99", `reason="too slow"`, "error=timeout",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("got %s, want %s", out.String(), want)
			}
		}
	})
}

func TestAFloodOfWatchesIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		hooks := logs.Watches(newLogger(&out), 5)
		for range 1000 {
			hooks.Closed(t.Context(), watchserver.Watch{}, watchserver.EndClientGone, nil)
		}
		if n := strings.Count(out.String(), "\n"); n != 5 {
			t.Errorf("got %d lines, want 5", n)
		}
		time.Sleep(time.Second)
		hooks.Closed(t.Context(), watchserver.Watch{}, watchserver.EndClientGone, nil)
		if !strings.HasSuffix(out.String(), " omitted=995\n") {
			t.Errorf("got %s, want the number of lines left out", out.String())
		}
	})
}

func TestFailuresOfTheServerAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		hooks := logs.Failures(newLogger(&out))
		full := &listwatch.Error{Code: listwatch.Unavailable, Status: 507, Message: "the memory is full"}
		r := watchserver.Request{Client: "10.0.0.1", Method: "POST", Path: "/pods"}
		hooks.Refused(t.Context(), r, &listwatch.Error{Code: listwatch.Invalid})
		hooks.Refused(t.Context(), r, &listwatch.Error{Code: listwatch.Unavailable, Status: 429})
		for range 100 {
			hooks.Refused(t.Context(), r, full)
		}
		time.Sleep(time.Second)
		hooks.Refused(t.Context(), r, full)
		if n := strings.Count(out.String(), "\n"); n != 3 || !strings.HasSuffix(out.String(), " omitted=98\n") {
			t.Errorf("got %s, want two lines, and one with the number of lines left out", out.String())
		}
		for _, want := range []string{
			"client=10.0.0.1", "method=POST", "path=/pods", "status=507",
			"the memory is full",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("got %s, want %s", out.String(), want)
			}
		}
	})
}

func TestExpiredObjectsAreLogged(t *testing.T) {
	var out bytes.Buffer
	o := &listwatch.Object{Key: listwatch.Key{Namespace: "n", Name: "a"}, Version: 12}
	logs.Expired(newLogger(&out))("leases", o)
	want := "msg=expired resource=leases namespace=n name=a resourceVersion=12"
	if !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}

func TestAuditLogHasEveryWriteAndNoRead(t *testing.T) {
	var out bytes.Buffer
	hooks := logs.Audit(newLogger(&out))
	request := watchserver.Request{Client: "c", User: "ann", Method: "PUT", Path: "/x"}
	hooks.Changed(t.Context(),
		watchserver.Change{
			Request: request, Verb: "update", Key: listwatch.Key{Namespace: "n", Name: "a"}, Version: 12,
			Took: 1500 * time.Millisecond,
		})
	hooks.Refused(t.Context(), request, &listwatch.Error{Code: listwatch.Forbidden, Message: "not yours"})
	request.Method = "GET"
	hooks.Refused(context.Background(), request, &listwatch.Error{Code: listwatch.Forbidden})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 ||
		!strings.Contains(lines[0], "verb=update namespace=n name=a resourceVersion=12 dryRun=false tookSeconds=1.5") ||
		!strings.Contains(lines[1], `status=403 error="forbidden: not yours"`) ||
		!strings.Contains(lines[1], "user=ann") {
		t.Errorf("got\n%s\nwant a line for the write and one for the refused write", out.String())
	}
}
