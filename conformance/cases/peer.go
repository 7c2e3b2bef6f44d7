package cases

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A peer is a server's end of one watch, played by hand: on HTTP/1.1 and WebSocket it writes the connection's own bytes, on HTTP/2 what
// goes into DATA frames.
type peer struct {
	*env
	request *http.Request
	w       http.ResponseWriter // of HTTP/2
	conn    net.Conn
	in      *bufio.Reader   // what the client sends; not on HTTP/2
	text    bool            // messages are text
	over    context.Context // ends with the case
}

// A part is what a peer does.
type part func(p *peer)

// A cast is the peers of a step. None begins once it is over.
type cast struct {
	playing sync.WaitGroup
	over    context.Context
	end     context.CancelFunc

	mu sync.Mutex // makes a peer begin before the end or not at all
}

// join reports whether a peer may begin; it is done by playing.Done.
func (c *cast) join() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Err() != nil {
		return false
	}
	c.playing.Add(1)
	return true
}

func (c *cast) leave() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.playing.Wait()
}

// byHand is a step: a watch of a content type, played by do. Where do returns the stream is not ended yet: that is another part. The
// case does not end before its peers.
func (e *env) byHand(contentType string, do ...part) http.HandlerFunc {
	return e.byHandAs(head{contentType: contentType}, do...)
}

// A head is how the answer to a watch begins.
type head struct {
	contentType string
	more        []string // headers, in pairs
	whole       bool     // over HTTP/1.1: nothing tells the end of the body but that of the connection
}

// byHandAs is byHand with another beginning.
func (e *env) byHandAs(h head, do ...part) http.HandlerFunc {
	all := new(cast)
	all.over, all.end = context.WithTimeout(context.Background(), e.patience())
	e.Cleanup(all.leave)
	return func(w http.ResponseWriter, r *http.Request) {
		if !all.join() {
			return
		}
		defer all.playing.Done()
		p := &peer{env: e, request: r, w: w, text: h.contentType == jsonType, over: all.over}
		p.conn, _ = r.Context().Value(connKey{}).(net.Conn)
		if err := p.accept(h); err != nil {
			return // the client has left
		}
		for _, d := range do {
			d(p)
		}
		if e.on != "h2" {
			p.conn.Close()
		}
	}
}

const jsonType = "application/json"

// accept answers the request: a stream begins.
func (p *peer) accept(h head) error {
	header := append([]string{"Content-Type", h.contentType}, h.more...)
	if p.on == "h2" {
		for i := 0; i < len(header); i += 2 {
			p.w.Header().Set(header[i], header[i+1])
		}
		return http.NewResponseController(p.w).Flush()
	}
	conn, buffers, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(p.patience()))
	p.conn, p.in = conn, buffers.Reader
	status := "200 OK"
	switch {
	case p.on == "ws":
		status = "101 Switching Protocols"
		header = append(header, "Upgrade", "websocket", "Connection", "Upgrade",
			"Sec-WebSocket-Accept", acceptKey(p.request.Header.Get("Sec-Websocket-Key")))
	case h.whole:
		header = append(header, "Connection", "close")
	default:
		header = append(header, "Transfer-Encoding", "chunked", "Connection", "close")
	}
	text := "HTTP/1.1 " + status + "\r\n"
	for i := 0; i < len(header); i += 2 {
		text += header[i] + ": " + header[i+1] + "\r\n"
	}
	_, err = io.WriteString(conn, text+"\r\n")
	return err
}

// pieces is a part: each payload is one chunk, one DATA frame or one message.
func pieces(payloads ...string) part {
	return func(p *peer) {
		for _, payload := range payloads {
			p.send(payload)
		}
	}
}

func (p *peer) send(payload string) {
	switch {
	case p.on == "h2":
		_, _ = io.WriteString(p.w, payload)
		_ = http.NewResponseController(p.w).Flush() // the client may have left
	case p.on == "h1":
		p.raw(fmt.Sprintf("%x\r\n%s\r\n", len(payload), payload))
	case p.text:
		p.frame(whole(opText, payload))
	default:
		p.frame(whole(opBinary, payload))
	}
	p.settle()
}

// raw writes bytes of the connection itself.
func (p *peer) raw(bytes string) { _, _ = io.WriteString(p.conn, bytes) } // the client may have left

func (p *peer) frame(f wsFrame) { p.raw(string(f.bytes())) }

// raws and frames are parts of HTTP/1.1 and of WebSocket.
func raws(bytes ...string) part {
	return func(p *peer) {
		for _, b := range bytes {
			p.raw(b)
			p.settle()
		}
	}
}

func frames(frames ...wsFrame) part {
	return func(p *peer) {
		for _, f := range frames {
			p.frame(f)
			p.settle()
		}
	}
}

// settle lets the client read what has been sent so far by itself, where the clock is a bubble's.
func (p *peer) settle() {
	if p.setup.FakeTime && p.over.Err() == nil {
		<-time.After(time.Millisecond)
	}
}

// ends is a part: a clean end.
func ends(p *peer) {
	switch p.on {
	case "h1":
		p.raw("0\r\n\r\n")
	case "ws":
		closes(closedNormally)(p)
	}
}

// closes is a part: a close frame, and the wait for the answer to it.
func closes(code uint16) part {
	return func(p *peer) {
		p.frame(closing(code))
		_, _ = closeCode(p.in) // that of a client that lives
	}
}

// cuts is a part: the connection is closed, with nothing said.
func cuts(p *peer) { p.conn.Close() }

// resets is a part: RST_STREAM on HTTP/2, and elsewhere a connection that is reset.
func resets(p *peer) {
	if p.on == "h2" {
		panic(http.ErrAbortHandler)
	}
	if l, ok := p.conn.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	p.conn.Close()
}

// stays is a part: the stream stays open until the client leaves it.
func stays(p *peer) {
	if p.on == "h2" {
		<-p.request.Context().Done()
		return
	}
	_, _ = io.Copy(io.Discard, p.in)
}

// after is a part: a wait until the case closes ready, or ends.
func after(ready <-chan struct{}) part {
	return func(p *peer) {
		select {
		case <-ready:
		case <-p.over.Done():
		}
	}
}

// at returns e with another site, and its client.
func (e *env) at(s *site) *env {
	other := *e
	other.site = s
	return &other
}

// hand opens a site where every watch is played by do, and returns e there.
func (e *env) hand(contentType string, do ...part) *env {
	e.Helper()
	e.use(InProcess)
	return e.stage(contentType, do...)
}

// stage is hand in a case that can do without: one about servers too, of which the target may be of another make.
func (e *env) stage(contentType string, do ...part) *env {
	e.Helper()
	return e.at(e.openAny(e.byHand(contentType, do...)))
}
