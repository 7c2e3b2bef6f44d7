package mutants

import (
	"bytes"
	"net"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/transport"
)

// slowMutants break the cases of slow readers.
var slowMutants = []Mutant{
	{"sends-to-one-at-a-time", []string{"slow/one-slow-others-fast", "slow/h2-window-zero"}, cases.Interceptors{Transport: func(s transport.Server) transport.Server {
		turn := make(chan struct{}, 1)
		return onSend(func(next transport.Sender, frames [][]byte) error {
			turn <- struct{}{}
			defer func() { <-turn }()
			return next.Send(frames)
		})(s)
	}}},
	{"waits-for-any-reader", []string{"slow/terminated", "slow/write-deadline"}, cases.Interceptors{
		Transport: onAccept(func(o *transport.Options) { o.WriteTimeout = -1 }, nil),
	}},
	{"waits-for-no-reader", []string{"slow/h2-window-drip", "slow/write-deadline"}, cases.Interceptors{
		Transport: onAccept(func(o *transport.Options) { o.WriteTimeout = 1 }, nil),
	}},
	{"queues-without-bound", []string{"slow/bounded-memory"}, cases.Interceptors{Source: func(s listwatch.Source) listwatch.Source {
		return greedy(onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			return []listwatch.Event{withData(e, bytes.Clone(e.Object.Data))} // as the frames of each connection
		})(s))
	}}},
	{"drops-what-is-too-much", []string{"slow/no-silent-drop"}, cases.Interceptors{Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
		if seen == 20 {
			return nil
		}
		return []listwatch.Event{e}
	})}},
	{"is-deaf-to-later-settings", []string{"slow/h2-settings-shrink"}, cases.Interceptors{Network: onConns(func(c net.Conn) net.Conn {
		settings := 0
		return &muffled{c, func(p []byte) bool {
			if len(p) >= frameHead && http2.FrameType(p[3]) == http2.FrameSettings && http2.Flags(p[4]) != http2.FlagSettingsAck {
				settings++
			}
			return settings < 2 || http2.FrameType(p[3]) != http2.FrameSettings
		}}
	})}},
	{"client-reads-ahead", []string{"slow/client-backpressure"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source { return greedy(r) }}},
	{"holds-events-back", []string{"slow/flush-latency"}, cases.Interceptors{Transport: onSend(func(next transport.Sender, frames [][]byte) error {
		<-time.After(40 * time.Millisecond)
		return next.Send(frames)
	})}},
	{"writes-each-event-alone", []string{"slow/flush-latency"}, cases.Interceptors{Transport: onSend(func(next transport.Sender, frames [][]byte) error {
		for _, f := range frames {
			if err := next.Send([][]byte{f}); err != nil {
				return err
			}
			if len(frames) > 1 {
				<-time.After(time.Millisecond)
			}
		}
		return nil
	})}},
}
