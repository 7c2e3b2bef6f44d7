package mutants

import (
	"bytes"
	"net"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/transport"
)

// slowMutants are servers and clients with one defect each, which the cases about slow readers must
// detect.
var slowMutants = []mutant{
	{
		Name: "sends-to-one-reader-at-a-time", Breaks: []string{"slow/one-slow-others-fast", "slow/h2-window-zero"},
		Defect: defect{Transport: func(s transport.Server) transport.Server {
			turn := make(chan struct{}, 1)
			return onSend(func(next transport.Sender, frames [][]byte) error {
				turn <- struct{}{}
				defer func() { <-turn }()
				return next.Send(frames)
			})(s)
		}},
	},
	{
		Name: "has-no-write-timeout", Breaks: []string{"slow/terminated", "slow/write-deadline"},
		Defect: defect{
			Transport: onAccept(func(o *transport.Options) { o.WriteTimeout = -1 }, nil),
		},
	},
	{
		Name: "write-timeout-too-short", Breaks: []string{"slow/h2-window-drip", "slow/write-deadline"},
		Defect: defect{
			Transport: onAccept(func(o *transport.Options) { o.WriteTimeout = 1 }, nil),
		},
	},
	{
		Name: "queues-without-limit", Breaks: []string{"slow/bounded-memory"},
		Defect: defect{Source: func(s listwatch.Source) listwatch.Source {
			return unboundedBuffer(onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
				// Each watch gets its own copy of the object, as if events were encoded for each
				// watch.
				return []listwatch.Event{withData(e, bytes.Clone(e.Object.Data))}
			})(s))
		}},
	},
	{
		Name: "drops-an-event-of-slow-watches", Breaks: []string{"slow/no-silent-drop"},
		Defect: defect{Source: onEvents(func(e listwatch.Event, seen int) []listwatch.Event {
			if seen == 20 {
				return nil
			}
			return []listwatch.Event{e}
		})},
	},
	{
		Name: "ignores-later-settings", Breaks: []string{"slow/h2-settings-shrink"},
		Defect: defect{Network: onConns(func(c net.Conn) net.Conn {
			settings := 0
			return &writeFilter{Conn: c, Keep: func(p []byte) bool {
				if len(p) >= frameHeaderSize && http2.FrameType(p[3]) == http2.FrameSettings &&
					http2.Flags(p[4]) != http2.FlagSettingsAck {
					settings++
				}
				return settings < 2 || http2.FrameType(p[3]) != http2.FrameSettings
			}}
		})},
	},
	{
		Name: "client-reads-ahead", Breaks: []string{"slow/client-backpressure"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source { return unboundedBuffer(r) }},
	},
	{
		Name: "delays-events", Breaks: []string{"slow/flush-latency", "conflate/immediate"},
		Defect: defect{Transport: onSend(func(next transport.Sender, frames [][]byte) error {
			<-time.After(40 * time.Millisecond)
			return next.Send(frames)
		})},
	},
	{
		Name: "writes-each-event-separately", Breaks: []string{"slow/flush-latency"},
		Defect: defect{Transport: onSend(func(next transport.Sender, frames [][]byte) error {
			for _, f := range frames {
				if err := next.Send([][]byte{f}); err != nil {
					return err
				}
				if len(frames) > 1 {
					<-time.After(time.Millisecond)
				}
			}
			return nil
		})},
	},
}
