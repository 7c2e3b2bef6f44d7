package doctorcmd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// The sizes that doctor tries, in bytes. This module's servers accept 64 KiB of headers and 16 KiB
// of path and query. Tokens and certificates in headers take up to 8 KiB, and long selectors take
// more.
var (
	headerSizes = []int{4 << 10, 8 << 10, 16 << 10, 32 << 10}
	querySizes  = []int{2 << 10, 4 << 10, 8 << 10, 15 << 10}
)

func (e *examination) checkLimits(ctx context.Context) {
	e.checkSize(ctx, "headers", headerSizes, func(size int) (*url.URL, http.Header) {
		h := e.header()
		// Proxies limit the size of a single header and of all headers together. One large header
		// tests both limits, and tokens and cookies are single headers.
		h.Set("X-Listwatch-Doctor", strings.Repeat("x", size))
		return e.echo, h
	})
	e.checkSize(ctx, "query", querySizes, func(size int) (*url.URL, http.Header) {
		return withQuery(e.echo, "doctor", strings.Repeat("x", size)), e.header()
	})
}

// checkSize tries the given sizes, from the smallest to the largest, and reports the largest one
// that passes.
func (e *examination) checkSize(ctx context.Context, check string, sizes []int,
	request func(size int) (*url.URL, http.Header),
) {
	passed := 0
	for _, size := range sizes {
		u, h := request(size)
		_, _, err := e.askEcho(ctx, e.http1, u, h)
		if err == nil {
			passed = size
			continue
		}
		e.report.add(finding{Check: check, Verdict: problem, Remedies: e.remedies(largeHeaders), Text: fmt.Sprintf(
			"%d KiB of %s fail (%s); %d KiB pass", size>>10, check, cli.OneLine(err), passed>>10)})
		return
	}
	e.report.add(finding{Check: check, Verdict: fine, Text: fmt.Sprintf("%d KiB pass", passed>>10)})
}
