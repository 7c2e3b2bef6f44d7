package servers

// All holds the servers by name.
var All = map[string]Start{
	"floor":         startFloor,
	"sse":           startSSE,
	"go-sse":        startGoSSE,
	"gorilla":       startGorilla,
	"coder":         startCoder,
	"centrifuge":    startCentrifuge,
	"grpc":          startGRPC,
	"listwatch":     startListwatch,
	"listwatch-tls": startListwatchTLS,
}
