// Package cases lists the conformance cases. Each group of cases has a package below this
// directory.
package cases

import (
	"slices"
	"testing"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/cases/apierror"
	"github.com/listwatch/listwatch/conformance/internal/cases/auth"
	"github.com/listwatch/listwatch/conformance/internal/cases/bookmark"
	"github.com/listwatch/listwatch/conformance/internal/cases/compression"
	"github.com/listwatch/listwatch/conformance/internal/cases/concurrency"
	"github.com/listwatch/listwatch/conformance/internal/cases/conflate"
	"github.com/listwatch/listwatch/conformance/internal/cases/disconnect"
	"github.com/listwatch/listwatch/conformance/internal/cases/event"
	"github.com/listwatch/listwatch/conformance/internal/cases/expiry"
	"github.com/listwatch/listwatch/conformance/internal/cases/fields"
	"github.com/listwatch/listwatch/conformance/internal/cases/framing"
	"github.com/listwatch/listwatch/conformance/internal/cases/handshake"
	"github.com/listwatch/listwatch/conformance/internal/cases/informers"
	"github.com/listwatch/listwatch/conformance/internal/cases/initial"
	"github.com/listwatch/listwatch/conformance/internal/cases/limit"
	"github.com/listwatch/listwatch/conformance/internal/cases/query"
	"github.com/listwatch/listwatch/conformance/internal/cases/resume"
	"github.com/listwatch/listwatch/conformance/internal/cases/selector"
	"github.com/listwatch/listwatch/conformance/internal/cases/since"
	"github.com/listwatch/listwatch/conformance/internal/cases/slow"
	"github.com/listwatch/listwatch/conformance/internal/cases/timeout"
	"github.com/listwatch/listwatch/conformance/internal/cases/union"
	"github.com/listwatch/listwatch/conformance/runner"
)

// All returns every case, one group after the other.
func All() []harness.Case {
	return slices.Concat(
		handshake.Cases,
		framing.Cases,
		event.Cases,
		resume.Cases,
		selector.Cases,
		bookmark.Cases,
		initial.Cases,
		since.Cases,
		fields.Cases,
		union.Cases,
		conflate.Cases,
		expiry.Cases,
		query.Cases,
		apierror.Cases,
		timeout.Cases,
		slow.Cases,
		disconnect.DropCases,
		disconnect.DrainCases,
		limit.Cases,
		concurrency.OrderCases,
		auth.Cases,
		auth.CORSCases,
		compression.Cases,
		event.LargeCases,
		event.UnicodeCases,
		concurrency.Cases,
		informers.Cases,
	)
}

// Run runs every case for which target, the server or client under test, has the necessary
// abilities. The cases are subtests of t, named GROUP/NAME/VARIANT. Run skips the other cases and
// logs the reason.
func Run(t *testing.T, target harness.Target) {
	for _, c := range All() {
		t.Run(c.ID, func(t *testing.T) { runner.Test(t, c, target) })
	}
}
