package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/chunked"
)

// rollingWriters write through nginx. Each writer has an object of its own, which contains the
// number of the last write. The writer repeats a write that fails.
type rollingWriters struct {
	stop func() // ends the writers and waits for them

	mu sync.Mutex
	// Guarded by mu, and constant after stop.
	last     map[string]int64 // the number of the newest acknowledged write of each object
	failures map[string]int   // the number of failed writes, by status or error
	count    int              // the number of acknowledged writes
	// outage is the longest time from the start of a failed write until the writer succeeded. A
	// write that succeeds at once counts with its duration.
	outage time.Duration
}

// startWriters starts the writers after it has created their objects.
func (s *site) startWriters() *rollingWriters {
	w := &rollingWriters{last: make(map[string]int64), failures: make(map[string]int)}
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	w.stop = func() { cancel(); wg.Wait() }
	for i := range max(1, *rate*int(writerPause)/int(time.Second)) {
		name := fmt.Sprint("writer-", i)
		body := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"count":0,"at":0}}`, name)
		if _, err := s.send(http.MethodPost, s.front, "", body); err != nil {
			s.t.Fatal(err)
		}
		w.last[name] = 0
		wg.Go(func() { w.run(ctx, s, name) }) // returns when ctx ends
	}
	return w
}

func (w *rollingWriters) run(ctx context.Context, s *site, name string) {
	tick := time.NewTicker(writerPause)
	defer tick.Stop()
	var failing time.Time // the start of the first write that failed since the last success
	for count := int64(1); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		body := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"count":%d,"at":%d}}`, name, count, time.Since(start))
		began := time.Now()
		_, err := s.send(http.MethodPut, s.front, name, body)
		if failing.IsZero() {
			failing = began
		}
		w.mu.Lock()
		if err == nil {
			w.last[name] = count
			w.count++
			w.outage = max(w.outage, time.Since(failing))
			count, failing = count+1, time.Time{}
		} else {
			w.failures[err.Error()]++
		}
		w.mu.Unlock()
	}
}

// send writes an object through the nginx at addr and returns its version.
func (s *site) send(method, addr, name string, body []byte) (listwatch.Version, error) {
	target := "http://" + addr + widgetsPath
	if name != "" {
		target += "/" + name
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, target, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + s.token}, "Content-Type": {"application/json"}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	if res.StatusCode >= 300 {
		return 0, fmt.Errorf("%s: status %d: %s", method, res.StatusCode, data)
	}
	o, err := listwatch.ParseObject(data)
	if err != nil {
		return 0, err
	}
	return o.Version, nil
}

// probes repeatedly measure how long this machine takes to write an object, to open a watch and to
// receive the write. They go through nginx to a server that is not restarted.
type probes struct {
	stop  func() (slowest time.Duration) // ends the probes and waits for them
	count int                            // constant after stop
}

func (s *site) startProbes() *probes {
	version, err := s.send(http.MethodPost, s.control, "", []byte(`{"metadata":{"name":"probe"}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	p, slowest := &probes{}, time.Duration(0)
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	p.stop = func() time.Duration { cancel(); wg.Wait(); return slowest }
	wg.Go(func() { // returns when ctx ends
		tick := time.NewTicker(4 * writerPause)
		defer tick.Stop()
		for ctx.Err() == nil {
			began := time.Now()
			var err error
			if version, err = s.probe(version); err != nil {
				if s.t.Context().Err() == nil { // otherwise the test has failed and ended
					s.t.Errorf("probe: %v", err)
				}
				return
			}
			slowest = max(slowest, time.Since(began))
			p.count++
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return p
}

// probe changes the object named probe, opens a watch that starts after the given version, and
// waits until the watch returns the change. It returns the version of the change.
func (s *site) probe(before listwatch.Version) (listwatch.Version, error) {
	body := fmt.Appendf(nil, `{"metadata":{"name":"probe"},"spec":{"changed":%d}}`, time.Since(start))
	written, err := s.send(http.MethodPut, s.control, "probe", body)
	if err != nil {
		return 0, err
	}
	w, err := s.remote(s.control, &chunked.Client{}).Watch(s.t.Context(), listwatch.Query{
		Selection: listwatch.Selection{Name: "probe"}, Start: listwatch.StartAt, Version: before,
	})
	if err != nil {
		return 0, err
	}
	defer w.Close()
	for e, err := range listwatch.All(s.t.Context(), w) {
		if err != nil || e.Version == written {
			return written, err
		}
	}
	return 0, errors.New("the watch ended")
}
