package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/reflector"
	"github.com/listwatch/listwatch/typed"
)

// An Election lets one of several processes work at a time. The leader holds a Lease, an object of
// the kind Lease of coordination.k8s.io/v1, and renews it. If the leader stops, another candidate
// takes over after Duration. The rules are the same as in the leader election of client-go, so
// candidates of both kinds can share a lease.
//
// The clocks of the candidates need not agree, because each candidate measures with its own clock
// for how long the lease stays unchanged. They must run at about the same speed. A leader whose
// process is suspended may believe for a moment after it continues that it still leads. Writes that
// must not happen twice need preconditions in any case.
type Election struct {
	// Leases is a collection of leases in a store or behind a URL:
	//
	//	store.CollectionSpec{
	//		APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespaced: true,
	//	}
	//
	// or https://HOST/apis/coordination.k8s.io/v1/leases.
	Leases listwatch.Store
	// Key is the key of the lease. All candidates use the same key.
	Key listwatch.Key
	// Identity is the name of this candidate. It must be unique among the candidates. If empty, the
	// name of the host with a random suffix is used.
	Identity string
	// Duration is the time without a renewal after which another candidate takes over. If zero or
	// negative, DefaultLeaseDuration is used. In the lease it is rounded up to whole seconds. The
	// leader renews the lease every Duration/6, and stops if it could not renew it for
	// Duration*2/3.
	Duration time.Duration
	// NewLeader is called with the identity of each new leader that this candidate observes. It
	// must return quickly. If nil, it is not called.
	NewLeader func(identity string)
}

// DefaultLeaseDuration is the default of [Election.Duration].
const DefaultLeaseDuration = 15 * time.Second

// Run waits until this candidate leads, and calls lead. The context of lead ends when ctx ends or
// the lease is lost; lead must then return quickly. When lead has returned, Run releases the lease,
// so that another candidate takes over at once, and returns the error of lead.
//
// If the lease is lost although ctx has not ended, Run returns an error of code Unavailable that
// wraps the error of lead. The program may call Run again. If ctx ends before this candidate leads,
// Run returns ctx.Err(). Failures of the store are retried.
func (e Election) Run(ctx context.Context, lead func(context.Context) error) error {
	host, _ := os.Hostname()
	c := &candidate{
		leases: typed.Collection[lease]{Store: e.Leases}, key: e.Key,
		identity: cmp.Or(e.Identity, host+"_"+rand.Text()), duration: max(e.Duration, 0), newLeader: e.NewLeader,
	}
	c.duration = cmp.Or(c.duration, DefaultLeaseDuration)
	for !c.try(ctx) {
		if !reflector.Sleep(ctx, c.duration/6) {
			return ctx.Err()
		}
	}
	leading, stop := context.WithCancel(ctx)
	defer stop()
	lost := make(chan bool, 1)
	go func() { defer stop(); lost <- c.renew(leading) }() // returns when leading ends
	err := lead(leading)
	stop()
	if <-lost && ctx.Err() == nil {
		return &listwatch.Error{
			Code: listwatch.Unavailable, Op: "lead", Message: "the lease " + c.key.String() + " was lost", Err: err,
		}
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.duration/3)
	defer cancel()
	c.release(release)
	return err
}

// A candidate is the state of a running Election.
type candidate struct {
	leases    typed.Collection[lease]
	key       listwatch.Key
	identity  string
	duration  time.Duration
	newLeader func(string)

	seen   lease     // the lease as it was last read or written
	seenAt time.Time // the time at which seen was first read, or before seen was written
	// attempts holds the times of the last writes that may have renewed the lease, the newest last.
	// renewed is the time before the newest write that has renewed the lease.
	attempts []time.Time
	renewed  time.Time
}

// maxAttempts is the number of attempts that a candidate remembers. A leader makes four before its
// lease is lost.
const maxAttempts = 8

