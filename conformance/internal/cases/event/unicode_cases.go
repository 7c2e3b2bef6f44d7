package event

import (
	"github.com/listwatch/listwatch/conformance/harness"
)

// UnicodeCases check that text and numbers arrive as written.
var UnicodeCases = []harness.Case{
	harness.Rule("unicode/roundtrip",
		"every character arrives as written, in keys and values, in every framing (RFC 8259, sections 7 and 8.1)",
		harness.Case{Subject: harness.Both, Needs: harness.OwnCollection, Run: unicodeRoundtrip}),
	harness.Rule("unicode/surrogates",
		"an unpaired surrogate is kept or replaced, the same way in lists and in every framing", harness.Case{
			Strength: harness.Should, Subject: harness.Both, Needs: harness.OwnCollection, Run: unicodeSurrogates,
		}),
	harness.Rule("unicode/numbers",
		"numbers arrive as written, and in binary framings with the same value; only a number beyond 64-bit floating "+
			"point may be refused (RFC 8259, section 6)",
		harness.Case{
			Strength: harness.Promise, Subject: harness.Both, Needs: harness.OwnCollection, Run: unicodeNumbers,
		}),
	harness.Rule("unicode/names-in-selectors",
		"selectors are percent-encoded UTF-8, and anything else gets 400 (RFC 3986, section 2.1)",
		harness.Case{Needs: harness.OwnCollection | harness.FieldSelectors, Run: namesInSelectors}),
}
