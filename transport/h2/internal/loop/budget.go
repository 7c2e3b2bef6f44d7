package loop

import (
	"time"

	"golang.org/x/net/http2"
)

// A budget limits the work that a client may cause without using the service. It holds up to
// budgetSize units and regains budgetRate units each second. Honest clients never come near the
// limit.
type budget struct {
	used     int
	refilled time.Time
}

const (
	budgetSize = 1000
	budgetRate = 200
)

// The costs of frames in units of the budget.
const (
	costFrame    = 1  // PING, PRIORITY, a reset, an empty DATA, an unknown frame, a CONTINUATION, …
	costSettings = 10 // SETTINGS may change the windows of all streams
	// freeContinuations is the number of CONTINUATION frames of a header block that cost nothing.
	freeContinuations = 8
	// bytesPerUnit is the number of decoded bytes of a header block that cost one unit. HPACK can
	// expand one byte to the size of its table.
	bytesPerUnit = 16 << 10
)

// charge takes n units from the budget. It returns an error if the client has exceeded the budget.
func (c *conn) charge(n int) error {
	b := &c.budget
	if b.used += n; b.used <= budgetSize {
		return nil
	}
	now := time.Now()
	if regained := int(now.Sub(b.refilled) * budgetRate / time.Second); regained > 0 {
		b.used, b.refilled = max(0, b.used-regained), now
	}
	if b.used <= budgetSize {
		return nil
	}
	return connError{http2.ErrCodeEnhanceYourCalm, "too many frames that do nothing"}
}

// An allowance determines how many WINDOW_UPDATE and PRIORITY frames are free. An honest client
// sends more of these frames if the connection carries more streams and data.
type allowance struct {
	opened        int   // the streams that the client has opened
	sent          int64 // the bytes of DATA that the server has sent
	windowUpdates int64
	priorities    int
}

// chargeWindowUpdate charges a WINDOW_UPDATE, unless the amount of data sent explains the frame.
// Honest clients send one WINDOW_UPDATE for every 2 KiB of data or more.
func (c *conn) chargeWindowUpdate() error {
	a := &c.allowance
	if a.windowUpdates++; a.windowUpdates <= 100+2*int64(a.opened)+a.sent/256 {
		return nil
	}
	return c.charge(costFrame)
}

// chargePriority charges a PRIORITY, unless the number of streams opened explains the frame.
func (c *conn) chargePriority() error {
	a := &c.allowance
	if a.priorities++; a.priorities <= 100+2*a.opened {
		return nil
	}
	return c.charge(costFrame)
}
