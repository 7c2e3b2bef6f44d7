package disconnect

import (
	"fmt"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
)

func h2ResetStream(e *harness.Env) {
	e.Use(harness.CountsWatches)
	start := e.Put("a")
	p := e.DialHTTP2()
	for _, stream := range []uint32{1, 3} {
		p.Watch(stream, harness.From(start))
		p.ReadUntil(h2peer.IsHeaders(stream))
	}
	e.WaitForWatches(2)
	p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeCancel))
	if took := e.WaitForWatches(1); e.Setup.FakeTime && took > 250*time.Millisecond {
		e.Errorf("the server released the watch after %v, want at most 250ms", took)
	}
	for i := range 3 {
		e.Put("a")
		p.WantEvents(3, i+1)
	}
	if n := len(p.Data[1]); n > 0 {
		e.Errorf("got %d bytes on the stream that was reset, want none", n)
	}
}

// serveH2Script starts a server that accepts one watch on each connection, and then sends the
// connection on the returned channel. The case writes all further frames itself.
func serveH2Script(e *harness.Env) (*harness.Route, <-chan *h2peer.Peer) {
	e.Use(harness.InProcess)
	l := memnet.Listen()
	e.Cleanup(func() { l.Close() })
	peers := make(chan *h2peer.Peer, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.Cleanup(func() { c.Close() })
			p := h2peer.Server(e, c)
			acceptWatch(p)
			peers <- p
		}
	}()
	u := *e.URL
	u.Host = l.Addr().String()
	return e.RouteTo(&harness.Instance{URL: &u, Network: transport.Network{Dial: l.Dial}}), peers
}

// acceptWatch waits for a request and sends the response headers of a watch.
func acceptWatch(p *h2peer.Peer) {
	stream := p.ReadUntil(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders }).Header().StreamID
	p.Must(p.Respond(stream, ":status", "200", "content-type", harness.JSONMediaType))
}

// sendEvent sends an ADDED event on a stream. If end is true, the event also ends the
// stream.
func sendEvent(p *h2peer.Peer, stream uint32, name string, end bool) {
	text := fmt.Sprintf(`{"type":"ADDED","object":%s}`+"\n", harness.AddedEvent(name, "5").Object.Data)
	p.Must(p.Framer.WriteData(stream, end, []byte(text)))
}

func h2GoAway(e *harness.Env) {
	route, peers := serveH2Script(e)
	dial := func() *harness.Watch { return e.WithRoute(route).Dial("") }
	first := dial()
	one := <-peers
	one.Must(one.Framer.WriteGoAway(1, http2.ErrCodeNo, nil))
	sendEvent(one, 1, "a", false)
	first.Want("ADDED a") // the GOAWAY was sent first, so the client has received it

	second := dial()
	two := <-peers // the client has opened another connection
	sendEvent(two, 1, "b", false)
	second.Want("ADDED b")
	sendEvent(one, 1, "c", true)
	first.Want("ADDED c")
	first.WantEnd()
	sendEvent(two, 1, "d", true)
	second.Want("ADDED d")
	second.WantEnd()
}

func h2PingTimeout(e *harness.Env) {
	const streams = 4
	env, conns := e.WithConnections()
	r := env.Remote(env.Route)
	start := e.Put("a")
	var all []*resumingWatch
	for range streams {
		all = append(all, newResumingWatch(env, r, start))
		// net/http lets other requests use a new connection only after the request for which it
		// opened the connection has received it. Fake time advances only after that.
		<-time.After(time.Millisecond)
	}
	e.Put("a")
	for _, f := range all {
		f.catchUp()
	}
	if n := conns.Count(); n != 1 {
		e.Fatalf("%d streams use %d connections, want one", streams, n)
	}
	lost := conns.Last()
	defer lost.EndStall()
	lost.Stall(true)
	begin := time.Now()
	e.Put("a")
	for _, f := range all {
		f.catchUp()
	}
	if took := time.Since(begin); took > time.Minute {
		e.Errorf("the streams resumed %v after the connection stalled, want at most a minute", took)
	}
}
