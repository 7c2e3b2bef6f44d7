package websocket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
)

// invalidFrames holds frames that a client must not send. They are masked, because a client
// must mask its frames.
var invalidFrames = []struct {
	name  string
	frame []byte
	code  int // the code of the server's close frame
}{
	{"RSV1", newFrame(bitFin|0x40|opPing, nil, true), closeProtocol},
	{"RSV2", newFrame(bitFin|0x20|opText, nil, true), closeProtocol},
	{"RSV3", newFrame(bitFin|0x10|opClose, nil, true), closeProtocol},
	{"opcode 3", newFrame(bitFin|0x3, nil, true), closeProtocol},
	{"opcode 11", newFrame(bitFin|0xB, nil, true), closeProtocol},
	{"long ping", newFrame(bitFin|opPing, make([]byte, 126), true), closeProtocol},
	{"fragmented ping", newFrame(opPing, nil, true), closeProtocol},
	{"continuation without a message", newFrame(bitFin|opContinuation, []byte("x"), true), closeProtocol},
	{"half a close code", newFrame(bitFin|opClose, []byte{3}, true), closeProtocol},
	{"impossible length", append([]byte{bitFin | opText, bitMask | 127, 0x80}, make([]byte, 11)...), closeProtocol},
	{"close code 999", newFrame(bitFin|opClose, closePayload(999, ""), true), closeProtocol},
	{"close code 1005", newFrame(bitFin|opClose, closePayload(1005, ""), true), closeProtocol},
	{"message within a message", bytes.Repeat(newFrame(opText, []byte("x"), true), 2), closeProtocol},
	{
		"16 MiB announced", append([]byte{bitFin | opText, bitMask | 127, 0, 0, 0, 0, 1, 0, 0, 0}, 1, 2, 3, 4),
		closeTooBig,
	},
}

// A web page may send messages to keep its connection alive. The test sends at most 32 KiB each
// minute, which is less than wswatch.MaxInbound. The conformance case limit/ws-client-talks checks
// the same rule.
func TestServerIgnoresMessages(t *testing.T) {
	messages := map[string][]byte{
		"text":      newFrame(bitFin|opText, []byte("ping"), true),
		"binary":    newFrame(bitFin|opBinary, []byte{0, 1}, true),
		"empty":     newFrame(bitFin|opText, nil, true),
		"not UTF-8": newFrame(bitFin|opText, []byte("\xff"), true),
		"32 KiB":    newFrame(bitFin|opBinary, make([]byte, 32<<10), true),
		"fragmented": append(newFrame(opText, []byte("pi"), true),
			newFrame(bitFin|opContinuation, []byte("ng"), true)...),
	}
	synctest.Test(t, func(t *testing.T) {
		for name, bytes := range messages {
			p, stream := startInMemory(t, transport.Options{PingInterval: -1}).watch()
			for n := range 5 {
				p.Write(bytes)
				p.writeFrame(bitFin|opPing, []byte(name))
				p.wantFrame(bitFin|opPong, name)
				send(t, stream, testEvent(n, 1))
				if first, _, _, err := p.readFrame(); first != bitFin|opText {
					t.Fatalf("%s: got frame %#x, %v; want an event", name, first, err)
				}
				time.Sleep(time.Minute)
			}
			stream.Sender.Close(transport.Finished)
			p.wantClose(closeNormal)
			p.Close()
		}
	})
}

// Conformance case limit/ws-client-talks.
func TestServerClosesOnTooManyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, frames := range map[string][]byte{
			"small messages": bytes.Repeat(newFrame(bitFin|opText, []byte("ping"), true), 64<<10/10+1),
			"empty fragments": append(newFrame(opText, nil, true),
				bytes.Repeat(newFrame(opContinuation, nil, true), 64<<10/6)...),
			"pongs":         bytes.Repeat(newFrame(bitFin|opPong, nil, true), wswatch.MaxControls+1),
			"one of 64 KiB": newFrame(bitFin|opBinary, make([]byte, 64<<10), true),
		} {
			t.Log(name)
			p, stream := startInMemory(t, transport.Options{}).watch()
			p.Write(frames)
			p.wantClose(closePolicy)
			p.wantEOF()
			<-stream.Done()
		}
	})
}

func TestServerClosesOnTooManyPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch()
		go func() { _, _ = p.Conn.Write(bytes.Repeat(newFrame(bitFin|opPing, nil, true), 2*wswatch.MaxControls)) }()
		<-stream.Done()
		for first := byte(0); first != bitFin|opClose; {
			var err error
			if first, _, _, err = p.readFrame(); err != nil {
				t.Fatalf("got %v, want a close frame", err)
			}
		}
	})
}

