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
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// A watchPair is a watch that is open at both servers.
type watchPair struct {
	direct, relayed *openWatch
	// mayExpire is true after a restart of the kube-apiserver, which has no earlier history. If
	// other resources had changed, the relay cannot know whether it has missed an event.
	mayExpire bool
}

// An openWatch collects the events of a watch in Protobuf, also after it has been opened again.
type openWatch struct {
	// Immutable after construction.
	scope     readScope
	accept    string
	transport string
	isState   bool // the watch begins with the state

	// These are set by open.
	isPassedOn bool // the kube-apiserver responds, so the watch ends when it stops
	stop       context.CancelFunc
	done       chan struct{} // closed when the connection is no longer read

	mu sync.Mutex
	// Guarded by mu.
	frames  [][]byte
	initial int    // the number of frames before the bookmark that ends the state; -1 before it
	version string // of the last event or bookmark, or of the start
	err     error  // the connection ended, but was not closed
	// isExpired is true if err reports that the history is gone.
	isExpired bool
}

var watchTransports = map[string]*http.Transport{"HTTP/1.1": watchTransport("http/1.1"), "HTTP/2": watchTransport("h2")}

func watchTransport(protocol string) *http.Transport {
	return &http.Transport{
		ForceAttemptHTTP2: protocol == "h2",
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}},
	}
}

// watch opens a watch from an earlier version, or of the newest state, at both servers.
func (s *sequence) watch(r *rapid.T) {
	if len(s.watches) >= 12 {
		r.Skip("enough")
	}
	scope := s.drawScope(r)
	accept := protobufType + draw(r, "form", "", partial)
	over := draw(r, "transport", "HTTP/1.1", "HTTP/2", "WebSocket")
	start := url.Values{"resourceVersion": {s.drawVersion(r)}}
	isState := draw(r, "with the state", false, true)
	if isState {
		start = url.Values{"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}}
		if draw(r, "newest", false, true) {
			start.Set("resourceVersion", s.versions[len(s.versions)-1])
		}
	}
	open := func(e *endpoint) *openWatch {
		w := &openWatch{
			scope: scope, accept: accept, transport: over, isState: isState, initial: -1,
			version: start.Get("resourceVersion"), stop: func() {},
		}
		w.open(r, s.test.Context(), e, start)
		return w
	}
	s.watches = append(s.watches, &watchPair{direct: open(s.direct), relayed: open(s.relayed)})
}

// open opens the watch, and reads its events in the background.
func (w *openWatch) open(r *rapid.T, ctx context.Context, e *endpoint, start url.Values) {
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"1200"}}
	maps.Copy(query, w.scope.query)
	maps.Copy(query, start)
	address := e.config.Host + w.scope.path + "?" + query.Encode()
	header := http.Header{"Authorization": {"Bearer " + e.config.BearerToken}, "Accept": {w.accept}}
	if w.transport == "WebSocket" {
		header.Set("Origin", e.config.Host) // kube-apiserver requires one
	}
	ctx, stop := context.WithCancel(ctx)
	next, err := w.connect(ctx, address, header)
	if err != nil {
		stop()
		r.Fatalf("%s: watch of %s over %s: %v", e.name, address, w.transport, err)
	}
	done := make(chan struct{})
	w.stop, w.done = stop, done
	go func() {
		defer close(done)
		for {
			frame, err := next()
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				w.mu.Lock()
				w.err = fmt.Errorf("%s has ended the watch: %w", e.name, err)
				w.mu.Unlock()
				return
			}
			w.add(frame)
		}
	}()
}

// connect opens a connection, and returns a function that reads the next frame.
func (w *openWatch) connect(ctx context.Context, address string, header http.Header) (func() ([]byte, error), error) {
	if w.transport == "WebSocket" {
		dialer := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		conn, response, err := dialer.DialContext(ctx, strings.Replace(address, "https://", "wss://", 1), header)
		if err != nil {
			return nil, err
		}
		w.isPassedOn = response.Header.Get("Audit-Id") != ""
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		return func() ([]byte, error) {
			_, message, err := conn.ReadMessage()
			return message, err
		}, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header = header
	response, err := watchTransports[w.transport].RoundTrip(request)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = response.Body.Close() })
	w.isPassedOn = response.Header.Get("Audit-Id") != ""
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body) // whatever arrives
		return nil, fmt.Errorf("%s %q", response.Status, body)
	}
	body := bufio.NewReader(response.Body)
	return func() ([]byte, error) {
		var length [4]byte
		if _, err := io.ReadFull(body, length[:]); err != nil {
			return nil, err
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		_, err := io.ReadFull(body, frame)
		return frame, err
	}, nil
}

