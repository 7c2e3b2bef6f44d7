package apierror

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
)

func clientTyped(e *harness.Env) {
	tooLarge := &kubestatus.Details{
		Causes: []listwatch.Cause{{Reason: listwatch.CauseTooLarge}}, RetryAfterSeconds: 1,
	}
	for _, test := range []struct {
		code int
		body string
		want listwatch.Code
	}{
		{410, harness.StatusJSON(410, "Expired", nil), listwatch.Expired},
		{410, harness.StatusJSON(410, "Gone", nil), listwatch.Expired},
		{410, "gone", listwatch.Expired},
		{429, harness.StatusJSON(429, "TooManyRequests", nil), listwatch.Unavailable},
		{429, "", listwatch.Unavailable},
		{504, harness.StatusJSON(504, "Timeout", tooLarge), listwatch.NotYet},
		{504, harness.StatusJSON(504, "Timeout", nil), listwatch.Unavailable},
		{401, harness.StatusJSON(401, "Unauthorized", nil), listwatch.Unauthorized},
		{401, "who?", listwatch.Unauthorized},
		{403, harness.StatusJSON(403, "Forbidden", nil), listwatch.Forbidden},
		{403, "<html>no</html>", listwatch.Forbidden},
		{500, harness.StatusJSON(500, "InternalError", nil), listwatch.Unknown},
		{500, "", listwatch.Unknown},
		{502, "", listwatch.Unavailable},
		{503, harness.StatusJSON(503, "ServiceUnavailable", nil), listwatch.Unavailable},
	} {
		_, route := e.ServeSequence(harness.Respond(test.code, test.body))
		_, err := route.Client.Dial(e.Context(), &transport.Request{URL: route.WatchURL("watch=1")})
		results := map[string]error{"dial": err}
		if !e.Target.OwnClock { // the control hook reports the status only for a single stream
			r := e.Remote(route)
			_, results["watch"] = r.Watch(e.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 1})
			_, results["list"] = r.List(e.Context(), listwatch.Query{})
		}
		for call, err := range results {
			got, ok := errors.AsType[*listwatch.Error](err)
			if !ok || got.Code != test.want || got.Status != test.code || !got.Remote {
				e.Errorf("%s: the server responded %d %q, got %s with status %d, want a response with code %v",
					call, test.code, test.body, harness.GotError(err), listwatch.AsError(err).Status, test.want)
			}
		}
	}
}

func html502(e *harness.Env) {
	var badGateway http.HandlerFunc
	for _, head := range []string{"<html><head><title>502 Bad Gateway</title></head>", "<html>"} {
		page := head + "<body>" + strings.Repeat("<p>nginx</p>\n", 20_000) + "</body></html>"
		badGateway = harness.Respond(http.StatusBadGateway, page, "Content-Type", "text/html")
		if e.Target.OwnClock {
			continue // the control hook has no call that fails instead of retrying
		}
		server, route := e.ServeSequence(badGateway)
		_, err := e.Remote(route).Watch(e.Context(), listwatch.Query{})
		if got := err.Error(); !errors.Is(err, listwatch.Unavailable) || len(got) > 500 ||
			!strings.Contains(got, "502 Bad Gateway") {
			e.Errorf("got an error of %d bytes, %.200q, want at most 500 bytes with 502 Bad Gateway", len(got), got)
		}
		if n := len(server.RequestTimes()); n != 1 {
			e.Errorf("the call made %d requests, want 1", n)
		}
	}

	failures := 6
	if e.Target.OwnClock {
		failures = 3 // the real delays add up to 5.6 s
	}
	steps := append([]http.HandlerFunc{e.SendThenEnd(harness.AddedEvent("a", "5"))},
		slices.Repeat([]http.HandlerFunc{badGateway}, failures)...)
	server, route := e.ServeSequence(append(steps, e.SendThenEnd(harness.AddedEvent("b", "6")))...)
	w := e.Follow(e.Remote(route), 1)
	for _, want := range []string{"a", "b"} {
		if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %s, want %s", harness.Got(got, err), want)
		}
	}
	if e.Target.OwnClock {
		return // the bounds below hold for this module's client
	}
	// The backoff after a failure is random. Its upper bound is 0.8 s after the first failure,
	// doubles with each further failure, and never exceeds 30 s.
	times, bound := server.RequestTimes(), 800*time.Millisecond
	for i := 2; i <= failures+1; i++ {
		if pause := times[i].Sub(times[i-1]); pause <= 0 || pause > bound+time.Millisecond {
			e.Errorf("backoff %d was %v, want at most %v", i, pause, bound)
		}
		bound = min(2*bound, 30*time.Second)
	}
}

