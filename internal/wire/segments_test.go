package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/compress"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/wire/frames"
	"github.com/listwatch/listwatch/transport"
)

// A segmentModel sends the events of one log to watchers that join, lag, leave and receive private
// frames at random, and decodes each watcher's stream after each frame.
type segmentModel struct {
	*testing.T
	rand      *rand.Rand
	log       *history.Log
	segmenter *frames.Segmenter
	state     map[listwatch.Key]*listwatch.Object
	version   listwatch.Version
	watchers  []*segmentWatcher

	// statistics that show what the run has covered
	events, bytes, plain int
}

// A segmentWatcher is a stream, and the client that decodes it.
type segmentWatcher struct {
	*segmentModel
	cursor  listwatch.Watcher
	plain   transport.Encoder // the same framing without compression
	stream  StreamEncoder
	coding  *transport.StreamCoding
	history []byte       // the text that messages may refer to; unused with gzip
	wire    bytes.Buffer // the bytes that the decoder has not read
	all     []byte       // all bytes of the stream
	text    []byte       // all text of the stream
	decoder io.Reader
}

var segmentEnvelope = &transport.Envelope{}

// messageEnvelope models permessage-deflate. The first byte of a message is 1 if the message is
// compressed.
var (
	messageEnvelope = &transport.Envelope{
		Messages: true, Wrap: func(dst, payload []byte, binary bool) []byte {
			if len(payload) < compress.MinSize {
				return plainMessages.Wrap(dst, payload, binary)
			}
			return compress.AppendDeflate(append(dst, 1), payload)
		},
		History: &transport.MessageHistory{
			Wrap:    func(dst, blocks []byte, _ bool) []byte { return append(append(dst, 1), blocks...) },
			Entered: func(frame []byte) bool { return frame[0] == 1 },
			Private: plainMessages,
		},
	}
	plainMessages = &transport.Envelope{Messages: true, Wrap: func(dst, payload []byte, _ bool) []byte {
		return append(append(dst, 0), payload...)
	}}
	// textMessages adds nothing to the text of a message.
	textMessages = &transport.Envelope{Messages: true}
)

func newSegmentModel(t *testing.T, seed uint64) *segmentModel {
	m := &segmentModel{
		T: t, rand: rand.New(rand.NewPCG(seed, 1)), state: make(map[listwatch.Key]*listwatch.Object),
		version: 1,
	}
	sizes := []int64{1 << 10, 20 << 10, -1}
	m.log = history.New(
		history.Options{Retention: listwatch.Retention{Bytes: 200 << 10, FrameCacheBytes: sizes[seed%3]}})
	m.segmenter = NewSegmenter([]int{1, 2, -1}[seed/3%3])
	return m
}

// write changes a random object.
func (m *segmentModel) write() {
	m.version++
	key := listwatch.Key{Namespace: "default", Name: fmt.Sprintf("object-%d", m.rand.IntN(20))}
	old := m.state[key]
	if old != nil && m.rand.IntN(8) == 0 {
		delete(m.state, key)
		m.log.Append(history.Record{Version: m.version, Old: old})
		return
	}
	var data strings.Builder
	fmt.Fprintf(&data, `{"metadata":{"namespace":"default","name":%q,"resourceVersion":"%d"},"padding":"%s"`,
		key.Name, m.version, strings.Repeat(key.Name, m.rand.IntN(60)))
	for range m.rand.IntN(8) {
		fmt.Fprintf(&data, `,"n%d":%d`, m.rand.IntN(10), m.rand.Uint64())
	}
	data.WriteString("}")
	o := &listwatch.Object{
		Key: key, Version: m.version, Data: []byte(data.String()),
		Labels: map[string]string{"odd": fmt.Sprint(m.rand.IntN(2))},
	}
	m.state[key] = o
	m.log.Append(history.Record{Version: m.version, Old: old, New: o})
}

func (m *segmentModel) join() {
	q := listwatch.Query{Bookmarks: true}
	switch m.rand.IntN(4) {
	case 0:
		q.InitialEvents = listwatch.InitialEventsYes
	case 1:
		q.Start, q.Version = listwatch.StartAt,
			max(m.log.Stats().Oldest, m.version-min(m.version-1, listwatch.Version(m.rand.IntN(40))))
	default:
		q.Start, q.Version = listwatch.StartAt, m.version
	}
	if m.rand.IntN(3) == 0 {
		q.Labels, _ = listwatch.ParseLabelSelector("odd=1")
	}
	cursor, err := m.log.Watch(context.Background(), q)
	if err != nil {
		m.Fatal(err)
	}
	w := &segmentWatcher{segmentModel: m, cursor: cursor}
	m.watchers = append(m.watchers, w)
	if m.rand.IntN(3) == 0 {
		w.startMessages()
	} else {
		w.startGzip()
	}
}

func (w *segmentWatcher) startMessages() {
	encoder, err := transport.EncoderFor(framing.JSON{}, messageEnvelope)
	if err != nil {
		w.Fatal(err)
	}
	w.plain, _ = transport.EncoderFor(framing.JSON{}, textMessages)
	w.stream = NewStreamEncoder(&transport.Stream{Encoder: encoder, Segments: true}, nil, w.segmenter)
}

// receiveMessage decodes a message, which may refer to the text of earlier compressed messages. It
// checks that the result is the given text.
func (w *segmentWatcher) receiveMessage(message, text []byte) {
	payload := message[1:]
	if message[0] == 1 {
		decoded,
			err := io.ReadAll(flate.NewReaderDict(io.MultiReader(bytes.NewReader(payload),
			strings.NewReader("\x01\x00\x00\xff\xff")), w.history))
		if err != nil {
			w.Fatalf("%v after %q, want %q", err, decoded, text)
		}
		payload, w.history = decoded, append(w.history, decoded...)
		w.history = w.history[max(0, len(w.history)-32<<10):]
	}
	if !bytes.Equal(payload, text) {
		w.Fatalf("decoded %q, want %q", payload, text)
	}
}

