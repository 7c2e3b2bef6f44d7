package doctorcmd

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// An examination is one run of doctor.
type examination struct {
	*options
	collection, echo *url.URL
	tls              *tls.Config
	report           *report
	// http1 sends requests over HTTP/1.1, and negotiated over the version that TLS negotiates.
	http1, negotiated *http.Transport
	proxy             string // the name of the proxy, from its responses; may be empty
}

func (o *options) newExamination(arg string, r *report) (*examination, error) {
	e := &examination{options: o, report: r}
	var err error
	if e.collection, err = remote.ParseURL(arg); err != nil {
		return nil, err
	}
	e.echo = &url.URL{Scheme: e.collection.Scheme, Host: e.collection.Host, Path: echo.Path}
	if o.echoURL != "" {
		if e.echo, err = remote.ParseURL(o.echoURL); err != nil {
			return nil, err
		}
	}
	if e.tls, err = o.TLSConfig(); err != nil {
		return nil, err
	}
	e.open()
	return e, nil
}

// examine makes all checks. Later checks depend on earlier ones: without a connection, for example,
// no other check is possible.
func (e *examination) examine(ctx context.Context) {
	if e.collection.Scheme == "https" && !e.checkCertificate(ctx) {
		return
	}
	if !e.checkList(ctx) {
		return
	}
	if first := e.checkPath(ctx); first != nil {
		e.checkHost(first)
		e.checkClock(first)
		e.checkUpgrade(ctx, first)
		e.checkCompression(ctx)
		e.checkLimits(ctx)
		e.checkTicks(ctx)
	}
	working := e.checkWatches(ctx)
	e.checkBookmarks(ctx, working)
	e.checkIdle(ctx, working)
}
