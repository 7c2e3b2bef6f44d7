package websocket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
)

// badFrames is what breaks RFC 6455, as a client writes it: masked where the frame is not about masks.
var badFrames = []struct {
	name  string
	frame []byte
	code  closeCode // what a server answers
}{
	{"RSV1", rawFrame(bitFin|0x40|opPing, nil, true), closeProtocol},
	{"RSV2", rawFrame(bitFin|0x20|opText, nil, true), closeProtocol},
	{"RSV3", rawFrame(bitFin|0x10|opClose, nil, true), closeProtocol},
	{"opcode 3", rawFrame(bitFin|0x3, nil, true), closeProtocol},
	{"opcode 11", rawFrame(bitFin|0xB, nil, true), closeProtocol},
	{"long ping", rawFrame(bitFin|opPing, make([]byte, 126), true), closeProtocol},
	{"fragmented ping", rawFrame(opPing, nil, true), closeProtocol},
	{"continuation of nothing", rawFrame(bitFin|opContinuation, []byte("x"), true), closeProtocol},
	{"half a close code", rawFrame(bitFin|opClose, []byte{3}, true), closeProtocol},
	{"impossible length", append([]byte{bitFin | opText, bitMask | 127, 0x80}, make([]byte, 11)...), closeProtocol},
	{"close code 999", rawFrame(bitFin|opClose, closeFrame(999, ""), true), closeProtocol},
	{"close code 1005", rawFrame(bitFin|opClose, closeFrame(1005, ""), true), closeProtocol},
	{"text", rawFrame(bitFin|opText, []byte("hello"), true), closePolicy},
	{"binary in fragments", rawFrame(opBinary, []byte("hel"), true), closePolicy},
	{"16 MiB announced", append([]byte{bitFin | opText, bitMask | 127, 0, 0, 0, 0, 1, 0, 0, 0}, 1, 2, 3, 4), closeTooBig},
}

// framing/ws-rsv, ws-control-rules, ws-unmasked-server, limit/ws-client-talks
func TestServerClosesOnFramesThatBreakTheRules(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		s := mem(t, b, transport.Options{})
		for _, tt := range badFrames {
			checkRefusal(t, s, tt.name, tt.frame, tt.code)
		}
		checkRefusal(t, s, "unmasked", rawFrame(bitFin|opPing, []byte("hi"), false), closeProtocol)
	})
}

func checkRefusal(t *testing.T, s *site, name string, frame []byte, code closeCode) {
	t.Helper()
	t.Log(name)
	p, stream := s.watch()
	start := time.Now()
	for i := range frame { // however it is cut
		p.Write(frame[i : i+1])
		synctest.Wait()
	}
	p.wantClose(code)
	wantDone(t, stream)
	p.wantEOF()
	if waited := time.Since(start); waited > 0 {
		t.Errorf("%s: it took %v", name, waited)
	}
	wantCode(t, trySend(stream, event(1, 1)), listwatch.Unavailable)
}

// The stream ends while an event is being written, and whoever sends gives up at once: the close frame still goes out, behind it.
func TestServerSaysWhatIsWrongBehindWhatItIsSending(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{}).watch()
		sent := make(chan error, 1)
		go func() { sent <- trySend(stream, event(1, 1<<20)) }()
		synctest.Wait()
		p.put(bitFin|0x40|opPing, nil)
		wantDone(t, stream)
		wantCode(t, trySend(stream, event(2, 1)), listwatch.Unavailable)
		stream.Sender.Close(transport.Abort)
		p.wantClose(closeProtocol)
		p.wantEOF()
		<-sent
	})
}

// limit/ws-client-talks over a socket, where a reset could eat the close frame.
func TestServerTellsAClientThatSends16MiB(t *testing.T) {
	forBackends(t, func(t *testing.T, b Backend) {
		for _, secure := range []bool{false, true} {
			s := tcp(t, b, secure)
			p, stream := s.watch()
			frame := append([]byte{bitFin | opBinary, bitMask | 127, 0, 0, 0, 0, 1, 0, 0, 0}, make([]byte, 4+16<<20)...)
			if _, err := p.Write(frame); err != nil {
				t.Errorf("tls=%v: the server didn't take the rest: %v", secure, err)
			}
			p.wantClose(closeTooBig)
			wantDone(t, stream)
		}
	})
}

// drop/ws-close-echo
func TestServerAnswersACloseAndClosesTheConnection(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		s := mem(t, b, transport.Options{})
		for _, tt := range []struct {
			payload []byte
			code    closeCode
		}{
			{closeFrame(closeNormal, "bye"), closeNormal},
			{closeFrame(4999, ""), 4999},
			{nil, closeNoStatus},
		} {
			p, stream := s.watch()
			p.put(bitFin|opClose, tt.payload)
			p.wantClose(tt.code)
			p.wantEOF()
			wantDone(t, stream)
			wantCode(t, trySend(stream, event(1, 1)), listwatch.Unavailable)
			stream.Sender.Close(transport.Finished)
		}
	})
}

