//go:build !race

package lives

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	number    = flag.Int("lives", 10, "the number of random lives")
	first     = flag.Uint64("lives.seed", 1, "the seed of the first random life; the others follow")
	writeDocs = flag.Bool("lives.docs", false, "write the exceptions into docs/kubetest.md")
	only      = flag.String("lives.only", "", "lead only the lives whose names match this regular `expression`")
)

const (
	// pollInterval is the time between two comparisons of the states.
	pollInterval = 25 * time.Millisecond
	// quiet is the time for which the states must be the same. At the end of a life, it is
	// lastQuiet, because a controller may not have begun yet.
	quiet, lastQuiet = 300 * time.Millisecond, 1500 * time.Millisecond
	// settleTimeout limits the time until the states are the same. The namespace controller waits
	// for five seconds before it begins, and looks again after eight seconds if objects remain. On
	// a busy machine it was a minute late.
	settleTimeout = 3 * time.Minute
	// livesAtOnce is the number of lives that run at the same time. They wait most of the time.
	livesAtOnce = 16
	// definitionsEvery is the number of random lives of objects for each random life of a
	// definition, which takes longer.
	definitionsEvery = 10
	// manyLives is the number of random lives in which each exception must explain a difference.
	manyLives = 500
)

// A step is a request. NAME in its path, query and body stands for the name of the life, which is
// also the name of its namespace. References such as @uid(configmaps/a) stand for values that each
// side chooses itself.
type step struct {
	verb                             string // Kubernetes' verb, with the subresource
	method, path, query, contentType string
	body                             string
	user                             string // if empty, the administrator sends the request
	// await repeats the request until both sides respond with the same code, and a read until they
	// respond with the same objects. A cluster serves and removes the resource of a definition, and
	// deletes its objects, some time after the write of the definition.
	await bool
}

// curl returns the request as a command line.
func (s step) curl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl -X %s", s.method)
	if s.user != "" {
		fmt.Fprintf(&b, " -H 'Impersonate-User: %s'", s.user)
	}
	if s.contentType != "" {
		fmt.Fprintf(&b, " -H 'Content-Type: %s'", s.contentType)
	}
	if s.body != "" {
		fmt.Fprintf(&b, " --data-binary '%s'", s.body)
	}
	query := ""
	if s.query != "" {
		query = "?" + s.query
	}
	fmt.Fprintf(&b, ` "$S%s%s"`, s.path, query)
	return b.String()
}

// The tests with a comparison run one after the other, and share these variables.
var (
	used = map[*exception]int{} // the number of differences that each exception has explained
	led  int                    // the number of comparisons that have ended
)

// comparisons is the number of tests with a comparison.
const comparisons = 3

// A comparison leads lives at both sides.
type comparison struct {
	kubernetes, ours *side

	mu sync.Mutex
	// Guarded by mu.
	requests int
	classes  map[string]*class
	single   []string // descriptions of differences that did not come again
}

// A class counts differences of the same kind, and keeps the shortest example.
type class struct {
	count   int
	example []string
}

// TestKubetestActsAsACluster compares kubetest with a cluster.
func TestKubetestActsAsACluster(t *testing.T) {
	c := &comparison{
		kubernetes: startKubernetes(t), ours: startKubetest(t),
		classes: map[string]*class{},
	}
	t.Run("field selectors", c.testFieldSelectors)
	t.Run("configurations", c.testConfigurations)
	t.Run("lives", c.testLives)
}

// testLives leads written and random lives.
func (c *comparison) testLives(t *testing.T) {
	begin := time.Now()
	all := map[string][]step{}
	for _, lives := range []map[string][]step{written, livesOfUsers, livesOfVersions} {
		maps.Copy(all, lives)
	}
	for _, k := range kinds {
		if k.kind != "CustomResourceDefinition" {
			all["kind-"+k.plural] = k.life()
		}
	}
	for i := range uint64(*number) {
		seed := *first + i
		all[fmt.Sprint("random-", seed)] = generate(seed)
		if seed%definitionsEvery == 0 {
			all[fmt.Sprint("definitions-", seed)] = generateDefinitions(seed)
		}
	}
	chosen := regexp.MustCompile(*only)
	maps.DeleteFunc(all, func(name string, _ []step) bool { return !chosen.MatchString(name) })
	c.leadAll(t.Context(), all)
	c.report(t)
	t.Logf("%d lives, %d requests, %v", len(all), c.requests, time.Since(begin).Round(time.Second))
}

