package runner

import (
	"errors"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/clients"
)

// stalledReader measures a reader alone, and then next to a watcher that stops reading after
// its initial state. If the stalled watcher blocks the reader, StalledP99 is missing.
func (r *run) stalledReader() error {
	p, err := r.start(1)
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := p.open(1); err != nil {
		return err
	}
	alone, err := p.send(r.Paced, r.PacedInterval)
	if err != nil {
		return err
	}
	r.result[AloneP99] = milliseconds(alone.P99)
	if err := p.load.ask(nil, "stall"); err != nil {
		return err
	}
	before, err := p.usage()
	if err != nil {
		return err
	}
	reader, err := p.send(r.StallEvents, r.PacedInterval)
	if errors.Is(err, errMissing) || errors.Is(err, errNoAnswer) {
		return nil
	}
	if err != nil {
		return err
	}
	r.result[StalledP99] = milliseconds(reader.P99)
	after, err := p.usage()
	if err != nil {
		return err
	}
	r.result[StallMemory] = float64(after.Resident-before.Resident) / (1 << 20)
	var stalled clients.Stalled
	if err := p.load.ask(&stalled, "resume %d", r.StallEvents+1); err != nil {
		return err
	}
	r.result[StallEvents] = float64(stalled.Events)
	r.result[StallClosed] = 0
	if stalled.Closed {
		r.result[StallClosed] = 1
	}
	return nil
}
