package history

import (
	"context"

	"github.com/listwatch/listwatch"
)

// A signal wakes the Next of a Poller. It is made when Next first waits.
type signal chan struct{}

// next implements [listwatch.Watcher.Next] for p, whose signal is s.
func (s *signal) next(ctx context.Context, p listwatch.Poller, dst []listwatch.Event) (int, error) {
	for {
		if n, err := p.Poll(dst); n > 0 || err != nil {
			return n, err
		}
		if *s == nil {
			*s = make(signal, 1)
		}
		p.Wake(s.raise)
		select {
		case <-*s:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (s *signal) raise() {
	select {
	case *s <- struct{}{}:
	default:
	}
}