// Conformance cases framing/ws-rsv, ws-control-rules, ws-unmasked-server,
// limit/ws-client-talks.
func TestServerClosesOnInvalidFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for _, tt := range invalidFrames {
			wantRefusal(t, s, tt.name, tt.frame, tt.code)
		}
		wantRefusal(t, s, "unmasked", newFrame(bitFin|opPing, []byte("hi"), false), closeProtocol)
	})
}

func wantRefusal(t *testing.T, s *testServer, name string, frame []byte, code int) {
	t.Helper()
	t.Log(name)
	p, stream := s.watch()
	start := time.Now()
	for i := range frame { // send byte by byte
		p.Write(frame[i : i+1])
		synctest.Wait()
	}
	p.wantClose(code)
	<-stream.Done()
	p.wantEOF()
	if waited := time.Since(start); waited > 0 {
		t.Errorf("%s: the close took %v", name, waited)
	}
	wantCode(t, trySend(stream, testEvent(1, 1)), listwatch.Unavailable)
}

var servers = map[string]transport.Server{"native": &Server{}, "gorilla": &gorilla.Server{}, "nhooyr": &nhooyr.Server{}}

// Both ends close the stream while Send is in progress. The client must still receive the close
// frame of the server, even if it is slow.
func TestCloseFramesMayCross(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, stream := startServer(t, transporttest.ServerConfig{Server: server}).watch()
				var calls sync.WaitGroup
				calls.Go(func() { send(t, stream, testEvent(1, 1<<20)) })
				synctest.Wait()
				calls.Go(func() { stream.Sender.Close(transport.Finished) })
				synctest.Wait()
				p.writeFrame(bitFin|opClose, closePayload(closeNormal, ""))
				time.Sleep(closeWait / 2)
				p.wantClose(closeNormal)
				p.wantEOF()
				calls.Wait()
			})
		})
	}
}

// A client that has closed the stream but reads nothing must not hold the connection for long.
func TestCrossingCloseFramesDoNotWait(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := transport.Options{WriteTimeout: -1}
				p, stream := startServer(t, transporttest.ServerConfig{Server: server, Options: o}).watch()
				var calls sync.WaitGroup
				calls.Go(func() { _ = trySend(stream, testEvent(1, 1<<20)) })
				synctest.Wait()
				calls.Go(func() { stream.Sender.Close(transport.Finished) })
				synctest.Wait()
				start := time.Now()
				p.writeFrame(bitFin|opClose, closePayload(closeNormal, ""))
				calls.Wait()
				if waited := time.Since(start); waited > 2*closeWait {
					t.Errorf("the server waited for %v, want %v at most", waited, 2*closeWait)
				}
			})
		})
	}
}

// The client violates the protocol while Send is in progress. This ends the stream, and the caller
// of Send then aborts it. The server must still write the close frame after the event.
func TestCloseFrameFollowsAnEventInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch()
		sent := make(chan error, 1)
		go func() { sent <- trySend(stream, testEvent(1, 1<<20)) }()
		synctest.Wait()
		p.writeFrame(bitFin|0x40|opPing, nil)
		<-stream.Done()
		wantCode(t, trySend(stream, testEvent(2, 1)), listwatch.Unavailable)
		stream.Sender.Close(transport.Abort)
		p.wantClose(closeProtocol)
		p.wantEOF()
		<-sent
	})
}

// Conformance case limit/ws-client-talks. Closing the connection before the whole message was read
// would reset the connection and destroy the close frame.
func TestServerClosesOnAHugeMessage(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := startServer(t, transporttest.ServerConfig{Server: &Server{}, TLS: secure})
			p, stream := s.watch()
			frame := append([]byte{bitFin | opBinary, bitMask | 127, 0, 0, 0, 0, 0, 16, 0, 0}, make([]byte, 4+1<<20)...)
			if _, err := p.Write(frame); err != nil {
				t.Errorf("tls=%v: the server didn't take the rest: %v", secure, err)
			}
			p.wantClose(closeTooBig)
			<-stream.Done()
		})
	}
}

// Conformance case drop/ws-close-echo.
func TestServerAnswersACloseAndClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for _, tt := range []struct {
			payload []byte
			code    int
		}{
			{closePayload(closeNormal, "bye"), closeNormal},
			{closePayload(4999, ""), 4999},
			{nil, closeNoStatus},
		} {
			p, stream := s.watch()
			p.writeFrame(bitFin|opClose, tt.payload)
			p.wantClose(tt.code)
			p.wantEOF()
			<-stream.Done()
			wantCode(t, trySend(stream, testEvent(1, 1)), listwatch.Unavailable)
			stream.Sender.Close(transport.Finished)
		}
	})
}

// "After sending a control frame indicating the connection should be closed, a peer does
// not send any further data" (rfc6455#section-1.4). If a client does so, the server ignores
// the data.
func TestServerIgnoresFramesAfterAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch()
		bye := newFrame(bitFin|opClose, closePayload(closeNormal, ""), true)
		p.Write(append(bye, newFrame(bitFin|opText, []byte("more"), true)...))
		p.wantClose(closeNormal)
		p.wantEOF()
		<-stream.Done()
		stream.Sender.Close(transport.Finished)
	})
}

