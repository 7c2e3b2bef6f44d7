package benchmarks

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/store/memory"
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
		{"list", clients{Kind: "list", Namespace: "storm"}},
		{"list+gzip", clients{Kind: "list+gzip", Namespace: "storm"}},
		{"watch-list", clients{Kind: "state", Namespace: "storm", Initial: true}},
		{"difference", clients{Kind: "state", Namespace: "storm", Since: since}},
	}
}

// BenchmarkResume measures what a client costs that has the state of n objects of 2.2 KB before d
// changes: nine tenths are updates, the others deletes and creates.
func BenchmarkResume(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			c := openThings(b, memory.Open(memory.Options{}))
			createThings(b, c, n)
			addr := serveStorm(b, thingHandler(c, chunked.Server{}), h2.Config{})
			for _, d := range []int{0, 1, 100, 10_000} {
				since := stateOf(b, c)
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

// stateOf returns the state of the namespace of a storm.
func stateOf(b *testing.B, c *store.Collection) (s listwatch.State) {
	b.Helper()
	q := listwatch.Query{Namespace: "storm", Bookmarks: true, InitialEvents: listwatch.InitialEventsYes}
	w, err := c.Watch(b.Context(), q)
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
		s = listwatch.StateOf(events[count-1])
	}
	return s
}

// changeThings writes d of n objects. A call with another d deletes and creates other objects.
func changeThings(b *testing.B, c *store.Collection, n, d int) {
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
			_, err = c.Replace(b.Context(), key, stormObject(key.Name, i-i/10+d*n))
		}
		return err
	}, b.Error)
}

// BenchmarkRestart measures what it costs when all clients return at once to a server that has
// restarted with a file, and how they delay a bystander, whose objects are in memory.
func BenchmarkRestart(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "storm.db")
	for _, v := range restarts(prepareRestart(b, dir, file), dir) {
		b.Run(v.name, func(b *testing.B) {
			for b.Loop() {
				db := openFile(b, file, bolt.Options{})
				routes := http.NewServeMux()
				routes.Handle("/", thingHandler(openThings(b, db), chunked.Server{}))
				routes.Handle("/quiet", thingHandler(openThings(b, memory.Open(memory.Options{})), chunked.Server{}))
				benchmarkStorm(b, v, serveStorm(b, routes, h2.Config{}))
			}
		})
	}
}

// prepareRestart writes the file that a server leaves after 100 changes, and the copies of its
// informers before these changes. It returns the state before the changes.
func prepareRestart(b *testing.B, dir, file string) listwatch.State {
	b.Helper()
	db, err := bolt.Open(file, bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	c := openThings(b, db)
	createThings(b, c, stormObjects)
	since := stateOf(b, c)
	addr := serveStorm(b, thingHandler(c, chunked.Server{}), h2.Config{})
	for _, v := range restarts(since, dir) {
		if v.clients.Copies == "" {
			continue
		}
		if err := os.Mkdir(v.clients.Copies, 0o700); err != nil {
			b.Fatal(err)
		}
		l := startLoad(b, v.clients, addr, max(1, *stormClients/v.share))
		l.wait(1)
		l.stop()
	}
	changeThings(b, c, stormObjects, 100)
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	return since
}

func openThings(b *testing.B, db interface {
	Collection(s store.CollectionSpec) (*store.Collection, error)
},
) *store.Collection {
	b.Helper()
	c, err := db.Collection(stormSpec)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// restarts returns storms of clients that had the given state when a server of 20,000 objects
// ended. Informers select everything or the objects of one node, and may have copies in dir.
func restarts(since listwatch.State, dir string) (all []stormVariant) {
	add := func(name string, c clients, share int) {
		c.Namespace = "storm"
		all = append(all, stormVariant{name: name, clients: c, deliveries: 1, share: share})
	}
	for _, r := range resumes(since)[2:] {
		add(r.name, r.clients, 1)
	}
	informers := func(selection string, c clients, share int) {
		c.Kind = "informer"
		add("informers-"+selection+"/watch-list", c, share)
		c.Copies = filepath.Join(dir, selection)
		add("informers-"+selection+"/difference", c, share)
	}
	informers("node", clients{PerNode: true}, 1)
	informers("all", clients{}, 50)
	return all
}
