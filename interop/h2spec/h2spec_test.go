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
	"github.com/listwatch/listwatch/interop/internal/kubetest"
)

// patience is how long a case waits for a frame. Only those that fail wait for all of it.
const patience = 3 * time.Second

// atLeast is how many cases there are, so that none gets lost.
const atLeast = 146

// attempts is how often a case that fails is run: some race with the end of the answer, after which the server says something else.
const attempts = 3

// atOnce is how many cases run at the same time: most wait for most of theirs.
const atOnce = 16

func TestHTTP2AsSpecified(t *testing.T) {
	known, err := conformance.ReadKnownFailures("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := kubetest.Start(t)
	all := slices.Concat(trials(configure(t, s.URL()), "h2c"), trials(configure(t, s.TLSURL()), "tls"))
	if len(all) < 2*atLeast {
		t.Errorf("there are %d cases, want at least twice %d", len(all), atLeast)
	}
	play(all)
	var names []string
	for _, r := range all {
		names = append(names, r.name)
		reason, expected := known.Reason(r.name)
		t.Run(r.name, func(t *testing.T) { r.judge(t, reason, expected) })
	}
	for _, p := range known.Unmatched(names) {
		t.Errorf("known.txt: no case is called %s", p)
	}
}

// configure returns how h2spec reaches a list at a URL, which has a body of some bytes as many cases want it.
func configure(t *testing.T, at string) *config.Config {
	t.Helper()
	u, err := url.Parse(at)
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
		Timeout: patience, MaxHeaderLen: 4000, Strict: true,
	}
	if n, err := spec.ServerDataLength(c); err != nil || n < 5 {
		t.Fatalf("the list has %d bytes, %v", n, err)
	}
	return c
}

// A trial is one case on one way, and how it went.
type trial struct {
	name   string
	spec   *spec.TestCase
	config *config.Config
	err    error
}

// trials returns all cases on one way.
func trials(c *config.Config, way string) (all []*trial) {
	var add func(g *spec.TestGroup)
	add = func(g *spec.TestGroup) {
		for i, tc := range slices.Concat(g.Tests, g.StrictTests) {
			name := fmt.Sprintf("%s/%d/%s", strings.ReplaceAll(g.ID(), "/", "-"), i+1, way)
			all = append(all, &trial{name: name, spec: tc, config: c})
		}
		for _, within := range g.Groups {
			add(within)
		}
	}
	add(generic.Spec())
	add(http2.Spec())
	add(hpack.Spec())
	return all
}

// play runs all cases, each on a connection of its own.
func play(all []*trial) {
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, r := range all {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			for range attempts {
				if r.err = r.run(); r.err == nil {
					break
				}
			}
		})
	}
	wg.Wait()
}

func (r *trial) run() error {
	conn, err := spec.Dial(r.config)
	if err != nil {
		return err
	}
	defer conn.Close()
	return r.spec.Run(r.config, conn)
}

// judge tells what is wrong. expected: the case is known to fail, for a reason.
func (r *trial) judge(t *testing.T, reason string, expected bool) {
	t.Helper()
	failure, isFailure := errors.AsType[*spec.TestError](r.err)
	switch {
	case r.err == nil && expected:
		t.Errorf("passes, and known.txt says that it does not: %s", reason)
	case r.err == nil:
	case errors.Is(r.err, spec.ErrSkipped):
		t.Error("h2spec leaves it out: it has not found what it needs")
	case !isFailure:
		t.Error(r.err)
	case expected:
		t.Logf("fails, as known: %s", reason)
	default:
		t.Errorf("%s: %s\nwant one of:\n  %s\ngot:\n  %s", r.spec.Desc, r.spec.Requirement, strings.Join(failure.Expected, "\n  "), failure.Actual)
	}
}
