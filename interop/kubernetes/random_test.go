//go:build !race

package kubernetes

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sequencesInCI and seedInCI are the number of sequences and the seed in continuous integration.
// The flags -rapid.checks and -rapid.seed override them.
const (
	sequencesInCI = "500"
	seedInCI      = "11"
)

var allDifferences = flag.Bool("all-differences", false,
	"list all classes of differences of random requests, instead of stopping at the first one")

// A comparison sends requests to both servers.
type comparison struct {
	kubernetes, ours *comparedServer
	exceptions       []*exception
	used             map[*exception]int
	requests, events int
	classes          map[string]*class
}

// A class counts differences of the same kind, and keeps the shortest example.
type class struct {
	count       int
	example     []string
	differences []difference
}

func TestRandomRequestsAreAnsweredAsInKubernetes(t *testing.T) {
	newComparison(startKubernetes(t), startOurs(t), exceptions).check(t, sequencesInCI)
}

func newComparison(kubernetes, ours *comparedServer, exceptions []*exception) *comparison {
	return &comparison{
		kubernetes: kubernetes, ours: ours, exceptions: exceptions, used: map[*exception]int{},
		classes: map[string]*class{},
	}
}

// check sends each kind of request and the given number of random sequences, and reports the
// differences. It also reports exceptions that explain nothing.
func (c *comparison) check(t *testing.T, number string) {
	t.Helper()
	for name, value := range map[string]string{"rapid.checks": number, "rapid.seed": seedInCI} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = flag.Set(name, f.DefValue) }) // the default is valid
		}
	}
	start := time.Now()
	sequences := 0
	t.Run("each", func(t *testing.T) { sequences = c.each(t) })
	t.Run("random", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			steps := rapid.SliceOfN(genRequest(), 1, 30).Draw(r, "steps")
			sequences++
			if _, err := c.run(t.Context(), steps); err != nil {
				r.Fatal(err)
			}
		})
	})
	if sequences >= 500 {
		sequences += c.provoke(t)
	}
	t.Logf("%d sequences, %d requests, %d events, %v", sequences, c.requests, c.events,
		time.Since(start).Round(time.Millisecond))
	c.report(t)
	for _, e := range c.exceptions {
		if c.used[e] == 0 && sequences >= 500 {
			t.Errorf("no answers differ by the exception %v: remove it", e)
		}
	}
}

// For each exception that has explained no difference yet, provoke runs sequences that end with its
// verb and its trait, until the exception explains a difference. It returns the number of
// sequences.
func (c *comparison) provoke(t *testing.T) (sequences int) {
	long := rapid.SliceOfN(genRequest(), 15, 30)
	for _, e := range c.exceptions {
		for seed := 0; seed < 3000 && c.used[e] == 0; seed++ {
			steps := long.Example(seed)
			last := slices.IndexFunc(steps, e.concerns)
			if last < 0 {
				continue
			}
			sequences++
			if _, err := c.run(t.Context(), steps[:last+1]); err != nil {
				t.Error(err)
				return sequences
			}
		}
	}
	return sequences
}

// report lists the classes of differences.
func (c *comparison) report(t *testing.T) {
	t.Helper()
	var keys []string
	for k := range c.classes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(c.classes[b].count, c.classes[a].count) })
	for _, k := range keys {
		e := c.classes[k]
		t.Errorf("%d times %s\n%v\n%s", e.count, k, e.differences, strings.Join(e.example, "\n"))
	}
}

// both calls f for both servers at the same time.
func (c *comparison) both(f func(s *comparedServer) error) error {
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { err = f(c.kubernetes) })
	err2 := f(c.ours)
	wg.Wait()
	return cmp.Or(err, err2)
}

// A watchPair is a watch of both servers.
type watchPair struct {
	request
	kubernetes, ours *openWatch
}