// "After sending a control frame indicating the connection should be closed, a peer does not send any further data" (rfc6455#section-1.4): what one
// sends all the same is nothing to answer.
func TestServerTakesNothingBehindAClose(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{}).watch()
		bye := rawFrame(bitFin|opClose, closeFrame(closeNormal, ""), true)
		p.Write(append(bye, rawFrame(bitFin|opText, []byte("and another thing"), true)...))
		p.wantClose(closeNormal)
		p.wantEOF()
		wantDone(t, stream)
		stream.Sender.Close(transport.Finished)
	})
}

// timeout/clean-end-form, drain/ws-1001
func TestServerEndsWithTheCodeOfTheEnd(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		s := mem(t, b, transport.Options{})
		for end, code := range map[transport.End]closeCode{transport.Finished: closeNormal, transport.GoingAway: closeGoingAway} {
			p, stream := s.watch()
			send(t, stream, event(1, 1))
			stream.Sender.Close(end)
			wantDone(t, stream)
			p.wantClose(code)
			p.put(bitFin|opPing, nil) // crossed the close frame on its way
			p.put(bitFin|opClose, closeFrame(code, ""))
			p.wantEOF()
			stream.Sender.Close(transport.Abort)
		}
	})
}

func TestServerDoesNotWaitLongForTheAnswerToItsClose(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{}).watch()
		start := time.Now()
		stream.Sender.Close(transport.Finished)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("Close took %v", waited)
		}
		p.wantClose(closeNormal)
		p.wantEOF()
		if waited := time.Since(start); waited != closeWait {
			t.Errorf("the connection lived for %v, want %v", waited, closeWait)
		}
	})
}

func TestAbortSaysNothing(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{}).watch()
		send(t, stream, event(1, 1))
		stream.Sender.Close(transport.Abort)
		wantDone(t, stream)
		if first, _, _, err := p.get(); first != bitFin|opText || err != nil {
			t.Errorf("got frame %#x, %v", first, err)
		}
		p.wantEOF()
	})
}

func TestStreamIsDoneWhenTheConnectionIsCut(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		s := mem(t, b, transport.Options{})
		for _, cut := range []func(c *memnet.Conn){func(c *memnet.Conn) { c.Close() }, (*memnet.Conn).Reset} {
			p, stream := s.watch()
			start := time.Now()
			cut(p.Conn.(*memnet.Conn))
			wantDone(t, stream)
			if waited := time.Since(start); waited != 0 {
				t.Errorf("it took %v", waited)
			}
		}
	})
}

// timeout/ws-pong-missing, drop/half-open
func TestServerCutsOffAClientThatDoesNotAnswerPings(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{PingInterval: 10 * time.Second}).watch()
		start := time.Now()
		for range 3 {
			first, _, payload, err := p.get()
			if first != bitFin|opPing || err != nil {
				t.Fatalf("got frame %#x, %v", first, err)
			}
			p.put(bitFin|opPong, payload)
		}
		if waited := time.Since(start); waited != 30*time.Second {
			t.Errorf("three pings took %v", waited)
		}
		wantDone(t, stream)
		if waited := time.Since(start); waited != 50*time.Second {
			t.Errorf("it was cut off after %v, want 10 s for the next ping and 10 s for its answer", waited)
		}
	})
}

// A slow reader's pong stands behind all that it has not read yet: as long as it takes what is sent, it is alive.
func TestALatePongIsForgivenWhileThePeerTakesData(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		const interval = 10 * time.Second
		p, stream := mem(t, b, transport.Options{PingInterval: interval}).watch()
		read := make(chan struct{})
		go func() {
			defer close(read)
			io.Copy(io.Discard, p) // and never a pong
		}()
		for i := range 60 {
			send(t, stream, event(i, 2*busy/10))
			time.Sleep(time.Second)
		}
		start := time.Now()
		wantDone(t, stream)
		if waited := time.Since(start); waited > 2*interval {
			t.Errorf("idle and without a pong it was cut off after %v, want at most %v", waited, 2*interval)
		}
		<-read
	})
}

func TestNegativePingIntervalMeansNoPings(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{PingInterval: -1}).watch()
		p.SetReadDeadline(time.Now().Add(24 * time.Hour))
		if first, _, _, err := p.get(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got frame %#x, %v", first, err)
		}
		stream.Sender.Close(transport.Abort)
	})
}

