package fault

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"

	"github.com/listwatch/listwatch"
)

// A Proxy passes connections on to a server, with faults. Its fields must be set before Serve, and not be changed then; its methods are
// safe for concurrent use.
type Proxy struct {
	// Listener is where clients come in. Connections that have SetLinger, as those of TCP do, can be reset; those that have
	// CloseWrite can be half closed.
	Listener net.Listener
	// Dial connects to the server.
	Dial func(ctx context.Context) (net.Conn, error)
	// Plan says what happens to which connection; nil: nothing.
	Plan Plan
	// Bit is told of each fault that bites, when it does; nil: nobody. It must be quick.
	OnInject func(Injection)

	state state
}

// A Bite is a fault that bit: a connection ended of it, or something that was on its way was held back.
type Injection struct {
	Kind Kind
	// Conn is the number of the connection.
	Conn int
	// Bytes is how many bytes of the server had passed.
	ServerBytes int64
}

// state is what a Proxy is doing.
type state struct {
	work sync.WaitGroup // of all connections

	mu sync.Mutex
	// Guarded by mu.
	links  map[*link]struct{}
	next   int // the number of the next connection
	healed bool
	closed bool
	bites  map[Kind]int
	cancel context.CancelFunc // of dialling
}

// Serve accepts connections until Close, and returns why it can't any more; nil after Close.
func (p *Proxy) Serve() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.state.mu.Lock()
	p.state.cancel = cancel
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
		p.pass(ctx, c)
	}
}

// pass makes a link of an accepted connection, unless the proxy is closed.
func (p *Proxy) pass(ctx context.Context, client net.Conn) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	if p.state.closed {
		_ = client.Close()
		return
	}
	l := newLink(p, client, p.state.next)
	p.state.next++
	if p.Plan != nil && !p.state.healed {
		l.fault = p.Plan(l.number)
	}
	if p.state.links == nil {
		p.state.links = make(map[*link]struct{})
	}
	p.state.links[l] = struct{}{}
	p.state.work.Go(func() { // Close waits for it
		defer p.forget(l)
		server, err := p.Dial(ctx)
		if err != nil {
			reset(client) // this is how a port is refused that a proxy has accepted
			return
		}
		l.run(server)
	})
}

func (p *Proxy) forget(l *link) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	delete(p.state.links, l)
}

// Strike does f to all connections that are open now, at once; After and Bytes count for nothing.
func (p *Proxy) InjectAll(f Fault) {
	f.Wait, f.ServerBytes = 0, 0
	for _, l := range p.open() {
		l.strike(f)
	}
}

func (p *Proxy) open() []*link {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	var all []*link
	for l := range p.state.links {
		all = append(all, l)
	}
	return all
}

// Heal lets go of all that is held back, and lets no planned fault begin any more. What has vanished is gone: a half-open connection
// stays so until its ends notice.
func (p *Proxy) Heal() {
	p.state.mu.Lock()
	p.state.healed = true
	p.state.mu.Unlock()
	for _, l := range p.open() {
		l.heal()
	}
}

// Bites returns how many faults of each kind have bitten.
func (p *Proxy) Injections() map[Kind]int {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	return maps.Clone(p.state.bites)
}

func (p *Proxy) bit(b Injection) {
	p.state.mu.Lock()
	if p.state.bites == nil {
		p.state.bites = make(map[Kind]int)
	}
	p.state.bites[b.Kind]++
	p.state.mu.Unlock()
	if p.OnInject != nil {
		p.OnInject(b)
	}
}

// Close stops listening, ends all connections and waits until they have. The error is that of the listener.
func (p *Proxy) Close() error {
	p.state.mu.Lock()
	p.state.closed = true
	if p.state.cancel != nil {
		p.state.cancel()
	}
	p.state.mu.Unlock()
	err := p.Listener.Close()
	for _, l := range p.open() {
		l.end(false)
	}
	p.state.work.Wait()
	return err
}
