package doctorcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/transport"
)

// probeTime is the timeout of the watch that checkBookmarks opens. Relays use the same for probes.
// Servers send the last bookmark two seconds before the end of a watch.
const probeTime = 3 * time.Second

// checkBookmarks reports whether a short watch receives a bookmark at the newest version. The watch
// starts at the version of the server's cache, and that may be an older version. Relays and
// informers open such watches to learn that they lack nothing although no event arrives.
func (e *examination) checkBookmarks(ctx context.Context, transports []transport.Client) {
	if len(transports) == 0 {
		return
	}
	const check = "bookmarks"
	cached, err := e.versionOf(ctx, withQuery(e.collection, "resourceVersion", "0"))
	newest, newestErr := e.versionOf(ctx, e.collection)
	if err = cmp.Or(err, newestErr); err != nil {
		e.report.add(finding{
			Check: check, Verdict: unknown, Text: "the newest version is not known: " + cli.OneLine(err),
		})
		return
	}
	reached, err := e.probe(ctx, transports[0], cached)
	if err == nil && reached < newest { // a relay may have needed that time for a probe of its own
		reached, err = e.probe(ctx, transports[0], reached)
	}
	switch {
	case err == nil && reached >= newest:
		e.report.add(finding{Check: check, Verdict: fine, Text: "a quiet watch receives the newest version"})
		return
	case err == nil:
		err = fmt.Errorf("its bookmark is at version %d, and the server at %d", reached, newest)
	case errors.Is(err, io.EOF):
		err = errors.New("it ended without a bookmark")
	}
	e.report.add(finding{Check: check, Verdict: note, Text: fmt.Sprintf(
		"a watch of %v does not learn the newest version: %s; relays pass reads of the newest state on to the server, "+
			"and informers list to measure their lag", probeTime, cli.OneLine(err))})
}

// versionOf lists at u without selecting an object, and returns the version of the list.
func (e *examination) versionOf(ctx context.Context, u *url.URL) (listwatch.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u = withQuery(withQuery(u, "limit", "1"), "labelSelector", noObject)
	response, err := e.get(ctx, e.negotiated, u, e.header())
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, transport.ResponseError(response) // closes the body
	}
	defer response.Body.Close()
	body, err := plainBody(response)
	if err != nil {
		return 0, err
	}
	return versionIn(io.LimitReader(body, 1<<20))
}

// versionIn returns the resourceVersion of the JSON that r returns.
func versionIn(r io.Reader) (listwatch.Version, error) {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(r).Decode(&o); err != nil {
		return 0, err
	}
	return listwatch.ParseVersion(o.Metadata.ResourceVersion)
}

// probe returns the version of the first bookmark of a watch that starts at the given version.
func (e *examination) probe(
	ctx context.Context, t transport.Client, from listwatch.Version,
) (listwatch.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime+requestTimeout)
	defer cancel()
	u := e.watchURL(url.Values{
		"resourceVersion": {from.String()}, "allowWatchBookmarks": {"true"},
		"timeoutSeconds": {strconv.Itoa(int(probeTime / time.Second))},
	})
	receiver, err := t.Dial(ctx, &transport.Request{URL: u, Header: e.header()})
	if err != nil {
		return 0, err
	}
	defer receiver.Close()
	for {
		event, err := receiver.Receive()
		switch {
		case err != nil:
			return 0, err
		case event.Type == listwatch.Bookmark.String():
			return versionIn(bytes.NewReader(event.Object))
		}
	}
}
