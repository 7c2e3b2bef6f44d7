package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// A dataset describes objects that keep most of their content when they change. size is the
// approximate length of an object's JSON in bytes. The JSON consists of text that all objects have
// in common, random text of each object, and padding.
type dataset struct {
	name        string
	size        int
	common, own float64 // fractions of size
}

// The fractions imitate real objects: most text of a node lists images, which all nodes have in
// common, and most text of a config map is its own.
var datasets = []dataset{
	{"pods", 1800, 0.75, 0.15}, {"configmaps", 4000, 0.1, 0.35}, {"nodes", 9300, 0.85, 0.05},
}

// sharing lists the compared ways to send events. The first one is the baseline.
var sharing = []struct {
	name, kind string
	server     transport.Server
	share      watchserver.SharedCompression
}{
	{"plain", "chunked", chunked.Server{}, watchserver.ShareNever},
	{"separate", "chunked+gzip", chunked.Server{}, watchserver.ShareNever},
	{"shared", "chunked+gzip", chunked.Server{}, watchserver.ShareAlways},
	{"websocket-plain", "websocket", &websocket.Server{}, watchserver.ShareNever},
	{"websocket-shared", "websocket+deflate", &websocket.Server{}, watchserver.ShareAlways},
}

// BenchmarkSharedHistory measures the server's CPU time to deliver one event to each of a thousand
// watchers: uncompressed, with each event compressed on its own, and with shared history. It
// measures every entry of sharing in five interleaved rounds of 64 events. For each entry it
// reports the median, and the median of the ratio to the first entry in the same round. Each event
// changes a random one of 200 objects. In hot order, 80 % of the events change one of ten objects,
// always the same ten. Run it with -benchtime 1x.
func BenchmarkSharedHistory(b *testing.B) {
	for _, d := range datasets {
		for _, hot := range []bool{false, true} {
			b.Run(d.name+"/"+order(hot), func(b *testing.B) {
				for b.Loop() {
					benchmarkSharedHistory(b, d, hot)
				}
			})
		}
	}
}

func order(hot bool) string {
	if hot {
		return "hot"
	}
	return "random"
}

func benchmarkSharedHistory(b *testing.B, d dataset, hot bool) {
	const watchers, rounds, events = 1000, 5, 64
	var servers []*changingObjects
	for _, c := range sharing {
		s := &changingObjects{podServer: startPods(b, c.server), dataset: d, hot: hot}
		s.watch.SharedCompression = c.share
		startLoad(b, clients{Kind: c.kind}, s.Addr(), watchers)
		servers = append(servers, s)
		s.publish(2*events, watchers) // so that the first segment has started for all watchers
	}
	cpu, ratios := make([][]float64, len(sharing)), make([][]float64, len(sharing))
	for range rounds {
		for i, s := range servers {
			runtime.GC()
			before := readUsage(b)
			s.publish(events, watchers)
			used := float64(readUsage(b).minus(before).cpu.Nanoseconds()) / (events * watchers)
			cpu[i] = append(cpu[i], used)
			ratios[i] = append(ratios[i], used/cpu[0][len(cpu[0])-1])
		}
	}
	for i, c := range sharing {
		b.ReportMetric(median(cpu[i]), c.name+"-cpu-ns/delivery")
		b.ReportMetric(median(ratios[i]), c.name+"-cpu/plain")
	}
}

// publish publishes the given number of events. After each event it waits until the event was sent
// to all watchers.
func (o *changingObjects) publish(events, watchers int) {
	for range events {
		o.Publish()
		o.wait(watchers)
	}
}

// changingObjects publishes changes of the objects of a dataset.
type changingObjects struct {
	*podServer
	dataset
	hot bool

	shared string   // the text that is the same in all objects
	own    []string // the random text of each object
	plain  int      // the number of JSON bytes in all events so far
	// published is the number of events so far.
	published int
}

// words returns about n bytes of random words from a vocabulary, each with a random number.
func (o *changingObjects) words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%s-%d,", vocabulary[o.random.IntN(len(vocabulary))], o.random.IntN(1000))
	}
	return b.String()
}

var vocabulary = strings.Fields(
	"name image sha256 registry container status condition lastTransitionTime volume mount port protocol limits requests")

func (o *changingObjects) Publish() {
	if o.own == nil {
		o.shared = o.words(int(o.common * float64(o.size)))
		for range 200 {
			o.own = append(o.own, randomHex(o.random, int(o.dataset.own*float64(o.size))))
		}
	}
	i := o.random.IntN(len(o.own))
	if o.hot && o.random.IntN(10) < 8 {
		i = o.random.IntN(10)
	}
	o.version++
	key := listwatch.Key{Namespace: "ns", Name: fmt.Sprintf("web-%d", i)}
	d := store.Draft{Key: key}
	d.Before = fmt.Appendf(nil,
		`{"kind":"Thing","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":`, key.Name,
		key.Namespace)
	rest := o.size - len(o.shared) - len(o.own[i]) - 250
	d.After = fmt.Appendf(nil,
		`},"spec":{"shared":%q,"own":%q,"rest":%q},"status":{"heartbeat":"%d","digest":%q,"count":%d}}`,
		o.shared, o.own[i], strings.Repeat("padding ", max(rest, 0)/8), o.random.Int64N(1e18), randomHex(o.random, 16),
		o.random.IntN(60))
	object := d.Seal(o.version)
	o.plain += len(object.Data)
	o.published++
	o.log.Append(history.Record{Version: o.version, Old: o.log.Get(key), New: object})
}

// randomHex returns n hexadecimal digits.
func randomHex(r *rand.Rand, n int) string {
	s := ""
	for len(s) < n {
		s += fmt.Sprintf("%016x", r.Uint64())
	}
	return s[:n]
}