// Conformance cases timeout/clean-end-form, drain/ws-1001.
func TestTheEndDeterminesTheCloseCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for end, code := range map[transport.End]int{
			transport.Finished:  closeNormal,
			transport.GoingAway: closeGoingAway,
		} {
			p, stream := s.watch()
			send(t, stream, testEvent(1, 1))
			stream.Sender.Close(end)
			<-stream.Done()
			p.wantClose(code)
			// A client may send a ping before it receives the close frame.
			p.writeFrame(bitFin|opPing, nil)
			p.writeFrame(bitFin|opClose, closePayload(code, ""))
			p.wantEOF()
			stream.Sender.Close(transport.Abort)
		}
	})
}

func TestServerWaitsBrieflyForTheCloseAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch()
		start := time.Now()
		stream.Sender.Close(transport.Finished)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("Close took %v", waited)
		}
		p.wantClose(closeNormal)
		p.wantEOF()
		if waited := time.Since(start); waited != closeWait {
			t.Errorf("the connection was closed after %v, want %v", waited, closeWait)
		}
	})
}

func TestAbortSendsNoCloseFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch()
		send(t, stream, testEvent(1, 1))
		stream.Sender.Close(transport.Abort)
		<-stream.Done()
		if first, _, _, err := p.readFrame(); first != bitFin|opText || err != nil {
			t.Errorf("got frame %#x, %v", first, err)
		}
		p.wantEOF()
	})
}

func TestADisconnectEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for _, disconnect := range []func(c *memnet.Conn){func(c *memnet.Conn) { c.Close() }, (*memnet.Conn).Reset} {
			p, stream := s.watch()
			start := time.Now()
			disconnect(p.Conn.(*memnet.Conn))
			<-stream.Done()
			if waited := time.Since(start); waited != 0 {
				t.Errorf("it took %v", waited)
			}
		}
	})
}

// Conformance cases timeout/ws-pong-missing, drop/half-open.
func TestServerDisconnectsWithoutPongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{PingInterval: 10 * time.Second}).watch()
		start := time.Now()
		for range 3 {
			first, _, payload, err := p.readFrame()
			if first != bitFin|opPing || err != nil {
				t.Fatalf("got frame %#x, %v", first, err)
			}
			p.writeFrame(bitFin|opPong, payload)
		}
		if waited := time.Since(start); waited != 30*time.Second {
			t.Errorf("three pings took %v", waited)
		}
		<-stream.Done()
		if waited := time.Since(start); waited != 50*time.Second {
			t.Errorf("got the end after %v, want 50 s: 10 s for the next ping and 10 s for its answer", waited)
		}
	})
}

// A slow reader reads a ping only after the events before it. The server considers the reader alive
// while it accepts data.
func TestALatePongIsToleratedWithProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 10 * time.Second
		p, stream := startInMemory(t, transport.Options{PingInterval: interval}).watch()
		read := make(chan struct{})
		go func() {
			defer close(read)
			io.Copy(io.Discard, p) // never sends a pong
		}()
		for i := range 60 {
			send(t, stream, testEvent(i, 2*minProgress/10))
			time.Sleep(time.Second)
		}
		start := time.Now()
		<-stream.Done()
		if waited := time.Since(start); waited > 2*interval {
			t.Errorf("the idle client was disconnected after %v, want %v at most", waited, 2*interval)
		}
		<-read
	})
}

func TestANegativePingIntervalDisablesPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{PingInterval: -1}).watch()
		p.SetReadDeadline(time.Now().Add(24 * time.Hour))
		if first, _, _, err := p.readFrame(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got frame %#x, %v; want none", first, err)
		}
		stream.Sender.Close(transport.Abort)
	})
}

// Conformance case limit/ws-ping-flood.
func TestServerSendsEventsDuringAPingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch()
		const pings = 10_000
		go func() {
			var flood []byte
			for i := range pings {
				flood = append(flood, newFrame(bitFin|opPing, binary.BigEndian.AppendUint32(nil, uint32(i)), true)...)
			}
			p.Write(flood)
		}()
		go func() {
			for i := range 100 {
				send(t, stream, testEvent(i, 10))
			}
		}()
		pongs, events, last := 0, 0, -1
		for events < 100 || last < pings-1 {
			first, _, payload, err := p.readFrame()
			switch {
			case err != nil:
				t.Fatal(err)
			case first == bitFin|opText:
				events++
			case first == bitFin|opPong:
				pongs++
				n := int(binary.BigEndian.Uint32(payload))
				if n <= last {
					t.Fatalf("got pong %d after %d", n, last)
				}
				last = n
			}
		}
		if pongs > pings/10 {
			t.Errorf("got %d pongs for %d pings, want a tenth at most", pongs, pings)
		}
		stream.Sender.Close(transport.Abort)
	})
}

