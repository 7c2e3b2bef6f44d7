package fault

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Proxy forwards connections to a server and injects faults. Set its fields before Serve
// and do not change them afterwards. Its methods are safe for concurrent use.
type Proxy struct {
	// Listener accepts the clients' connections. Reset needs connections with a SetLinger
	// method, and half-close needs CloseWrite; TCP connections have both.
	Listener net.Listener
	// Dial connects to the server.
	Dial func(ctx context.Context) (net.Conn, error)
	// Plan chooses the fault of each connection. If nil, no faults are planned.
	Plan Plan
	// OnInject is called when a fault takes effect. It must return quickly. It may be nil.
	OnInject func(Injection)

	state proxyState
}

// An Injection reports a fault that took effect. Stall, Drip and Latency take effect when they
// first delay data. All other faults take effect as soon as they start.
type Injection struct {
	Kind Kind
	// Conn is the number of the connection. The first accepted connection has number zero.
	Conn int
	// ServerBytes is the number of bytes from the server that had been forwarded when the fault
	// took effect.
	ServerBytes int64
}

// proxyState is the mutable state of a Proxy.
type proxyState struct {
	work sync.WaitGroup // counts open connections

	mu sync.Mutex
	// Guarded by mu.
	conns      map[*proxiedConn]struct{}
	nextNumber int // number of the next connection
	healed     bool
	closed     bool
	injections map[Kind]int
	cancelDial context.CancelFunc // cancels dials in progress
}

// Serve accepts connections until Close. It returns nil after Close, and otherwise the
// error of the listener with code Unavailable.
func (p *Proxy) Serve() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.state.mu.Lock()
	p.state.cancelDial = cancel
	closed := p.state.closed
	p.state.mu.Unlock()
	if closed {
		return nil
	}
	for {
		c, err := p.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return &listwatch.Error{Code: listwatch.Unavailable, Op: "fault proxy", Err: err}
		}
		p.handle(ctx, c)
	}
}

// handle starts forwarding an accepted connection, or closes it if the proxy is closed.
func (p *Proxy) handle(ctx context.Context, client net.Conn) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	if p.state.closed {
		_ = client.Close()
		return
	}
	pc := newProxiedConn(p, client, p.state.nextNumber)
	p.state.nextNumber++
	if p.Plan != nil && !p.state.healed {
		pc.planned = p.Plan(pc.number)
	}
	if p.state.conns == nil {
		p.state.conns = make(map[*proxiedConn]struct{})
	}
	p.state.conns[pc] = struct{}{}
	p.state.work.Go(func() { // Close waits for this goroutine
		defer p.remove(pc)
		server, err := p.Dial(ctx)
		if err != nil {
			reset(client) // a server that refuses a connection resets it, too
			return
		}
		pc.run(server)
	})
}

func (p *Proxy) remove(pc *proxiedConn) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	delete(p.state.conns, pc)
}

// InjectAll starts f on all open connections. It ignores f.Wait and f.ServerBytes.
func (p *Proxy) InjectAll(f Fault) {
	f.Wait, f.ServerBytes = 0, 0
	for _, pc := range p.openConns() {
		pc.start(f)
	}
}

func (p *Proxy) openConns() []*proxiedConn {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	var all []*proxiedConn
	for pc := range p.state.conns {
		all = append(all, pc)
	}
	return all
}

// Heal cancels all planned faults, also of later connections, and ends all active faults except
// [HalfOpen]: a half-open connection stays silent until its ends close it.
func (p *Proxy) Heal() {
	p.state.mu.Lock()
	p.state.healed = true
	p.state.mu.Unlock()
	for _, pc := range p.openConns() {
		pc.heal()
	}
}

// Injections returns the number of faults of each kind that took effect.
func (p *Proxy) Injections() map[Kind]int {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	return maps.Clone(p.state.injections)
}

func (p *Proxy) recordInjection(b Injection) {
	p.state.mu.Lock()
	if p.state.injections == nil {
		p.state.injections = make(map[Kind]int)
	}
	p.state.injections[b.Kind]++
	p.state.mu.Unlock()
	if p.OnInject != nil {
		p.OnInject(b)
	}
}

// Close stops listening, closes all connections and waits until they are closed. It returns
// the error of the listener.
func (p *Proxy) Close() error {
	p.state.mu.Lock()
	p.state.closed = true
	if p.state.cancelDial != nil {
		p.state.cancelDial()
	}
	p.state.mu.Unlock()
	err := p.Listener.Close()
	for _, pc := range p.openConns() {
		pc.close(false)
	}
	p.state.work.Wait()
	return err
}
