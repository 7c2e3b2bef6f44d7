// Package echo tells clients how their requests reached the server. Proxies change requests and
// responses, and a client cannot see what they changed. The command "listwatch doctor" compares
// what it sent with what a [Handler] received.
package echo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// Path is the path at which "listwatch serve" has a [Handler], and at which "listwatch doctor"
// expects one.
const Path = "/listwatch/echo"

// A Report describes a request as it reached the server.
type Report struct {
	// Protocol is the version of HTTP, such as "HTTP/1.1", of the last hop.
	Protocol string `json:"protocol"`
	// Host is the host to which the request was sent, according to the last hop. The server
	// compares it with the origin of web pages.
	Host string `json:"host,omitempty"`
	// TLS is true if the last hop used TLS.
	TLS bool `json:"tls"`
	// Client is the address of the last hop: the client, or the proxy nearest to the server.
	Client string `json:"client"`
	// Time is the server's clock.
	Time time.Time `json:"time"`
	// Header has the headers that proxies add or remove. Credentials are never among them.
	Header http.Header `json:"header,omitempty"`
	// HeaderBytes is the total length of the names and values of all headers.
	HeaderBytes int `json:"headerBytes"`
}

// reported are the headers of a Report.
var reported = []string{
	"Accept-Encoding", "Connection", "Forwarded", "Te", "Upgrade", "Via", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "X-Real-Ip",
}

// A Handler responds to GET with a [Report]. With the query ticks=N it streams N reports, one every
// [TickInterval]. N is at most [MaxTicks]. Each report is one line of JSON, and the response has
// the headers of a watch. A client that receives the reports late, or together, is behind a proxy
// that buffers.
//
// If Server has an Authenticator, the Handler refuses requests without valid credentials.
type Handler struct {
	// Server admits the requests; see [watchserver.Server.Gate].
	Server *watchserver.Server
}

// A client may request up to MaxTicks reports from a [Handler], which sends one every TickInterval.
const (
	MaxTicks     = 20
	TickInterval = 200 * time.Millisecond
)

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Server.Gate(apihttp.HandlerFunc(serve)).ServeHTTP(w, r)
}

func serve(w http.ResponseWriter, r *http.Request, _ *apihttp.Admitted) error {
	ticks, err := parseTicks(r)
	if err != nil {
		return err
	}
	if ticks == 0 {
		apihttp.WriteJSON(w, r, http.StatusOK, newReport(r))
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	transport.ForwardAtOnce(w.Header())
	rc := http.NewResponseController(w)
	// Remove the deadline of http.Server.WriteTimeout, because the stream may last longer. The
	// reports are so short that a write hardly blocks.
	_ = rc.SetWriteDeadline(time.Time{})
	ticker := time.NewTicker(TickInterval)
	defer ticker.Stop()
	for {
		if json.NewEncoder(w).Encode(newReport(r)) != nil || rc.Flush() != nil {
			return nil // the client has disconnected
		}
		if ticks--; ticks == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return nil
		}
	}
}

// parseTicks returns the number of reports to stream, or 0 for a single response.
func parseTicks(r *http.Request) (int, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return 0, apihttp.MethodNotAllowed(r, "GET, HEAD")
	}
	text := apihttp.QueryOf(r).Get("ticks")
	if text == "" {
		return 0, nil
	}
	ticks, err := strconv.Atoi(text)
	if err != nil || ticks < 1 || ticks > MaxTicks {
		return 0, &listwatch.Error{
			Code: listwatch.Invalid, Message: fmt.Sprintf("ticks %q: must be a number from 1 to %d", text, MaxTicks),
		}
	}
	return ticks, nil
}

func newReport(r *http.Request) *Report {
	report := &Report{
		Protocol: r.Proto, Host: r.Host, TLS: r.TLS != nil, Client: r.RemoteAddr, Time: time.Now(),
		Header: http.Header{},
	}
	for _, name := range reported {
		if values, ok := r.Header[name]; ok {
			report.Header[name] = values
		}
	}
	for name, values := range r.Header {
		for _, v := range values {
			report.HeaderBytes += len(name) + len(v)
		}
	}
	return report
}
