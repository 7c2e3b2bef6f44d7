package resume

import (
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/kubestatus"
)

func futureRV(e *harness.Env) {
	now := e.Put("a")
	if e.Setup.FakeTime {
		start := time.Now()
		err := e.Dial(harness.From(now + 100)).WantError(listwatch.NotYet)
		if took := time.Since(start); took > 4*time.Second {
			e.Errorf("refused after %v, want a few seconds", took)
		}
		s := kubestatus.Of(err)
		if s.Code != http.StatusGatewayTimeout || err.RetryAfter() != time.Second || !isTooLarge(s.Details) {
			e.Errorf("got %s, want 504 with cause ResourceVersionTooLarge and a Retry-After of 1 s",
				harness.EncodeJSON(s))
		}
		return
	}
	for range 10 {
		began := time.Now()
		s := e.Dial(harness.From(now + 2))
		for range 4 {
			e.Put("a")
		}
		if time.Since(began) > 2*time.Second {
			now = e.Put("a") // the server may have refused the version before it was written
			continue
		}
		for want := now + 3; want <= now+4; want++ {
			if got := s.Want("MODIFIED a")[0].Version; got != want {
				e.Fatalf("watch from future version %d: got version %d, want %d", now+2, got, want)
			}
		}
		return
	}
	e.Fatalf("four writes took longer than 2 s, 10 times")
}

// isTooLarge reports whether the only cause is ResourceVersionTooLarge.
func isTooLarge(d *kubestatus.Details) bool {
	return d != nil && len(d.Causes) == 1 && d.Causes[0].Reason == listwatch.CauseTooLarge
}

func listFutureRV(e *harness.Env) {
	future := e.Put("a") + 100
	for _, match := range []string{"", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact"} {
		start := time.Now()
		a := e.ListRaw(harness.From(future) + match)
		s := a.WantRefused(http.StatusGatewayTimeout, "Timeout")
		if !isTooLarge(s.Details) {
			e.Errorf("%s: got details %s, want the cause ResourceVersionTooLarge", match,
				harness.EncodeJSON(s.Details))
		}
		if got := a.Headers.Get("Retry-After"); got != "1" {
			e.Errorf("%s: got Retry-After %q, want 1", match, got)
		}
		if took := time.Since(start); took > 4*time.Second {
			e.Errorf("%s: refused after %v, want a few seconds", match, took)
		}
	}
}

func badRV(e *harness.Env) {
	for _, rv := range []string{
		"abc", "-1", "1.5", "18446744073709551616", "0x10", "%201", "1%20", "01", "00", "%2B1", "1e3", "%D9%A1", "1,2",
	} {
		e.WatchRaw("resourceVersion="+rv).WantRefused(http.StatusBadRequest, "BadRequest")
		e.ListRaw("resourceVersion="+rv).WantRefused(http.StatusBadRequest, "BadRequest")
	}
}

// decimal matches a positive number of at most 38 digits, which fits into 128 bits.
var decimal = regexp.MustCompile(`^[1-9][0-9]{0,37}$`)

func rvComparable(e *harness.Env) {
	s := e.Dial("resourceVersion=0")
	last := listwatch.Version(0)
	for i := range 20 {
		if e.Put("a"); i%5 == 4 {
			s.Next()
			e.Delete("a")
		}
		ev := s.Next()
		rv := ev.Object.Version.String()
		var object struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal(ev.Object.Data, &object); err != nil || !decimal.MatchString(rv) ||
			ev.Version <= last || object.Metadata.ResourceVersion != rv {
			e.Fatalf("got %s after version %d, want a greater decimal version", ev.Object.Data, last)
		}
		last = ev.Version
	}
}
