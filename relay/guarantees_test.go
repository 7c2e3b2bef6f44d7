package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/watchcheck"
	"github.com/listwatch/listwatch/store"
)

// TestRelaysKeepTheGuaranteesOfAWatch has watchers of all selections at relays that are killed, and at relays of these, while objects come, change,
// leave selections and go, and the history of the origin is lost once; the judge of recorded histories says whether each saw what it should.
func TestRelaysKeepTheGuaranteesOfAWatch(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keepGuarantees(t, seed) })
		})
	}
}

func keepGuarantees(t *testing.T, seed uint64) {
	tr := growTree(t, 3)
	defer tr.fell()
	rec := watchcheck.NewRecorder(watchcheck.Meta{
		Name: "relays", Seed: seed, Base: tr.things.start,
		Require: watchcheck.Requirements{Writes: 100, Events: 500, Resumes: 10, Expired: 1, Relists: 1},
	})
	random := rand.New(rand.NewPCG(seed, 1))
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	i := 0
	for name, q := range selections(t) {
		q.Bookmarks = true
		for range 8 {
			i++
			host := "any"
			if i%2 == 0 {
				host = relayNames[i/2%len(relayNames)]
			}
			remote := tr.remote(host)
			witness := rec.Witness(fmt.Sprint(name, i))
			remote.Trace = witness.Trace()
			source := witness.Source(remote, "http")
			watchers.Go(func() {
				defer remote.Close()
				live(ctx, source, q)
			})
		}
	}
	writes := rec.Writes(tr.things.Collection)
	burst := func(n int) {
		for range n {
			change(ctx, t, writes, random)
			<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
		}
	}
	burst(20)
	for round := range 4 {
		name := relayNames[random.IntN(len(relayNames))]
		tr.kill(name)
		rec.Fault(watchcheck.Fault{Kind: "kill"})
		burst(20)
		if round == 2 {
			// The origin forgets what those at the killed relay have not seen.
			rec.Compact(tr.things.db.Version, tr.things.db.Compact)
			burst(1)
		}
		tr.start(name)
		burst(10)
	}
	rec.Heal(tr.things.db.Version())
	<-time.After(5 * time.Minute)
	cancel()
	watchers.Wait()
	report, err := watchcheck.Check(rec.History(), nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d events, %d resumes, %d expired", report.Summary.Events, report.Summary.Resumes, report.Summary.Expired)
}

// live follows s until ctx ends, and begins again where it is told to.
func live(ctx context.Context, s listwatch.Source, q listwatch.Query) {
	for ctx.Err() == nil {
		w, err := s.Watch(ctx, q)
		if err == nil {
			for _, err := range listwatch.All(ctx, w) {
				if err != nil {
					break
				}
			}
			w.Close()
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// change makes a random write.
func change(ctx context.Context, t *testing.T, c *watchcheck.Collection, random *rand.Rand) {
	t.Helper()
	name := string(rune('a' + random.IntN(5)))
	key := listwatch.Key{Namespace: []string{"default", "elsewhere"}[random.IntN(2)], Name: name}
	color := []string{"red", "green", "blue"}[random.IntN(3)]
	data := fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":%q,"labels":{"color":%q}},"spec":{"color":%[3]q,"n":%d}}`, name, key.Namespace, color, random.IntN(1000))
	_, err := c.Create(ctx, data)
	if errors.Is(err, listwatch.AlreadyExists) {
		if random.IntN(4) == 0 {
			_, err = c.Delete(ctx, key, store.Preconditions{})
		} else {
			_, err = c.Update(ctx, key, store.Preconditions{}, func(*listwatch.Object) ([]byte, error) { return data, nil })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
