package cases

// largeCases are those of large objects and of many.
var largeCases = []Case{
	{
		ID: "large/1MiB", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "an object of 1 MiB is carried whole in every framing, whatever frames and windows it crosses (RFC 9113, section 4.2)",
		needs: Writes | SoleWriter, run: large1MiB,
	},
	{
		ID: "large/3MiB", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "an object of 3 MiB is carried whole in every framing, whatever frames and windows it crosses (RFC 9113, section 4.2)",
		needs: Writes | SoleWriter, run: large3MiB,
	},
	{
		ID: "large/burst", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "200 objects of 100 KiB in a row arrive as they were written",
		needs: Writes | SoleWriter, run: largeBurst,
	},
	{
		ID: "large/initial-50k", Level: Promise, Subject: Server, Transports: "h2", Mode: "r",
		Rule:  "initial events of 50,000 objects cost the server no copy of the state for each watch, on any transport (KEP-3157)",
		setup: Setup{SmallBuffers: true},
		needs: Writes | SoleWriter | Configurable | InProcess, run: largeInitial50k, measures: true,
	},
}
