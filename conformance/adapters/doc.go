// Package adapters creates conformance targets for servers and clients outside this module:
// [URL] for any URL that can be watched, [Kube] for a server with Kubernetes' API, and
// [ExecServer] and [ExecClient] for a command that implements the control hook: it reads requests
// and writes replies as lines of JSON (docs/conformance-hook.md).
//
// Each function contacts the server or client first. A wrong address, certificate or token
// therefore causes a single error, of code Unavailable or with the server's code, instead
// of an error in every case.
package adapters

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// Options describes how to reach a server. The zero Options suit a server that needs no
// credentials.
type Options struct {
	// TLS configures https. If nil, the defaults of crypto/tls are used.
	TLS *tls.Config
	// Header is added to every request. Its values never appear in reports.
	Header http.Header
	// Timeout is the time that a case waits for an expected event. If zero, it is 10 seconds.
	Timeout time.Duration
	// History has the ways to drop the history of the server. Only [Kube] uses it, because a case
	// that drops the history also writes objects.
	History History
}

func (o Options) network() transport.Network { return transport.Network{TLS: o.TLS} }

// probeTimeout limits the probes before a run.
const probeTimeout = 15 * time.Second

// probeVariants sets t.Variants to the variants in which a watch of s succeeds, and adds a note
// for each other variant. If s refuses WebSockets without an Origin header, as kube-apiserver
// does, probeVariants adds the header with the origin of s to all requests.
func probeVariants(ctx context.Context, t *harness.Target, s *harness.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	served, refused := harness.ProbeVariants(ctx, s)
	if s.Header.Get("Origin") == "" && slices.ContainsFunc(slices.Collect(maps.Values(refused)), isForbidden) {
		withOrigin := *s
		if withOrigin.Header = s.Header.Clone(); withOrigin.Header == nil {
			withOrigin.Header = http.Header{}
		}
		origin := s.URL.Scheme + "://" + s.URL.Host
		withOrigin.Header.Set("Origin", origin)
		if more, rest := harness.ProbeVariants(ctx, &withOrigin); len(more) > len(served) {
			served, refused, s.Header = more, rest, withOrigin.Header
			t.Notes = append(t.Notes,
				"the server refuses WebSockets without an Origin header, so every request has Origin "+origin)
		}
	}
	if len(served) == 0 {
		return untestable(s.URL.String(), refused["h1"])
	}
	t.Variants = served
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		t.Notes = append(t.Notes, fmt.Sprintf("%s is not tested: %s", name, oneLine(refused[name])))
	}
	return nil
}

func isForbidden(err error) bool { return errors.Is(err, listwatch.Forbidden) }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
