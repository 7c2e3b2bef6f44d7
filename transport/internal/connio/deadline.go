package connio

import "time"

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
	// Timeout is the time after which a write may fail. A write fails after twice that time at the
	// latest. A negative value means no limit.
	Timeout time.Duration

	at time.Time
}

// Arm must be called before each write.
func (d *WriteDeadline) Arm() {
	if d.Timeout < 0 {
		return
	}
	if now := time.Now(); d.at.Sub(now) < d.Timeout {
		d.at = now.Add(2 * d.Timeout)
		_ = d.SetFunc(d.at)
	}
}

// Extend gives a write that has made progress another Timeout.
func (d *WriteDeadline) Extend() {
	d.at = time.Now().Add(d.Timeout)
	_ = d.SetFunc(d.at)
}
