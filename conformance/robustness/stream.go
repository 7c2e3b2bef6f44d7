package robustness

import (
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

// isEnd reports whether err is a clean end.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// stream reads one stream of the wire, and says how it ended.
func (s *session) stream(ctx context.Context, q listwatch.Query) error {
	c := s.clients[s.streams%len(s.clients)]
	s.streams++
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A peer that vanished is noticed by its silence alone.
	idle := time.AfterFunc(s.world.times.idle, cancel)
	defer idle.Stop()
	req := &transport.Request{URL: s.target(q), Activity: func() { idle.Reset(s.world.times.idle) }}
	req.Codings = codings[s.rand.IntN(len(codings))]
	if s.framing != nil {
		req.Framings = []framing.Framer{s.framing}
	}
	log := s.witness.OpenSession(q, c.Name())
	receiver, err := c.Dial(ctx, req)
	if err != nil {
		log.End(err)
		return err
	}
	receiver = log.Receiver(receiver)
	defer receiver.Close()
	inState := q.SendsInitialEvents()
	for {
		frame, err := receiver.Receive()
		if err != nil {
			return err
		}
		e, err := frame.Event()
		if err != nil {
			return err
		}
		inState = inState && e.Type != listwatch.Synced
		e.Initial = inState
		if s.take(e); s.done() {
			return nil
		}
	}
}

// target spells q, as any client of Kubernetes would.
func (s *session) target(q listwatch.Query) *url.URL {
	v := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}}
	fields := q.Fields
	if q.Namespace != "" {
		fields = fields.And(listwatch.FieldNamespace, q.Namespace)
	}
	if q.Name != "" {
		fields = fields.And(listwatch.FieldName, q.Name)
	}
	if !q.Labels.Empty() {
		v.Set("labelSelector", q.Labels.String())
	}
	if !fields.Empty() {
		v.Set("fieldSelector", fields.String())
	}
	switch q.Start {
	case listwatch.At:
		v.Set("resourceVersion", q.Version.String())
	case listwatch.Any:
		v.Set("resourceVersion", "0")
	}
	if q.SendsInitialEvents() {
		v.Set("sendInitialEvents", "true")
		v.Set("resourceVersionMatch", "NotOlderThan")
	}
	u := s.url
	u.RawQuery = v.Encode()
	return &u
}
