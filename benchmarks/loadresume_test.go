package benchmarks

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
)

// dial opens a connection whose bytes c counts.
func (c *counter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return countedConn{conn, &c.bytes}, nil
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// addComplete counts a client that has its whole state.
func (c *counter) addComplete() {
	c.mu.Lock()
	c.complete = append(c.complete, time.Since(c.opened))
	c.mu.Unlock()
	c.add(1)
}

// whenComplete returns when half of the clients and when all clients had their whole state.
func (c *counter) whenComplete() (median, last time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.complete) == 0 {
		return 0, 0
	}
	return c.complete.quantile(0.5), c.complete.quantile(1)
}

func (c *counter) stop() {
	c.cancel()
	c.runs.Wait()
}

// readState reads a watch, each event on a line of its own, and counts it when the bookmark that
// ends its initial events arrives.
func (c *counter) readState(r io.Reader) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		if bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) && bytes.Contains(line, []byte(listwatch.AnnotationSynced)) {
			c.addComplete()
		}
	}
}

// A stormThing is an object of a storm.
type stormThing struct {
	listwatch.Metadata `json:"metadata"`
	Spec               struct {
		Node string `json:"node"`
	} `json:"spec"`
	Data string `json:"data"`
}

// openInformer starts an informer with a copy, and counts it when it is synced.
func (l loadSpec) openInformer(number int, c *counter) error {
	i := &informer.Informer[stormThing]{
		Source: &client.Remote{
			URL:        "http://" + l.Addr + "/" + l.Clients.Namespace,
			HTTPClient: &http.Client{Transport: &http.Transport{DialContext: c.dial}},
		},
	}
	if l.Clients.Copies != "" {
		i.Persist = listwatch.Persist{Path: filepath.Join(l.Clients.Copies, fmt.Sprint(number)), Interval: -1}
	}
	if l.Clients.PerNode {
		selector, err := listwatch.ParseFieldSelector(fmt.Sprintf("spec.node=node-%d", number%stormNodes))
		if err != nil {
			return err
		}
		i.Query.Fields = selector
	}
	c.runs.Go(func() { i.Run(c.run) })
	c.runs.Go(func() {
		if i.WaitForSync(c.run) == nil {
			c.addComplete()
		}
	})
	return nil
}
