package loop

import (
	"time"

	"golang.org/x/net/http2"
)

// A budget limits the work that a client may cause without using the service. It holds up to
// budgetSize units and regains budgetRate units each second. Honest clients never come near the
// limit, at any rate of requests.
type budget struct {
	used     int
	refilled time.Time
	// explained is the number of further frames that cost nothing, because the streams and data so
	// far explain them.
	explained int64
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
	// expand one byte to the size of its table. Twice the encoded bytes plus freeBytes are free.
	// That is enough for honest requests, which refer to each entry of the table only once.
	bytesPerUnit = 8 << 10
	freeBytes    = 16 << 10
)

// charge takes n units from the budget. It returns an error if the client has exceeded the budget.
func (b *budget) charge(n int) error {
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

// The numbers of frames that an honest client may send in addition to its requests.
const (
	// framesPerStream allows, for each stream: its priority, changes of the priority, its window, a
	// reset that crosses the end of the response, and a PING with which some clients then test the
	// connection.
	framesPerStream = 6
	// framesPerData allows, for each DATA frame that the server sends: a WINDOW_UPDATE for the
	// stream, one for the connection, and a PING with which gRPC measures the round-trip time. It
	// does not apply to a frame that a window has cut to less than bytesPerFrame: a client could
	// pay for each update by opening the window by one more byte.
	framesPerData = 3
	// bytesPerFrame allows one more frame for this number of bytes of DATA. Clients send a
	// WINDOW_UPDATE for every 2 KiB or more.
	bytesPerFrame = 256
	// maxExplained bounds the frames that a client can save up.
	maxExplained = 64 << 10
)

// explain makes n frames free.
func (b *budget) explain(n int64) { b.explained = min(b.explained+n, maxExplained) }

// explainData makes frames free because of a DATA frame of n bytes. isCut is true if a window was
// too small for more bytes.
func (b *budget) explainData(n int64, isCut bool) {
	if !isCut || n >= bytesPerFrame {
		b.explain(framesPerData)
	}
	b.explain(n / bytesPerFrame)
}

// chargeUnexplained charges a frame that is free as long as streams and data explain it.
func (b *budget) chargeUnexplained() error {
	if b.explained > 0 {
		b.explained--
		return nil
	}
	return b.charge(costFrame)
}
