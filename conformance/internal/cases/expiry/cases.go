// Package expiry has the cases for objects that end by themselves. They are skipped if the server
// has no such objects.
package expiry

import (
	"time"

	"github.com/listwatch/listwatch/conformance/harness"
)

// setup asks for objects with a short TTL. It is longer than a second, because a server may notice
// ends once a second, and would then end an object after a second even if it ignored the TTL.
var setup = harness.Setup{TTL: 1500 * time.Millisecond}

const needs = harness.OwnCollection | harness.Expires

// Cases check that objects end after their TTL, and not before.
var Cases = []harness.Case{
	harness.Rule("expiry/deleted-once",
		"an object that is not written for its TTL ends, not earlier, with one DELETED event that has its last state",
		onH1(harness.Case{Needs: needs, Run: deletedOnce})),
	harness.Rule("expiry/renew-silent",
		"a write that changes nothing renews an object: its TTL starts again, and no watch receives an event",
		onH1(harness.Case{Needs: needs, Run: renewSilent})),
	harness.Rule("expiry/renew-uid",
		"a merge patch with only a metadata.uid renews the object with that uid; for another one it gets 409, and 404 "+
			"without an object",
		onH1(harness.Case{Needs: needs | harness.KubernetesPaths, Run: renewUID})),
	harness.Rule("expiry/finalizers", "an object does not end while it has finalizers",
		onH1(harness.Case{Needs: needs, Run: finalizers})),
}

// onH1 returns c with the setup, for a single variant: the cases wait in real time, and the
// transport makes no difference.
func onH1(c harness.Case) harness.Case {
	c.Transports, c.Setup = "h1", setup
	c.Applies = func(v harness.Variant) bool { return v.Name == "h1" }
	return c
}
