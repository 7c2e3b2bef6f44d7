package loop

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/internal/racetest"
)

// Honest clients must never exceed the budget, however fast they send. In these tests the clock
// stands still, so the budget regains nothing.
func TestHonestClientsMeetNoBudget(t *testing.T) {
	early := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	tests := []struct {
		name    string
		handler http.HandlerFunc
		request func(p *h2peer.Peer, id uint32)
	}{
		{"uploads that are answered early", early, func(p *h2peer.Peer, id uint32) {
			p.Must(post(p, id))
			p.ReadUntil(h2peer.IsHeaders(id))
			for i := range 4 {
				p.Must(p.Framer.WriteData(id, i == 3, make([]byte, 1<<10)))
			}
		}},
		{"large uploads that are answered early", early, func(p *h2peer.Peer, id uint32) {
			p.Must(upload(p, id, large))
			p.ReadUntil(h2peer.IsReset(id))
			for i := range 4 {
				p.Must(p.Framer.WriteData(id, i == 3, make([]byte, 1<<10)))
			}
		}},
		{"trailers after an early answer", early, func(p *h2peer.Peer, id uint32) {
			p.Must(upload(p, id, large))
			p.ReadUntil(h2peer.IsReset(id))
			p.Must(p.Framer.WriteData(id, false, make([]byte, 1<<10)))
			p.Must(p.Request(id, "sum", "42")) // HEADERS with END_STREAM
		}},
		{"trailers of many streams after early answers", early, func(p *h2peer.Peer, id uint32) {
			p.Must(upload(p, id, large))
			p.ReadUntil(h2peer.IsReset(id))
			const last = 2*defaultStreams - 1
			for late := uint32(1); id%(last+1) == last && late <= last; late += 2 {
				p.Must(p.Request(id-last+late, "sum", "42"))
			}
		}},
		{"resets after an early answer", early, func(p *h2peer.Peer, id uint32) {
			p.Must(upload(p, id, large))
			p.ReadUntil(h2peer.IsReset(id))
			p.Must(p.Framer.WriteData(id, false, make([]byte, 1<<10)))
			p.Must(p.Framer.WriteRSTStream(id, http2.ErrCodeCancel))
		}},
		{"resets that cross the end, with a PING", early, func(p *h2peer.Peer, id uint32) {
			p.Must(headers(p.Framer, int(id/2), true))
			p.ReadUntil(h2peer.IsHeaders(id))
			p.Must(p.Framer.WriteRSTStream(id, http2.ErrCodeCancel))
			p.Must(p.Framer.WritePing(false, [8]byte{}))
		}},
		{"priorities", early, func(p *h2peer.Peer, id uint32) {
			p.Must(headers(p.Framer, int(id/2), true))
			p.Must(p.Framer.WritePriority(id, http2.PriorityParam{Weight: 1}))
			for range 2 {
				p.Must(p.Framer.WritePriorityUpdate(id, "u=1"))
			}
			p.Must(p.Framer.WriteRawFrame(0x0b+0x1f, 0, id, nil)) // a browser's GREASE
			p.ReadUntil(h2peer.IsHeaders(id))
		}},
		{"large headers", early, func(p *h2peer.Peer, id uint32) {
			if id%20 == 1 { // these requests are large, and cost 3 units each if they are charged
				p.Must(writeBlock(p, id,
					append(bytes.Clone(request), h2peer.HeaderBlock("authorization", strings.Repeat("!", 40<<10))...)))
				p.ReadUntil(h2peer.IsHeaders(id))
			}
		}},
		{"small messages of gRPC", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(flushing{w}, r.Body)
		}, func(p *h2peer.Peer, id uint32) {
			if id == 1 {
				p.Must(post(p, 1))
			}
			p.Must(p.Framer.WriteData(1, false, []byte("message")))
			for got := len(p.Data[1]); len(p.Data[1]) == got; {
				p.Read()
			}
			p.Must(p.Framer.WriteWindowUpdate(1, 7))
			p.Must(p.Framer.WriteWindowUpdate(0, 7))
			p.Must(p.Framer.WritePing(false, [8]byte{}))
		}},
		{"small messages on exhausted windows", func(w http.ResponseWriter, r *http.Request) {
			w.Write(make([]byte, initialWindow))
			io.Copy(flushing{w}, r.Body)
		}, func(p *h2peer.Peer, id uint32) {
			if id == 1 {
				p.Must(post(p, 1))
				readData(p, initialWindow)
			}
			p.Must(p.Framer.WriteData(1, false, []byte("message")))
			returnWindow(p, 7)
		}},
		{"small windows", func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 5*budgetSize*bytesPerFrame+initialWindow))
		}, func(p *h2peer.Peer, id uint32) {
			if id == 1 {
				p.Must(headers(p.Framer, 0, true))
				readData(p, initialWindow)
			}
			returnWindow(p, bytesPerFrame)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, tt.handler, false)
				p := h2peer.Client(t, f.dial(t))
				n := 5 * budgetSize
				if strings.HasSuffix(tt.name, "uploads that are answered early") {
					n = 20_000
				}
				for i := range racetest.Rounds(n) {
					tt.request(p, uint32(2*i+1))
				}
			})
		})
	}
}

