package logs_test

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/observe/logs"
	"github.com/listwatch/listwatch/watchserver"
)

func ExampleAudit() {
	short := func(_ []string, a slog.Attr) slog.Attr { // keeps the example on one line
		if slices.Contains([]string{"msg", "client", "user", "verb", "name", "resourceVersion"}, a.Key) {
			return a
		}
		return slog.Attr{}
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: short}))
	server := &watchserver.Server{Trace: watchserver.JoinTraces(logs.Audit(log), logs.Watches(log, 0))}

	// A Server calls its hooks; this call stands for a write.
	server.Trace.Changed(context.Background(), watchserver.Change{
		Request: watchserver.Request{
			Client: "10.0.0.1", User: "ann", RemoteAddr: "10.0.0.1:4711",
			Path: "/flags/dark-mode",
		},
		Verb: "update", Key: listwatch.Key{Name: "dark-mode"}, Version: 7,
	})
	// Output: msg=write client=10.0.0.1 user=ann verb=update name=dark-mode resourceVersion=7
}
