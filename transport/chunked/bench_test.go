package chunked

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/transport/transporttest"
)

// BenchmarkSend measures the cost of Send for a single watch, on the lean and on the standard path.
func BenchmarkSend(b *testing.B) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	b.Run("path=lean", func(b *testing.B) {
		transporttest.BenchmarkSend(b, transporttest.ServerConfig{Server: Server{}}, protocols)
	})
	b.Run("path=standard", func(b *testing.B) {
		transporttest.BenchmarkSend(b, transporttest.ServerConfig{Server: Server{DisableHijack: true}}, protocols)
	})
}
