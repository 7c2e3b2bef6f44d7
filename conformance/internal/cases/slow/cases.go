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
		ID: "slow/one-slow-others-fast", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a stalled reader does not delay other readers",
		Needs: harness.Writes | harness.SoleWriter, Run: oneSlowOthersFast,
	},
	{
		ID: "slow/terminated", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a watch whose reader has stalled for too long ends visibly and can resume " +
			"after the received events",
		Needs: harness.Writes | harness.CountsWatches | harness.SoleWriter, Run: slowTerminated,
	},
	{
		ID: "slow/bounded-memory", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "stalled readers hold no more memory than the retained history, however much " +
			"is written",
		Setup: harness.Setup{HistoryBytes: 128 << 10, SmallBuffers: true},
		Needs: harness.Writes | harness.Configurable | harness.InProcess | harness.SoleWriter, Run: boundedMemory, RunsAlone: true,
	},
	{
		ID: "slow/no-silent-drop", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule:  "a slow watch has no gap before its end, whatever ends it",
		Setup: harness.Setup{HistoryBytes: 512 << 10},
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter, Run: noSilentDrop,
	},
	{
		ID: "slow/coalesce-honest", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "if a client requests conflated delivery, only superseded MODIFIED events " +
			"may be missing",
		CoveredBy: "needs conflated delivery, which the server does not have",
	},
	{
		ID: "slow/h2-window-zero", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "a stream with an exhausted window waits without holding up others on its " +
			"connection (RFC 9113 5.2, 6.9)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2WindowZero,
	},
	{
		ID: "slow/h2-window-drip", Level: harness.Should, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "a window that grows byte by byte lets the stream continue byte by byte (RFC " +
			"9113 6.9)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2WindowDrip,
	},
	{
		ID: "slow/h2-settings-shrink", Level: harness.Must, Subject: harness.Server, Transports: "h2", Modes: []harness.Mode{harness.FakeTime, harness.RealTime},
		Rule: "the server obeys a window that SETTINGS_INITIAL_WINDOW_SIZE made negative " +
			"(RFC 9113 6.9.2)",
		Needs: harness.Writes | harness.SoleWriter, Run: h2SettingsShrink,
	},
	{
		ID: "slow/write-deadline", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a reader that reads nothing is cut off after the configured time, and one " +
			"that pauses for less is not",
		Setup: harness.Setup{Limits: watchserver.Limits{WriteTimeout: writeTimeout}},
		Needs: harness.Writes | harness.Configurable | harness.SoleWriter, Run: writeDeadline,
	},
	{
		ID: "slow/client-backpressure", Level: harness.Must, Subject: harness.Client, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "a client with a slow reader buffers few events, stops reading, and loses " +
			"nothing",
		Needs: harness.InProcess, Run: clientBackpressure,
	},
	{
		ID: "slow/flush-latency", Level: harness.Promise, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.FakeTime},
		Rule: "an event on an idle stream is sent at once, and many pending events are sent " +
			"together",
		Needs: harness.Writes | harness.SoleWriter, Run: flushLatency,
	},
}

// writeTimeout is the server's write timeout in the case slow/write-deadline.
const writeTimeout = 5 * time.Second
