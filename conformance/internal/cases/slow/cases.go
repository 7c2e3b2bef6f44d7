// Package slow has the cases for readers that do not keep up.
package slow

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases check flow control, backpressure and slow readers.
var Cases = []harness.Case{
	{
		ID: "slow/one-slow-others-fast", Level: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection,
		Run:  oneSlowOthersFast,
		Rule: "a stalled reader does not delay other readers",
	},
	{
		ID: "slow/terminated", Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.CountsWatches,
		Run:  slowTerminated,
		Rule: "a watch whose reader has stalled for too long ends visibly and can resume after the received events",
	},
	{
		ID: "slow/bounded-memory", Level: harness.Promise, RunsAlone: true,
		Needs: harness.OwnCollection | harness.Configurable | harness.InProcess,
		Setup: harness.Setup{HistoryBytes: 128 << 10, SmallBuffers: true}, Run: boundedMemory,
		Rule: "stalled readers hold no more memory than the retained history, however much is written",
	},
	{
		ID: "slow/no-silent-drop", Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.Setup{HistoryBytes: 512 << 10}, Run: noSilentDrop,
		Rule: "a slow watch has no gap before its end, whatever ends it",
	},
	{
		ID: "slow/coalesce-honest", Level: harness.Promise, Mode: harness.FakeTime,
		CoveredBy: "needs conflated delivery, which the server does not have",
		Rule:      "if a client requests conflated delivery, only superseded MODIFIED events may be missing",
	},
	{
		ID: "slow/h2-window-zero", Transports: "h2", Mode: harness.BothTimes, Needs: harness.OwnCollection,
		Run:  h2WindowZero,
		Rule: "a stream with an exhausted window waits without holding up others on its connection (RFC 9113 5.2, 6.9)",
	},
	{
		ID: "slow/h2-window-drip", Level: harness.Should, Transports: "h2", Mode: harness.BothTimes,
		Needs: harness.OwnCollection, Run: h2WindowDrip,
		Rule: "a window that grows byte by byte lets the stream continue byte by byte (RFC 9113 6.9)",
	},
	{
		ID: "slow/h2-settings-shrink", Transports: "h2", Mode: harness.BothTimes, Needs: harness.OwnCollection,
		Run:  h2SettingsShrink,
		Rule: "the server obeys a window that SETTINGS_INITIAL_WINDOW_SIZE made negative (RFC 9113 6.9.2)",
	},
	{
		ID: "slow/write-deadline", Level: harness.Promise, Mode: harness.FakeTime,
		Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.Setup{Limits: watchserver.Limits{WriteTimeout: writeTimeout}}, Run: writeDeadline,
		Rule: "a reader that reads nothing is cut off after the configured time, and one that pauses for less is not",
	},
	{
		ID: "slow/client-backpressure", Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess,
		Run:  clientBackpressure,
		Rule: "a client with a slow reader buffers few events, stops reading, and loses nothing",
	},
	{
		ID: "slow/flush-latency", Level: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection,
		Run:  flushLatency,
		Rule: "an event on an idle stream is sent at once, and many pending events are sent together",
	},
}

// writeTimeout is the server's write timeout in the case slow/write-deadline.
const writeTimeout = 5 * time.Second
