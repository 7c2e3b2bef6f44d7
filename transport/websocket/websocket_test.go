package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
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

func TestEveryClientReadsEveryServerOverSockets(t *testing.T) {
	cells(t, func(t *testing.T, server, client Backend, secure bool, framer framing.Framer) {
		exchange(t, tcp(t, server, secure), client, framer)
	})
}

func TestEveryClientReadsEveryServerInMemory(t *testing.T) {
	cells(t, func(t *testing.T, server, client Backend, secure bool, framer framing.Framer) {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, &Server{Backend: server}, transport.Options{}, memnet.Listen(), secure)
			exchange(t, s, client, framer)
		})
	})
}

// exchange carries events in batches of several kinds, an hour of silence in fake time apart from none in real time, and a clean end.
func exchange(t *testing.T, s *site, client Backend, framer framing.Framer) {
	c := &Client{Network: s.network, Backend: client}
	r, err := c.Dial(t.Context(), &transport.Request{URL: s.url, Framings: []framing.Framer{framer}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stream := <-s.streams
	if !stream.Detached || stream.Encoder.Framer != framer {
		t.Errorf("got a stream of %s, detached %v", stream.Encoder.Framer.MediaType(), stream.Detached)
	}
	if got := r.Header().Get("Content-Type"); got != framer.MediaType() {
		t.Errorf("got Content-Type %q", got)
	}
	batches := []struct{ events, size int }{{1, 10}, {16, 1000}, {40, 8 << 10}, {3, 70 << 10}, {1, 1 << 20}, {200, 1}}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, b := range batches {
			var events []listwatch.Event
			for i := range b.events {
				events = append(events, event(i, b.size))
			}
			send(t, stream, events...)
		}
		stream.Sender.Close(transport.Finished)
	}()
	for _, b := range batches {
		for i := range b.events {
			wantEvent(t, r, i, b.size)
		}
	}
	for range 2 {
		if _, err := r.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v at the end, want EOF", err)
		}
	}
	<-sent
	wantDone(t, stream)
}

func TestAnIdleWatchLivesOnPingsAlone(t *testing.T) {
	cells(t, func(t *testing.T, server, client Backend, secure bool, framer framing.Framer) {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, &Server{Backend: server}, transport.Options{}, memnet.Listen(), secure)
			var last time.Time
			r, err := (&Client{Network: s.network, Backend: client}).Dial(t.Context(), &transport.Request{
				URL: s.url, Framings: []framing.Framer{framer}, Activity: func() { last = time.Now() },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			stream := <-s.streams
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

func TestContextGovernsTheWholeLifeOfAWatch(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		s := mem(t, b, transport.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := (&Client{Network: s.network, Backend: b}).Dial(ctx, jsonRequest(s))
		if err != nil {
			t.Fatal(err)
		}
		stream := <-s.streams
		start := time.Now()
		if _, err := r.Receive(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("it ended after %v", waited)
		}
		wantDone(t, stream)
	})
}

func TestCloseEndsAReceiveThatWaits(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		s := mem(t, b, transport.Options{})
		r, err := (&Client{Network: s.network, Backend: b}).Dial(t.Context(), jsonRequest(s))
		if err != nil {
			t.Fatal(err)
		}
		stream := <-s.streams
		ended := make(chan error)
		go func() { _, err := r.Receive(); ended <- err }()
		synctest.Wait()
		start := time.Now()
		r.Close()
		r.Close()
		wantCode(t, <-ended, listwatch.Unavailable)
		wantDone(t, stream)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("it took %v", waited)
		}
	})
}

func TestDialHeedsItsContextWhileTheServerIsSilent(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		l := memnet.Listen()
		defer l.Close()
		s := &site{url: mem(t, b, transport.Options{}).url}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := (&Client{Network: transport.Network{Dial: l.Dial}, Backend: b}).Dial(ctx, jsonRequest(s))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestManyStreamsComeAndGo(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		s := mem(t, b, transport.Options{})
		for i := range 50 {
			r, err := (&Client{Network: s.network, Backend: b}).Dial(t.Context(), jsonRequest(s))
			if err != nil {
				t.Fatal(err)
			}
			stream := <-s.streams
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for trySend(stream, event(1, 1000)) == nil {
				}
				stream.Sender.Close(transport.Abort)
			}()
			for range i {
				wantEvent(t, r, 1, 1000)
			}
			r.Close()
			<-sent
			wantDone(t, stream)
		}
	})
}
