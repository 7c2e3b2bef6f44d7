package cases

// unicodeCases are those of text and numbers.
var unicodeCases = []Case{
	{
		ID: "unicode/roundtrip", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "every letter comes back as it was written, in keys and values, in every framing (RFC 8259, sections 7 and 8.1)",
		needs: Writes | SoleWriter, run: unicodeRoundtrip,
	},
	{
		ID: "unicode/surrogates", Level: Should, Subject: Both, Transports: all, Mode: "r",
		Rule:  "half of a surrogate pair is kept or replaced, the same way in lists and in every framing",
		needs: Writes | SoleWriter, run: unicodeSurrogates,
	},
	{
		ID: "unicode/numbers", Level: Promise, Subject: Both, Transports: all, Mode: "r",
		Rule:  "numbers are kept as they were written, and in binary framings their value is (RFC 8259, section 6)",
		needs: Writes | SoleWriter, run: unicodeNumbers,
	},
	{
		ID: "unicode/names-in-selectors", Level: Must, Subject: Server, Transports: all, Mode: "r",
		Rule:  "selectors are percent-encoded UTF-8, and what is no UTF-8 is answered 400 (RFC 3986, section 2.1)",
		needs: Writes | SoleWriter | FieldSelectors, run: namesInSelectors,
	},
}
