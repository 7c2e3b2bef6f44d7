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

// cells calls f for each server, client, security and framing.
func cells(t *testing.T, f func(t *testing.T, server, client Backend, secure bool, framer framing.Framer)) {
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

func TestAnIdleWatchLivesOnPingsAlone(t *testing.T) {
	cells(t, func(t *testing.T, server, client Backend, secure bool, framer framing.Framer) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, transporttest.ServerConfig{Server: &Server{Backend: server}, TLS: secure})
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
				send(t, stream, event(1, 1))
			}()
			wantEvent(t, r, 1, 1)
			if idle := time.Since(start); idle != 2*time.Hour+time.Second {
				t.Errorf("the event took %v", idle)
			}
			if quiet := time.Since(last); quiet > transport.DefaultPingInterval {
				t.Errorf("nothing was noticed for %v", quiet)
			}
			stream.Sender.Close(transport.GoingAway)
			if _, err := r.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("got %v at the end, want EOF", err)
			}
		})
	})
}

func TestDialHeedsItsContextWhileTheServerIsSilent(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		l := memnet.Listen()
		defer l.Close()
		s := mem(t, b, transport.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := (&Client{Network: transport.Network{Dial: l.Dial}, Backend: b}).Dial(ctx, jsonRequest(s))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
