package cases

import (
	"time"

	"github.com/listwatch/listwatch/watchserver"
)

// slowCases are those of flow control, back-pressure and slow consumers.
var slowCases = []Case{
	{
		ID: "slow/one-slow-others-fast", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:  "a reader that stalls does not hold up the others for a moment",
		needs: Writes | SoleWriter, run: oneSlowOthersFast,
	},
	{
		ID: "slow/terminated", Level: Must, Subject: Server, Transports: all, Mode: "f",
		Rule:  "a watch whose reader has stalled for too long is ended, visibly, and can be resumed from what came",
		needs: Writes | CountsWatches | SoleWriter, run: slowTerminated,
	},
	{
		ID: "slow/bounded-memory", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "readers that have stalled hold no more memory than the window of the history, however much is written",
		setup: Setup{HistoryBytes: 128 << 10, SmallBuffers: true},
		needs: Writes | Configurable | InProcess | SoleWriter, run: boundedMemory, measures: true,
	},
	{
		ID: "slow/no-silent-drop", Level: Must, Subject: Server, Transports: all, Mode: "f",
		Rule:  "a slow watcher is exact up to where it is ended, whatever ends it",
		setup: Setup{HistoryBytes: 512 << 10},
		needs: Writes | Configurable | SoleWriter, run: noSilentDrop,
	},
	{
		ID: "slow/coalesce-honest", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:      "where a client asks for conflated delivery, only MODIFIED that were superseded may be missing",
		CoveredBy: "needs conflated delivery, which the server does not have",
	},
	{
		ID: "slow/h2-window-zero", Level: Must, Subject: Server, Transports: "h2", Mode: "fr",
		Rule:  "a stream whose window is used up waits alone; others on its connection flow (RFC 9113 5.2, 6.9)",
		needs: Writes | SoleWriter, run: h2WindowZero,
	},
	{
		ID: "slow/h2-window-drip", Level: Should, Subject: Server, Transports: "h2", Mode: "fr",
		Rule:  "a window that grows byte by byte lets the stream go on byte by byte (RFC 9113 6.9)",
		needs: Writes | SoleWriter, run: h2WindowDrip,
	},
	{
		ID: "slow/h2-settings-shrink", Level: Must, Subject: Server, Transports: "h2", Mode: "fr",
		Rule:  "a window that becomes negative by SETTINGS_INITIAL_WINDOW_SIZE is obeyed (RFC 9113 6.9.2)",
		needs: Writes | SoleWriter, run: h2SettingsShrink,
	},
	{
		ID: "slow/write-deadline", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:  "a reader that takes nothing is cut off after the configured time, and one that pauses for less is not",
		setup: Setup{Limits: watchserver.Limits{WriteTimeout: writeTimeout}},
		needs: Writes | Configurable | SoleWriter, run: writeDeadline,
	},
	{
		ID: "slow/client-backpressure", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a client whose reader is slow holds few events, stops reading, and loses nothing",
		needs: InProcess, run: clientBackpressure,
	},
	{
		ID: "slow/flush-latency", Level: Promise, Subject: Server, Transports: all, Mode: "f",
		Rule:  "an event on an idle stream goes out at once, and many that are ready go together",
		needs: Writes | SoleWriter, run: flushLatency,
	},
}

// writeTimeout is one that a server is set up with.
const writeTimeout = 5 * time.Second
