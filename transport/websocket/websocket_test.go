package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

func TestPingsKeepAnIdleWatchOpen(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, transporttest.ServerConfig{Server: &Server{}, TLS: secure})
				var last time.Time
				request := jsonRequest(s)
				request.Activity = func() { last = time.Now() }
				r, err := (&Client{Network: s.Network}).Dial(t.Context(), request)
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
}

func TestDialEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		defer l.Close()
		s := startInMemory(t, transport.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := (&Client{Network: transport.Network{Dial: l.Dial}}).Dial(ctx, jsonRequest(s))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
