package transport

import "time"

// A Deadline bounds writes by a write deadline of the connection, and moves it seldom: while the deadline is further away than
// Timeout, nothing is done. A deadline that passes while nothing is written does no harm on a connection, since every write is
// preceded by a Set. It belongs to whoever may write.
type Deadline struct {
	// SetFunc moves the deadline; the error of a connection that can't is ignored.
	SetFunc func(time.Time) error
	// Timeout is how long a write may wait at least; it may wait twice as long. Negative: for ever.
	Timeout time.Duration

	at time.Time
}

// Set gives the next write its time.
func (d *Deadline) Set() {
	if d.Timeout < 0 {
		return
	}
	if now := time.Now(); d.at.Sub(now) < d.Timeout {
		d.at = now.Add(2 * d.Timeout)
		_ = d.SetFunc(d.at)
	}
}

// Extend gives a write that has made some progress until its deadline passed just the time-out more.
func (d *Deadline) Extend() {
	d.at = time.Now().Add(d.Timeout)
	_ = d.SetFunc(d.at)
}
