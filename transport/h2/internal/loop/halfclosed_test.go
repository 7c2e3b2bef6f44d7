package loop

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// An early response must not hide from a client what is wrong with the rest of its request.
func TestEarlyResponsesDoNotHideErrors(t *testing.T) {
	tests := []struct {
		name  string
		wrong func(p *h2peer.Peer) error
		want  http2.ErrCode
	}{
		{"WINDOW_UPDATE", func(p *h2peer.Peer) error {
			p.Must(p.Framer.WriteWindowUpdate(1, 1<<31-1))
			return p.Framer.WriteWindowUpdate(1, 1<<31-1)
		}, http2.ErrCodeFlowControl},
		{
			"too short", func(p *h2peer.Peer) error { return p.Framer.WriteData(1, true, []byte("12")) },
			http2.ErrCodeProtocol,
		},
		{
			"too long", func(p *h2peer.Peer) error { return p.Framer.WriteData(1, false, []byte("1234")) },
			http2.ErrCodeProtocol,
		},
		{"trailers without an end", func(p *h2peer.Peer) error { return upload(p, 1, "3") }, http2.ErrCodeProtocol},
		{"END_STREAM twice", func(p *h2peer.Peer) error {
			p.Must(p.Framer.WriteData(1, true, []byte("123")))
			return p.Framer.WriteData(1, true, nil)
		}, http2.ErrCodeStreamClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, func(http.ResponseWriter, *http.Request) {}, false)
				p := h2peer.Client(t, f.dial(t))
				p.Must(upload(p, 1, "3"))
				p.ReadUntil(h2peer.IsHeaders(1))
				p.Must(tt.wrong(p))
				if r := p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame); r.ErrCode != tt.want {
					t.Errorf("got %v, want %v", r, tt.want)
				}
			})
		})
	}
}

// A client that ends its request soon after an early response needs no RST_STREAM.
func TestOnlyUnfinishedUploadsAreReset(t *testing.T) {
	tests := []struct {
		name, length string
		wait         time.Duration // after the response
		isReset      bool
	}{
		{"in time", "3", endDelay - 1, false},
		{"too late", "3", endDelay, true},
		{"larger than the window", large, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, func(http.ResponseWriter, *http.Request) {}, false)
				p := h2peer.Client(t, f.dial(t))
				p.Must(upload(p, 1, tt.length))
				p.ReadUntil(h2peer.IsHeaders(1))
				<-time.After(tt.wait)
				synctest.Wait()
				p.Must(p.Framer.WriteData(1, true, []byte("123")))
				<-time.After(2 * endDelay)
				p.Must(p.Framer.WritePing(false, [8]byte{}))
				var isReset bool
				p.ReadUntil(func(f http2.Frame) bool {
					isReset = isReset || h2peer.IsReset(1)(f)
					return h2peer.Is[*http2.PingFrame](f)
				})
				if isReset != tt.isReset {
					t.Errorf("RST_STREAM: got %v, want %v", isReset, tt.isReset)
				}
			})
		})
	}
}
