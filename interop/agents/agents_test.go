//go:build !race

package agents

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
)

var (
	agents = flag.Int("agents", 2000, "the number of agents")
	nodes  = flag.Int("nodes", 500, "the number of nodes")
	steady = flag.Duration("for", 5*time.Minute,
		"the time for which writes and events are measured; relays review each watch once in it")
)

const (
	podsPerNode = 4
	services    = 100
	relays      = 2
	// starting is the number of agents that start at once.
	starting = 20
)

// BenchmarkNodeAgents measures the processor time and the memory of a kube-apiserver that serves
// node agents while objects change: without agents, with agents that connect to it, and with agents
// that connect to relays. api-start-s is the processor time until all agents have the state, and
// api-steady-s is the processor time for the writes and events after that.
func BenchmarkNodeAgents(b *testing.B) {
	apiServer, relay := os.Getenv("LISTWATCH_KUBE_APISERVER"), os.Getenv("LISTWATCH_RELAYED")
	if apiServer == "" || relay == "" {
		b.Skip("LISTWATCH_KUBE_APISERVER and LISTWATCH_RELAYED name no programs; use make agents")
	}
	etcd := etcdtest.Start(b, nil).URL
	start := func(b *testing.B) *kubeapiserver.Server {
		return kubeapiserver.StartWith(b, apiServer, kubeapiserver.Options{Etcd: etcd, Users: users()})
	}
	populated := false
	for _, lane := range []string{"none", "direct", "relayed"} {
		b.Run("agents="+lane, func(b *testing.B) {
			if !populated {
				s := start(b)
				newAdmin(b, s.URL, s.Token).populate()
				populated = true
			}
			server := start(b) // a new process, because its costs must not include populate
			m := measurement{B: b, server: server, api: process(server.PID)}
			switch lane {
			case "direct":
				m.urls = []string{server.URL}
			case "relayed":
				for range relays {
					m.startRelay(relay)
				}
			}
			m.run()
		})
	}
}

// A measurement measures a kube-apiserver and its relays.
type measurement struct {
	*testing.B
	server *kubeapiserver.Server
	api    process
	relays []process
	urls   []string // of the servers that the agents use
}

// startRelayed returns a measurement of a kube-apiserver, in which create has created objects, and
// of a relay. It skips the benchmark if it lacks the programs.
func startRelayed(b *testing.B, create func(*admin)) (measurement, *admin) {
	b.Helper()
	apiServer, relay := os.Getenv("LISTWATCH_KUBE_APISERVER"), os.Getenv("LISTWATCH_RELAYED")
	if apiServer == "" || relay == "" {
		b.Skip("LISTWATCH_KUBE_APISERVER and LISTWATCH_RELAYED name no programs; use make agents")
	}
	m := measurement{B: b, server: kubeapiserver.StartWith(b, apiServer, kubeapiserver.Options{})}
	m.api = process(m.server.PID)
	a := newAdmin(b, m.server.URL, m.server.Token)
	create(a)
	m.startRelay(relay)
	return m, a
}

// startRelay runs a relay until the benchmark ends.
func (m *measurement) startRelay(path string) {
	m.Helper()
	p := program.Start(m, path, "relay", "--cluster", "--kubeconfig", m.server.Kubeconfig, "--addr", "",
		"--tls-addr", "127.0.0.1:0", "--tls-self-signed")
	m.urls, m.relays = append(m.urls, p.URL()), append(m.relays, process(p.Process.Pid))
}

// run starts the agents, writes, and reports the cost of both.
func (m *measurement) run() {
	m.Helper()
	ctx, stop := context.WithCancel(m.Context())
	var counts received
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	begin, beforeRelays := m.api.cpu(m), m.relayCPU()
	m.startAgents(ctx, &running, &counts)
	started, startedRelays := m.api.cpu(m), m.relayCPU()
	events, size := counts.events.Load(), counts.bytes.Load()
	writes := newAdmin(m, m.server.URL, m.server.Token).write(*steady)
	ended, endedRelays := m.api.cpu(m), m.relayCPU()
	for unit, value := range map[string]float64{
		"ns/op":          0, // not reported, because it has no meaning here
		"api-start-s":    (started - begin).Seconds(),
		"api-steady-s":   (ended - started).Seconds(),
		"api-MiB":        m.api.memory(m),
		"relay-start-s":  (startedRelays - beforeRelays).Seconds(),
		"relay-steady-s": (endedRelays - startedRelays).Seconds(),
		"relay-MiB":      m.relayMemory(),
		"writes":         float64(writes),
		"state-MiB":      float64(size) / (1 << 20),
		"events":         float64(counts.events.Load() - events),
	} {
		m.ReportMetric(value, unit)
	}
}

// startAgents starts the agents, and returns when they have the state. They run until ctx ends.
func (m *measurement) startAgents(ctx context.Context, running *sync.WaitGroup, counts *received) {
	m.Helper()
	if len(m.urls) == 0 {
		return
	}
	var synced sync.WaitGroup
	seats := make(chan struct{}, starting)
	for n := range *agents {
		a := newAgent(m.urls[n%len(m.urls)], n, counts)
		seats <- struct{}{}
		synced.Add(1)
		running.Go(func() {
			err := a.run(ctx, func() {
				<-seats
				synced.Done()
			})
			if err != nil {
				m.Error(err)
			}
		})
	}
	synced.Wait()
	if m.Failed() {
		m.FailNow()
	}
}

func (m *measurement) relayCPU() (sum time.Duration) {
	for _, p := range m.relays {
		sum += p.cpu(m)
	}
	return sum
}

func (m *measurement) relayMemory() (sum float64) {
	for _, p := range m.relays {
		sum += p.memory(m)
	}
	return sum
}