// try takes or renews the lease, and reports whether this candidate holds it now. A candidate may
// hold the lease although its write fails, because an earlier attempt may have renewed the lease: a
// store may perform a write and then report a failure.
func (c *candidate) try(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.duration/3)
	defer cancel()
	now := time.Now()
	got, err := c.leases.Get(ctx, c.key)
	if errors.Is(err, listwatch.NotFound) {
		l := c.own(lease{Metadata: listwatch.Metadata{Name: c.key.Name, Namespace: c.key.Namespace}}, now)
		if got, err = c.leases.Create(ctx, l); err == nil {
			c.renewed = now
		}
		return c.observe(got, now) && err == nil
	}
	if err != nil {
		return false
	}
	c.observe(got, now)
	proven := c.proves(got)
	if !got.isHeldBy(c.identity) && got.Spec.Holder != "" && now.Before(c.seenAt.Add(got.lifetime())) {
		return false
	}
	got, err = c.leases.Update(ctx, c.key, func(l *lease) error {
		if l.ResourceVersion != got.ResourceVersion {
			return errLeaseTaken
		}
		*l = c.own(*l, now)
		return nil
	})
	if err != nil {
		return proven && now.Before(c.renewed.Add(c.duration*2/3))
	}
	c.renewed = now
	return c.observe(got, now)
}

// proves reports whether got shows that one of the attempts has renewed the lease. It then records
// the time of this attempt.
func (c *candidate) proves(got lease) bool {
	for _, at := range c.attempts {
		if got.isHeldBy(c.identity) && got.Spec.Renewed == microTime(at) {
			c.renewed = at
			return true
		}
	}
	return false
}

// errLeaseTaken is the result of an update of a lease that another candidate has changed.
var errLeaseTaken = errors.New("the lease has changed")

// own returns l with this candidate as the holder.
func (c *candidate) own(l lease, now time.Time) lease {
	l.APIVersion, l.Kind = "coordination.k8s.io/v1", "Lease"
	if l.Spec.Holder != c.identity {
		l.Spec.Acquired = microTime(now)
		if l.ResourceVersion != "" {
			l.Spec.Transitions++
		}
	}
	l.Spec.Holder, l.Spec.Renewed = c.identity, microTime(now)
	c.attempts = append(c.attempts[max(0, len(c.attempts)-maxAttempts+1):], now)
	l.Spec.Seconds = max(1, int((c.duration+time.Second-1)/time.Second))
	return l
}

// observe remembers l, read or written at now, and reports whether this candidate holds it.
func (c *candidate) observe(l lease, now time.Time) bool {
	if l.ResourceVersion == "" {
		return false
	}
	if l.ResourceVersion != c.seen.ResourceVersion || l.UID != c.seen.UID {
		isNew := l.Spec.Holder != c.seen.Spec.Holder
		c.seen, c.seenAt = l, now
		if isNew && c.newLeader != nil && l.Spec.Holder != "" {
			c.newLeader(l.Spec.Holder)
		}
	}
	return l.isHeldBy(c.identity)
}

// renew renews the lease until ctx ends. It returns true if it lost the lease before that.
func (c *candidate) renew(ctx context.Context) (lost bool) {
	for {
		end := c.renewed.Add(c.duration * 2 / 3)
		if !reflector.Sleep(ctx, min(c.duration/6, time.Until(end))) {
			return false
		}
		deadline, cancel := context.WithDeadline(ctx, end)
		held := c.try(deadline)
		isLate := deadline.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case held: // c.renewed is later than before
		case isLate, c.seen.Spec.Holder != c.identity && c.seen.Spec.Holder != "":
			return true
		}
	}
}

// release empties the lease if this candidate still holds it.
func (c *candidate) release(ctx context.Context) {
	_, _ = c.leases.Update(ctx, c.key, func(l *lease) error { // if it fails, the lease expires
		if !l.isHeldBy(c.identity) {
			return errLeaseTaken
		}
		l.Spec.Holder, l.Spec.Seconds = "", 1
		return nil
	})
}

// A lease is a Lease of coordination.k8s.io/v1.
type lease struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	listwatch.Metadata `json:"metadata"`
	Spec               struct {
		Holder      string `json:"holderIdentity,omitempty"`
		Seconds     int    `json:"leaseDurationSeconds"`
		Acquired    string `json:"acquireTime,omitempty"`
		Renewed     string `json:"renewTime,omitempty"`
		Transitions int    `json:"leaseTransitions"`
	} `json:"spec"`
}

// lifetime returns the time without a renewal after which the lease may be taken.
func (l *lease) lifetime() time.Duration {
	return cmp.Or(max(0, time.Duration(l.Spec.Seconds)*time.Second), DefaultLeaseDuration)
}

func (l *lease) isHeldBy(identity string) bool { return l.Spec.Holder == identity }

// microTime formats t as Kubernetes' MicroTime.
func microTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }
