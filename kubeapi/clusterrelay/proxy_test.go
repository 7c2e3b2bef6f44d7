package clusterrelay

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
)

var refusedWrites = flag.Int64("refused-writes", 300, "the number of writes that TestRefusedWritesEnd sends")

// The server refuses each write before it has read the body. Whether the client has sent the whole
// body by then, and whether it ever does, depends on the scheduler.
func TestRefusedWritesEnd(t *testing.T) {
	configure := func(s *http.Server) { h2.Configure(s, h2.Config{}) }
	o := testhttp.Options{TLS: true, Sockets: true, Configure: configure}
	api := testhttp.Start(t, http.NotFoundHandler(), o)
	base, err := url.Parse(api.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{URL: base, Network: transport.Network{TLS: api.ClientTLS}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.proxy.carrier.CloseIdleConnections()
	relay := testhttp.Start(t, h, o)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: relay.ClientTLS, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	body := bytes.Repeat([]byte("x"), 20_000)
	write := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "POST", relay.URL(widgetsPath), bytes.NewReader(body))
		if err != nil {
			return err
		}
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	var sent atomic.Int64
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for sent.Add(1) <= *refusedWrites {
				if err := write(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
}
