package listen

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/observe/metrics"
)

func TestReadyzSaysHowFarAStartIs(t *testing.T) {
	l := &Listeners{Log: slog.New(slog.DiscardHandler), Metrics: metrics.New()}
	defer l.Close()
	if err := (&Options{metricsAddr: "127.0.0.1:0"}).ListenEarly(l); err != nil {
		t.Fatal(err)
	}
	get := func(path string, code int, want string) {
		t.Helper()
		resp, err := http.Get(l.Endpoints[0].url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != code || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %q, %v; want %d %q", path, resp.StatusCode, body, err, code, want)
		}
	}
	get("/readyz", 503, "the server is starting")
	l.Progress("things: 5 of 10 objects")
	get("/readyz", 503, "things: 5 of 10 objects")
	get("/livez", 200, "ok")
	get("/healthz", 200, "ok")
	get("/metrics", 200, "")
	l.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "the API at ", r.URL.Path)
	})
	l.progress.ready.Store(true)
	l.Progress("things: 1 of 10 objects") // as after a relist
	get("/readyz", 200, "the API at /readyz")
}
