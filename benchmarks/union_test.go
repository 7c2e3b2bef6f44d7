package benchmarks

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// BenchmarkUnion compares 400 clients that follow several collections with a watch each, and with
// one watch of their union: memory of the server per client, CPU time and write calls per delivery.
// Bursts have 24 events over all collections. Over HTTP/1.1, each watch has its own connection.
// Over HTTP/2, each client has one. More iterations do not change the result, so run it with
// -benchtime 1x.
func BenchmarkUnion(b *testing.B) {
	for _, collections := range []int{4, 12} {
		for _, form := range []string{"separate", "union"} {
			for _, transport := range []string{"chunked", "h2"} {
				b.Run(fmt.Sprintf("collections=%d/%s/%s", collections, transport, form), func(b *testing.B) {
					for b.Loop() {
						benchmarkUnion(b, collections, transport, form == "union")
					}
				})
			}
		}
	}
}

func benchmarkUnion(b *testing.B, collections int, transport string, union bool) {
	const watchers, burst, singles, bursts = 400, 24, 200, 40
	s := startUnionServer(b, collections, transport)
	c, watches := clients{Kind: transport, Path: "c", Collections: collections, Streams: collections},
		watchers*collections
	if union {
		c.Path, c.Collections, c.Streams, watches = "union", 0, 1, watchers
	}
	before := readFootprint()
	l := startLoad(b, c, s.addr, watches)
	publish := func(rounds, events int) usage {
		runtime.GC()
		before := readUsage(b)
		for range rounds {
			for range events {
				s.publish()
			}
			l.waitForDeliveries(events * watchers)
		}
		return readUsage(b).minus(before)
	}
	publish(5, burst) // let buffers and goroutine stacks reach their final size
	size := readFootprint().minus(before)
	b.ReportMetric((size.heap+size.stack)/watchers, "B/client")
	report := func(name string, used usage, events int) {
		deliveries := float64(events * watchers)
		b.ReportMetric(float64(used.cpu.Nanoseconds())/deliveries, name+"-cpu-ns/delivery")
		b.ReportMetric(float64(used.writes)/deliveries, name+"-writes/delivery")
	}
	report("single", publish(singles, 1), singles)
	report("burst", publish(bursts, burst), bursts*burst)
}

// A unionServer serves several collections of one database at /c0, /c1 and so on, and their union
// at /union.
type unionServer struct {
	revision revision.Revision
	logs     []*history.Log
	addr     string
	written  int
}

func startUnionServer(b *testing.B, collections int, name string) *unionServer {
	l := listen(b, false)
	s := &unionServer{addr: l.Addr().String()}
	s.revision.Advance(1)
	var over transport.Server = chunked.Server{}
	if name == "h2" {
		over = h2.Server{}
	}
	ws := &watchserver.Server{Transports: []transport.Server{over}}
	ws.Timing.Heartbeat = -1 // the clients do not answer pings
	mux := http.NewServeMux()
	serve := func(path string, source listwatch.Source) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			ws.Serve(w, r, watchserver.Endpoint{Source: source})
		})
	}
	parts := make([]history.Part, collections)
	for i := range parts {
		parts[i].Log = history.New(history.Options{
			Revision: &s.revision, Description: listwatch.Description{APIVersion: "v1", Kind: fmt.Sprint("Kind", i)},
		})
		s.logs = append(s.logs, parts[i].Log)
		serve(fmt.Sprint("/c", i), parts[i].Log)
	}
	u, err := history.NewUnion("", parts)
	if err != nil {
		b.Fatal(err)
	}
	serve("/union", u)
	hs := &http.Server{Handler: mux}
	h2.Configure(hs, h2.Config{})
	go hs.Serve(l)
	b.Cleanup(func() { hs.Close() })
	return s
}

// publish changes an object of the next collection.
func (s *unionServer) publish() {
	log, v := s.logs[s.written%len(s.logs)], s.revision.Version()+1
	key := listwatch.Key{Namespace: "ns", Name: fmt.Sprint(s.written % 100)}
	s.written++
	log.Append(history.Record{Version: v, Old: log.Get(key), New: object(key, nil, v, 1024)})
	s.revision.Advance(v)
}
