package cases

// concCases are those of many at once.
var concCases = []Case{
	{
		ID: "conc/1000-watchers", Level: Must, Subject: Both, Transports: "h2", Mode: "r",
		Rule:  "a thousand watchers, over all transports at once, see each of a hundred writes exactly",
		needs: Writes | SoleWriter, run: thousandWatchers,
	},
	{
		ID: "conc/subscribe-race", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "watchers that begin among writes see exactly what follows their beginning (Kubernetes, test/e2e/apimachinery/watch.go)",
		needs: Writes | SoleWriter, run: subscribeRace,
	},
	{
		ID: "conc/h2-one-conn", Level: Promise, Subject: Server, Transports: "h2", Mode: "f",
		Rule:  "the watches of one HTTP/2 connection share it fairly (RFC 9113, section 5.2)",
		needs: Writes | SoleWriter, run: h2OneConn,
	},
	{
		ID: "conc/close-during-send", Level: Must, Subject: Both, Transports: all, Mode: "r",
		Rule:  "watches may be closed at any instant, whether somebody reads them or not, and others are as before",
		needs: Writes | SoleWriter, run: closeDuringSend,
	},
	{
		ID: "conc/stop-idempotent", Level: Must, Subject: Client, Transports: all, Mode: "f",
		Rule:  "a watch may be closed twice, before it is read, while it is read and by many, and then it is over",
		needs: Writes | SoleWriter, run: stopIdempotent,
	},
	{
		ID: "conc/head-of-line", Level: Promise, Subject: Server, Transports: all, Mode: "r",
		Rule:  "a large event that a client does not read holds no other client's events back",
		setup: Setup{SmallBuffers: true},
		needs: Writes | SoleWriter | Configurable, run: headOfLine,
	},
}
