package informer

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

// A cost is what something took of a process.
type cost struct {
	Wall, CPU time.Duration
	// Mallocs are how many, Allocated how many bytes of them.
	Mallocs, Allocated uint64
	// Peak is the most that the heap had before something of it was collected; Final what is left of it after. Both are beside what was
	// there before the process began.
	Peak, Final uint64
}

// measure is the client's process: it follows what the server has, and says what that cost; then it says what it cost to be told of a change
// of every object, which the server makes while nothing gets through.
func measure(l lines, data, kind, url string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var door door
	handled := counter{full: make(chan struct{}, 2)}
	m := begin()
	keeps, err := datasets[data].contestants[kind](ctx, url, door.dial, handled.add)
	if err != nil {
		return err
	}
	<-handled.full
	said, err := json.Marshal(m.end())
	if err != nil {
		return err
	}
	door.close()
	if _, err := l.ask(string(said)); err != nil {
		return nil // that was all
	}
	m = begin()
	door.open()
	<-handled.full
	said, err = json.Marshal(m.end())
	runtime.KeepAlive(keeps)
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(said, '\n'))
	return err
}

// A counter counts calls of one goroutine at a time.
type counter struct {
	n    int
	full chan struct{} // filled by every benchObjects of them
}

func (c *counter) add() {
	if c.n++; c.n%benchObjects == 0 {
		c.full <- struct{}{}
	}
}

// A door lets nothing in while it is closed.
type door struct {
	mu sync.RWMutex
}

func (d *door) close() { d.mu.Lock() }
func (d *door) open()  { d.mu.Unlock() }

func (d *door) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return doorConn{c, d}, err
}

type doorConn struct {
	net.Conn
	door *door
}

func (c doorConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.door.mu.RLock()
	defer c.door.mu.RUnlock()
	return n, err
}

// A meter measures from begin to end.
type meter struct {
	began   time.Time
	cpu     time.Duration
	mem     runtime.MemStats
	peak    uint64
	stop    chan struct{}
	sampled chan struct{}
}

// base is what the heap had when the process began.
var base uint64

func begin() *meter {
	m := &meter{stop: make(chan struct{}), sampled: make(chan struct{})}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m.mem)
	if base == 0 {
		base = m.mem.HeapAlloc
	}
	m.began, m.cpu = time.Now(), cpuTime()
	go m.sample()
	return m
}

// sample looks at the heap every millisecond: it grows by megabytes at most meanwhile.
func (m *meter) sample() {
	defer close(m.sampled)
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for each := time.NewTicker(time.Millisecond); ; {
		select {
		case <-each.C:
			metrics.Read(heap)
			m.peak = max(m.peak, heap[0].Value.Uint64())
		case <-m.stop:
			return
		}
	}
}

func (m *meter) end() cost {
	c := cost{Wall: time.Since(m.began), CPU: cpuTime() - m.cpu}
	close(m.stop)
	<-m.sampled
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	c.Mallocs, c.Allocated = now.Mallocs-m.mem.Mallocs, now.TotalAlloc-m.mem.TotalAlloc
	c.Peak = max(m.peak, now.HeapAlloc) - base
	for range 3 { // so that pools are empty
		runtime.GC()
	}
	runtime.ReadMemStats(&now)
	c.Final = now.HeapAlloc - base
	return c
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
