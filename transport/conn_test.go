package transport

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
)

// A scriptedLink is a Link whose writes wait until the test lets them return.
type scriptedLink struct {
	Conn
	block        chan struct{} // if not nil, a write waits for an element
	writeError   error
	interruptErr error

	mu sync.Mutex
	// Guarded by mu.
	log         []string
	inUse       bool
	interrupted chan struct{}
}

func newScriptedLink(timeout time.Duration) *scriptedLink {
	l := &scriptedLink{interrupted: make(chan struct{})}
	l.Init(l, timeout, Encoder{})
	return l
}

// use records an exclusive use of the link. It fails if another use is in progress.
func (l *scriptedLink) use(what string, f func() error) error {
	l.mu.Lock()
	if l.inUse {
		what += " during another use"
	}
	l.inUse = true
	l.log = append(l.log, what)
	l.mu.Unlock()
	err := f()
	l.mu.Lock()
	l.inUse = false
	l.mu.Unlock()
	return err
}

func (l *scriptedLink) WriteFrames(frames [][]byte) error {
	return l.use(string(frames[0]), func() error {
		if l.block == nil {
			return l.writeError
		}
		select {
		case <-l.block:
			return l.writeError
		case <-l.interrupted:
			return os.ErrDeadlineExceeded
		}
	})
}

func (l *scriptedLink) Interrupt() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, "interrupt")
	select {
	case <-l.interrupted:
	default:
		if l.interruptErr == nil {
			close(l.interrupted)
		}
	}
	return l.interruptErr
}

func (l *scriptedLink) End(end End, _ []byte) error {
	return l.use([]string{Finished: "finished", GoingAway: "going away", Abort: "abort"}[end],
		func() error { return nil })
}

func (l *scriptedLink) send(text string) error { return l.Send([][]byte{[]byte(text)}) }

func (l *scriptedLink) want(t *testing.T, log ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.log, log) {
		t.Errorf("got %q, want %q", l.log, log)
	}
}

func TestSendsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newScriptedLink(time.Second)
		l.block = make(chan struct{})
		var group sync.WaitGroup
		for _, text := range []string{"1", "2", "3"} {
			group.Go(func() {
				if err := l.send(text); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 3 {
			l.block <- struct{}{}
		}
		group.Wait()
		l.want(t, "1", "2", "3")
	})
}

func TestCloseWaitsForASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newScriptedLink(time.Minute)
		l.block = make(chan struct{})
		go l.send("1")
		synctest.Wait()
		go func() {
			if err := l.send("2"); listwatch.CodeOf(err) != listwatch.Unavailable {
				t.Errorf("a Send behind Close returned %v", err)
			}
		}()
		synctest.Wait()
		time.AfterFunc(time.Second, func() { l.block <- struct{}{} })
		var group sync.WaitGroup
		start := time.Now()
		group.Go(func() {
			if err := l.Close(GoingAway); err != nil || time.Since(start) != time.Second {
				t.Errorf("Close returned %v after %v, want 1s", err, time.Since(start))
			}
		})
		synctest.Wait()
		if err := l.Close(Abort); err != nil || time.Since(start) > 0 {
			t.Errorf("the second Close returned %v after %v", err, time.Since(start))
		}
		if err := l.Wait(); err != nil || time.Since(start) != time.Second {
			t.Errorf("Wait returned %v after %v, want 1s", err, time.Since(start))
		}
		group.Wait()
		l.want(t, "1", "going away")
	})
}

func TestCloseInterruptsASendAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newScriptedLink(time.Second)
		l.block = make(chan struct{})
		go l.send("1")
		synctest.Wait()
		start := time.Now()
		if err := l.Close(Finished); err != nil || time.Since(start) != time.Second {
			t.Errorf("Close returned %v after %v, want 1s", err, time.Since(start))
		}
		l.want(t, "1", "interrupt", "abort")
	})
}

func TestCloseHasNoTimeoutIfItIsNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newScriptedLink(-1)
		l.block = make(chan struct{})
		go l.send("1")
		time.AfterFunc(time.Hour, func() { l.block <- struct{}{} })
		synctest.Wait()
		if err := l.Close(Finished); err != nil {
			t.Error(err)
		}
		l.want(t, "1", "finished")
	})
}

func TestAbortInterruptsASendAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newScriptedLink(time.Minute)
		l.block = make(chan struct{})
		done := make(chan error)
		go func() { done <- l.send("1") }()
		synctest.Wait()
		start := time.Now()
		if err := l.Close(Abort); err != nil || time.Since(start) != 0 {
			t.Errorf("Close returned %v after %v", err, time.Since(start))
		}
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Send returned %v", err)
		}
		l.want(t, "1", "interrupt", "abort")
	})
}

func TestAbortReturnsIfItCannotInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newScriptedLink(time.Minute)
		l.block = make(chan struct{})
		l.interruptErr = errors.New("no deadlines")
		go l.send("1")
		synctest.Wait()
		if err := l.Close(Abort); err != l.interruptErr {
			t.Errorf("Close returned %v, want %v", err, l.interruptErr)
		}
		if err := l.Wait(); err != l.interruptErr {
			t.Errorf("Wait returned %v, want %v", err, l.interruptErr)
		}
		l.block <- struct{}{}
		synctest.Wait()
		l.want(t, "1", "interrupt")
	})
}

func TestFailedWriteBreaksTheStream(t *testing.T) {
	l := newScriptedLink(time.Minute)
	done := 0
	l.OnDone(func() { done++ })
	l.writeError = errors.New("reset")
	if err := l.send("1"); !errors.Is(err, l.writeError) {
		t.Errorf("Send returned %v, want %v", err, l.writeError)
	}
	if err := l.send("2"); listwatch.CodeOf(err) != listwatch.Unavailable || done != 1 {
		t.Errorf("the next Send returned %v, and OnDone was called %d times", err, done)
	}
	if err := l.Close(Finished); err != nil || done != 1 {
		t.Errorf("Close returned %v, and OnDone was called %d times", err, done)
	}
	l.want(t, "1", "interrupt", "abort")
}

func TestDisconnectEndsTheStream(t *testing.T) {
	l := newScriptedLink(time.Minute)
	if first, second := l.Disconnect(), l.Disconnect(); !first || second {
		t.Errorf("the first two calls of Disconnect returned %t, %t, want true, false", first, second)
	}
	done := 0
	l.OnDone(func() { done++ })
	if err := l.send("1"); listwatch.CodeOf(err) != listwatch.Unavailable || done != 1 {
		t.Errorf("Send returned %v, and OnDone was called %d times", err, done)
	}
	if err := l.Close(Abort); err != nil {
		t.Error(err)
	}
	l.want(t)
}
