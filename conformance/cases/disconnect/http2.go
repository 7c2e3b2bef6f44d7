package disconnect

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
)

func h2ResetStream(e *harness.Env) {
	e.Use(harness.CountsWatches)
	start := e.Put("a")
	p := e.DialHTTP2()
	for _, stream := range []uint32{1, 3} {
		p.Watch(stream, harness.From(start))
		p.ReadUntil(harness.IsHeadersOf(stream))
	}
	e.WaitForWatches(2)
	p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeCancel))
	if took := e.WaitForWatches(1); e.Setup.FakeTime && took > 250*time.Millisecond {
		e.Errorf("the watch was given up after %v, want at once", took)
	}
	for i := range 3 {
		e.Put("a")
		p.WantEvents(3, i+1)
	}
	if n := len(p.Data[1]); n > 0 {
		e.Errorf("got %d bytes of the stream that was reset", n)
	}
}

// h2Server takes connections, each of which answers one watch by hand and is then sent on the channel.
func h2Server(e *harness.Env) (*harness.Route, <-chan *harness.HTTP2Conn) {
	e.Use(harness.InProcess)
	l := memnet.Listen()
	e.Cleanup(func() { l.Close() })
	peers := make(chan *harness.HTTP2Conn, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.Cleanup(func() { c.Close() })
			p := e.NewHTTP2Conn(c)
			if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
				e.Error(err)
				return
			}
			p.Must(p.Framer.WriteSettings())
			answer(p)
			peers <- p
		}
	}()
	u := *e.URL
	u.Host = l.Addr().String()
	return e.RouteTo(&harness.Instance{URL: &u, Network: transport.Network{Dial: l.Dial}}), peers
}

// answer waits for a request, and answers that a stream begins. It returns the number of that.
func answer(p *harness.HTTP2Conn) uint32 {
	p.Helper()
	stream := p.ReadUntil(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders }).Header().StreamID
	p.Must(p.Framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, BlockFragment: harness.EncodeFields(":status", "200", "content-type", harness.JSONMediaType),
	}))
	return stream
}

// send writes an event of a stream, and its end after it.
func send(p *harness.HTTP2Conn, stream uint32, name string, end bool) {
	p.Helper()
	text := fmt.Sprintf(`{"type":"ADDED","object":%s}`+"\n", harness.AddedEvent(name, "5").Object.Data)
	p.Must(p.Framer.WriteData(stream, end, []byte(text)))
}

func h2GoAway(e *harness.Env) {
	at, peers := h2Server(e)
	dial := func() *harness.Watch {
		ctx, cancel := context.WithTimeout(context.Background(), e.Patience())
		e.Cleanup(cancel)
		r, err := at.Client.Dial(ctx, &transport.Request{URL: at.WatchURL("watch=1")})
		if err != nil {
			e.Fatal(err)
		}
		e.Cleanup(func() { r.Close() })
		return &harness.Watch{Env: e, Receiver: r}
	}
	first := dial()
	one := <-peers
	one.Must(one.Framer.WriteGoAway(1, http2.ErrCodeNo, nil))
	send(one, 1, "a", false)
	first.Want("ADDED a") // and so the GOAWAY has come before it

	second := dial()
	two := <-peers // on another connection
	send(two, 1, "b", false)
	second.Want("ADDED b")
	send(one, 1, "c", true)
	first.Want("ADDED c")
	first.WantEnd()
	send(two, 1, "d", true)
	second.Want("ADDED d")
	second.WantEnd()
}

func h2PingTimeout(e *harness.Env) {
	const streams = 4
	wired, wires := e.WithConnections()
	r := wired.Remote(wired.Route)
	start := e.Put("a")
	var all []*follower
	for range streams {
		all = append(all, newFollower(wired, r, start))
	}
	e.Put("a")
	for _, f := range all {
		f.catchUp()
	}
	if n := wires.Count(); n != 1 {
		e.Fatalf("%d streams are on %d connections, want one", streams, n)
	}
	lost := wires.Last()
	defer lost.EndStall()
	lost.Stall(true)
	begin := time.Now()
	e.Put("a")
	for _, f := range all {
		f.catchUp()
	}
	if took := time.Since(begin); took > time.Minute {
		e.Errorf("the streams went on %v after the connection fell silent, want within a minute", took)
	}
}
