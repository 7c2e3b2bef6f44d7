package loop

import (
	"net/http"
	"time"
)

// A Watch is a response that needs no goroutine. It is safe for concurrent use, except that only
// one goroutine may call Send at a time. The zero Watch is invalid.
type Watch struct{ st *stream }

// IsValid reports whether w is not zero.
func (w Watch) IsValid() bool { return w.st != nil }

// TakeOver turns the response of w into a watch. It sends status 200, the header of w and the bytes
// of opening. It returns the zero Watch if w does not come from this package, was used already, or
// responds to a HEAD request. If detached is true, the watch continues after the handler has
// returned. timeout is the time after which the stream is reset if the client keeps its window
// empty. A negative timeout means no limit.
func TakeOver(w http.ResponseWriter, timeout time.Duration, detached bool, opening []byte) Watch {
	r, ok := w.(*response)
	if !ok || r.status != 0 || r.x.taken || r.x.head {
		return Watch{}
	}
	r.WriteHeader(http.StatusOK)
	_ = r.sendHead(opening, false, false) // after an error the watch is done
	watch := r.x.takeOver(timeout, detached)
	if len(opening) > 0 {
		_ = r.x.st.send([][]byte{opening}, false, false, true)
	}
	return watch
}

// Go makes the connection's writer call f once, without the connection's mutex, when the stream may
// send. f must not block; it sends with Send. If the stream has ended, f is called on a goroutine
// of its own. Go must not be called again before f was called.
func (w Watch) Go(f func()) {
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.done || w.st.err != nil {
		go f()
		return
	}
	w.st.step = f
	if w.st.out == nil {
		w.st.enqueue()
	}
}

// Run calls f, in which Send behaves as in a function passed to Go.
func (w Watch) Run(f func()) {
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.place != placeNone { // data that did not come from f waits to be sent
		c.mu.Unlock()
		f()
		c.mu.Lock()
		return
	}
	w.st.run(f)
}

// Send sends frames, which must never change again. In a function passed to Go or Run it does not
// block: it keeps the bytes that cannot be sent yet, and the next function passed to Go is called
// after they have been sent. Otherwise Send waits. It returns an error if the stream has ended.
func (w Watch) Send(frames [][]byte) error {
	w.st.c.mu.Lock()
	defer w.st.c.mu.Unlock()
	if w.st.done && w.st.err == nil {
		return errClosed
	}
	return w.st.sendLocked(frames, false, w.st.place != placeStepping, true)
}

// Close sends trailer after the frames passed to Send, and then completes the stream. It does not
// wait. It has no effect if the stream has ended.
func (w Watch) Close(trailer []byte) {
	w.st.c.mu.Lock()
	defer w.st.c.mu.Unlock()
	if !w.st.done {
		w.st.finishWatch()
		_ = w.st.sendLocked([][]byte{trailer}, true, false, true)
	}
}

// Abort resets the stream. It has no effect after Close.
func (w Watch) Abort() {
	w.st.c.mu.Lock()
	defer w.st.c.mu.Unlock()
	w.st.abortWatch()
}

// OnDone registers f, which is called once, on a goroutine of its own, when the stream has ended or
// Close was called.
func (w Watch) OnDone(f func()) {
	w.st.c.mu.Lock()
	defer w.st.c.mu.Unlock()
	if w.st.done {
		go f()
		return
	}
	w.st.onDone = f
}
