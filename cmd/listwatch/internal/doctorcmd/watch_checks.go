package doctorcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// noObject is a label selector that selects nothing.
const noObject = "listwatch.example.com/doctor=selects-nothing"

// transports returns the transports that clients of the collection use.
func (e *examination) transports() []transport.Client {
	n := transport.Network{TLS: e.tls}
	all := []transport.Client{&chunked.Client{Network: n}}
	if e.collection.Scheme == "https" {
		all = append(all, &h2.Client{Network: n})
	}
	return append(all, &websocket.Client{Network: n})
}

// watchURL returns the URL of a watch that selects no objects.
func (e *examination) watchURL(more url.Values) *url.URL {
	u := *e.collection
	q := u.Query()
	q.Set("watch", "1")
	q.Set("labelSelector", noObject)
	for name, values := range more {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	return &u
}

// checkWatches opens a watch over each transport, and returns the transports that work.
func (e *examination) checkWatches(ctx context.Context) (working []transport.Client) {
	for _, t := range e.transports() {
		f := e.checkWatch(ctx, t)
		e.report.add(f)
		if f.Verdict == fine {
			working = append(working, t)
		}
	}
	return working
}

// checkWatch opens a watch whose first event is the bookmark at the end of the initial events. The
// bookmark is short, so a proxy that buffers holds it back.
func (e *examination) checkWatch(ctx context.Context, t transport.Client) finding {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	start := time.Now()
	u := e.watchURL(url.Values{
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "allowWatchBookmarks": {"true"},
	})
	receiver, err := t.Dial(ctx, &transport.Request{URL: u, Header: e.header()})
	if err != nil {
		return e.watchFailed(ctx, t, "cannot be opened", err)
	}
	defer receiver.Close()
	opened := time.Since(start)
	if _, err := receiver.Receive(); err != nil {
		return e.watchFailed(ctx, t, fmt.Sprintf("opens after %s, but has no first event", round(opened)), err)
	}
	return finding{Check: t.Name(), Verdict: fine, Text: fmt.Sprintf(
		"opens after %s, first event after %s", round(opened), round(time.Since(start)))}
}

// watchFailed returns the finding for a watch over t that failed.
func (e *examination) watchFailed(ctx context.Context, t transport.Client, what string, err error) finding {
	f := finding{Check: t.Name(), Verdict: problem, Text: "a watch " + what + ": " + cli.OneLine(err)}
	switch {
	case ctx.Err() != nil:
		f.Text = fmt.Sprintf("a watch %s within %s; something holds the response back", what, requestTimeout)
		f.Remedies = e.remedies(noBuffering)
	case t.Name() == "websocket":
		f.Remedies = e.remedies(forwardUpgrade)
	}
	return f
}

// checkIdle observes silent watches over all transports at the same time.
func (e *examination) checkIdle(ctx context.Context, transports []transport.Client) {
	if e.idle <= 0 || len(transports) == 0 {
		return
	}
	e.report.progress("observing silent watches for %s; end earlier with --idle", e.idle)
	findings := make([]finding, len(transports))
	var wg sync.WaitGroup
	for i, t := range transports {
		wg.Go(func() { findings[i] = e.observeIdle(ctx, t) })
	}
	wg.Wait()
	for _, f := range findings {
		e.report.add(f)
	}
}

// observeIdle reports how long a watch without events lives. The server could send bookmarks and,
// in some framings, heartbeats, but this watch requests neither.
func (e *examination) observeIdle(ctx context.Context, t transport.Client) finding {
	check := "idle " + t.Name()
	ctx, cancel := context.WithTimeout(ctx, e.idle)
	defer cancel()
	u := e.watchURL(url.Values{
		"resourceVersion": {"0"}, "timeoutSeconds": {strconv.Itoa(int(e.idle/time.Second) + 60)},
	})
	start := time.Now()
	receiver, err := t.Dial(ctx, &transport.Request{URL: u, Header: e.header()})
	for err == nil {
		_, err = receiver.Receive()
	}
	if receiver != nil {
		receiver.Close()
	}
	lived := round(time.Since(start))
	if ctx.Err() != nil {
		return finding{
			Check: check, Verdict: fine, Text: fmt.Sprintf("a silent watch lives for %s", cmp.Or(lived, e.idle)),
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the stream was completed")
	}
	if listwatch.CodeOf(err) == listwatch.Unauthorized {
		return finding{Check: check, Verdict: note, Text: "the credentials ended after " + lived.String()}
	}
	return finding{Check: check, Verdict: problem, Remedies: e.remedies(longIdle), Text: fmt.Sprintf(
		"a silent watch was ended after %s: %s", lived, cli.OneLine(err))}
}
