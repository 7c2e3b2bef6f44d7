package connio

import (
	"crypto/tls"
	"sync"
	"time"
)

// LongAgo is a deadline that interrupts a read or write in progress.
var LongAgo = time.Unix(1, 0)

// A WriteDeadline limits the duration of writes by the write deadline of a connection.
// Moving a deadline costs more than a small write, so it is moved only if it is less than
// Timeout away. A deadline that expires between two writes has no effect, because each
// write begins with Arm. A WriteDeadline is not safe for concurrent use.
type WriteDeadline struct {
	// SetFunc moves the deadline. Its error is ignored, because some connections have no
	// deadlines.
	SetFunc func(time.Time) error
	// Timeout is the time after which a write may fail. A write without progress fails after twice
	// that time at the latest. A negative value means no limit.
	Timeout time.Duration

	at time.Time
}

// Arm must be called before each write. It reports whether it has moved the deadline.
func (d *WriteDeadline) Arm() (moved bool) {
	if d.Timeout < 0 {
		return false
	}
	now := time.Now()
	if moved = d.at.Sub(now) < d.Timeout; moved {
		d.at = now.Add(2 * d.Timeout)
		_ = d.SetFunc(d.at)
	}
	return moved
}

// Extend gives a write that has made progress another Timeout.
func (d *WriteDeadline) Extend() {
	d.at = time.Now().Add(d.Timeout)
	_ = d.SetFunc(d.at)
}

// A lifeline moves the write deadline of a TLS connection while a write waits, as long as the peer
// takes bytes. A TLS connection does not survive a deadline.
type lifeline struct {
	conn    *tls.Conn
	timeout time.Duration

	mu sync.Mutex
	// Guarded by mu.
	timer   *time.Timer // calls check twice per timeout while there are writes
	isTimed bool        // timer is running
	isHeld  bool        // a write is in progress
	acked   uint64      // the bytes that the peer had acknowledged at the last check
}

// hold must be called before a write, and release after it.
func (l *lifeline) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isHeld = true
	if !l.isTimed {
		l.schedule()
	}
}

func (l *lifeline) release() {
	l.mu.Lock()
	l.isHeld = false
	l.mu.Unlock()
}

// schedule records the number of bytes that the peer has acknowledged, and makes the timer call
// check after half a timeout. l.mu must be held.
func (l *lifeline) schedule() {
	l.acked = Acknowledged(l.conn)
	l.isTimed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(l.timeout/2, l.check)
	} else {
		l.timer.Reset(l.timeout / 2)
	}
}

func (l *lifeline) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isTimed = false
	if !l.isHeld {
		return
	}
	before := l.acked
	if l.schedule(); l.acked != before {
		_ = l.conn.SetWriteDeadline(time.Now().Add(2 * l.timeout))
	}
}
