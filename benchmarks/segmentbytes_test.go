package benchmarks

import (
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport/h2"
)

// maxSharedPercent limits the bytes on the wire, as a percentage of the objects' JSON. It applies
// to pods with five or more events a second.
const maxSharedPercent = 13

var allRows = flag.Bool("all", false, "measure shared history with all datasets and rates, and 1,000 watchers")

// TestSharedHistoryMeetsItsAim measures the bytes on the wire of watchers that receive bookmarks,
// in simulated time. Without -all it tests only pods with five events a second, and fewer watchers.
func TestSharedHistoryMeetsItsAim(t *testing.T) {
	for _, d := range datasets {
		for _, rate := range []int{1, 5, 20} {
			if !*allRows && (d.name != "pods" || rate != 5) {
				continue
			}
			for _, hot := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d per second/%s", d.name, rate, order(hot)), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { measureBytes(t, d, hot, rate) })
				})
			}
		}
	}
}

func measureBytes(t *testing.T, d dataset, hot bool, rate int) {
	watchers, names := 20, []string{"shared", "websocket-shared"}
	if *allRows {
		watchers, names = 1000, append(names, "separate")
	}
	for _, c := range sharing {
		if !slices.Contains(names, c.name) {
			continue
		}
		l := memnet.Listen()
		s := &changingObjects{
			podServer: newPods(startServerWith(t, l, c.server, true, h2.Config{})), dataset: d,
			hot: hot,
		}
		s.watch.SharedCompression = c.share
		request, _, _ := clients{Kind: c.kind}.request(0)
		request = strings.Replace(request, benchQuery, benchQuery+"&allowWatchBookmarks=1", 1)
		var conns []net.Conn
		for range watchers {
			conns = append(conns, watchInMemory(t, l, request))
		}
		synctest.Wait()
		s.publishAtRate(3*64, rate)
		bytes, plain, count := s.bytes, s.plain, s.published
		s.publishAtRate(max(4*64, 60*rate), rate)
		percent := 100 * float64(s.bytes-bytes) / float64(watchers*(s.plain-plain))
		bookmarks := float64(s.events-s.published*watchers) / float64(watchers)
		t.Logf("%-17s %5.1f %% of the objects; %d events and %.1f bookmarks a watcher", c.name, percent,
			s.published-count, bookmarks)
		if c.name != "separate" && d.name == "pods" && rate >= 5 && percent > maxSharedPercent {
			t.Errorf("%s: got %.1f %% of the objects, want at most %d", c.name, percent, maxSharedPercent)
		}
		for _, c := range conns {
			c.Close()
		}
		synctest.Wait()
	}
}

// watchInMemory opens a watch and discards what it receives.
func watchInMemory(t *testing.T, l *memnet.Listener, request string) net.Conn {
	c, err := l.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, c) // ends when the test closes c
	return c
}

// publishAtRate publishes a number of events, at a rate per second. It must be called in a synctest
// bubble.
func (o *changingObjects) publishAtRate(events, rate int) {
	for range events {
		o.Publish()
		time.Sleep(time.Second / time.Duration(rate))
	}
	synctest.Wait()
}
