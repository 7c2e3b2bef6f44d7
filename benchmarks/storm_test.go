package benchmarks

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
	"github.com/listwatch/listwatch/watchserver"
)

// stormClients is the number of clients of each storm.
var stormClients = flag.Int("stormclients", 1000, "the number of `clients` in BenchmarkStorm")

const (
	stormObjects = 20_000
	stormSize    = 2200
	stormNodes   = 1000
)

// A stormVariant is a storm: many clients that request the same state at the same time.
type stormVariant struct {
	name      string
	clients   clients
	transport transport.Server
	config    h2.Config
	// deliveries is the number of marks that each client waits for.
	deliveries int
	// share divides the number of clients.
	share int
}

// storms returns storms of watches over each transport, and of lists. Each HTTP/2 client has a
// connection of its own and a window of 16 MiB.
func storms() []stormVariant {
	watches := func(name, kind string, t transport.Server) stormVariant {
		c := clients{Kind: kind, Streams: 1, Refresh: 1 << 20, Initial: true}
		return stormVariant{name: "watch/" + name, clients: c, transport: t, deliveries: stormObjects, share: 1}
	}
	lists := func(kind string, share int) stormVariant {
		c := clients{Kind: kind, Streams: 1}
		return stormVariant{name: kind, clients: c, transport: chunked.Server{}, deliveries: 1, share: share}
	}
	standard := watches("h2-nethttp", "frames", h2.Server{})
	standard.config.NetHTTP = true
	return []stormVariant{
		watches("chunked", "chunked", chunked.Server{}),
		watches("chunked-standard", "chunked", chunked.Server{DisableHijack: true}),
		watches("websocket", "websocket", &websocket.Server{}),
		watches("websocket-gorilla", "websocket", &gorilla.Server{}),
		watches("websocket-nhooyr", "websocket", &nhooyr.Server{}),
		watches("h2", "frames", h2.Server{}),
		standard,
		lists("list", 1),
		lists("list+gzip", 5),
	}
}

// states returns single clients that request the state, with the client of net/http and with ours.
func states() (all []stormVariant) {
	for _, kind := range []string{
		"chunked", "h2", "own-chunked", "own-h2", "own-websocket", "own-chunked+gzip",
		"own-h2+gzip",
	} {
		c := clients{Kind: kind, Streams: 1, Initial: true}
		all = append(all, stormVariant{name: kind, clients: c, deliveries: stormObjects})
	}
	return all
}

// BenchmarkState measures the processor time of server and client to send the state of 20,000
// objects of 2.2 KB to one client, for each object. The client's time includes the start of its
// process, about 1 µs for each object.
func BenchmarkState(b *testing.B) {
	for _, v := range states() {
		b.Run(v.name, func(b *testing.B) {
			addr := startStormServer(b, v.config, &websocket.Server{}, h2.Server{}, chunked.Server{})
			var server, client []float64
			for b.Loop() {
				before := readUsage(b)
				l := startLoad(b, v.clients, addr, 1)
				l.wait(v.deliveries)
				server = append(server, float64(readUsage(b).minus(before).cpu.Nanoseconds())/stormObjects)
				client = append(client, float64(l.cpu.Nanoseconds())/stormObjects)
			}
			b.ReportMetric(median(server), "server-ns/object")
			b.ReportMetric(median(client), "client-ns/object")
		})
	}
}

// BenchmarkStorm measures the costs of a storm, and how much it delays an unrelated client. That
// client runs in a process of its own. It writes 100 small objects a second, and watches their
// namespace. "watch" is the time from the start of a write until the watch has its event.
func BenchmarkStorm(b *testing.B) {
	for _, v := range storms() {
		b.Run(v.name, func(b *testing.B) {
			addr := startStormServer(b, v.config, v.transport, chunked.Server{})
			for b.Loop() {
				benchmarkStorm(b, v, addr)
			}
		})
	}
}

func benchmarkStorm(b *testing.B, v stormVariant, addr string) {
	count := max(1, *stormClients/v.share)
	bystander := startLoad(b, bystanderOf("quiet"), addr, 1)
	l := prepareLoad(b, v.clients, addr, count)
	o := runStorm(b, l, bystander, v.deliveries, func() time.Duration { return readUsage(b).cpu })
	objects := float64(count * stormObjects)
	b.ReportMetric(float64(o.cpu.Nanoseconds())/objects, "cpu-ns/object")
	b.ReportMetric(residentBytes()/(1<<20), "rss-MiB")
}

