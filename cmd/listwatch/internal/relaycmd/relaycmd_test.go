package relaycmd

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// silentSource is a source whose watches never return an event.
type silentSource struct{ listwatch.Source }

func (s silentSource) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	return silentSource{}, nil
}

func (silentSource) Next(ctx context.Context, _ []listwatch.Event) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (silentSource) Close() error { return nil }

func TestRelayWithUnknownLagIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type thing struct {
			listwatch.Metadata `json:"metadata"`
		}
		things := memory.New[thing]()
		for _, name := range []string{"one", "two"} {
			if _, err := things.Create(t.Context(), thing{listwatch.Metadata{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		r := relay.Open(silentSource{things}, relay.Options{})
		defer r.Close()
		time.Sleep(time.Minute)
		s := &relayServer{options: &relayOptions{maxBehind: time.Hour}}
		s.relays.add(&namedRelay{name: "things", Relay: r})
		if err := s.ready(); !r.Health().Ready || err == nil || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("ready() = %v with health %+v; want an error, because the relay cannot know its lag", err,
				r.Health())
		}
	})
}

func TestCheckIntervalIsBelowMaxBehind(t *testing.T) {
	for behind, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, -1: 10 * time.Second, time.Hour: 10 * time.Second, 10 * time.Second: 2 * time.Second,
		1: 100 * time.Millisecond,
	} {
		if got := checkInterval(behind); got != want {
			t.Errorf("--max-behind %v: the relay checks every %v, want %v", behind, got, want)
		}
	}
}

func TestRemovalOfAResourceIsNoWarning(t *testing.T) {
	gone := &listwatch.Error{Code: listwatch.NotFound, Message: "the server could not find the requested resource"}
	for _, tt := range []struct {
		err     error
		cluster bool
		want    string
	}{
		{gone, true, `level=INFO msg="the upstream does not serve the resource`},
		{gone, false, `level=WARN msg="lost the watch of the upstream"`},
		{io.ErrUnexpectedEOF, true, `level=WARN msg="lost the watch of the upstream"`},
	} {
		var out strings.Builder
		s := &relayServer{}
		s.Log = slog.New(slog.NewTextHandler(&out, nil))
		s.trace(relaySpec{name: "widgets", removable: tt.cluster}).UpstreamLost(tt.err, time.Second, false)
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v, of a cluster: %t: got %s, want %s", tt.err, tt.cluster, out.String(), tt.want)
		}
	}
}