// returnWindow opens the windows of stream 1 by n bytes, and reads as many.
func returnWindow(p *h2peer.Peer, n int) {
	p.Must(p.Framer.WriteWindowUpdate(1, uint32(n)))
	p.Must(p.Framer.WriteWindowUpdate(0, uint32(n)))
	p.Must(p.Framer.WritePing(false, [8]byte{}))
	readData(p, n)
}

// readData reads n bytes of stream 1.
func readData(p *h2peer.Peer, n int) {
	clear(p.Data)
	for len(p.Data[1]) < n {
		p.Read()
	}
}

// post writes the HEADERS of a request whose body follows.
func post(p *h2peer.Peer, id uint32) error { return headers(p.Framer, int(id/2), false) }

// large is a length that is not discarded, so that an early response is followed by RST_STREAM.
const large = "16777216"

// upload writes the HEADERS of a request with a body of the given length.
func upload(p *h2peer.Peer, id uint32, length string) error {
	block := append(bytes.Clone(request), h2peer.HeaderBlock("content-length", length)...)
	return p.Framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, BlockFragment: block})
}

// flushing flushes after each Write.
type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

// Frames of streams that the client opened before it received the last GOAWAY must not end the
// streams that the server still serves.
func TestLateStreamsSurviveGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, all, f := openWatches(t, 1)
		down := make(chan error, 1)
		go func() { down <- f.http.Shutdown(t.Context()) }()
		for p.ReadUntil(h2peer.Is[*http2.GoAwayFrame]).(*http2.GoAwayFrame).LastStreamID != 1 {
			continue
		}
		for id := uint32(3); id < 3+2*500; id += 2 {
			p.Must(post(p, id))
			p.Must(p.Framer.WriteWindowUpdate(id, 1<<10))
			// Together, the DATA frames exceed the connection's window.
			p.Must(p.Framer.WriteData(id, false, make([]byte, 8<<10)))
			p.Must(p.Framer.WritePriority(id, http2.PriorityParam{Weight: 1}))
			if id%4 == 1 {
				p.Must(p.Framer.WriteRSTStream(id, http2.ErrCodeCancel))
			} else {
				p.Must(p.Request(id, "sum", "42"))
			}
		}
		synctest.Wait()
		all[0].Close([]byte("end"))
		p.ReadUntil(h2peer.IsEnd(1))
		if string(p.Data[1]) != "end" {
			t.Errorf("got %q, want the end of the watch", p.Data[1])
		}
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

// A client that has ended its stream must send no further frames on it.
func TestFramesBehindTheClientsEndAreErrors(t *testing.T) {
	end := map[string]func(p *h2peer.Peer) error{
		"RST_STREAM": func(p *h2peer.Peer) error { return p.Framer.WriteRSTStream(1, http2.ErrCodeCancel) },
		"END_STREAM": func(p *h2peer.Peer) error { return p.Framer.WriteData(1, true, nil) },
		"the window": func(p *h2peer.Peer) error {
			for range defaultWindow / (4 << 10) {
				if err := p.Framer.WriteData(1, false, make([]byte, 4<<10)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, end := range end {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, func(http.ResponseWriter, *http.Request) {}, false)
				p := h2peer.Client(t, f.dial(t))
				p.Must(post(p, 1))
				if r := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame); r.ErrCode != http2.ErrCodeNo {
					t.Errorf("got %v, want NO_ERROR", r)
				}
				p.Must(end(p))
				p.Must(p.Framer.WriteData(1, false, []byte("x")))
				if r := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame); r.ErrCode != http2.ErrCodeStreamClosed {
					t.Errorf("got %v, want STREAM_CLOSED", r)
				}
			})
		})
	}
}
