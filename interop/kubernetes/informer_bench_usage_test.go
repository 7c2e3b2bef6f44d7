package kubernetes

import (
	"context"
	"encoding/json"
	"net"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"
)

// A usage holds the resources that a process used during a measurement.
type usage struct {
	Wall, CPU time.Duration
	// Mallocs is the number of allocations, and Allocated the number of allocated bytes.
	Mallocs, Allocated uint64
	// Peak is the largest size of the heap, including garbage. Final is the size after a garbage
	// collection. Both exclude the size before the first measurement.
	Peak, Final uint64
}

// runBenchClient is the main function of a client process. It reports its usage while it receives
// the initial objects and, on request, its usage while it receives a change of every object. A
// networkGate holds the changes back until the server has written all of them.
func runBenchClient(l linePipe, data, kind, url string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var gate networkGate
	handled := objectCounter{full: make(chan struct{}, 2)}
	m := startMeter()
	kept, err := datasets[data].clients[kind](ctx, url, gate.dial, handled.add)
	if err != nil {
		return err
	}
	<-handled.full
	report, err := json.Marshal(m.stop())
	if err != nil {
		return err
	}
	gate.close()
	if _, err := l.request(string(report)); err != nil {
		return nil // the parent requests no second measurement
	}
	m = startMeter()
	gate.open()
	<-handled.full
	report, err = json.Marshal(m.stop())
	runtime.KeepAlive(kept)
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(report, '\n'))
	return err
}

// An objectCounter counts calls. It is not safe for concurrent use.
type objectCounter struct {
	n    int
	full chan struct{} // receives a value after every benchObjectCount calls
}

func (c *objectCounter) add() {
	if c.n++; c.n%benchObjectCount == 0 {
		c.full <- struct{}{}
	}
}

// A networkGate blocks the reads of its connections while it is closed.
type networkGate struct {
	mu sync.RWMutex
}

func (n *networkGate) close() { n.mu.Lock() }
func (n *networkGate) open()  { n.mu.Unlock() }

func (n *networkGate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return gatedConn{c, n}, err
}

type gatedConn struct {
	net.Conn
	gate *networkGate
}

func (c gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.mu.RLock()
	defer c.gate.mu.RUnlock()
	return n, err
}

// A meter measures the usage from startMeter to stop.
type meter struct {
	started  time.Time
	cpu      time.Duration
	mem      runtime.MemStats
	peak     uint64
	stopping chan struct{} // closed by stop
	sampled  chan struct{} // closed by sample
}

// initialHeap is the size of the heap before the first measurement.
var initialHeap uint64

func startMeter() *meter {
	m := &meter{stopping: make(chan struct{}), sampled: make(chan struct{})}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m.mem)
	if initialHeap == 0 {
		initialHeap = m.mem.HeapAlloc
	}
	m.started, m.cpu = time.Now(), cpuTime()
	go m.sample()
	return m
}

// sample reads the size of the heap every millisecond. In that time the heap grows by a few
// megabytes at most, so the real peak is at most that much higher than the measured one.
func (m *meter) sample() {
	defer close(m.sampled)
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for ticker := time.NewTicker(time.Millisecond); ; {
		select {
		case <-ticker.C:
			metrics.Read(heap)
			m.peak = max(m.peak, heap[0].Value.Uint64())
		case <-m.stopping:
			return
		}
	}
}

func (m *meter) stop() usage {
	c := usage{Wall: time.Since(m.started), CPU: cpuTime() - m.cpu}
	close(m.stopping)
	<-m.sampled
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	c.Mallocs, c.Allocated = now.Mallocs-m.mem.Mallocs, now.TotalAlloc-m.mem.TotalAlloc
	c.Peak = max(m.peak, now.HeapAlloc) - initialHeap
	for range 3 { // several collections are necessary to empty the pools
		runtime.GC()
	}
	runtime.ReadMemStats(&now)
	c.Final = now.HeapAlloc - initialHeap
	return c
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
