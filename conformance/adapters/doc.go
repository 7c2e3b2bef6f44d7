// Package adapters makes conformance targets of servers and clients that are not this module's: [URL] of anything that can be watched,
// [Kube] of a server that speaks Kubernetes' API, and [ExecServer] and [ExecClient] of a command that speaks the control hook (docs/conformance-hook.md).
//
// Each asks the other end first, so that what is wrong with an address, a certificate or a token is one clear error, of code Unavailable or what
// the server says, and not that of every case.
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
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/transport"
)

// Access says how a server is reached. The zero Access reaches one that asks for nothing.
type Options struct {
	// TLS configures https; nil: the defaults of crypto/tls.
	TLS *tls.Config
	// Header goes with every request; its values are kept out of reports.
	Header http.Header
	// Patience is how long a case waits for what must come. Zero: 10 s.
	Timeout time.Duration
}

func (a Options) network() transport.Network { return transport.Network{TLS: a.TLS} }

// probeTime is how long a server may take to show what it is.
const probeTime = 15 * time.Second

// tryWays sets the ways of t to those in which s can be watched, and notes why it can't be in others. Where a server wants an Origin, as
// kube-apiserver does of WebSockets, s gets one, its own.
func tryWays(ctx context.Context, t *cases.Target, s *cases.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	served, refused := cases.ProbeVariants(ctx, s)
	if s.Header.Get("Origin") == "" && slices.ContainsFunc(slices.Collect(maps.Values(refused)), isForbidden) {
		page := *s
		if page.Header = s.Header.Clone(); page.Header == nil {
			page.Header = http.Header{}
		}
		origin := s.URL.Scheme + "://" + s.URL.Host
		page.Header.Set("Origin", origin)
		if more, left := cases.ProbeVariants(ctx, &page); len(more) > len(served) {
			served, refused, s.Header = more, left, page.Header
			t.Notes = append(t.Notes, "WebSockets are refused without an Origin: every request has "+origin)
		}
	}
	if len(served) == 0 {
		return unusable(s.URL.String(), refused["h1"])
	}
	t.Variants = served
	for _, name := range slices.Sorted(keys(refused)) {
		t.Notes = append(t.Notes, fmt.Sprintf("%s is not tested: %s", name, oneLine(refused[name])))
	}
	return nil
}

func keys(m map[string]error) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func isForbidden(err error) bool { return errors.Is(err, listwatch.Forbidden) }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