// limit/ws-ping-flood
func TestServerSendsEventsThroughAFloodOfPings(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{}).watch()
		const pings = 10_000
		go func() {
			var flood []byte
			for i := range pings {
				flood = append(flood, rawFrame(bitFin|opPing, binary.BigEndian.AppendUint32(nil, uint32(i)), true)...)
			}
			p.Write(flood)
		}()
		go func() {
			for i := range 100 {
				send(t, stream, event(i, 10))
			}
		}()
		pongs, events, last := 0, 0, -1
		for events < 100 || last < pings-1 {
			first, _, payload, err := p.get()
			switch {
			case err != nil:
				t.Fatal(err)
			case first == bitFin|opText:
				events++
			case first == bitFin|opPong:
				pongs++
				n := int(binary.BigEndian.Uint32(payload))
				if n <= last {
					t.Fatalf("pong %d after %d", n, last)
				}
				last = n
			}
		}
		if b == Gorilla && pongs > pings/10 {
			t.Errorf("%d pongs for %d pings", pongs, pings)
		}
		stream.Sender.Close(transport.Abort)
	})
}

// slow/write-deadline, slow/one-slow-others-fast
func TestAReaderThatStallsIsCutOffAndNobodyElse(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		const timeout = 10 * time.Second
		s := mem(t, b, transport.Options{WriteTimeout: timeout, PingInterval: -1})
		_, stalled := s.watch()
		healthy, live := s.watch()
		failed := make(chan error)
		start := time.Now()
		go func() {
			for {
				if err := trySend(stalled, event(1, 4000)); err != nil {
					failed <- err
					return
				}
			}
		}()
		synctest.Wait()
		for i := range 100 {
			send(t, live, event(i, 4000))
			if _, _, _, err := healthy.get(); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the healthy reader waited %v", waited)
		}
		wantCode(t, <-failed, listwatch.Unavailable)
		if waited := time.Since(start); waited < timeout || waited > 2*timeout {
			t.Errorf("it was cut off after %v, want %v to %v", waited, timeout, 2*timeout)
		}
		stalled.Sender.Close(transport.Abort)
		live.Sender.Close(transport.Abort)
		wantDone(t, stalled)
	})
}

func TestAReaderThatIsSlowIsNotCutOff(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		p, stream := mem(t, b, transport.Options{WriteTimeout: 10 * time.Second, PingInterval: -1}).watch()
		const size = 1 << 20
		go func() {
			send(t, stream, event(1, size))
			stream.Sender.Close(transport.Abort)
		}()
		got := 0
		for buf := make([]byte, 16<<10); ; time.Sleep(8 * time.Second) { // 2 KiB a second
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

func TestCloseDoesNotWaitLongerThanTheWriteTimeout(t *testing.T) {
	inBubbles(t, func(t *testing.T, b Backend) {
		const timeout = 10 * time.Second
		s := mem(t, b, transport.Options{WriteTimeout: timeout, PingInterval: -1})
		for _, end := range []transport.End{transport.Finished, transport.Abort} {
			p, stream := s.watch()
			failed := make(chan error)
			go func() { failed <- trySend(stream, event(1, 1<<20)) }()
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
			wantDone(t, stream)
			rest, err := io.ReadAll(p.r)
			if bytes.Contains(rest, closeFrame(closeNormal, "")) {
				t.Errorf("a close frame was written into another frame (%v)", err)
			}
		}
	})
}

// A counter counts the writes of a connection.
type counter struct {
	net.Conn
	writes int
}

func (c *counter) Write(p []byte) (int, error) { c.writes++; return len(p), nil }

func (c *counter) SetWriteDeadline(time.Time) error { return nil }

func TestABatchOfFramesIsOneWrite(t *testing.T) {
	count := &counter{}
	c := newConn(count, false, transport.DefaultWriteTimeout)
	frame := appendMessageFrame(nil, make([]byte, 1000), false)
	var batch [][]byte
	for range 16 {
		batch = append(batch, frame)
	}
	if err := c.writeFrames(batch); err != nil || count.writes != 1 {
		t.Errorf("%d writes, %v", count.writes, err)
	}
}

// TestAnIdleWatchIsSmall guards against holding on to what only the handshake needs: net/http's buffers alone are 8 KiB.
func TestAnIdleWatchIsSmall(t *testing.T) {
	const watches, most = 300, 8 << 10
	s := tcp(t, Gorilla, false)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var streams []*transport.Stream
	for range watches {
		c := s.dial()
		io.WriteString(c, request())
		stream := <-s.Streams
		send(t, stream, event(1, 1000))
		streams = append(streams, stream)
	}
	if each := (heap() - before) / watches; each > most {
		t.Errorf("a watch keeps %d bytes of heap, want at most %d with its client's end", each, most)
	}
	for _, stream := range streams {
		stream.Sender.Close(transport.Abort)
	}
}
