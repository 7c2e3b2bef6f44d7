package cases

// largeCases are those of large objects and of many.
var largeCases = []Case{
	{
		ID: "large/1MiB", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "an object of 1 MiB is carried whole in every framing, whatever frames and windows it crosses (RFC 9113, section 4.2)",
		needs: Writes | Alone, run: large1MiB,
	},
	{
		ID: "large/3MiB", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "an object of 3 MiB is carried whole in every framing, whatever frames and windows it crosses (RFC 9113, section 4.2)",
		needs: Writes | Alone, run: large3MiB,
	},
	{
		ID: "large/burst", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "200 objects of 100 KiB in a row arrive as they were written",
		needs: Writes | Alone, run: largeBurst,
	},
	{
		ID: "large/initial-50k", Level: Promise, Subject: Server, On: "h2", Lane: "r",
		Says:  "initial events of 50,000 objects cost the server no copy of the state for each watch, on any transport (KEP-3157)",
		setup: Setup{Narrow: true},
		needs: Writes | Alone | Setups | Inside, run: largeInitial50k, measures: true,
	},
}