func (w *segmentWatcher) startGzip() {
	m := w.segmentModel
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	if m.rand.IntN(3) == 0 {
		r.Header.Set("Accept", "text/event-stream")
	}
	encoder, err := transport.Negotiate(httptest.NewRecorder(), r, transport.Options{}, segmentEnvelope)
	if err != nil {
		m.Fatal(err)
	}
	w.plain, _ = transport.EncoderFor(encoder.Framer, segmentEnvelope)
	w.stream = NewStreamEncoder(&transport.Stream{Encoder: encoder, Segments: true}, nil, m.segmenter)
	w.coding = encoder.NewStreamCoding()
	if w.decoder, err = compress.NewReader(compress.Gzip, &w.wire); err != nil {
		m.Fatal(err)
	}
	w.receive(w.coding.Header(), nil)
	w.send(w.stream.Opening(), w.plain.Opening())
}

// receive decodes the bytes p from the wire, and checks that the result is the given text.
func (w *segmentWatcher) receive(p, text []byte) {
	w.wire.Write(p)
	w.all, w.text = append(w.all, p...), append(w.text, text...)
	got := make([]byte, len(text))
	if n, err := io.ReadFull(w.decoder, got); err != nil || !bytes.Equal(got, text) {
		w.Fatalf("decoded %q (%v), want %q", got[:n], err, text)
	}
}

func (w *segmentWatcher) send(frame, text []byte) {
	if len(frame) > 0 && w.coding == nil {
		w.receiveMessage(frame, text)
	} else if len(frame) > 0 {
		frames := [][]byte{frame}
		w.coding.Apply(frames)
		w.receive(frames[0], text)
	}
}

func (w *segmentWatcher) sendEvent(e listwatch.Event, ref frames.Ref) {
	text, err := w.plain.Frame(framing.FromEvent(e))
	if err != nil {
		w.Fatal(err)
	}
	frame, err := w.stream.Encode(e, ref)
	if err != nil {
		w.Fatal(err)
	}
	if w.rand.IntN(20) == 0 && w.stream.StartsSegment() {
		bookmark := listwatch.NewBookmark(listwatch.Description{}, listwatch.State{Version: e.Version - 1})
		private, _ := w.stream.BeforeSegment(bookmark)
		before, _ := w.plain.Frame(framing.FromEvent(bookmark))
		w.send(private, before)
	}
	w.send(frame, text)
	w.events++
	w.bytes += len(frame)
	w.segmentModel.plain += len(text)
}

// poll sends at most n events, and returns false if the watcher must be removed.
func (w *segmentWatcher) poll(n int) bool {
	events := make([]listwatch.Event, n)
	refs := make([]frames.Ref, n)
	n, err := w.cursor.(*history.Cursor).PollFrames(events, refs)
	for i, e := range events[:n] {
		if w.rand.IntN(50) > 0 { // a Source may wrap the log and omit events
			w.sendEvent(e, refs[i])
		}
	}
	return err == nil
}

// close ends the stream. It checks that the standard library can read all of the stream and accepts
// its checksum.
func (w *segmentWatcher) close() {
	w.stream.Close()
	w.cursor.Close()
	if w.coding == nil {
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(append(w.all, w.coding.Trailer()...)))
	if err != nil {
		w.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, w.text) {
		w.Errorf("the standard library decoded %d bytes (%v), want %d bytes", len(got), err, len(w.text))
	}
}

func (m *segmentModel) step() {
	if len(m.watchers) == 0 || m.rand.IntN(20) == 0 && len(m.watchers) < 12 {
		m.join()
	}
	i := m.rand.IntN(len(m.watchers))
	w := m.watchers[i]
	switch n := m.rand.IntN(1000); {
	case n < 250:
		m.write()
	case n < 260:
		bookmark := listwatch.NewBookmark(listwatch.Description{}, listwatch.State{Version: m.version})
		text, _ := w.plain.Frame(framing.FromEvent(bookmark))
		frame, _ := w.stream.Encode(bookmark, frames.Ref{})
		w.send(frame, text)
	case n < 265:
		w.send(w.stream.Heartbeat(m.version), w.plain.Heartbeat(m.version))
		long := &listwatch.Error{Code: listwatch.Unavailable, Message: strings.Repeat("private ", 100)}
		text, _ := w.plain.Frame(framing.FromError(long))
		frame, _ := w.stream.Error(long)
		w.send(frame, text)
	case n < 268:
		<-time.After(time.Duration(m.rand.IntN(20)) * time.Second)
	case n == 268:
		m.log.Reset(nil, m.version)
		clear(m.state)
	case n == 269:
		w.close()
		m.watchers = append(m.watchers[:i], m.watchers[i+1:]...)
	default:
		if !w.poll(1 + m.rand.IntN(8)) {
			w.close() // it lagged too far behind
			m.watchers = append(m.watchers[:i], m.watchers[i+1:]...)
		}
	}
}

func TestSegmentsDecodeExactly(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			m := newSegmentModel(t, seed)
			for range 500 {
				m.step()
			}
			for _, w := range m.watchers {
				w.close()
			}
			t.Logf("%d events, %d%% of the bytes", m.events, 100*m.bytes/m.plain)
			if n := m.segmenter.InUse(); n > 0 {
				t.Errorf("%d compressors are in use without a stream, want 0", n)
			}
		})
	}
}
