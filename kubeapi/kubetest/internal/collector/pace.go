package collector

import (
	"context"
	"time"
)

// A pace limits how many objects the collector deletes in a period.
type pace struct {
	start     time.Time         // of the period
	collected map[reference]int // the numbers of deletes in the period
}

// In each period, the collector deletes a few objects of the same name and of the same owner at
// once, and waits before each further one. Without this limit, a controller that creates the object
// again, because its cache still has the owner, would make a loop in which the time of a bubble
// never passes.
const (
	collectPeriod    = 10 * time.Millisecond
	collectedPerName = 10
	collectedAtOnce  = 1000
)

// pause waits if r, an object of the given owner, must not be deleted yet.
func (p *pace) pause(ctx context.Context, r reference, owner string) {
	if p.collected == nil || time.Since(p.start) >= collectPeriod {
		p.start = time.Now()
		p.collected = map[reference]int{}
	}
	ofOwner := reference{collection: owner}
	p.collected[r]++
	p.collected[ofOwner]++
	if p.collected[r] <= collectedPerName && p.collected[ofOwner] <= collectedAtOnce {
		return
	}
	select {
	case <-time.After(collectPeriod):
	case <-ctx.Done():
	}
}
