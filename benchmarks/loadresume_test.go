package benchmarks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/persist"
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

// whenComplete returns the time until half of the clients had their whole state, and the time until
// all of them had it.
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
// ends its initial events arrives. If the connection breaks before that, the process ends.
func (c *counter) readState(r io.Reader) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for isComplete := false; ; {
		line, err := lines.ReadSlice('\n')
		if err != nil && !isComplete {
			fmt.Fprintln(os.Stderr, "load: a client lost its connection before it had the state:", err)
			os.Exit(1)
		}
		if err != nil {
			return
		}
		if bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) &&
			bytes.Contains(line, []byte(listwatch.AnnotationSynced)) {
			isComplete = true
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

// A sharedThing is an object that all informers of a process share.
type sharedThing struct{ *stormThing }

var (
	sharedSeed   = maphash.MakeSeed()
	sharedThings sync.Map // *stormThing by the hash of its JSON
)

// UnmarshalJSON decodes JSON that was decoded before into the same value.
func (s *sharedThing) UnmarshalJSON(data []byte) error {
	key := maphash.Bytes(sharedSeed, data)
	if known, ok := sharedThings.Load(key); ok {
		s.stormThing = known.(*stormThing)
		return nil
	}
	var t stormThing
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	known, _ := sharedThings.LoadOrStore(key, &t)
	s.stormThing = known.(*stormThing)
	return nil
}

// openInformer starts an informer, and counts it when it is synced.
func (l loadSpec) openInformer(number int, c *counter) error {
	if l.Clients.PerNode {
		return runInformer[stormThing](l, number, c)
	}
	return runInformer[sharedThing](l, number, c)
}

func runInformer[T any](l loadSpec, number int, c *counter) error {
	i := &informer.Informer[T]{
		Source: &client.Remote{
			URL:        "http://" + l.Addr + "/" + l.Clients.Path,
			HTTPClient: &http.Client{Transport: &http.Transport{DialContext: c.dial}},
		},
	}
	if l.Clients.Copies != "" {
		i.Persist = persist.File{Path: filepath.Join(l.Clients.Copies, fmt.Sprint(number)), Interval: -1}
	}
	if l.Clients.PerNode {
		selector, err := listwatch.ParseFieldSelector(fmt.Sprintf("spec.node=node-%d", number%stormNodes))
		if err != nil {
			return err
		}
		i.Selection.Fields = selector
	}
	c.runs.Go(func() { i.Run(c.run) })
	c.runs.Go(func() {
		if i.WaitForSync(c.run) == nil {
			c.addComplete()
		}
	})
	return nil
}
