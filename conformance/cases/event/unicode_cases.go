package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// UnicodeCases are those of text and numbers.
var UnicodeCases = []harness.Case{
	{
		ID: "unicode/roundtrip", Level: harness.Must, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "every letter comes back as it was written, in keys and values, in every framing (RFC 8259, sections 7 and 8.1)",
		Needs: harness.Writes | harness.SoleWriter, Run: unicodeRoundtrip,
	},
	{
		ID: "unicode/surrogates", Level: harness.Should, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "half of a surrogate pair is kept or replaced, the same way in lists and in every framing",
		Needs: harness.Writes | harness.SoleWriter, Run: unicodeSurrogates,
	},
	{
		ID: "unicode/numbers", Level: harness.Promise, Subject: harness.Both, Transports: harness.AllTransports, Mode: "r",
		Rule:  "numbers are kept as they were written, and in binary framings their value is (RFC 8259, section 6)",
		Needs: harness.Writes | harness.SoleWriter, Run: unicodeNumbers,
	},
	{
		ID: "unicode/names-in-selectors", Level: harness.Must, Subject: harness.Server, Transports: harness.AllTransports, Mode: "r",
		Rule:  "selectors are percent-encoded UTF-8, and what is no UTF-8 is answered 400 (RFC 3986, section 2.1)",
		Needs: harness.Writes | harness.SoleWriter | harness.FieldSelectors, Run: namesInSelectors,
	},
}
