package deploy

import (
	"flag"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	timed = flag.Bool("timed", false,
		"also limit the delays of deliveries, which needs a machine with nothing else to do")
	rate    = flag.Int("rate", 80, "the `number` of writes a second")
	backlog = flag.Duration("backlog", 0,
		"how long to write before the restarts, so that a start reads a long history from etcd")
)

// maxDelay and maxDelayPercent limit the delays of deliveries during a rolling restart if the flag
// -timed is set. To allow for a slow machine, the test adds slowness times the duration of the
// slowest probe to both limits. A probe writes an object, opens a watch and receives the write, at
// a server that is not restarted. slowness is greater than 1, because all watchers of a server
// reconnect at about the same time.
const (
	maxDelay        = 3 * time.Second
	maxDelayPercent = 1500 * time.Millisecond // of 99 percent of the deliveries
	slowness        = 4
)

const (
	writerPause         = 50 * time.Millisecond
	watchesPerTransport = 10
	// drain is --shutdown-timeout, the time that a server takes to stop.
	drain = 10 * time.Second
)

// TestRollingRestartDisturbsNoWatcher restarts the two servers of docs/operations.md, with the
// configuration of that page, one after the other and under load.
func TestRollingRestartDisturbsNoWatcher(t *testing.T) {
	need(t, "nginx")
	s := startSite(t)
	writers := s.startWriters()
	watchers := s.startWatchers()
	p := s.startProbes()
	for _, w := range watchers {
		w.await(t, func() bool { return w.received > 20 })
	}

	<-time.After(*backlog)

	began := time.Now()
	for i := range s.servers {
		s.servers[i].stop(syscall.SIGTERM)
		s.startServer(i)
	}
	took := time.Since(began)

	writers.stop()
	for _, w := range watchers {
		w.await(t, func() bool { return w.has(writers.last) })
	}
	slowest := p.stop()
	for _, w := range watchers {
		w.stop()
	}
	s.nginx.stop(syscall.SIGQUIT) // nginx completes its log before it exits
	var delays []time.Duration
	for _, w := range watchers {
		if len(w.violations) > 0 {
			t.Errorf("%s: %s", w.name, strings.Join(w.violations, "; "))
		}
		delays = append(delays, w.delays...)
	}
	s.checkRequests(began, len(watchers))
	if writers.outage > drain {
		t.Errorf("the writes of a client failed for %v, want at most %v, the time of a drain", writers.outage, drain)
	}
	slices.Sort(delays)
	greatest, percent := delays[len(delays)-1], delays[len(delays)*99/100]
	t.Logf(
		"%d watchers, %d writes, %d deliveries, restarts took %v: greatest delay %v, 99 %% within %v; slowest probe of %d: %v; longest outage of a writer: %v; retried writes: %v",
		len(watchers), writers.count, len(delays), took, greatest, percent, p.count, slowest, writers.outage,
		writers.failures)
	if more := slowness * slowest; *timed && (greatest > maxDelay+more || percent > maxDelayPercent+more) {
		t.Errorf(
			"deliveries were delayed by up to %v, and 99 %% by up to %v; want at most %v and %v, and %v more because the slowest probe took %v",
			greatest, percent, maxDelay, maxDelayPercent, more, slowest)
	}
}
