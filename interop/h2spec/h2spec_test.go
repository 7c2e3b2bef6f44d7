package h2spec

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/interop/internal/testapi"
)

// frameTimeout limits the time that a case waits for a frame. Only failing cases wait that long.
const frameTimeout = 20 * time.Second

// minCases is the number of cases in h2spec. The test fails if it finds fewer.
const minCases = 146

// concurrency is the number of cases that run at the same time. Most cases spend most of
// their time waiting.
const concurrency = 16

func TestHTTP2AsSpecified(t *testing.T) {
	known, err := conformance.ReadKnownFailures("known_failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := testapi.Start(t)
	runs := slices.Concat(newRuns(configure(t, s.URL()), "h2c"), newRuns(configure(t, s.TLSURL()), "tls"))
	if len(runs) < 2*minCases {
		t.Errorf("got %d cases, want at least 2 * %d", len(runs), minCases)
	}
	runAll(runs)
	var names []string
	for _, r := range runs {
		names = append(names, r.name)
		reason, known := known.Reason(r.name)
		t.Run(r.name, func(t *testing.T) { r.check(t, reason, known) })
	}
	for _, p := range known.Unmatched(names) {
		t.Errorf("known_failures.txt: no case is called %s", p)
	}
}

// configure returns the configuration of h2spec for a server. The cases request the URL of a
// list, because many of them require a response with a body of at least five bytes.
func configure(t *testing.T, serverURL string) *config.Config {
	t.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	host, text, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{
		Host: host, Port: port, Path: "/api/v1/namespaces/default/configmaps", TLS: u.Scheme == "https", Insecure: true,
		Timeout: frameTimeout, MaxHeaderLen: 4000, Strict: true,
	}
	if n, err := spec.ServerDataLength(c); err != nil || n < 5 {
		t.Fatalf("got a body of %d bytes, error %v; want at least 5 bytes", n, err)
	}
	return c
}

// A caseRun is one run of a case, with its result.
type caseRun struct {
	name   string
	spec   *spec.TestCase
	config *config.Config
	err    error
}

// newRuns returns a run of each case. mode becomes the last part of the names of the runs.
func newRuns(c *config.Config, mode string) (runs []*caseRun) {
	var add func(g *spec.TestGroup)
	add = func(g *spec.TestGroup) {
		for i, tc := range slices.Concat(g.Tests, g.StrictTests) {
			name := fmt.Sprintf("%s/%d/%s", strings.ReplaceAll(g.ID(), "/", "-"), i+1, mode)
			runs = append(runs, &caseRun{name: name, spec: tc, config: c})
		}
		for _, nested := range g.Groups {
			add(nested)
		}
	}
	add(generic.Spec())
	add(http2.Spec())
	add(hpack.Spec())
	return runs
}

// runAll runs all cases, each on a connection of its own.
func runAll(runs []*caseRun) {
	var running sync.WaitGroup
	slots := make(chan struct{}, concurrency)
	for _, r := range runs {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			r.err = r.run()
		})
	}
	running.Wait()
}

func (r *caseRun) run() error {
	conn, err := spec.Dial(r.config)
	if err != nil {
		return err
	}
	defer conn.Close()
	return r.spec.Run(r.config, conn)
}

// check reports an unexpected result of r. If known is true, known_failures.txt lists the case with
// the given reason, and the case must fail.
func (r *caseRun) check(t *testing.T, reason string, known bool) {
	t.Helper()
	failure, isFailure := errors.AsType[*spec.TestError](r.err)
	switch {
	case r.err == nil && known:
		t.Errorf("the case passes, but known_failures.txt lists it: %s", reason)
	case r.err == nil:
	case errors.Is(r.err, spec.ErrSkipped):
		t.Error("h2spec skipped the case, because the server lacks something that it needs")
	case !isFailure:
		t.Error(r.err)
	case known:
		t.Logf("known failure: %s", reason)
	default:
		t.Errorf("%s: %s\nwant one of:\n  %s\ngot:\n  %s", r.spec.Desc, r.spec.Requirement,
			strings.Join(failure.Expected, "\n  "), failure.Actual)
	}
}