// bystanderOf returns a bystander that uses the collection at path.
func bystanderOf(path string) clients { return clients{Kind: "bystander", Path: path} }

// A stormResult holds the costs of a storm and the measurements of a bystander.
type stormResult struct {
	bytes        int64
	cpu          time.Duration // of the server
	median, last time.Duration // until a client had its state
	seen         observation
}

// runStorm opens the clients of l, waits until each has received the given number of marks, and
// reports the result. cpu returns the processor time of the server.
func runStorm(b *testing.B, l, bystander *load, deliveries int, cpu func() time.Duration) (o stormResult) {
	before, start := cpu(), time.Now()
	l.open()
	l.wait(deliveries)
	took := time.Since(start)
	o = stormResult{cpu: cpu() - before, bytes: l.bytes, median: l.median, last: l.last, seen: bystander.observed()}
	b.ReportMetric(took.Seconds(), "s/storm")
	b.ReportMetric(float64(o.bytes)/1e6, "MB/storm")
	if o.last > 0 {
		b.ReportMetric(o.median.Seconds(), "median-s")
		b.ReportMetric(o.last.Seconds(), "last-s")
	}
	b.ReportMetric(o.cpu.Seconds(), "cpu-s/storm")
	b.ReportMetric(ms(o.seen.WatchP50), "watch-p50-ms")
	b.ReportMetric(ms(o.seen.WatchP99), "watch-p99-ms")
	b.ReportMetric(ms(o.seen.WriteP99), "write-p99-ms")
	b.ReportMetric(float64(o.seen.Refused), "refused-writes")
	b.ReportMetric(float64(o.seen.Events), "events")
	return o
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startStormServer returns the address of a server with the objects of a storm.
func startStormServer(b *testing.B, config h2.Config, transports ...transport.Server) (addr string) {
	c := openThings(b)
	createThings(b, c, stormObjects)
	return serveStorm(b, thingHandler(c, transports...), config)
}

// stormSpec is what stormDefinition declares.
var stormSpec = store.CollectionSpec{
	APIVersion: "storm.example.com/v1", Kind: "Thing", Plural: "things", Namespaced: true,
	Fields: []string{"spec.node"},
}

// stormHeader begins each object of a storm.
const stormHeader = `{"apiVersion":"storm.example.com/v1","kind":"Thing",`

func openThings(b *testing.B) *store.Collection {
	b.Helper()
	return testkit.Must(memory.Open(memory.Options{}).Collection(stormSpec))(b)
}

func createThings(b *testing.B, c listwatch.Writer, n int) {
	b.Helper()
	each(n, func(i int) error {
		_, err := c.Create(b.Context(), stormObject(thingName(i), i))
		return err
	}, b.Error)
}

func thingName(i int) string { return fmt.Sprintf("thing-%05d", i) }

func thingHandler(c *store.Collection, transports ...transport.Server) http.Handler {
	ws := &watchserver.Server{Transports: transports}
	ws.Timing.Heartbeat = -1 // the clients do not answer pings
	return &crudserver.Handler{Collection: c, Server: ws}
}

func serveStorm(b *testing.B, h http.Handler, config h2.Config) (addr string) {
	hs := &http.Server{Handler: h}
	h2.Configure(hs, config)
	l := listen(b, false)
	go hs.Serve(l)
	b.Cleanup(func() { hs.Close() })
	return l.Addr().String()
}

// stormObject returns an object of about stormSize bytes, which gzip reduces to a quarter.
func stormObject(name string, i int) []byte {
	words := []string{
		"container", "image", "resources", "limits", "memory", "volume", "mount", "status", "condition",
		"probe",
	}
	from := rand.New(rand.NewPCG(uint64(i), 1))
	data := fmt.Appendf(nil,
		stormHeader+`"metadata":{"namespace":"storm","name":%q},"spec":{"node":"node-%d"},"data":"%c`,
		name, i%stormNodes, mark)
	for len(data) < stormSize-220 {
		data = fmt.Appendf(data, " %s-%d", words[from.IntN(len(words))], from.IntN(10_000))
	}
	return append(data, `"}`...)
}

// observed ends a bystander and returns what it has observed.
func (l *load) observed() (o observation) {
	l.Helper()
	fmt.Fprintln(l.in, "end")
	line, err := l.out.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &o)
	}
	if err != nil || o.Err != "" {
		l.Fatalf("the bystander failed: %v %s", err, o.Err)
	}
	return o
}