// run sends the steps of a sequence. It returns the number of steps after which the sequence ended,
// and an error that describes the first difference that no exception explains.
func (c *comparison) run(ctx context.Context, steps []request) (done int, err error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	c.kubernetes.begin()
	c.ours.begin()
	var watches []watchPair
	defer func() {
		for _, w := range watches {
			w.kubernetes.stop()
			w.ours.stop()
		}
	}()
	var lines []string
	for i, r := range steps {
		r.body = strings.ReplaceAll(r.body, "@{step}", fmt.Sprint(i))
		if err := c.prepare(ctx, r); err != nil {
			return i + 1, err
		}
		lines = append(lines, r.curl())
		c.requests++
		var k, o answer
		var pair watchPair
		pair.request = r
		err := c.both(func(s *comparedServer) (err error) {
			a, w := &k, &pair.kubernetes
			if s == c.ours {
				a, w = &o, &pair.ours
			}
			if r.watch == nil {
				*a, err = s.send(ctx, r)
			} else {
				*w, *a, err = s.watch(ctx, r, len(watches))
			}
			return err
		})
		if pair.kubernetes != nil && pair.ours != nil {
			watches = append(watches, pair)
		} else if pair.kubernetes != nil {
			pair.kubernetes.stop()
		} else if pair.ours != nil {
			pair.ours.stop()
		}
		if err != nil {
			return i + 1, fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
		}
		same, err := c.explain(r, k, o, compareAnswers(k, o), lines)
		if err != nil || !same {
			return i + 1, cmp.Or(err, c.both(func(s *comparedServer) error { return s.clean(ctx) }))
		}
	}
	if err := c.both(func(s *comparedServer) error { return s.clean(ctx) }); err != nil {
		return len(steps), err
	}
	return len(steps), c.compareEvents(ctx, watches, lines)
}

// prepare must be called before r is sent. If r refers to the version of a list that has not been
// requested yet, prepare requests that list. If Kubernetes may answer r from its cache, prepare
// waits until the cache is up to date. It does not change the versions that r refers to.
func (c *comparison) prepare(ctx context.Context, r request) error {
	for _, m := range reference.FindAllStringSubmatch(r.query, -1) {
		if m[1] != "list" || c.ours.values[m[0][1:]] != "" {
			continue
		}
		if err := c.both(func(s *comparedServer) error {
			_, err := s.send(ctx, request{method: "GET", path: "/apis/demo.example.com/v1/" + m[2]})
			return err
		}); err != nil {
			return err
		}
	}
	if !r.mayUseCache() {
		return nil
	}
	for plural := range kinds {
		if !strings.Contains(r.path+"/", "/"+plural+"/") {
			continue
		}
		// A list without a version waits until the cache is up to date.
		if err := c.both(func(s *comparedServer) error {
			return s.decode(ctx, request{method: "GET", path: collectionPath(plural, "")}, nil)
		}); err != nil {
			return err
		}
	}
	return nil
}

// mayUseCache reports whether Kubernetes may answer r from its cache. The cache need not be newer
// than the version in r.
func (r request) mayUseCache() bool {
	return r.method == "GET" && (r.watch != nil || strings.Contains(r.query, "resourceVersion="))
}

// compareEvents ends the watches and compares their events.
func (c *comparison) compareEvents(ctx context.Context, watches []watchPair, lines []string) error {
	for i, w := range watches {
		var k, o any
		if err := c.both(func(s *comparedServer) (err error) {
			if s == c.ours {
				o, err = s.endWatch(ctx, w.ours, *w.watch, i)
			} else {
				k, err = s.endWatch(ctx, w.kubernetes, *w.watch, i)
			}
			return err
		}); err != nil {
			return fmt.Errorf("%w\n%s\n%s", err, w.curl(), strings.Join(lines, "\n"))
		}
		if all, ok := o.([]any); ok {
			c.events += len(all)
		}
		ok := answer{code: 200}
		if same, err := c.explain(w.request, ok, ok, compareTrees("events", k, o),
			append(lines, "# events of "+w.curl())); err != nil || !same {
			return err
		}
	}
	return nil
}
