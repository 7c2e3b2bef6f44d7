//go:build !race

package agents

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var (
	syncedPods = flag.Int("pods", 2000, "the number of pods of BenchmarkSync")
	syncing    = flag.Duration("syncing", 20*time.Second,
		"the time for which the informers of each lane of BenchmarkSync run one after the other")
)

// liveEvents is the number of changes that an informer receives after it has synced.
const liveEvents = 200

// A syncRequest is an environment variable that makes the test binary act as an informer.
const syncRequest = "LISTWATCH_INTEROP_SYNC"

// A syncLane describes an informer with client-go's defaults.
type syncLane struct {
	Name, URL, Token string
	Metadata, Plain  bool // of PartialObjectMetadata; without compression
	Busy             bool // another resource changes all the time
}

func (l syncLane) String() string {
	return fmt.Sprintf("metadata=%v/plain=%v/busy=%v/%s", l.Metadata, l.Plain, l.Busy, l.Name)
}

// A syncResult is the time that an informer took until it was synced, and what it has used until
// then, and for each event after that.
type syncResult struct {
	Took, CPU, EventCPU time.Duration
	Bytes               int64
}

func TestMain(m *testing.M) {
	text := os.Getenv(syncRequest)
	if text == "" {
		os.Exit(m.Run())
	}
	var l syncLane
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		panic(err)
	}
	l.informer(os.Stdout)
}

// informer runs an informer of all pods. It writes its result when it is synced, and again when it
// has received the events after that.
func (l syncLane) informer(out io.Writer) {
	var result syncResult
	var received, bytes atomic.Int64
	done := make(chan struct{})
	start, begin := time.Now(), ownCPU()
	i := l.newInformer(&bytes)
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) {
		if received.Add(1) == liveEvents {
			close(done)
		}
	}})
	if err != nil {
		panic(err)
	}
	go i.Run(context.Background().Done())
	if !cache.WaitForCacheSync(nil, i.HasSynced) || len(i.GetStore().ListKeys()) == 0 {
		panic("not synced")
	}
	result.Took, result.CPU, result.Bytes = time.Since(start), ownCPU()-begin, bytes.Load()
	_ = json.NewEncoder(out).Encode(result) // the benchmark may have ended
	begin = ownCPU()
	<-done
	result.EventCPU = (ownCPU() - begin) / liveEvents
	_ = json.NewEncoder(out).Encode(result)
}

func (l syncLane) newInformer(bytes *atomic.Int64) cache.SharedIndexInformer {
	config := &rest.Config{
		Host: l.URL, BearerToken: l.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		DisableCompression: l.Plain,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return countingConn{conn, bytes}, err
		},
	}
	if l.Metadata {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			panic(err)
		}
		f := metadatainformer.NewSharedInformerFactory(client, 0)
		return f.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Informer()
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		panic(err)
	}
	return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
}

type countingConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSync measures informers with client-go's defaults, directly at a kube-apiserver and
// behind a relay: the time and the processor time of the informer until it is synced, its processor
// time for each later event, the bytes until then, and the processor time of the kube-apiserver for
// each informer.
func BenchmarkSync(b *testing.B) {
	m, a := startRelayed(b, (*admin).createPods)
	for _, l := range []syncLane{{}, {Busy: true}, {Plain: true}, {Metadata: true}, {Metadata: true, Plain: true}} {
		for i, url := range []string{m.server.URL, m.urls[0]} {
			l.Name, l.URL, l.Token = []string{"direct", "relayed"}[i], url, m.server.Token
			b.Run(l.String(), func(b *testing.B) { m.measureSyncs(b, a, l) })
		}
	}
}