// leadAll leads all lives, several at once.
func (c *comparison) leadAll(ctx context.Context, all map[string][]step) {
	var wg sync.WaitGroup
	next := make(chan string)
	for range livesAtOnce {
		wg.Go(func() {
			for name := range next {
				c.lead(ctx, name, all[name])
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		next <- name
	}
	close(next)
	wg.Wait()
}

// lead leads a life. A life that ends in a difference is led once more, because the workers of
// Kubernetes' garbage collector race: for example, an owner that another finalizer holds loses its
// foregroundDeletion before or after its dependents are examined. Only a difference that comes
// again is a fault.
func (c *comparison) lead(ctx context.Context, name string, steps []step) {
	first := &life{comparison: c, name: name, k: newMemory(), o: newMemory()}
	if first.lead(ctx, steps); first.fault == "" {
		return
	}
	again := &life{comparison: c, name: name + "-again", k: newMemory(), o: newMemory()}
	again.lead(ctx, steps)
	c.mu.Lock()
	defer c.mu.Unlock()
	if again.fault == "" {
		c.single = append(c.single, name+": "+first.fault)
		return
	}
	c.count(first)
}

// count adds the difference that ended a life to its class. The caller holds mu.
func (c *comparison) count(l *life) {
	e := c.classes[l.fault]
	if e == nil {
		e = &class{}
		c.classes[l.fault] = e
	}
	e.count++
	if e.example == nil || len(l.lines) < len(e.example) {
		e.example = l.lines
	}
}

// report reports the classes of differences.
func (c *comparison) report(t *testing.T) {
	t.Helper()
	if len(c.single) > 0 {
		t.Logf("%d differences did not come again:\n%s", len(c.single), strings.Join(c.single, "\n"))
	}
	for _, name := range slices.SortedFunc(maps.Keys(c.classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.classes[b].count, c.classes[a].count), cmp.Compare(a, b))
	}) {
		e := c.classes[name]
		t.Errorf("%d times %s\n%s", e.count, name, strings.Join(e.example, "\n"))
	}
	led++
	for _, e := range exceptions {
		if used[e] == 0 && led == comparisons && *number >= manyLives && *only == "" {
			t.Errorf("nothing differs by the exception %q of %q: remove it", e.part, e.quote)
		}
	}
}

// A life is a sequence of requests to both sides, in a namespace of its own.
type life struct {
	*comparison
	name  string
	k, o  *memory // of the two sides
	lines []string
	fault string // the class of the difference that ended the life, or empty
	// watches holds the watches of the last step with the verb watch, one on each side.
	watches [2]*watch
}

// lead sends all requests, until a difference ends the life.
func (l *life) lead(ctx context.Context, steps []step) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watches
	namespace := step{
		verb: "create", method: http.MethodPost, path: "/api/v1/namespaces",
		body: `{"metadata":{"name":"NAME"}}`,
	}
	for i, s := range append([]step{namespace}, steps...) {
		fill := strings.NewReplacer("NAME", l.name, "STEP", fmt.Sprint(i)).Replace
		s.path, s.query, s.body, s.user = fill(s.path), fill(s.query), fill(s.body), fill(s.user)
		l.lines = append(l.lines, s.curl())
		l.mu.Lock()
		l.requests++
		l.mu.Unlock()
		if !l.do(ctx, s) || !l.settle(ctx, s.verb, quiet) {
			return
		}
	}
	l.settle(ctx, "end", lastQuiet)
}

// do takes a step, and reports whether the life can continue.
func (l *life) do(ctx context.Context, s step) bool {
	switch s.verb {
	case "watch":
		return l.openWatches(ctx, s)
	case "end of watch":
		return l.awaitWatches(ctx)
	}
	k, o, err := l.send(ctx, s)
	if err != nil {
		l.note(s.verb+": "+err.Error(), nil)
		return false
	}
	return l.check(s.verb, compareAnswers(k, o)) && l.checkWritten(s, k, o)
}

