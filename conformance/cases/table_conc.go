package cases

// concCases are those of many at once.
var concCases = []Case{
	{
		ID: "conc/1000-watchers", Level: Must, Subject: Both, On: "h2", Lane: "r",
		Says:  "a thousand watchers, over all transports at once, see each of a hundred writes exactly",
		needs: Writes | Alone, run: thousandWatchers,
	},
	{
		ID: "conc/subscribe-race", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "watchers that begin among writes see exactly what follows their beginning (Kubernetes, test/e2e/apimachinery/watch.go)",
		needs: Writes | Alone, run: subscribeRace,
	},
	{
		ID: "conc/h2-one-conn", Level: Promise, Subject: Server, On: "h2", Lane: "f",
		Says:  "the watches of one HTTP/2 connection share it fairly (RFC 9113, section 5.2)",
		needs: Writes | Alone, run: h2OneConn,
	},
	{
		ID: "conc/close-during-send", Level: Must, Subject: Both, On: all, Lane: "r",
		Says:  "watches may be closed at any instant, whether somebody reads them or not, and others are as before",
		needs: Writes | Alone, run: closeDuringSend,
	},
	{
		ID: "conc/stop-idempotent", Level: Must, Subject: Client, On: all, Lane: "f",
		Says:  "a watch may be closed twice, before it is read, while it is read and by many, and then it is over",
		needs: Writes | Alone, run: stopIdempotent,
	},
	{
		ID: "conc/head-of-line", Level: Promise, Subject: Server, On: all, Lane: "r",
		Says:  "a large event that a client does not read holds no other client's events back",
		setup: Setup{Narrow: true},
		needs: Writes | Alone | Setups, run: headOfLine,
	},
}
