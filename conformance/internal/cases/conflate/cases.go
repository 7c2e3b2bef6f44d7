// Package conflate has the conformance cases about conflation: watches that may skip superseded
// states. The cases are skipped if the server does not announce conflation.
package conflate

import "github.com/listwatch/listwatch/conformance/harness"

// Cases check the parameter conflate.
var Cases = []harness.Case{
	harness.Rule("conflate/header",
		"the response to conflate announces the interval, a response to another watch does not, and a value that is "+
			"no duration up to 60s gets 400",
		harness.Case{Run: header}),
	harness.Rule("conflate/types",
		"a conflated watch may lack MODIFIED events of objects that have a later event, and has all other events in order",
		harness.Case{Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: types}),
	harness.Rule("conflate/last-state",
		"an object that changes often within an interval is sent with its last state, and less often than it changes",
		harness.Case{Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: lastState}),
	harness.Rule("conflate/position", "the state of the client is exact at each bookmark of a conflated watch",
		harness.Case{Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: position}),
	harness.Rule("conflate/resume-in-pass",
		"a watch that resumes after any event of a conflated watch, conflated or not, leads to the newest state",
		harness.Case{Mode: harness.BothTimes, Needs: harness.OwnCollection, Run: resumeInPass}),
	harness.Rule("conflate/immediate", "an event after a silence of the interval is sent at once", harness.Case{
		Strength: harness.Promise, Mode: harness.FakeTime, Needs: harness.OwnCollection, Run: immediate,
	}),
}