func retryAfter(e *harness.Env) {
	delay := e.Either(45*time.Second, 3*time.Second)
	seconds := strconv.Itoa(int(delay / time.Second))
	date := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(delay).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	details := &kubestatus.Details{RetryAfterSeconds: int(delay / time.Second)}
	unavailable := harness.StatusJSON(503, "ServiceUnavailable", nil)
	var all []*retry
	for name, failure := range map[string]http.HandlerFunc{
		"429 in seconds":    harness.Respond(429, "", "Retry-After", seconds),
		"503 in seconds":    harness.Respond(503, unavailable, "Retry-After", seconds),
		"503 as a date":     date,
		"429 in the Status": harness.Respond(429, harness.StatusJSON(429, "TooManyRequests", details)),
		"429 in an ERROR event": e.SendError(&listwatch.Error{
			Code: listwatch.Unavailable, Status: 429, Reason: "TooManyRequests",
			Details: &listwatch.Details{RetryAfter: delay},
		}),
	} {
		server, route := e.ServeSequence(e.SendThenEnd(harness.AddedEvent("a", "5")), failure,
			e.SendThenEnd(harness.AddedEvent("b", "6")))
		all = append(all, &retry{name, server, e.Follow(e.Remote(route), 1)})
	}
	for _, r := range all { // they wait at the same time
		for range 2 {
			if got, err := e.NextOf(r.watcher); err != nil {
				e.Fatalf("%s: got %s, want an event", r.name, harness.Got(got, err))
			}
		}
		times := r.server.RequestTimes()
		// A date is rounded down to the second, so the client may retry up to a second earlier.
		if pause := times[2].Sub(times[1]); pause < delay-time.Second || pause > delay+10*time.Second {
			e.Errorf("%s: the client retried after %v, want %v to %v", r.name, pause, delay-time.Second,
				delay+10*time.Second)
		}
	}
}

func retryStatuses(e *harness.Env) {
	watchers := map[int]listwatch.Watcher{}
	for _, status := range []int{408, 425, 429, 500, 502, 503, 504, 507, 520, 524, 530} {
		_, route := e.ServeSequence(e.SendThenEnd(harness.AddedEvent("a", "5")), harness.Respond(status, ""),
			e.SendThenEnd(harness.AddedEvent("b", "6")))
		watchers[status] = e.Follow(e.Remote(route), 1)
	}
	for status, w := range watchers { // they wait at the same time
		for _, want := range []string{"a", "b"} {
			if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
				e.Errorf("status %d: got %s, want object %s", status, harness.Got(got, err), want)
				break
			}
		}
	}
}

// A retry is a watch that a server refuses with one kind of Retry-After.
type retry struct {
	name    string
	server  *harness.HandlerSequence
	watcher listwatch.Watcher
}

// longRetry is longer than the delays before a client's first retries in real time.
const longRetry = 3 * time.Second

func noRetryOn4xx(e *harness.Env) {
	servers := map[string]*harness.HandlerSequence{}
	for _, test := range []struct {
		name string
		step http.HandlerFunc
		want listwatch.Code
	}{
		{"400", harness.Respond(400, harness.StatusJSON(400, "BadRequest", nil)), listwatch.Invalid},
		{"403", harness.Respond(403, harness.StatusJSON(403, "Forbidden", nil)), listwatch.Forbidden},
		{"404", harness.Respond(404, harness.StatusJSON(404, "NotFound", nil)), listwatch.NotFound},
		{"406", harness.Respond(406, harness.StatusJSON(406, "NotAcceptable", nil)), listwatch.Unsupported},
		{"410", harness.Respond(410, harness.StatusJSON(410, "Expired", nil)), listwatch.Expired},
		{"410 as an event", e.SendError(&listwatch.Error{Code: listwatch.Expired}), listwatch.Expired},
		{"403 as an event", e.SendError(&listwatch.Error{Code: listwatch.Forbidden}), listwatch.Forbidden},
	} {
		server, route := e.ServeSequence(e.SendThenEnd(harness.AddedEvent("a", "5")), test.step)
		servers[test.name] = server
		w := e.Follow(e.Remote(route), 1)
		if _, err := e.NextOf(w); err != nil {
			e.Fatalf("%s: %v", test.name, err)
		}
		for range 2 {
			if got, err := e.NextOf(w); !errors.Is(err, test.want) {
				e.Errorf("%s: got %s, want code %v from every call", test.name, harness.Got(got, err), test.want)
			}
		}
	}
	e.Pause(time.Hour, longRetry)
	for name, server := range servers {
		if n := len(server.RequestTimes()); n != 2 {
			e.Errorf("%s: the client made %d requests, want 2", name, n)
		}
	}
}
