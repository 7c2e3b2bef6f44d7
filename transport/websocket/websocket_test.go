package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

// onEachCombination calls f for each combination of server, client, TLS and framing.
func onEachCombination(t *testing.T, f func(t *testing.T, server, client Backend, secure bool, framer framing.Framer)) {
	for _, server := range backends {
		for _, client := range backends {
			for _, secure := range []bool{false, true} {
				for _, framer := range []framing.Framer{framing.JSON{}, framing.CBORSeq{}} {
					name := fmt.Sprintf("server=%s/client=%s/tls=%v/%s", server, client, secure, framer.MediaType())
					t.Run(name, func(t *testing.T) { f(t, server, client, secure, framer) })
				}
			}
		}
	}
}

func TestPingsKeepAnIdleWatchOpen(t *testing.T) {
	onEachCombination(t, func(t *testing.T, server, client Backend, secure bool, framer framing.Framer) {
		synctest.Test(t, func(t *testing.T) {
			s := startServer(t, transporttest.ServerConfig{Server: &Server{Backend: server}, TLS: secure})
			var last time.Time
			r, err := (&Client{Network: s.Network, Backend: client}).Dial(t.Context(), &transport.Request{
				URL: s.URL, Framings: []framing.Framer{framer}, Activity: func() { last = time.Now() },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			stream := <-s.Streams
			start := time.Now()
			go func() {
				time.Sleep(2*time.Hour + time.Second)
				send(t, stream, testEvent(1, 1))
			}()
			wantEvent(t, r, 1, 1)
			if idle := time.Since(start); idle != 2*time.Hour+time.Second {
				t.Errorf("got the event after %v, want 2h0m1s", idle)
			}
			if quiet := time.Since(last); quiet > transport.DefaultPingInterval {
				t.Errorf("the last activity was %v ago", quiet)
			}
			stream.Sender.Close(transport.GoingAway)
			if _, err := r.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want EOF at the end", err)
			}
		})
	})
}

func TestDialEndsWithItsContext(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		l := memnet.Listen()
		defer l.Close()
		s := startInMemory(t, b, transport.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := (&Client{Network: transport.Network{Dial: l.Dial}, Backend: b}).Dial(ctx, jsonRequest(s))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
