package wswatch

import (
	"fmt"
	"time"
)

// MaxInbound is the maximum number of bytes of a message of a client. It is also the maximum for
// all messages of a client within a minute, including the headers of the frames. The server ignores
// these messages, which web pages send to keep their connections alive. It closes the connection
// with code 1009 after a longer message, and with 1008 after more bytes within a minute.
const MaxInbound = 64 << 10

// MaxControls is the maximum number of pings and pongs of a client within a minute. The server
// closes the connection with code 1008 after more.
const MaxControls = 12_000

// An Inbound counts the messages, pings and pongs of a client. It is not safe for concurrent use.
type Inbound struct {
	minute   time.Time // the start of the current minute
	bytes    int64     // the bytes since the start of the current minute
	controls int       // the pings and pongs since the start of the current minute
}

// Add counts n bytes. It returns a [*Violation] if the client has sent more than [MaxInbound] bytes
// within a minute.
func (i *Inbound) Add(n int64) error {
	i.advance()
	if i.bytes += n; i.bytes > MaxInbound {
		const format = "a client must not send more than %d bytes of messages in a minute"
		return &Violation{ClosePolicy, fmt.Sprintf(format, MaxInbound)}
	}
	return nil
}

// AddControl counts a ping or a pong. It returns a [*Violation] if the client has sent more than
// [MaxControls] of them within a minute.
func (i *Inbound) AddControl() error {
	i.advance()
	if i.controls++; i.controls > MaxControls {
		return &Violation{
			ClosePolicy, fmt.Sprintf("a client must not send more than %d pings and pongs in a minute", MaxControls),
		}
	}
	return nil
}

func (i *Inbound) advance() {
	if now := time.Now(); now.Sub(i.minute) >= time.Minute {
		*i = Inbound{minute: now}
	}
}

// StartPings calls ping after each interval until ping returns false or the returned timer is
// stopped. If interval is negative, StartPings never calls ping.
func StartPings(interval time.Duration, ping func() bool) *time.Timer {
	var t *time.Timer
	t = time.AfterFunc(time.Hour, func() {
		start := time.Now()
		if ping() {
			t.Reset(max(0, interval-time.Since(start)))
		}
	})
	if t.Stop(); interval > 0 {
		t.Reset(interval)
	}
	return t
}
