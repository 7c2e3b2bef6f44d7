package apierror

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

func clientTyped(e *harness.Env) {
	tooLarge := &listwatch.StatusDetails{Causes: []listwatch.Cause{{Reason: listwatch.CauseTooLarge}}, RetryAfterSeconds: 1}
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
		_, at := e.ServeInTurn(harness.Respond(test.code, test.body))
		r := e.Remote(at)
		_, dialled := at.Client.Dial(e.Context(), &transport.Request{URL: at.WatchURL("watch=1")})
		_, watched := r.Watch(e.Context(), listwatch.Query{Start: listwatch.At, Version: 1})
		_, listed := r.List(e.Context(), listwatch.Query{})
		for what, err := range map[string]error{"dial": dialled, "watch": watched, "list": listed} {
			got, ok := errors.AsType[*listwatch.Error](err)
			if !ok || got.Code != test.want || got.Status != test.code || !got.Remote {
				e.Errorf("%s: answered %d %q: got %#v, want the server's word, of code %v", what, test.code, test.body, err, test.want)
			}
		}
	}
}

func html502(e *harness.Env) {
	var bad http.HandlerFunc
	for _, head := range []string{"<html><head><title>502 Bad Gateway</title></head>", "<html>"} {
		page := head + "<body>" + strings.Repeat("<p>nginx</p>\n", 20_000) + "</body></html>"
		bad = harness.Respond(http.StatusBadGateway, page, "Content-Type", "text/html")
		script, at := e.ServeInTurn(bad)
		_, err := e.Remote(at).Watch(e.Context(), listwatch.Query{})
		if got := err.Error(); !errors.Is(err, listwatch.Unavailable) || len(got) > 500 || !strings.Contains(got, "502 Bad Gateway") {
			e.Errorf("got %d bytes %.200q, want a short message that says 502", len(got), got)
		}
		if n := len(script.RequestTimes()); n != 1 {
			e.Errorf("the call made %d requests, want 1", n)
		}
	}

	const failures = 6
	steps := append([]http.HandlerFunc{e.SendThenEnd(harness.AddedEvent("a", "5"))}, slices.Repeat([]http.HandlerFunc{bad}, failures)...)
	script, at := e.ServeInTurn(append(steps, e.SendThenEnd(harness.AddedEvent("b", "6")))...)
	w := e.Follow(e.Remote(at), 1)
	for _, want := range []string{"a", "b"} {
		if got, err := e.NextOf(w); err != nil || got.Object.Key.Name != want {
			e.Fatalf("got %v, %v; want %s", got, err, want)
		}
	}
	// The pause after a failure is random, but never longer than 0.8 s doubled for each failure, and 30 s.
	times, bound := script.RequestTimes(), 800*time.Millisecond
	for i := 2; i <= failures+1; i++ {
		if pause := times[i].Sub(times[i-1]); pause <= 0 || pause > bound+time.Millisecond {
			e.Errorf("pause %d was %v, want up to %v", i, pause, bound)
		}
		bound = min(2*bound, 30*time.Second)
	}
}

func retryAfter(e *harness.Env) {
	const seconds = 45 * time.Second
	date := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(seconds).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	details := &listwatch.StatusDetails{RetryAfterSeconds: 45}
	for what, refuse := range map[string]http.HandlerFunc{
		"429 in seconds":        harness.Respond(429, "", "Retry-After", "45"),
		"503 in seconds":        harness.Respond(503, harness.StatusJSON(503, "ServiceUnavailable", nil), "Retry-After", "45"),
		"503 as a date":         date,
		"429 in the Status":     harness.Respond(429, harness.StatusJSON(429, "TooManyRequests", details)),
		"429 in an ERROR event": e.SendError(&listwatch.Error{Code: listwatch.Unavailable, Status: 429, Reason: "TooManyRequests", Details: &listwatch.Details{RetryAfter: seconds}}),
	} {
		script, at := e.ServeInTurn(e.SendThenEnd(harness.AddedEvent("a", "5")), refuse, e.SendThenEnd(harness.AddedEvent("b", "6")))
		w := e.Follow(e.Remote(at), 1)
		for range 2 {
			if _, err := e.NextOf(w); err != nil {
				e.Fatalf("%s: %v", what, err)
			}
		}
		times := script.RequestTimes()
		// A date has whole seconds.
		if pause := times[2].Sub(times[1]); pause < seconds-time.Second || pause > seconds+10*time.Second {
			e.Errorf("%s: tried again after %v, want 45s and a little more", what, pause)
		}
	}
}

func noRetryOn4xx(e *harness.Env) {
	for _, test := range []struct {
		what string
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
		script, at := e.ServeInTurn(e.SendThenEnd(harness.AddedEvent("a", "5")), test.step)
		w := e.Follow(e.Remote(at), 1)
		if _, err := e.NextOf(w); err != nil {
			e.Fatalf("%s: %v", test.what, err)
		}
		for range 2 {
			if got, err := e.NextOf(w); !errors.Is(err, test.want) {
				e.Errorf("%s: got %v, %v; want %v, for ever", test.what, got, err, test.want)
			}
		}
		<-time.After(time.Hour) // of the bubble's clock
		if n := len(script.RequestTimes()); n != 2 {
			e.Errorf("%s: %d requests within an hour, want 2", test.what, n)
		}
	}
}
