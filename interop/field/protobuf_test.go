//go:build !race

package field

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// A lane is a watch in Protobuf. The relay must send the same bytes as the kube-apiserver.
type lane struct {
	path, accept string
	selector     url.Values
}

func (l lane) String() string { return l.path + "?" + l.selector.Encode() + " as " + l.accept }

// lanes returns watches of all pods and of a namespace, with selectors, of whole objects and of
// their metadata.
func lanes() (all []lane) {
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/default/pods"} {
		for _, selector := range []url.Values{
			{},
			{"labelSelector": {"lane=a"}},
			{"labelSelector": {"lane!=a"}},
			{"fieldSelector": {"status.phase=Running"}},
			{"fieldSelector": {"metadata.name=lane-1"}},
		} {
			for _, as := range []string{"", ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"} {
				all = append(all, lane{path, protobufType + as, selector})
			}
		}
	}
	return all
}

// A frameReader reads the events of a watch in Protobuf, without bookmarks, until its end. header
// is the header of the response.
type frameReader func(t *testing.T, e *endpoint, l lane, query url.Values) (frames [][]byte, header http.Header)

// watchReaders read watches over each version of HTTP and over WebSocket.
var watchReaders = map[string]frameReader{
	"HTTP/1.1": framesOver("http/1.1"), "HTTP/2": framesOver("h2", "http/1.1"), "WebSocket": messages,
}

// testProtobuf compares watches and lists in Protobuf byte for byte.
func (c *cluster) testProtobuf(t *testing.T) {
	t.Run("Watches", c.compareLanes)
	t.Run("Lists", c.compareLists)
}

// compareLanes compares the initial events of all lanes, and the events while pods change.
func (c *cluster) compareLanes(t *testing.T) {
	state := url.Values{
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "allowWatchBookmarks": {"true"},
		"timeoutSeconds": {"4"},
	}
	c.compareFrames(t, state, nil)
	version := url.Values{"resourceVersion": {c.newestVersion(t)}, "timeoutSeconds": {"10"}}
	c.compareFrames(t, version, func() { c.changeLanes(t) })
}

// compareFrames opens all lanes with query over each transport, calls change, and compares the
// events.
func (c *cluster) compareFrames(t *testing.T, query url.Values, change func()) {
	t.Helper()
	var all sync.WaitGroup
	for name, read := range watchReaders {
		for _, l := range lanes() {
			all.Go(func() { c.compareLane(t, name, read, l, query, change != nil) })
		}
	}
	if change != nil {
		change()
	}
	all.Wait()
}

// compareLane compares the events of a lane. It ignores the order of the events unless the lane is
// live, because the order of initial events has no meaning.
func (c *cluster) compareLane(
	t *testing.T, name string, read frameReader, l lane, query url.Values, isLive bool,
) {
	var direct, relayed [][]byte
	var both sync.WaitGroup
	both.Go(func() { direct, _ = read(t, c.direct, l, query) })
	both.Go(func() {
		var header http.Header
		if relayed, header = read(t, c.relayed, l, query); header.Get("Audit-Id") != "" {
			t.Errorf("%s over %s: the kube-apiserver has responded instead of a cache", l, name)
		}
	})
	both.Wait()
	if !isLive {
		slices.SortFunc(direct, bytes.Compare)
		slices.SortFunc(relayed, bytes.Compare)
	}
	if !slices.EqualFunc(direct, relayed, bytes.Equal) || isLive && len(direct) == 0 {
		t.Errorf("%s over %s: %d events: (-direct +relayed)\n%.2000s", l, name, len(direct),
			cmp.Diff(direct, relayed)) // is slow
	}
}

// changeLanes makes pods enter, change in and leave the selections of the lanes.
func (c *cluster) changeLanes(t *testing.T) {
	t.Helper()
	const pods = "/api/v1/namespaces/default/pods"
	for n := range 3 {
		at := fmt.Sprintf("%s/lane-%d", pods, n)
		body := fmt.Sprintf(`{"metadata":{"name":"lane-%d","labels":{"lane":%q}},`+
			`"spec":{"containers":[{"name":"c","image":"i"}]}}`, n, string(rune('a'+n)))
		if r := c.relayed.send(t, http.MethodPost, pods, nil, "application/json", body); r.code != http.StatusCreated {
			t.Errorf("create: %d %s", r.code, r.body)
			return
		}
		for _, label := range []string{"b", "a", "c", "a"} {
			c.mustPatch(t, at, fmt.Sprintf(`{"metadata":{"labels":{"lane":%q},"annotations":{"step":%q}}}`, label, label))
		}
		for _, phase := range []string{"Running", "Failed", "Running"} {
			c.mustPatch(t, at+"/status", fmt.Sprintf(`{"status":{"phase":%q,"podIP":"10.1.1.%d"}}`, phase, n))
		}
		c.mustPatch(t, at, `{"metadata":{"annotations":{"big":"`+strings.Repeat("x", 5000)+`"}}}`)
		c.relayed.send(t, http.MethodDelete, at, url.Values{"gracePeriodSeconds": {"0"}}, "", "")
	}
}

