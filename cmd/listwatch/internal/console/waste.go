package console

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/meter"
	"github.com/listwatch/listwatch/transport"
)

// maxSeconds limits the duration of a measurement.
const maxSeconds = 600

// A wasteHandler watches a collection of the API for some seconds, and responds with what the watch
// would have saved with each projection, conflation and selector. It sends the Authorization of the
// request to the API.
type wasteHandler struct {
	api     func() []string
	running sync.Mutex // locked during a measurement, which keeps the objects of its watch
}

// ServeHTTP implements [http.Handler]. The query has the URL of the collection and the seconds.
func (h *wasteHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.FormValue("seconds"))
	if err != nil || seconds < 1 || seconds > maxSeconds {
		apihttp.WriteError(w, r, invalid("seconds: must be an integer from 1 to "+strconv.Itoa(maxSeconds)))
		return
	}
	u, err := h.collection(r.FormValue("url"))
	if err != nil {
		apihttp.WriteError(w, r, err)
		return
	}
	if !h.running.TryLock() {
		apihttp.WriteError(w, r, &listwatch.Error{
			Code: listwatch.Unavailable, Status: http.StatusTooManyRequests,
			Message: "another measurement is running: wait for its end",
		})
		return
	}
	defer h.running.Unlock()
	report, err := measure(r.Context(), u, r.Header.Get("Authorization"), time.Duration(seconds)*time.Second)
	if err != nil {
		apihttp.WriteError(w, r, err)
		return
	}
	apihttp.WriteJSON(w, r, http.StatusOK, report)
}

// collection checks the URL of a collection. It must be at a listener of the API, because any other
// server would receive the credentials of the user.
func (h *wasteHandler) collection(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || !slices.Contains(h.api(), u.Scheme+"://"+u.Host) {
		return "", invalid("url: must be the URL of a collection of the API of this server")
	}
	for _, name := range [...]string{"fields", "conflate", "of"} {
		if u.Query().Has(name) {
			return "", invalid("url: must not have the parameter " + name +
				": the measurement needs each event of one collection, with whole objects")
		}
	}
	return u.String(), nil
}

func invalid(message string) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: message}
}

// measure watches the collection at url for d after its initial events.
func measure(ctx context.Context, url, authorization string, d time.Duration) (meter.Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	source := &client.Remote{
		URL: url,
		// The server at url is this process, whose certificate may be self-signed.
		Network: transport.Network{TLS: &tls.Config{InsecureSkipVerify: true}},
		Header: func(context.Context, bool) (http.Header, error) {
			header := make(http.Header)
			if authorization != "" {
				header.Set("Authorization", authorization)
			}
			return header, nil
		},
		// The server ends the watch when it drains. Its end must not wait for the measurement.
		Trace: &client.Trace{Lost: func(err error, _ time.Duration) { cancel(err) }},
	}
	defer source.Close()
	w, err := source.Watch(ctx, listwatch.Query{Bookmarks: true, InitialEvents: listwatch.InitialEventsYes})
	if err != nil {
		return meter.Report{}, err
	}
	defer w.Close()
	m := meter.Meter{EachMember: true}
	if err := m.Measure(ctx, w, d); err != nil {
		return meter.Report{}, err
	}
	if ctx.Err() != nil {
		return meter.Report{}, &listwatch.Error{
			Code: listwatch.Unavailable, Message: "the watch has ended before the measurement", Err: context.Cause(ctx),
		}
	}
	return m.Report(), nil
}
