// Package slow has the cases for readers that do not keep up.
package slow

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/watchserver"
)

// Cases check flow control, backpressure and slow readers.
var Cases = []harness.Case{
	harness.Rule("slow/one-slow-others-fast", "a stalled reader does not delay other readers", harness.Case{
		Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: oneSlowOthersFast,
	}),
	harness.Rule("slow/terminated",
		"a watch whose reader has stalled for too long ends visibly and can resume after the received events",
		harness.Case{
			Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.CountsWatches, Run: slowTerminated,
		}),
	harness.Rule("slow/bounded-memory",
		"stalled readers hold no more memory than the retained history, however much is written", harness.Case{
			Strength: harness.Promise, RunsAlone: true,
			Needs: harness.OwnCollection | harness.Configurable | harness.InProcess,
			Setup: harness.Setup{HistoryBytes: 128 << 10, SmallBuffers: true}, Run: boundedMemory,
		}),
	harness.Rule("slow/no-silent-drop", "a slow watch has no gap before its end, whatever ends it", harness.Case{
		Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.Configurable,
		Setup: harness.Setup{HistoryBytes: 512 << 10}, Run: noSilentDrop,
	}),
	harness.Rule("slow/coalesce-honest",
		"if a client requests conflated delivery, only superseded MODIFIED events may be missing", harness.Case{
			Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: coalesceHonest,
		}),
	harness.Rule("slow/h2-window-zero",
		"a stream with an exhausted window waits without holding up others on its connection (RFC 9113 5.2, 6.9)",
		harness.Case{Transports: "h2", Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: h2WindowZero}),
	harness.Rule("slow/h2-window-drip",
		"a window that grows byte by byte lets the stream continue byte by byte (RFC 9113 6.9)", harness.Case{
			Strength: harness.Should, Transports: "h2", Mode: harness.BothTimes, Needs: harness.OwnCollection,
			Run: h2WindowDrip,
		}),
	harness.Rule("slow/h2-settings-shrink",
		"the server obeys a window that SETTINGS_INITIAL_WINDOW_SIZE made negative (RFC 9113 6.9.2)",
		harness.Case{Transports: "h2", Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: h2SettingsShrink}),
	harness.Rule("slow/write-deadline",
		"a reader that reads nothing is cut off after the configured time, and one that pauses for less is not",
		harness.Case{
			Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection | harness.Configurable,
			Setup: harness.Setup{Limits: watchserver.Limits{WriteTimeout: writeTimeout}}, Run: writeDeadline,
		}),
	harness.Rule("slow/client-backpressure",
		"a client with a slow reader buffers few events, stops reading, and loses nothing", harness.Case{
			Subject: harness.Client, Mode: harness.FakeTime, Needs: harness.InProcess, Run: clientBackpressure,
		}),
	harness.Rule("slow/flush-latency",
		"an event on an idle stream is sent at once, and many pending events are sent together",
		harness.Case{
			Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: flushLatency,
		}),
}

// writeTimeout is the server's write timeout in the case slow/write-deadline.
const writeTimeout = 5 * time.Second
