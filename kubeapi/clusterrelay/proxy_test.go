package clusterrelay

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
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
	h, err := New(Options{
		URL: base, Network: transport.Network{TLS: api.ClientTLS},
		Log: slog.New(slog.DiscardHandler),
	})
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

func TestClientsDoNotSeeWhyTheAPIServerIsUnreachable(t *testing.T) {
	withCluster(t, Options{}, func(c *cluster) {
		const secret = "10.0.0.7"
		c.warm(podsPath)
		c.change(func() { c.down = errors.New("dial tcp " + secret + ": connection refused") })
		c.servers[strings.TrimPrefix(c.direct, "http://")].ResetConns()
		for _, request := range []string{
			"POST " + podsPath, "DELETE " + podsPath + "/a", "GET " + secretsPath, "GET " + widgetsPath,
			"GET " + podsPath, "GET " + podsPath + "?watch=1",
		} {
			method, path, _ := strings.Cut(request, " ")
			r := c.send("of-ann", method, c.relayed+path, "")
			if r.code != http.StatusServiceUnavailable && r.code != http.StatusBadGateway {
				c.Errorf("%s: got %d, want 502 or 503", request, r.code)
			}
			if got := fmt.Sprint(r.header, r.body); strings.Contains(got, secret) {
				c.Errorf("%s: the client received %s", request, got)
			}
		}
	})
}
