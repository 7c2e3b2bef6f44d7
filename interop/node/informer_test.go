package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/interop/internal/kubetest"
)

// holdsAll compares what an informer holds with a list of the store.
func (p pods) holdsAll(informer *script) {
	p.t.Helper()
	page, err := p.List(p.t.Context(), listwatch.Query{Namespace: "default"})
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
	got := informer.next()
	if diff := cmp.Diff(line{On: "cache", Objects: want}, got); diff != "" {
		p.t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInformerFollowsThroughEverything(t *testing.T) {
	s := kubetest.Start(t)
	pods := podsOf(t, s)
	a, b := pods.create("a"), pods.create("b")
	informer := run(t, s.Config(kubetest.HTTP1), "informer.mjs")
	informer.wants(line{On: "connect"}, line{On: "add", Name: "a", Version: a}, line{On: "add", Name: "b", Version: b})
	a, b = pods.touch("a"), pods.delete("b")
	c := pods.create("c")
	informer.wants(line{On: "update", Name: "a", Version: a}, line{On: "delete", Name: "b", Version: b}, line{On: "add", Name: "c", Version: c})
	pods.holdsAll(informer)

	// It resumes: nothing is lost or told twice.
	s.Cut()
	c = pods.touch("c")
	informer.comesBack(line{On: "update", Name: "c", Version: c})
	pods.holdsAll(informer)

	// It can't resume: what has changed is found by a list, deletions first.
	s.Restart(func() {
		pods.delete("c")
		a, b = pods.touch("a"), pods.create("b")
		s.DB.Compact()
	})
	informer.comesBack(line{On: "delete", Name: "c", Version: c}) // as it was seen last
	informer.wants(line{On: "update", Name: "a", Version: a}, line{On: "add", Name: "b", Version: b})
	pods.holdsAll(informer)
	a = pods.touch("a")
	informer.wants(line{On: "update", Name: "a", Version: a})
}

// comesBack wants an error of a connection that was cut, passes over the attempts to connect, and wants what is told then.
func (s *script) comesBack(want line) {
	s.t.Helper()
	got := s.next()
	if got.On != "error" {
		s.t.Fatalf("got %+v, want an error of the connection that was cut", got)
	}
	for got.On == "error" || got.On == "connect" {
		got = s.next()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("(-want +got):\n%s", diff)
	}
}

func TestInformerGoesOnWhenTheServerEndsItsWatch(t *testing.T) {
	s := kubetest.Start(t)
	s.API.Server.Timing.Timeout = 100 * time.Millisecond
	pods := podsOf(t, s)
	a := pods.create("a")
	informer := run(t, s.Config(kubetest.HTTP2), "informer.mjs")
	informer.wants(line{On: "connect"}, line{On: "add", Name: "a", Version: a}, line{On: "connect"})
	want := line{On: "update", Name: "a", Version: pods.touch("a")}
	got := informer.next()
	for got.On == "connect" { // as often as it takes; there is no error, and nothing is told twice
		got = informer.next()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
