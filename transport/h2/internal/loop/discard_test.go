package loop

import (
	"io"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
)

// sendBody sends a body of n bytes as clients do that look only at the windows until they have sent
// everything: Java's HttpClient, and httpx. It returns the time that this took, and the first
// RST_STREAM, or nil. If the client has to wait for its window for a minute, it gives up.
func sendBody(p *h2peer.Peer, n int) (took time.Duration, reset *http2.RSTStreamFrame) {
	start := time.Now()
	window := map[uint32]int{0: initialWindow, 1: initialWindow}
	for n > 0 && time.Since(start) < time.Minute {
		size := min(n, window[0], window[1], defaultFrameSize)
		if size > 0 {
			n -= size
			window[0] -= size
			window[1] -= size
			p.Must(p.Framer.WriteData(1, n == 0, make([]byte, size)))
			continue
		}
		p.ReadUntil(func(f http2.Frame) bool {
			switch f := f.(type) {
			case *http2.WindowUpdateFrame:
				window[f.StreamID] += int(f.Increment)
				return true
			case *http2.RSTStreamFrame:
				reset = f
				return true
			}
			return false
		})
		if reset != nil {
			return time.Since(start), reset
		}
	}
	return time.Since(start), nil
}

func TestRefusedUploadsCanBeCompleted(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	tests := map[string]http.HandlerFunc{
		"at once": refuse,
		"after a part": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 60_000))
			refuse(w, r)
		},
		"after the window": func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
			refuse(w, r)
		},
	}
	for name, handler := range tests {
		for _, size := range []int{
			60_001, 65_535, 65_536, 70_000, 1_000_000, 1_048_577, 1_114_112, 2_900_000,
			8 << 20,
		} {
			for _, isDeclared := range []bool{true, false} {
				t.Run(name+" "+strconv.Itoa(size)+" "+strconv.FormatBool(isDeclared), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := h2peer.Client(t, start(t, handler, false).dial(t))
						if isDeclared {
							p.Must(upload(p, 1, strconv.Itoa(size)))
						} else {
							p.Must(post(p, 1))
						}
						if took, reset := sendBody(p, size); reset != nil || took > 5*time.Second {
							t.Errorf("after %v the client has sent the body or got %v, want no RST_STREAM within 5 s",
								took, reset)
						}
					})
				})
			}
		}
	}
}

// A client whose body never ends must not be served forever.
func TestDiscardedBodiesAreLimited(t *testing.T) {
	handler := func(http.ResponseWriter, *http.Request) {}
	for name, send := range map[string]func(p *h2peer.Peer) *http2.RSTStreamFrame{
		"bytes": func(p *h2peer.Peer) *http2.RSTStreamFrame {
			_, reset := sendBody(p, 2*discardBytes)
			return reset
		},
		"time": func(p *h2peer.Peer) *http2.RSTStreamFrame {
			for range 2*discardTime/endDelay + 2 {
				p.Must(p.Framer.WriteData(1, false, []byte("x")))
				<-time.After(endDelay / 2)
			}
			return p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame)
		},
		"silence": func(p *h2peer.Peer) *http2.RSTStreamFrame {
			return p.ReadUntil(h2peer.IsReset(1)).(*http2.RSTStreamFrame)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := h2peer.Client(t, start(t, handler, false).dial(t))
				p.Must(post(p, 1))
				if reset := send(p); reset == nil || reset.ErrCode != http2.ErrCodeNo {
					t.Errorf("got %v, want NO_ERROR", reset)
				}
			})
		})
	}
}
