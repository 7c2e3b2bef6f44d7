package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// UnicodeCases check that text and numbers arrive as written.
var UnicodeCases = []harness.Case{
	{
		ID: "unicode/roundtrip", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "every character arrives as written, in keys and values, in every framing (RFC " +
			"8259, sections 7 and 8.1)",
		Needs: harness.Writes | harness.SoleWriter, Run: unicodeRoundtrip,
	},
	{
		ID: "unicode/surrogates", Level: harness.Should, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "an unpaired surrogate is kept or replaced, the same way in lists and in every " +
			"framing",
		Needs: harness.Writes | harness.SoleWriter, Run: unicodeSurrogates,
	},
	{
		ID: "unicode/numbers", Level: harness.Promise, Subject: harness.Both, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "numbers arrive as written, and in binary framings with the same value; only a number " +
			"beyond 64-bit floating point may be refused (RFC 8259, section 6)",
		Needs: harness.Writes | harness.SoleWriter, Run: unicodeNumbers,
	},
	{
		ID: "unicode/names-in-selectors", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Modes: []harness.Mode{harness.RealTime},
		Rule: "selectors are percent-encoded UTF-8, and anything else gets 400 (RFC 3986, " +
			"section 2.1)",
		Needs: harness.Writes | harness.SoleWriter | harness.FieldSelectors, Run: namesInSelectors,
	},
}