// Conformance cases slow/write-deadline, slow/one-slow-others-fast.
func TestOnlyAStalledReaderIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		s := startInMemory(t, transport.Options{WriteTimeout: timeout, PingInterval: -1})
		_, stalled := s.watch()
		healthy, live := s.watch()
		failed := make(chan error)
		start := time.Now()
		go func() {
			for {
				if err := trySend(stalled, testEvent(1, 4000)); err != nil {
					failed <- err
					return
				}
			}
		}()
		synctest.Wait()
		for i := range 100 {
			send(t, live, testEvent(i, 4000))
			if _, _, _, err := healthy.readFrame(); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the other reader waited %v", waited)
		}
		wantCode(t, <-failed, listwatch.Unavailable)
		if waited := time.Since(start); waited < timeout || waited > 3*timeout {
			t.Errorf("the stalled reader was disconnected after %v, want %v to %v", waited, timeout, 3*timeout)
		}
		stalled.Sender.Close(transport.Abort)
		live.Sender.Close(transport.Abort)
		<-stalled.Done()
	})
}

func TestASlowReaderIsNotDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{WriteTimeout: 10 * time.Second, PingInterval: -1}).watch()
		const size = 1 << 20
		go func() {
			send(t, stream, testEvent(1, size))
			stream.Sender.Close(transport.Abort)
		}()
		got := 0
		for buf := make([]byte, 16<<10); ; time.Sleep(8 * time.Second) { // reads 2 KiB per second
			n, err := p.r.Read(buf)
			if err != nil {
				break
			}
			got += n
		}
		if got < size {
			t.Errorf("got %d bytes of %d", got, size)
		}
	})
}

func TestCloseIsLimitedByTheWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		s := startInMemory(t, transport.Options{WriteTimeout: timeout, PingInterval: -1})
		for _, end := range []transport.End{transport.Finished, transport.Abort} {
			p, stream := s.watch()
			failed := make(chan error)
			go func() { failed <- trySend(stream, testEvent(1, 1<<20)) }()
			synctest.Wait()
			start := time.Now()
			stream.Sender.Close(end)
			waited := time.Since(start)
			if want := map[transport.End]time.Duration{transport.Finished: timeout}[end]; waited != want {
				t.Errorf("end %d took %v, want %v", end, waited, want)
			}
			if err := <-failed; err == nil {
				t.Errorf("end %d: Send succeeded", end)
			}
			<-stream.Done()
			rest, err := io.ReadAll(p.r)
			if bytes.Contains(rest, closePayload(closeNormal, "")) {
				t.Errorf("got a close frame within another frame, %v", err)
			}
		}
	})
}

// An idle watch whose handler has returned must not retain the buffers of the handshake. The
// buffers of net/http take 8 KiB.
func TestAnIdleWatchTakesLittleMemory(t *testing.T) {
	const watches, rounds, limit = 100, 3, 8 << 10
	s := startServer(t, transporttest.ServerConfig{
		Server: &Server{}, Options: transport.Options{Detach: true}, Sockets: true,
	})
	var streams []*transporttest.Stream
	var each [rounds]int64
	for i := range each {
		before := testkit.HeapBytes()
		for range watches {
			c := s.dial()
			io.WriteString(c, handshakeRequest())
			stream := <-s.Streams
			send(t, stream, testEvent(1, 1000))
			streams = append(streams, stream)
		}
		each[i] = (testkit.HeapBytes() - before) / watches
	}
	// Memory that earlier tests free distorts a round, but not the median.
	slices.Sort(each[:])
	if each[rounds/2] > limit {
		t.Errorf("a watch and its client take %d bytes of heap, want %d at most", each, limit)
	}
	for _, stream := range streams {
		stream.Sender.Close(transport.Abort)
	}
}

// A client that has violated the protocol has a second to read the close frame. What it sends
// meanwhile is read only up to a limit.
func TestViolationsEndTheConnectionSoon(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, stream := startServer(t, transporttest.ServerConfig{Server: server}).watch()
				defer stream.Sender.Close(transport.Abort)
				p.writeFrame(bitFin|opText, make([]byte, wswatch.MaxInbound+1))
				sent, start := 0, time.Now()
				for sent < 4*connio.LingerBytes {
					n, err := p.Conn.Write(make([]byte, 64<<10))
					if sent += n; err != nil {
						break
					}
				}
				if limit := connio.LingerBytes + 256<<10; sent > limit || time.Since(start) > connio.LingerTime {
					t.Errorf("the client could send %d bytes within %v, want %d at most", sent,
						time.Since(start), limit)
				}
			})
		})
	}
}
