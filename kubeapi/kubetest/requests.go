package kubetest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/rest"
	"github.com/listwatch/listwatch/kubeapi"
)

// handler returns next with the faults that concern requests.
func (f *Faults) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, isResource := requestOf(r)
		if !isResource {
			next.ServeHTTP(w, r)
			return
		}
		d := f.decide(q)
		if d.delay > 0 {
			timer := time.NewTimer(d.delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context().Done():
			}
		}
		if d.status != 0 {
			refuse(w, r, d.status)
			return
		}
		next.ServeHTTP(w, r)
		if d.cuts {
			f.CutWatches()
		}
		if d.expires {
			f.ExpireHistory()
		}
	})
}

// A request is the part of a request that faults depend on. object is the namespace and the name.
type request struct{ verb, resource, object string }

func requestOf(r *http.Request) (q request, isResource bool) {
	t, ok := kubeapi.ParseRoute(r.URL.EscapedPath())
	if !ok {
		return q, false
	}
	q.resource, q.object = t.Plural, t.Namespace+"/"+t.Name
	if t.Subresource != "" {
		q.resource += "/" + t.Subresource
	}
	p := rest.Params{Values: r.URL.Query()}
	q.verb = rest.VerbOf(r.Method, t.Name != "", t.Watch || p.WantsWatch())
	return q, q.verb != ""
}

// A decision says which faults affect a request.
type decision struct {
	status        int // zero if the request is served
	delay         time.Duration
	cuts, expires bool
}

func (f *Faults) decide(q request) (d decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.refusals {
		if !r.selects(q) {
			continue
		}
		if r.Times > 0 {
			f.refusals[i].Times--
			f.refusals = slices.DeleteFunc(f.refusals, func(r Refusal) bool { return r.Times == 0 })
		}
		return decision{status: r.Status}
	}
	if f.repeats == nil {
		return d
	}
	random, n := f.randomFor(q)
	// Draw the same number of random values for each request, so that a change of one probability
	// does not change the other faults.
	happens := func(p float64) bool { return random.Float64() < p }
	conflict, tooMany := happens(f.chaos.Conflict), happens(f.chaos.TooManyRequests)
	unavailable := happens(f.chaos.Unavailable)
	cut, expire, late, part := happens(f.chaos.Cut), happens(f.chaos.Expire), happens(f.chaos.Delay), random.Float64()
	isWrite := !rest.IsRead(q.verb)
	switch {
	case unavailable:
		d.status = http.StatusServiceUnavailable
	case tooMany:
		d.status = http.StatusTooManyRequests
	case conflict && (q.verb == "update" || q.verb == "patch"):
		d.status = http.StatusConflict
	}
	d.cuts, d.expires = cut && isWrite, expire && isWrite
	if late {
		d.delay = time.Duration(part * float64(f.chaos.MaxDelay))
	}
	if d != (decision{}) && len(f.injected) < maxInjected {
		f.injected = append(f.injected, fmt.Sprintf("%s %s %s, request %d: %s", q.verb, q.resource, q.object, n, d))
	}
	return d
}

// randomFor returns the random numbers for a request, and the number of requests like it since
// Start. The random numbers depend on both, and not on other requests, because goroutines send
// requests in no particular order.
func (f *Faults) randomFor(q request) (*rand.Rand, int) {
	f.repeats[q]++
	h := fnv.New64a()
	fmt.Fprint(h, q, f.repeats[q]) // never fails
	return rand.New(rand.NewPCG(f.seed, h.Sum64())), f.repeats[q]
}

// String returns the faults as a text.
func (d decision) String() string {
	var texts []string
	for _, part := range []struct {
		holds bool
		text  string
	}{
		{d.status != 0, fmt.Sprint("status ", d.status)},
		{d.delay > 0, fmt.Sprint("delay ", d.delay)},
		{d.cuts, "watches cut"},
		{d.expires, "history expired"},
	} {
		if part.holds {
			texts = append(texts, part.text)
		}
	}
	return strings.Join(texts, ", ")
}

func (r Refusal) selects(q request) bool {
	return (len(r.Verbs) == 0 || slices.Contains(r.Verbs, q.verb)) &&
		(len(r.Resources) == 0 || slices.Contains(r.Resources, q.resource))
}

// refuse responds with an error, as kube-apiserver does.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	e := &listwatch.Error{Code: listwatch.Unavailable, Status: status}
	switch status {
	case http.StatusConflict:
		e.Code, e.Message = listwatch.Conflict, "the object has been modified; "+
			"please apply your changes to the latest version and try again"
	case http.StatusTooManyRequests:
		e.Code, e.Message = listwatch.TooSlow, "the server has received too many requests"
	default:
		e.Message = fmt.Sprintf("the test refused the request with status %d", status)
	}
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		e.Details = &listwatch.Details{RetryAfter: time.Second}
	}
	apihttp.WriteError(w, r, e)
}
