package clients

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/testapi"
)

// wantCache compares the content of an informer with a list of the store.
func (p storePods) wantCache(informer *runningScript) {
	p.t.Helper()
	page, err := p.List(p.t.Context(), listwatch.Query{Selection: listwatch.Selection{Namespace: "default"}})
	if err != nil {
		p.t.Fatal(err)
	}
	want := make(map[string]string)
	for _, o := range page.Items {
		want[o.Key.Name] = o.Version.String()
	}
	if _, err := fmt.Fprintln(informer.input, "cache"); err != nil {
		p.t.Fatal(err)
	}
	got := informer.nextLine()
	if diff := cmp.Diff(scriptLine{On: "cache", Objects: want}, got); diff != "" {
		p.t.Errorf("the informer's content differs (-want +got):\n%s", diff)
	}
}

func TestNodeInformerSurvivesFaults(t *testing.T) {
	s := testapi.Start(t)
	pods := podsInStore(t, s)
	a, b := pods.create("a"), pods.create("b")
	informer := runScript(t, s.Config(testapi.HTTP1), "informer.mjs")
	informer.wantLines(scriptLine{On: "connect"}, scriptLine{On: "add", Name: "a", Version: a},
		scriptLine{On: "add", Name: "b", Version: b})
	a, b = pods.update("a"), pods.delete("b")
	c := pods.create("c")
	informer.wantLines(scriptLine{On: "update", Name: "a", Version: a}, scriptLine{On: "delete", Name: "b", Version: b},
		scriptLine{On: "add", Name: "c", Version: c})
	pods.wantCache(informer)

	// After a cut the informer must resume without losing or repeating an event.
	s.Cut()
	c = pods.update("c")
	informer.wantReconnect(scriptLine{On: "update", Name: "c", Version: c})
	pods.wantCache(informer)

	// After a compaction the informer cannot resume. It must find the changes with a list, and
	// report deletions first.
	s.Restart(func() {
		pods.delete("c")
		a, b = pods.update("a"), pods.create("b")
		s.DB.Compact()
	})
	// The list does not contain the deleted pod, so the notification has its last known version.
	informer.wantReconnect(scriptLine{On: "delete", Name: "c", Version: c})
	informer.wantLines(scriptLine{On: "update", Name: "a", Version: a}, scriptLine{On: "add", Name: "b", Version: b})
	pods.wantCache(informer)
	a = pods.update("a")
	informer.wantLines(scriptLine{On: "update", Name: "a", Version: a})
}

// wantReconnect expects the error of a cut connection, skips the attempts to reconnect, and
// compares the line after them with want.
func (s *runningScript) wantReconnect(want scriptLine) {
	s.t.Helper()
	got := s.nextLine()
	if got.On != "error" {
		s.t.Fatalf("got %+v, want the error of the cut connection", got)
	}
	for got.On == "error" || got.On == "connect" {
		got = s.nextLine()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("the line after the reconnect differs (-want +got):\n%s", diff)
	}
}

func TestNodeInformerReconnectsAfterTimeouts(t *testing.T) {
	s := testapi.Start(t)
	s.API.Server.Timing.Timeout = 100 * time.Millisecond
	pods := podsInStore(t, s)
	a := pods.create("a")
	informer := runScript(t, s.Config(testapi.HTTP2), "informer.mjs")
	informer.wantLines(scriptLine{On: "connect"}, scriptLine{On: "add", Name: "a", Version: a},
		scriptLine{On: "connect"})
	want := scriptLine{On: "update", Name: "a", Version: pods.update("a")}
	got := informer.nextLine()
	for got.On == "connect" { // skip reconnects; there must be no error and no repeated event
		got = informer.nextLine()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the event differs (-want +got):\n%s", diff)
	}
}