// createPods creates pods of 6 KB.
func (a *admin) createPods() {
	a.Helper()
	env := strings.Repeat(`{"name":"A_VARIABLE_OF_THE_PROGRAM","value":"the value of the variable"},`, 20)
	if err := a.send(a.Context(), http.MethodPost, "/api/v1/namespaces", "application/json",
		`{"metadata":{"name":"agents"}}`); err != nil {
		a.Fatal(err)
	}
	each(*syncedPods, func(n int) {
		pod := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app":"app-%d","n":"%d"},"annotations":{"note":%q}},`+
			`"spec":{"nodeName":%q,"containers":[{"name":"c","image":"registry.example.com/app:%d","env":[%s{"name":"N","value":"%d"}]}]}}`,
			podName(n), n%50, n, strings.Repeat(fmt.Sprint(n), 100), nodeName(n%100), n%50, env, n)
		if err := a.send(a.Context(), http.MethodPost, namespacePath+"/pods", "application/json", pod); err != nil {
			a.Error(err)
		}
	})
	if a.Failed() {
		a.FailNow()
	}
}

// measureSyncs runs the informers of a lane one after the other, and reports the medians.
func (m *measurement) measureSyncs(b *testing.B, a *admin, l syncLane) {
	b.Helper()
	if l.Busy {
		defer a.startWriter()()
	}
	l.sync(b, nil) // starts the cache
	rest := func() { <-time.After(*syncing / 2) }
	idle := m.cpuPerSecond(b, rest)
	var results []syncResult
	begin := time.Now()
	busy := m.cpuPerSecond(b, func() {
		for time.Since(begin) < *syncing {
			results = append(results, l.sync(b, nil))
		}
	})
	took := time.Since(begin)
	idle = (idle + m.cpuPerSecond(b, rest)) / 2
	server := (busy - idle) * took.Seconds() / float64(len(results))
	var live []syncResult
	for range 3 {
		live = append(live, l.sync(b, a))
	}
	b.ReportMetric(0, "ns/op") // not reported, because it has no meaning here
	b.ReportMetric(median(results, func(r syncResult) float64 { return r.Took.Seconds() * 1000 }), "ms")
	b.ReportMetric(median(results, func(r syncResult) float64 { return r.CPU.Seconds() * 1000 }), "client-ms")
	b.ReportMetric(median(results, func(r syncResult) float64 { return float64(r.Bytes) / 1e6 }), "MB")
	b.ReportMetric(server*1000, "api-ms")
	b.ReportMetric(median(live, func(r syncResult) float64 { return r.EventCPU.Seconds() * 1e6 }), "client-µs/event")
}

// startWriter changes a namespace, which is no pod, five times a second until stop is called.
func (a *admin) startWriter() (stop func()) {
	ctx, cancel := context.WithCancel(a.Context())
	var running sync.WaitGroup
	running.Go(func() {
		rounds := time.NewTicker(time.Second / 5)
		defer rounds.Stop()
		for n := 0; ; n++ {
			select {
			case <-rounds.C:
			case <-ctx.Done():
				return
			}
			change := fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}}}`, n)
			if err := a.send(a.Context(), http.MethodPatch, namespacePath, "application/merge-patch+json",
				change); err != nil {
				a.Error(err)
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func median(results []syncResult, of func(syncResult) float64) float64 {
	var all []float64
	for _, r := range results {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// cpuPerSecond returns the processor time that the kube-apiserver uses in each second of f.
func (m *measurement) cpuPerSecond(b *testing.B, f func()) float64 {
	b.Helper()
	begin, used := time.Now(), m.api.cpu(b)
	f()
	return (m.api.cpu(b) - used).Seconds() / time.Since(begin).Seconds()
}

// sync runs an informer. If a is not nil, sync changes pods while the informer runs.
func (l syncLane) sync(b *testing.B, a *admin) (r syncResult) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	request, err := json.Marshal(l)
	if err != nil {
		b.Fatal(err)
	}
	c := exec.CommandContext(b.Context(), self)
	c.Env, c.Stderr = append(os.Environ(), syncRequest+"="+string(request)), os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	lines := json.NewDecoder(out)
	if err := lines.Decode(&r); err != nil {
		b.Fatal(err)
	}
	if a == nil {
		return r
	}
	for n := range liveEvents {
		change := fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}}}`, time.Now().UnixNano())
		pod := namespacePath + "/pods/" + podName(n)
		if err := a.send(a.Context(), http.MethodPatch, pod, "application/merge-patch+json", change); err != nil {
			b.Fatal(err)
		}
	}
	if err := lines.Decode(&r); err != nil {
		b.Fatal(err)
	}
	return r
}
