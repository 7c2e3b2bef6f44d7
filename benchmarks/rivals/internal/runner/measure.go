package runner

import (
	"errors"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/clients"
)

// Work is the work that every rival does. The fields are numbers of watchers, events, and so on.
type Work struct {
	// Watchers is the number of watchers. They first receive Singles single events, and then Bursts
	// bursts of Burst events each.
	Watchers, Singles, Bursts, Burst int
	// Paced is the number of events that a reader receives without other watchers. StallEvents is
	// the number of events that it then receives next to a watcher that does not read.
	// PacedInterval is the time between two of these events.
	Paced, StallEvents int
	PacedInterval      time.Duration
	// Objects is the number of objects in the initial state. StateReads is the number of times that
	// a watcher receives this state.
	Objects, StateReads int
	// Returning is the number of watchers that return at the same time after Missed changes.
	Returning, Missed int
}

// A Result holds the measurements of a rival in one round. A value that could not be measured is
// missing.
type Result map[Metric]float64

// A Metric is a measured property.
type Metric string

// The metrics. Their names end with the unit.
const (
	// SingleCPU is the CPU time of the server for each delivery of single events. SingleP99 is the
	// 99th percentile of the time from a write until a watcher has the event.
	SingleCPU Metric = "single-cpu-us"
	SingleP99 Metric = "single-p99-ms"
	// BurstCPU is the CPU time of the server for each delivery in bursts.
	BurstCPU Metric = "burst-cpu-us"
	// IdleMemory is the resident memory of the server for each idle watcher.
	IdleMemory Metric = "idle-kib"
	// AloneP99 is the 99th percentile of the latency of a reader without other watchers, and
	// StalledP99 the same with a stalled watcher next to the reader.
	AloneP99   Metric = "alone-p99-ms"
	StalledP99 Metric = "stalled-p99-ms"
	// StallMemory is the growth of the server's resident memory during the stall. StallEvents
	// is the number of events that the stalled reader has received in the end. StallClosed is
	// 1 if the server has ended the stalled watch.
	StallMemory Metric = "stall-mib"
	StallEvents Metric = "stall-events"
	StallClosed Metric = "stall-closed"
	// StateCPU is the CPU time of the server for each object of the initial state, and StateTime
	// the time until a watcher has all of it.
	StateCPU  Metric = "state-cpu-us"
	StateTime Metric = "state-ms"
	// WholeBytes are the bytes that all returning watchers receive together if they request the
	// whole state, WholeCPU is the CPU time of the server, and WholeTime the time until the last
	// watcher has everything. The metrics of differences have the same meaning.
	WholeBytes      Metric = "whole-mb"
	WholeCPU        Metric = "whole-cpu-ms"
	WholeTime       Metric = "whole-ms"
	DifferenceBytes Metric = "difference-mb"
	DifferenceCPU   Metric = "difference-cpu-ms"
	DifferenceTime  Metric = "difference-ms"
)

// A run measures one rival.
type run struct {
	Work
	rival      Rival
	kubernetes string // the test binary of interop/rivals; see startKubernetes
	result     Result
}

// A pair is a server with its clients.
type pair struct {
	server
	load *process
	// sent is the number of events that each watcher should have received, and watchers the
	// number of watchers.
	sent, watchers int
}

func (r *run) start(objects int) (*pair, error) {
	var s server
	var err error
	if http2, ok := kubernetesServers[r.rival.server]; ok {
		s, err = startKubernetes(r.kubernetes, http2, objects)
	} else {
		s, err = startOwn(r.rival, objects)
	}
	if err != nil {
		return nil, err
	}
	p := &pair{server: s, sent: objects}
	if p.load, err = startSelf("load", s.target()); err != nil {
		s.stop()
		return nil, err
	}
	return p, nil
}

func (p *pair) stop() {
	p.load.stop()
	p.server.stop()
}

// open opens the given number of watches and waits until they have the initial state. It must be
// called once.
func (p *pair) open(watchers int) (clients.Received, error) {
	p.watchers = watchers
	if err := p.load.ask(nil, "open %d", watchers); err != nil {
		return clients.Received{}, err
	}
	return p.wait(0)
}

// errMissing means that watchers did not receive all events.
var errMissing = errors.New("events are missing")

// wait waits until every watcher has received n further events.
func (p *pair) wait(n int) (got clients.Received, err error) {
	p.sent += n
	if err = p.load.ask(&got, "wait %d", p.sent*p.watchers); err == nil && !got.OK {
		err = errMissing
	}
	return got, err
}

// send publishes n events and waits until every watcher has them.
func (p *pair) send(n int, interval time.Duration) (clients.Received, error) {
	if err := p.publish(n, interval); err != nil {
		return clients.Received{}, err
	}
	return p.wait(n)
}

// fanOut measures the memory of idle watchers, single events, and bursts.
func (r *run) fanOut() error {
	p, err := r.start(1)
	if err != nil {
		return err
	}
	defer p.stop()
	before, err := p.usage()
	if err != nil {
		return err
	}
	if _, err := p.open(r.Watchers); err != nil {
		return err
	}
	// After its first changes a watch has allocated all its buffers.
	for range 3 {
		if _, err := p.send(1, 0); err != nil {
			return err
		}
	}
	idle, err := p.usage()
	if err != nil {
		return err
	}
	r.result[IdleMemory] = float64(idle.Resident-before.Resident) / 1024 / float64(r.Watchers)
	if r.result[SingleCPU], r.result[SingleP99], err = r.deliver(p, r.Singles, 1); err != nil {
		return err
	}
	r.result[BurstCPU], _, err = r.deliver(p, r.Bursts, r.Burst)
	return err
}

// deliver sends bursts, and returns the CPU time of the server for each delivery in microseconds
// and the median of the bursts' p99 latencies in milliseconds.
func (r *run) deliver(p *pair, bursts, size int) (cpu, p99 float64, err error) {
	begin, err := p.usage()
	if err != nil {
		return 0, 0, err
	}
	var latencies []float64
	for range bursts {
		got, err := p.send(size, 0)
		if err != nil {
			return 0, 0, err
		}
		latencies = append(latencies, milliseconds(got.P99))
	}
	end, err := p.usage()
	return microseconds(end.CPU-begin.CPU) / float64(bursts*size*r.Watchers), Median(latencies), err
}

// initialState measures the CPU time and the duration of sending the initial state to a watcher.
func (r *run) initialState() error {
	p, err := r.start(r.Objects)
	if err != nil {
		return err
	}
	defer p.stop()
	var cpu, elapsed []float64
	for i := range r.StateReads {
		begin, err := p.usage()
		if err != nil {
			return err
		}
		if err := p.load.ask(nil, "open 1"); err != nil {
			return err
		}
		p.watchers, p.sent = 1, (i+1)*r.Objects
		got, err := p.wait(0)
		if err != nil {
			return err
		}
		end, err := p.usage()
		if err != nil {
			return err
		}
		cpu = append(cpu, microseconds(end.CPU-begin.CPU)/float64(r.Objects))
		elapsed = append(elapsed, milliseconds(got.SinceOpen))
	}
	r.result[StateCPU], r.result[StateTime] = Median(cpu), Median(elapsed)
	return nil
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
