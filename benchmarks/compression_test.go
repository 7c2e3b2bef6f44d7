package benchmarks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// compressions lists the measured combinations of transport and compression. kind selects
// the clients of the load process.
var compressions = []struct {
	kind   string
	server transport.Server
	client func() transport.Client
}{
	{"chunked", chunked.Server{}, func() transport.Client { return &chunked.Client{} }},
	{"chunked+gzip", chunked.Server{}, func() transport.Client { return &chunked.Client{} }},
	{"chunked+zstd", chunked.Server{}, func() transport.Client { return &chunked.Client{} }},
	{"h2", h2.Server{}, func() transport.Client { return &h2.Client{} }},
	{"h2+gzip", h2.Server{}, func() transport.Client { return &h2.Client{} }},
	{"h2+zstd", h2.Server{}, func() transport.Client { return &h2.Client{} }},
	{"websocket", &websocket.Server{}, func() transport.Client { return &websocket.Client{} }},
	{"websocket+deflate", &websocket.Server{}, func() transport.Client { return &websocket.Client{} }},
}

// BenchmarkCompression measures the server's cost per watcher to deliver one event, a pod of 2 KiB,
// uncompressed and compressed, and the bytes on the wire. It runs with one watcher, and with a
// thousand watchers that share each compressed frame.
func BenchmarkCompression(b *testing.B) {
	for _, watchers := range []int{1, 1000} {
		for _, c := range compressions {
			b.Run(fmt.Sprintf("watchers=%d/%s", watchers, c.kind), func(b *testing.B) {
				benchmarkCompression(b, c.server, c.kind, watchers)
			})
		}
	}
}

func benchmarkCompression(b *testing.B, t transport.Server, kind string, watchers int) {
	p := startPods(b, t)
	startLoad(b, clients{Kind: kind, Streams: 100}, p.Addr(), watchers)
	for range 5 {
		p.Publish()
		p.wait(watchers)
	}
	runtime.GC()
	before, bytes, rounds := readUsage(b), p.bytes, 0
	for b.Loop() {
		p.Publish()
		p.wait(watchers)
		rounds++
	}
	used := readUsage(b).minus(before)
	deliveries := float64(rounds * watchers)
	b.ReportMetric(float64(used.cpu.Nanoseconds())/deliveries, "cpu-ns/delivery")
	b.ReportMetric(float64(p.bytes-bytes)/deliveries, "wire-B/delivery")
}

// BenchmarkDecompression measures the client's cost to receive one event, a pod of 2 KiB, and
// the memory of a client stream that waits for its next event. The server runs in the same
// process and compresses each event once for all streams.
func BenchmarkDecompression(b *testing.B) {
	for _, c := range compressions {
		b.Run(c.kind, func(b *testing.B) { benchmarkDecompression(b, c.server, c.client(), c.kind) })
	}
}

func benchmarkDecompression(b *testing.B, t transport.Server, client transport.Client, kind string) {
	p := startPods(b, t)
	r := &transport.Request{URL: p.url(), Framings: []framing.Framer{framing.JSON{}}}
	if _, coding, compressed := strings.Cut(kind, "+"); compressed {
		r.Codings = []string{coding}
	}
	const streams = 100
	receivers := make([]transport.Receiver, streams)
	receive := func(r transport.Receiver) {
		if _, err := r.Receive(); err != nil {
			b.Fatal(err)
		}
	}
	before := readFootprint()
	for i := range receivers {
		var err error
		if receivers[i], err = client.Dial(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		defer receivers[i].Close()
	}
	p.Publish()
	for _, r := range receivers {
		receive(r)
	}
	held := readFootprint()
	start := readUsage(b)
	for b.Loop() {
		p.Publish()
		for _, r := range receivers {
			receive(r)
		}
	}
	used := readUsage(b).minus(start)
	b.ReportMetric(float64(used.cpu.Nanoseconds())/float64(b.N*streams), "cpu-ns/event")
	b.ReportMetric((held.heap-before.heap)/streams, "heap-B/stream")
}

// podServer sends pods as events and counts the bytes that it has sent.
type podServer struct {
	*server
	random *rand.Rand

	mu sync.Mutex
	// Guarded by mu. Benchmarks read bytes without mu while no event is in transit.
	cond          *sync.Cond
	events, bytes int
}

func startPods(tb testing.TB, t transport.Server) *podServer {
	tb.Helper()
	return newPods(startServer(tb, listen(tb, false), t, false))
}

func newPods(s *server) *podServer {
	p := &podServer{server: s, random: rand.New(rand.NewPCG(1, 2))}
	p.cond = sync.NewCond(&p.mu)
	p.watch.Trace = &watchserver.Trace{Sent: p.sent}
	return p
}

func (p *podServer) url() *url.URL {
	return &url.URL{Scheme: "http", Host: p.Addr(), Path: "/", RawQuery: benchQuery}
}

func (p *podServer) sent(_ context.Context, _ watchserver.Watch, w watchserver.Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events += w.Events
	p.bytes += w.Bytes
	p.cond.Signal()
}

// wait blocks until the next n events have been sent.
func (p *podServer) wait(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.events < n {
		p.cond.Wait()
	}
	p.events -= n
}

// Publish sends one pod to every watcher.
func (p *podServer) Publish() {
	p.n++
	p.version++
	key := listwatch.Key{Namespace: "ns", Name: fmt.Sprintf("web-%d", p.n%100)}
	p.log.Append(history.Record{Version: p.version, Old: p.log.Get(key), New: podOf(p.random, key, p.version)})
}

// podText is the part of a pod that all pods of a workload have in common. podOf replaces the
// formatting verbs with random identifiers, which hardly compress.
const podText = `},"spec":{"volumes":[{"name":"kube-api-access-%[1]s","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,` +
	`"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}],"defaultMode":420}}],` +
	`"containers":[{"name":"web","image":"registry.example.com/shop/web@sha256:%[2]s","ports":[{"containerPort":8080,"protocol":"TCP"}],` +
	`"resources":{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"volumeMounts":[{` +
	`"name":"kube-api-access-%[1]s","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],` +
	`"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always",` +
	`"terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","nodeName":"node-%[3]d",` +
	`"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"}]},` +
	`"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastTransitionTime":"2026-11-01T10:00:%02[3]dZ"},` +
	`{"type":"Ready","status":"True","lastTransitionTime":"2026-11-01T10:01:%02[3]dZ"}],"hostIP":"10.0.0.%[3]d","podIP":"10.244.1.%[3]d",` +
	`"containerStatuses":[{"name":"web","ready":true,"restartCount":%[3]d,"imageID":"registry.example.com/shop/web@sha256:%[2]s",` +
	`"containerID":"containerd://%[4]s","started":true}],"qosClass":"Burstable"}}`

// podOf returns a pod of 2 KiB with the fields of a typical pod in a cluster.
func podOf(r *rand.Rand, key listwatch.Key, v listwatch.Version) *listwatch.Object {
	d := store.Draft{Key: key}
	d.Before = fmt.Appendf(nil,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"%s","labels":{"app":"web",`+
			`"pod-template-hash":%q},"resourceVersion":`, key.Name, key.Namespace, randomHex(r, 32), randomHex(r, 10))
	d.After = fmt.Appendf(nil, podText, randomHex(r, 5), randomHex(r, 64), r.IntN(60), randomHex(r, 64))
	return d.Seal(v)
}
