// Package slow has the cases about readers that do not keep up.
package slow

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases are those of flow control, back-pressure and slow consumers.
var Cases = []harness.Case{
	{
		ID: "slow/one-slow-others-fast", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a reader that stalls does not hold up the others for a moment",
		Needs: harness.Writes | harness.SoleWriter, Run: oneSlowOthersFast,
	},
	{
		ID: "slow/terminated", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a watch whose reader has stalled for too long is ended, visibly, and can be resumed from what came",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: slowTerminated,
	},
	{
		ID: "slow/bounded-memory", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "readers that have stalled hold no more memory than the window of the history, however much is written",
		Setup: harness.Setup{HistoryBytes: 128 << 10, SmallBuffers: true},
		Needs: harness.Writes | harness.Configurable | harness.InProcess | harness.SoleWriter, Run: boundedMemory, RunsAlone: true,
	},
	{
		ID: "slow/no-silent-drop", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a slow watcher is exact up to where it is ended, whatever ends it",
		Setup: harness.Setup{HistoryBytes: 512 << 10},
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter, Run: noSilentDrop,
	},
	{
		ID: "slow/coalesce-honest", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:      "where a client asks for conflated delivery, only MODIFIED that were superseded may be missing",
		CoveredBy: "needs conflated delivery, which the server does not have",
	},
	{
		ID: "slow/h2-window-zero", Level: harness.Must, Subject: harness.Server, Transports: "h2", Mode: "fr",
		Rule:  "a stream whose window is used up waits alone; others on its connection flow (RFC 9113 5.2, 6.9)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2WindowZero,
	},
	{
		ID: "slow/h2-window-drip", Level: harness.Should, Subject: harness.Server, Transports: "h2", Mode: "fr",
		Rule:  "a window that grows byte by byte lets the stream go on byte by byte (RFC 9113 6.9)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2WindowDrip,
	},
	{
		ID: "slow/h2-settings-shrink", Level: harness.Must, Subject: harness.Server, Transports: "h2", Mode: "fr",
		Rule:  "a window that becomes negative by SETTINGS_INITIAL_WINDOW_SIZE is obeyed (RFC 9113 6.9.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2SettingsShrink,
	},
	{
		ID: "slow/write-deadline", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a reader that takes nothing is cut off after the configured time, and one that pauses for less is not",
		Setup: harness.Setup{Limits: watchserver.Limits{WriteTimeout: writeTimeout}},
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter, Run: writeDeadline,
	},
	{
		ID: "slow/client-backpressure", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Mode: "f",
		Rule:  "a client whose reader is slow holds few events, stops reading, and loses nothing",
		Needs: harness.InProcess, Run: clientBackpressure,
	},
	{
		ID: "slow/flush-latency", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Mode: "f",
		Rule:  "an event on an idle stream goes out at once, and many that are ready go together",
		Needs: harness.Writes | harness.SoleWriter, Run: flushLatency,
	},
}

// writeTimeout is one that a server is set up with.
const writeTimeout = 5 * time.Second
