package doctorcmd

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// An answer is a report of the echo handler, with the times of the request and the response.
type answer struct {
	*echo.Report
	asked, received time.Time
}

// checkPath reports the protocols and the proxies between doctor and the server, according to the
// echo handler. It returns nil if the request failed.
func (e *examination) checkPath(ctx context.Context) *answer {
	asked := time.Now()
	seen, response, err := e.askEcho(ctx, e.negotiated, e.echo, e.header())
	if err != nil {
		e.report.add(finding{Check: "path", Verdict: unknown, Text: fmt.Sprintf(
			"%s does not report what reaches the server (%s); name its URL with --echo", e.echo, cli.OneLine(err))})
		return nil
	}
	text := fmt.Sprintf("%s from here, %s at the server", response.Proto, seen.Protocol)
	for _, name := range []string{"Via", "Forwarded", "X-Forwarded-For"} {
		if v := seen.Header.Values(name); len(v) > 0 {
			text += fmt.Sprintf("; %s: %s", name, strings.Join(v, ", "))
		}
	}
	f := finding{Check: "path", Verdict: fine, Text: text}
	if response.ProtoMajor == 2 && seen.Protocol != "HTTP/2.0" {
		f.Verdict, f.Remedies = note, e.remedies(oneHopHTTP2)
		f.Text += "; each watch holds a connection between proxy and server"
	}
	e.report.add(f)
	return &answer{seen, asked, time.Now()}
}

// maxSkew is the largest harmless difference between two clocks: the times in tokens and
// certificates have a margin.
const maxSkew = 5 * time.Second

func (e *examination) checkClock(a *answer) {
	var skew time.Duration
	if d := a.asked.Sub(a.Time); d > 0 {
		skew = -d
	}
	if d := a.Time.Sub(a.received); d > 0 {
		skew = d
	}
	f := finding{Check: "clock", Verdict: fine, Text: "as here"}
	if skew != 0 {
		f.Text = fmt.Sprintf("the server's clock is %s %s", round(skew.Abs()),
			map[bool]string{true: "ahead", false: "behind"}[skew > 0])
	}
	if skew.Abs() > maxSkew {
		f.Verdict = problem
		f.Text += "; tokens and certificates may be refused: synchronize both clocks (NTP)"
	}
	e.report.add(f)
}

// checkHost compares the Host that the server sees with the host of the URL. The origin of a page
// contains the host of the URL. So if they differ, the server treats its own pages as pages of
// another origin.
func (e *examination) checkHost(a *answer) {
	f := finding{Check: "host", Verdict: fine, Text: "the server sees " + strconv.Quote(a.Host)}
	switch {
	case a.Host == "":
		f.Verdict, f.Text = unknown, "the server does not report its Host"
	case plainHost(e.echo.Scheme, a.Host) != plainHost(e.echo.Scheme, e.echo.Host):
		f.Verdict, f.Remedies = problem, e.remedies(keepHost)
		f.Text = fmt.Sprintf("a proxy changes Host %q to %q, so the server refuses writes and WebSockets of its own "+
			"pages, unless it is started with --allow-origin %s://%s", e.echo.Host, a.Host, e.echo.Scheme, e.echo.Host)
	}
	e.report.add(f)
}

// plainHost returns host in lower case, without the default port of scheme and a final dot.
func plainHost(scheme, host string) string {
	u := url.URL{Scheme: scheme, Host: strings.ToLower(host)}
	name, port := strings.TrimSuffix(u.Hostname(), "."), u.Port()
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return name
	}
	return net.JoinHostPort(name, port)
}

func (e *examination) checkUpgrade(ctx context.Context, first *answer) {
	h := e.header()
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	h.Set("Sec-WebSocket-Version", "13")
	h.Set("Sec-WebSocket-Key", "bGlzdHdhdGNoLWRvY3Rvcg==") // any 16 bytes
	f := finding{Check: "upgrade", Verdict: fine, Text: "requests for WebSocket reach the server"}
	overHTTP2 := first.Protocol == "HTTP/2.0"
	seen, response, err := e.askEcho(ctx, e.http1, e.echo, h)
	switch {
	case err != nil && overHTTP2 && response != nil && response.StatusCode == http.StatusNotImplemented:
		// The proxy has turned the upgrade into a CONNECT (RFC 8441), and the path of the report
		// has no WebSocket.
		f.Verdict = note
		f.Text = "a proxy opens WebSockets over HTTP/2; the check websocket shows whether they work"
	case err != nil && overHTTP2:
		f.Verdict, f.Remedies = problem, e.remedies(oneHopHTTP1)
		f.Text = "a proxy speaks HTTP/2 to the server, where an Upgrade header does not exist (" + cli.OneLine(err) +
			"): use HTTP/1.1 there, or start the server with --websocket-over-http2"
	case err != nil:
		f.Verdict, f.Text = problem, "a request with an Upgrade header fails: "+cli.OneLine(err)
		f.Remedies = e.remedies(forwardUpgrade)
	case !strings.EqualFold(seen.Header.Get("Upgrade"), "websocket") ||
		!strings.Contains(strings.ToLower(seen.Header.Get("Connection")), "upgrade"):
		f.Verdict, f.Remedies = problem, e.remedies(forwardUpgrade)
		f.Text = "a proxy removes the header Upgrade or Connection, which WebSocket needs"
	}
	e.report.add(f)
}