// framesOver returns a reader of watches over HTTP, with the protocols that the client offers.
func framesOver(protocols ...string) frameReader {
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: len(protocols) > 1, MaxIdleConnsPerHost: len(lanes()),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: protocols},
	}}
	return func(t *testing.T, e *endpoint, l lane, query url.Values) (frames [][]byte, header http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url(e, query), nil)
		if err != nil {
			t.Error(err)
			return nil, nil
		}
		r.Header = http.Header{"Authorization": {"Bearer " + e.config.BearerToken}, "Accept": {l.accept}}
		answer, err := client.Do(r)
		if err != nil {
			t.Errorf("%s: %s: %v", e.name, l, err)
			return nil, nil
		}
		defer answer.Body.Close()
		if want := protobufType + ";stream=watch"; answer.StatusCode != http.StatusOK ||
			answer.Header.Get("Content-Type") != want {
			t.Errorf("%s: %s: %s, Content-Type %q, want %q", e.name, l, answer.Status,
				answer.Header.Get("Content-Type"), want)
			return nil, answer.Header
		}
		for body := bufio.NewReader(answer.Body); ; {
			frame, err := readFrame(body)
			if err == io.EOF {
				return frames, answer.Header
			}
			if err != nil {
				t.Errorf("%s: %s: %v", e.name, l, err)
				return nil, answer.Header
			}
			frames = appendFrame(frames, frame)
		}
	}
}

// url returns the URL of the lane with more parameters.
func (l lane) url(e *endpoint, query url.Values) string {
	return e.config.Host + l.path + "?watch=1&" + query.Encode() + "&" + l.selector.Encode()
}

// readFrame reads an event after its length.
func readFrame(r io.Reader) (frame []byte, err error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	frame = make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err = io.ReadFull(r, frame)
	return frame, err
}

// appendFrame appends an event unless it is a bookmark.
func appendFrame(frames [][]byte, frame []byte) [][]byte {
	if bytes.HasPrefix(frame, []byte("\x0a\x08BOOKMARK")) {
		return frames
	}
	return append(frames, frame)
}

// messages reads a watch over WebSocket.
func messages(t *testing.T, e *endpoint, l lane, query url.Values) (frames [][]byte, header http.Header) {
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	address := strings.Replace(l.url(e, query), "https://", "wss://", 1)
	conn, answer, err := dialer.DialContext(ctx, address, http.Header{
		"Authorization": {"Bearer " + e.config.BearerToken}, "Accept": {l.accept}, "Origin": {e.config.Host},
	})
	if err != nil {
		var body []byte
		if answer != nil {
			body, _ = io.ReadAll(answer.Body)
		}
		t.Errorf("%s: %s over WebSocket: %v: %s", e.name, l, err, body)
		return nil, nil
	}
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil { // the end
			return frames, answer.Header
		}
		if kind != websocket.BinaryMessage {
			t.Errorf("%s: %s: got a message of type %d, want a binary one", e.name, l, kind)
		}
		frames = appendFrame(frames, message)
	}
}

// testRestarts compares watches and lists after a restart of the kube-apiserver, and of the relay.
func (c *cluster) testRestarts(t *testing.T) {
	c.server.Stop()
	if err := c.server.Restart(); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*endpoint{c.direct, c.relayed} {
		c.awaitPods(t, e)
	}
	t.Run("APIServer", c.testProtobuf)
	c.relay.Kill()
	c.startRelay(t)
	c.awaitPods(t, c.relayed)
	t.Run("Relay", c.testProtobuf)
}

// awaitPods waits until the endpoint lists pods.
func (c *cluster) awaitPods(t *testing.T, e *endpoint) {
	t.Helper()
	eventually(t, e.name+" lists pods", func(ctx context.Context) (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.config.Host+"/api/v1/pods?limit=1", nil)
		if err != nil {
			return false, err
		}
		answer, err := e.client.Do(r)
		if err != nil {
			return false, nil
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK, nil
	})
}
