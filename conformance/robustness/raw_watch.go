package robustness

import (
	"context"
	"net/url"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// readStream reads one stream directly from a transport client. It returns the error that ended the
// stream, or nil once the target version is reached.
func (w *watcher) readStream(ctx context.Context, q listwatch.Query) error {
	c := w.clients[w.streamCount%len(w.clients)]
	w.streamCount++
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Only silence reveals a half-open connection, so cancel the watch after idleTimeout
	// without bytes.
	idle := time.AfterFunc(w.cluster.timings.idleTimeout, cancel)
	defer idle.Stop()
	req := &transport.Request{URL: w.requestURL(q), Activity: func() { idle.Reset(w.cluster.timings.idleTimeout) }}
	req.Codings = codings[w.rand.IntN(len(codings))]
	if w.framing != nil {
		req.Framings = []framing.Framer{w.framing}
	}
	session := w.recorder.OpenSession(q, c.Name())
	receiver, err := c.Dial(ctx, req)
	if err != nil {
		session.End(err)
		return err
	}
	receiver = session.Receiver(receiver)
	defer receiver.Close()
	initial := q.SendsInitialEvents()
	for {
		frame, err := receiver.Receive()
		if err != nil {
			return err
		}
		e, err := frame.Event()
		if err != nil {
			return err
		}
		initial = initial && e.Type != listwatch.Synced
		e.Initial = initial
		if w.advance(e); w.reachedTarget() {
			return nil
		}
	}
}

// requestURL returns the URL of q as a Kubernetes client writes it.
func (w *watcher) requestURL(q listwatch.Query) *url.URL {
	v := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}}
	fields := q.Fields
	if q.Namespace != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldNamespace, q.Namespace))
	}
	if q.Name != "" {
		fields = fields.And(listwatch.FieldEquals(listwatch.FieldName, q.Name))
	}
	if !q.Labels.Empty() {
		v.Set("labelSelector", q.Labels.String())
	}
	if !fields.Empty() {
		v.Set("fieldSelector", fields.String())
	}
	switch q.Start {
	case listwatch.StartAt:
		v.Set("resourceVersion", q.Version.String())
	case listwatch.StartAny:
		v.Set("resourceVersion", "0")
	}
	if q.SendsInitialEvents() {
		v.Set("sendInitialEvents", "true")
		v.Set("resourceVersionMatch", "NotOlderThan")
	}
	u := w.url
	u.RawQuery = v.Encode()
	return &u
}