func (e *examination) checkCompression(ctx context.Context) {
	h := e.header()
	h.Set("Accept-Encoding", "gzip, br, zstd, deflate")
	f := finding{Check: "compression", Verdict: fine, Text: "nothing between here and the server compresses"}
	response, err := e.stream(ctx, h, 1)
	switch {
	case err != nil:
		f.Verdict, f.Text = unknown, cli.OneLine(err)
	case response.Header.Get("Content-Encoding") != "":
		f.Verdict, f.Remedies = problem, e.remedies(noCompression)
		f.Text = fmt.Sprintf(
			"a proxy compresses the stream (%s) in spite of no-transform; events may wait in its compressor",
			response.Header.Get("Content-Encoding"))
	}
	if response != nil {
		response.Body.Close()
	}
	e.report.add(f)
}

// stream requests a response with the given number of reports (ticks), which the server sends one
// at a time. The caller must close the body.
func (e *examination) stream(ctx context.Context, h http.Header, ticks int) (*http.Response, error) {
	response, err := e.get(ctx, e.negotiated, withQuery(e.echo, "ticks", strconv.Itoa(ticks)), h)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("status %s", response.Status)
	}
	return response, err
}

// plainBody returns the body of response, decompressed if a proxy has compressed it.
func plainBody(response *http.Response) (io.Reader, error) {
	if response.Header.Get("Content-Encoding") == "gzip" {
		return gzip.NewReader(response.Body)
	}
	return response.Body, nil
}

// checkTicks measures whether the parts of a response arrive one by one. It repeats a measurement
// that looks like buffering: a proxy that buffers does so each time, while a short stall of the
// proxy or of this machine does not.
func (e *examination) checkTicks(ctx context.Context) {
	const measurements = 3
	var f finding
	for range measurements {
		var together bool
		if f, together = e.measureTicks(ctx); !together {
			break
		}
	}
	e.report.add(f)
}

// measureTicks requests a response of several parts once. It also returns whether these parts
// arrived together.
func (e *examination) measureTicks(ctx context.Context) (f finding, together bool) {
	const ticks = 6
	ctx, cancel := context.WithTimeout(ctx, requestTimeout+ticks*echo.TickInterval)
	defer cancel()
	h := e.header()
	// Request compression, as browsers do, because a proxy that compresses may hold data back, too.
	h.Set("Accept-Encoding", "gzip")
	start := time.Now()
	response, err := e.stream(ctx, h, ticks)
	if err != nil {
		return finding{Check: "buffering", Verdict: unknown, Text: cli.OneLine(err)}, false
	}
	defer response.Body.Close()
	var arrivals []time.Time
	body, err := plainBody(response)
	if err == nil {
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			arrivals = append(arrivals, time.Now())
		}
		err = lines.Err()
	}
	if err != nil || len(arrivals) != ticks {
		return finding{Check: "buffering", Verdict: problem, Text: fmt.Sprintf(
			"a response of %d parts broke off after %d: %s", ticks, len(arrivals), cli.OneLine(cause(err)))}, false
	}
	f = e.judgeArrivals(start, arrivals)
	if f.Verdict == fine && response.Header.Get("Incremental") != "?1" {
		f.Verdict = note
		f.Text += "; a proxy removes the header Incremental, so proxies between it and a client may hold parts back"
	}
	return f, f.Verdict == problem
}

func cause(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// judgeArrivals compares the times at which the parts have arrived with the times at which the
// server must have sent them.
func (e *examination) judgeArrivals(start time.Time, arrivals []time.Time) finding {
	first, last := arrivals[0], arrivals[len(arrivals)-1]
	sent := time.Duration(len(arrivals)-1) * echo.TickInterval
	if spread := last.Sub(first); spread < sent/2 {
		return finding{Check: "buffering", Verdict: problem, Remedies: e.remedies(noBuffering), Text: fmt.Sprintf(
			"%d parts that the server sent within %s arrived together after %s", len(arrivals), sent,
			round(last.Sub(start)))}
	}
	return finding{Check: "buffering", Verdict: fine, Text: fmt.Sprintf(
		"parts arrive as they are sent, the first after %s", round(first.Sub(start)))}
}
