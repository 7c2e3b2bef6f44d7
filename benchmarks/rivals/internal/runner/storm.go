package runner

import "fmt"

// storm measures watchers that return at the same time. They request the whole state and, if the
// rival can send it, the difference to the state before the missed changes.
func (r *run) storm() error {
	p, err := r.start(r.Objects)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := r.returning(p, WholeBytes, WholeCPU, WholeTime); err != nil || !r.rival.isResumable {
		return err
	}
	p.load.stop()
	if p.load, err = startSelf("load", p.target()); err != nil {
		return err
	}
	if err := p.load.ask(nil, "since"); err != nil {
		return err
	}
	if err := p.publish(r.Missed, 0); err != nil {
		return err
	}
	p.sent = r.Missed
	return r.returning(p, DifferenceBytes, DifferenceCPU, DifferenceTime)
}

// returning opens the watches and measures them.
func (r *run) returning(p *pair, bytes, cpu, elapsed Metric) error {
	begin, err := p.usage()
	if err != nil {
		return err
	}
	got, err := p.open(r.Returning)
	if err != nil {
		return fmt.Errorf("%s: %w", elapsed, err)
	}
	end, err := p.usage()
	r.result[bytes] = float64(got.Bytes) / 1e6
	r.result[cpu] = milliseconds(end.CPU - begin.CPU)
	r.result[elapsed] = milliseconds(got.SinceOpen)
	return err
}