// checkWritten reports whether the answer of kubetest has all members of the request's body that
// the answer of Kubernetes has. An exception for defaults could otherwise hide a lost write.
func (l *life) checkWritten(s step, k, o answer) bool {
	var body any
	if k.code >= http.StatusMultipleChoices || s.method == http.MethodDelete ||
		json.Unmarshal([]byte(s.body), &body) != nil {
		return true
	}
	if parts := lost("", body, k.body, o.body); parts != nil {
		l.note(s.verb+": lost "+parts[0], []difference{{k.kind(), strings.Join(parts, ", "), k.body, o.body}})
		return false
	}
	return true
}

// send sends a request to both sides.
func (l *life) send(ctx context.Context, s step) (k, o answer, err error) {
	for deadline := time.Now().Add(settleTimeout); ; {
		var wg sync.WaitGroup
		var kErr, oErr error
		if s.repeats(k) {
			wg.Go(func() { k, kErr = l.k.send(ctx, l.kubernetes, s) })
		}
		if s.repeats(o) {
			o, oErr = l.o.send(ctx, l.ours, s)
		}
		wg.Wait()
		differ := k.code != o.code ||
			s.method == http.MethodGet && len(l.unexplained(s.verb, compareAnswers(k, o))) > 0
		repeats := s.await && differ || k.code == http.StatusTooManyRequests
		if err = cmp.Or(kErr, oErr); err != nil || !repeats || time.Now().After(deadline) {
			return k, o, err
		}
		if err := pause(ctx, pollInterval); err != nil {
			return k, o, err
		}
	}
}

// repeats reports whether the request may be sent again after the answer before. Before the first
// request, that answer is zero. A write is sent again only if it is a dry run, if the resource was
// not served yet, or if a cluster was about to change the version of its storage.
func (s step) repeats(before answer) bool {
	switch before.code {
	case 0, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return s.user != "" || s.method == http.MethodGet || s.query == "dryRun=All"
	}
	return s.method == http.MethodGet || s.query == "dryRun=All"
}

// send sends a request to a side, and normalizes the response.
func (m *memory) send(ctx context.Context, to *side, s step) (answer, error) {
	s.query, s.body = m.resolve(s.query), m.resolve(s.body)
	r, err := to.send(ctx, s)
	if err != nil {
		return answer{}, err
	}
	return m.answer(r), nil
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle waits until the objects of both sides have been the same for the time quiet. It reports
// whether the life can continue.
func (l *life) settle(ctx context.Context, verb string, quiet time.Duration) bool {
	var since time.Time
	for deadline := time.Now().Add(settleTimeout); ; {
		k, o := l.k.state(l.kubernetes.objects(l.name)), l.o.state(l.ours.objects(l.name))
		switch rest := l.unexplained(state, compareStates(k, o)); {
		case len(rest) > 0 && time.Now().After(deadline):
			l.check("state after "+verb, rest)
			return false
		case len(rest) > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= quiet:
			return true
		}
		if pause(ctx, pollInterval) != nil {
			return false
		}
	}
}

// unexplained returns the differences that no exception explains.
func (l *life) unexplained(verb string, all []difference) (rest []difference) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range all {
		i := slices.IndexFunc(exceptions, func(e *exception) bool { return e.explains(verb, d) })
		if i < 0 {
			rest = append(rest, d)
			continue
		}
		used[exceptions[i]]++
	}
	return rest
}

// check reports whether exceptions explain all differences, so that the life can continue. It notes
// the unexplained differences.
func (l *life) check(verb string, all []difference) bool {
	rest := l.unexplained(verb, all)
	if len(rest) > 0 {
		l.note(verb+": "+rest[0].kind+" "+rest[0].part, rest)
	}
	return len(rest) == 0
}

// note records the differences that end the life, of the class with the given name.
func (l *life) note(name string, all []difference) {
	l.fault = strings.ReplaceAll(name, l.name, "NAME")
	l.lines = append([]string{"# " + l.name}, l.lines...)
	for _, d := range all {
		l.lines = append(l.lines, "# "+d.String())
	}
}
