package h2

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/transport/transporttest"
)

// BenchmarkSend measures the cost of Send for a single watch.
func BenchmarkSend(b *testing.B) {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	configure := func(srv *http.Server) { Configure(srv, Config{}) }
	transporttest.BenchmarkSend(b, transporttest.ServerConfig{Server: Server{}, Configure: configure}, protocols)
}
