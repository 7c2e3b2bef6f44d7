package wswatch

import (
	"fmt"
	"io"
	"time"
)

// MaxInbound is the maximum number of bytes that a client may send in a message and, including the
// headers of the frames, within a minute. The server ignores these messages, which web pages send
// to keep their connections alive. It closes the connection with code 1009 after a longer message,
// and with 1008 after more bytes within a minute.
const MaxInbound = 64 << 10

// An Inbound counts what a client sends. It is not safe for concurrent use.
type Inbound struct {
	minute time.Time // the start of the current minute
	bytes  int64     // since then
}

// Add counts n bytes. It returns a [*Violation] if the client has sent more than [MaxInbound] bytes
// within a minute.
func (i *Inbound) Add(n int64) error {
	if now := time.Now(); now.Sub(i.minute) >= time.Minute {
		i.minute, i.bytes = now, 0
	}
	if i.bytes += n; i.bytes > MaxInbound {
		return &Violation{ClosePolicy, fmt.Sprintf("a client must not send more than %d bytes of messages in a minute", MaxInbound)}
	}
	return nil
}

// DiscardMessages reads messages, which the function next returns, until an error occurs. It
// returns the error.
func DiscardMessages(next func() (io.Reader, error)) error {
	var inbound Inbound
	for {
		message, err := next()
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, message)
		if err == nil {
			err = inbound.Add(n + minFrame)
		}
		if err != nil {
			return err
		}
	}
}

// minFrame is the minimum size of a frame of a client: two bytes and the mask.
const minFrame = 2 + 4

// StartPings calls ping after each interval until it returns false or the timer is stopped. If
// interval is negative, it never calls ping.
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
