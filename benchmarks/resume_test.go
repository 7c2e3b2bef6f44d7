package benchmarks

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
)

// A resume is a way to get the newest state.
type resume struct {
	name    string
	clients clients
}

// resumes returns the ways of a client that has the given state.
func resumes(since listwatch.State) []resume {
	return []resume{
		{"list", clients{Kind: "list", Path: "storm"}},
		{"list+gzip", clients{Kind: "list+gzip", Path: "storm"}},
		{"watch-list", clients{Kind: "state", Path: "storm", Initial: true}},
		{"difference", clients{Kind: "state", Path: "storm", Since: since}},
	}
}

// BenchmarkResume measures the cost of a client that returns after d changes. The client has the
// state of n objects of 2.2 KB from before these changes. Nine tenths of the changes are updates,
// the others deletes and creates.
func BenchmarkResume(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			c := openThings(b)
			createThings(b, c, n)
			addr := serveStorm(b, thingHandler(c, chunked.Server{}), h2.Config{})
			for _, d := range []int{0, 1, 100, 10_000} {
				since := stateOf(b, c, "storm")
				changeThings(b, c, n, d)
				for _, r := range resumes(since) {
					b.Run(fmt.Sprintf("d=%d/%s", d, r.name), func(b *testing.B) { benchmarkResume(b, r.clients, addr) })
				}
			}
		})
	}
}

func benchmarkResume(b *testing.B, kind clients, addr string) {
	var bytes, cpu, took []float64
	for b.Loop() {
		l := prepareLoad(b, kind, addr, 1)
		before := readUsage(b)
		l.open()
		l.wait(1)
		cpu = append(cpu, ms(readUsage(b).minus(before).cpu))
		bytes = append(bytes, float64(l.bytes))
		took = append(took, ms(l.last))
	}
	b.ReportMetric(median(bytes), "wire-B")
	b.ReportMetric(median(cpu), "server-ms")
	b.ReportMetric(median(took), "synced-ms")
}

// stateOf returns the state of a namespace, or of the whole source if namespace is empty.
func stateOf(b *testing.B, source listwatch.Source, namespace string) (s listwatch.State) {
	b.Helper()
	q := listwatch.Query{
		Selection: listwatch.Selection{Namespace: namespace},
		Bookmarks: true, InitialEvents: listwatch.InitialEventsYes,
	}
	w, err := source.Watch(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	events := make([]listwatch.Event, 64)
	for s.ID == "" {
		count, err := w.Next(b.Context(), events)
		if err != nil {
			b.Fatal(err)
		}
		s = events[count-1].State()
	}
	return s
}

// changeThings writes d of n objects. A call with another d deletes and creates other objects.
func changeThings(b *testing.B, c listwatch.Store, n, d int) {
	b.Helper()
	each(d, func(i int) (err error) {
		key := listwatch.Key{Namespace: "storm"}
		switch {
		case i%20 == 9:
			key.Name = thingName(n - 1 - d/1000 - i/20)
			_, err = c.Delete(b.Context(), key, listwatch.Preconditions{})
		case i%20 == 19:
			_, err = c.Create(b.Context(), stormObject(fmt.Sprintf("new-%d-%d", d, i), i))
		default:
			key.Name = thingName(i - i/10) // stays on its node
			err = replaceThing(b.Context(), c, key, stormObject(key.Name, i-i/10+d*n))
		}
		return err
	}, b.Error)
}

// replaceThing gives data the version of the object that it replaces, as Kubernetes requires.
func replaceThing(ctx context.Context, c listwatch.Store, key listwatch.Key, data []byte) error {
	old, err := c.Get(ctx, key)
	if err != nil {
		return err
	}
	version := fmt.Appendf(nil, `"metadata":{"resourceVersion":"%d",`, old.Version)
	_, err = c.Replace(ctx, key, bytes.Replace(data, []byte(`"metadata":{`), version, 1))
	return err
}
