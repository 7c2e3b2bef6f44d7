package cases

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
)

func h2ResetStream(e *env) {
	e.use(CountsWatches)
	start := e.put("a")
	p := e.h2Peer()
	for _, stream := range []uint32{1, 3} {
		p.watch(stream, from(start))
		p.until(isHeadersOf(stream))
	}
	e.waitWatches(2)
	p.must(p.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	if took := e.waitWatches(1); e.setup.FakeTime && took > 250*time.Millisecond {
		e.Errorf("the watch was given up after %v, want at once", took)
	}
	for i := range 3 {
		e.put("a")
		p.wantEvents(3, i+1)
	}
	if n := len(p.data[1]); n > 0 {
		e.Errorf("got %d bytes of the stream that was reset", n)
	}
}

// h2Server takes connections, each of which answers one watch by hand and is then sent on the channel.
func (e *env) h2Server() (*site, <-chan *h2Peer) {
	e.use(InProcess)
	l := memnet.Listen()
	e.Cleanup(func() { l.Close() })
	peers := make(chan *h2Peer, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.Cleanup(func() { c.Close() })
			p := e.newH2Peer(c)
			if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
				e.Error(err)
				return
			}
			p.must(p.framer.WriteSettings())
			p.answer()
			peers <- p
		}
	}()
	u := *e.URL
	u.Host = l.Addr().String()
	return e.reach(&Instance{URL: &u, Network: transport.Network{Dial: l.Dial}}), peers
}

// answer waits for a request, and answers that a stream begins. It returns the number of that.
func (p *h2Peer) answer() uint32 {
	p.Helper()
	stream := p.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders }).Header().StreamID
	p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, EndHeaders: true, BlockFragment: fieldBlock(":status", "200", "content-type", jsonType),
	}))
	return stream
}

// send writes an event of a stream, and its end after it.
func (p *h2Peer) send(stream uint32, name string, end bool) {
	p.Helper()
	text := fmt.Sprintf(`{"type":"ADDED","object":%s}`+"\n", added(name, "5").Object.Data)
	p.must(p.framer.WriteData(stream, end, []byte(text)))
}

func h2GoAway(e *env) {
	at, peers := e.h2Server()
	dial := func() *stream {
		ctx, cancel := context.WithTimeout(context.Background(), e.patience())
		e.Cleanup(cancel)
		r, err := at.client.Dial(ctx, &transport.Request{URL: at.watched("watch=1")})
		if err != nil {
			e.Fatal(err)
		}
		e.Cleanup(func() { r.Close() })
		return &stream{e, r}
	}
	first := dial()
	one := <-peers
	one.must(one.framer.WriteGoAway(1, http2.ErrCodeNo, nil))
	one.send(1, "a", false)
	first.want("ADDED a") // and so the GOAWAY has come before it

	second := dial()
	two := <-peers // on another connection
	two.send(1, "b", false)
	second.want("ADDED b")
	one.send(1, "c", true)
	first.want("ADDED c")
	first.wantEnd()
	two.send(1, "d", true)
	second.want("ADDED d")
	second.wantEnd()
}

func h2PingTimeout(e *env) {
	const streams = 4
	wired, wires := e.wired()
	r := wired.remote(wired.site)
	start := e.put("a")
	var all []*follower
	for range streams {
		all = append(all, wired.follower(r, start))
	}
	e.put("a")
	for _, f := range all {
		f.catchUp()
	}
	if n := wires.count(); n != 1 {
		e.Fatalf("%d streams are on %d connections, want one", streams, n)
	}
	lost := wires.last()
	defer lost.found()
	lost.stall(true)
	begin := time.Now()
	e.put("a")
	for _, f := range all {
		f.catchUp()
	}
	if took := time.Since(begin); took > time.Minute {
		e.Errorf("the streams went on %v after the connection fell silent, want within a minute", took)
	}
}