// add records an event.
func (w *openWatch) add(frame []byte) {
	var event metav1.WatchEvent
	var object metav1.PartialObjectMetadata // a prefix of every object
	err := event.Unmarshal(frame)
	if err == nil && event.Type != "ERROR" {
		var raw []byte
		if raw, err = rawOf(event.Object.Raw); err == nil {
			err = object.Unmarshal(raw)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.err = err
	case event.Type == "ERROR":
		w.err = fmt.Errorf("%q", event.Object.Raw)
		w.isExpired = bytes.Contains(event.Object.Raw, []byte(metav1.StatusReasonExpired))
	case event.Type != "BOOKMARK":
		w.frames = append(w.frames, frame)
	case object.Annotations["k8s.io/initial-events-end"] == "true":
		w.initial = len(w.frames)
	}
	if object.ResourceVersion != "" {
		w.version = object.ResourceVersion
	}
}

func (w *openWatch) close() {
	w.stop()
	if w.done != nil {
		<-w.done
	}
}

// reopen opens the watch again at a version. If the version is empty, it resumes after the last
// event.
func (w *openWatch) reopen(r *rapid.T, ctx context.Context, e *endpoint, version string) {
	w.close()
	if version == "" {
		version = w.version
	}
	w.err, w.isExpired, w.version = nil, false, version
	w.open(r, ctx, e, url.Values{"resourceVersion": {version}})
}

// relist opens both watches again, without the events so far, if the one of the relay has expired.
func (s *sequence) relist(r *rapid.T, p *watchPair) {
	p.relayed.mu.Lock()
	isExpired := p.relayed.isExpired
	p.relayed.mu.Unlock()
	if !isExpired || !p.mayExpire {
		return
	}
	version := s.versionOf(r, p.direct.scope.path)
	for e, w := range map[*endpoint]*openWatch{s.direct: p.direct, s.relayed: p.relayed} {
		w.close()
		w.frames, w.isState = nil, false
		w.initial = -1
		w.reopen(r, s.test.Context(), e, version)
	}
	s.counts["expired watch"]++
}

// versionOf returns the version of a newest list.
func (s *sequence) versionOf(r *rapid.T, path string) string {
	list := s.direct.exchange(r, s.test.Context(), http.MethodGet, path, "", protobufType, "")
	metadata, _, err := splitList(list.body)
	if err != nil {
		r.Fatal(err)
	}
	return metadata.ResourceVersion
}

// state returns the frames, with sorted initial events. ok is false if the initial events are not
// complete yet.
func (w *openWatch) state() (frames [][]byte, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	frames = slices.Clone(w.frames)
	if w.isState && w.initial < 0 {
		return nil, false, w.err
	}
	slices.SortFunc(frames[:max(w.initial, 0)], bytes.Compare)
	return frames, true, w.err
}

// settle waits until both watches of each pair have received the same events.
func (s *sequence) settle(r *rapid.T) {
	for _, w := range s.watches {
		s.eventual(r, func() string {
			s.relist(r, w)
			return w.diff()
		})
	}
}

// diff describes the difference of the two watches.
func (p *watchPair) diff() string {
	want, ok, err := p.direct.state()
	got, ok2, err2 := p.relayed.state()
	what := fmt.Sprintf("watch of %s as %s over %s", p.direct.scope, p.direct.accept, p.direct.transport)
	if err != nil || err2 != nil || !ok || !ok2 {
		return fmt.Sprintf("%s: the state is complete directly: %t, through the relay: %t; errors: %v, %v", what, ok,
			ok2, err, err2)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !bytes.Equal(got[i], want[i]) {
			return fmt.Sprintf("%s: event %d: got %d events %q, want %d events %q", what, i, len(got),
				got[min(i, len(got)):min(i+1, len(got))], len(want), want[min(i, len(want)):min(i+1, len(want))])
		}
	}
	return ""
}
