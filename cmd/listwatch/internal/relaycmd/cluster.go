package relaycmd

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/reload"
	"github.com/listwatch/listwatch/kubeapi/clusterrelay"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/watchserver"
)

// relayCluster relays the whole API of the upstream.
func (s *relayServer) relayCluster(a *listen.Auth) error {
	o := s.options
	if err := errors.Join(o.checkCluster(), o.UseForeignUsers(a)); err != nil {
		return err
	}
	frontProxy, err := s.frontProxy(a)
	if err != nil {
		return err
	}
	server := new(watchserver.Server)
	if err := o.Configure(server, &s.Listeners); err != nil {
		return err
	}
	h, err := clusterrelay.New(clusterrelay.Options{
		URL: s.upstream.base, Network: s.upstream.network, Header: s.upstream.header,
		Include: o.cluster.cache, Exclude: o.cluster.noCache, Open: s.openCache, Idle: cmp.Or(o.cluster.idle, -1),
		Memory: server.Limits.Memory / 4 * 3, Server: server, Recheck: o.cluster.recheck,
		Certificates: a.ClientCertificates(), FrontProxy: frontProxy, Audit: o.cluster.audit, Log: s.Log,
	})
	if err != nil {
		return err
	}
	s.audit = h.Audit()
	s.paths = []string{"/api/v1/pods"}
	s.WatchServer, s.Drain, s.Handler, s.background = server, server.Drain, h, h.Run
	probes := http.NewServeMux()
	addProbes(probes, h.Ready)
	s.Probes = probes
	return nil
}

func (o *relayOptions) checkCluster() error {
	if len(o.resources) > 0 {
		return cli.Usagef("set either --cluster or --resource, not both")
	}
	if o.persist != "" {
		return cli.Usagef("--persist has no effect with --cluster: API servers of Kubernetes do not identify their " +
			"states, so a relay cannot use a copy of one")
	}
	if o.cluster.recheck <= 0 {
		return cli.Usagef("--recheck %v: must be positive", o.cluster.recheck)
	}
	for flag, patterns := range map[string][]string{"--cache": o.cluster.cache, "--no-cache": o.cluster.noCache} {
		if err := clusterrelay.CheckPatterns(patterns); err != nil {
			return cli.Usagef("%s %w", flag, err)
		}
	}
	return nil
}

// frontProxy returns the certificate of --front-proxy-cert, or nil if there is none.
func (s *relayServer) frontProxy(a *listen.Auth) (func() tls.Certificate, error) {
	cert, key := s.options.cluster.frontCert, s.options.cluster.frontKey
	switch {
	case (cert == "") != (key == ""):
		return nil, cli.Usagef("--front-proxy-cert and --front-proxy-key must be set together")
	case cert == "":
		return nil, nil
	case a.ClientCertificates() == nil:
		return nil, cli.Usagef("--front-proxy-cert requires --client-ca: it is for clients with certificates")
	case s.upstream.base.Scheme != "https":
		return nil, cli.Usagef("--front-proxy-cert requires an https URL of the API server, which must see the certificate")
	}
	pair, err := s.Files.AddTLS(new(tls.Config), reload.File{}, reload.File{Flag: "--front-proxy-cert", Name: cert},
		reload.File{Flag: "--front-proxy-key", Name: key})
	if err != nil {
		return nil, err
	}
	return func() tls.Certificate { return pair().Certificates[0] }, nil
}

// historyShare is the part of --memory that the history of one cache may fill.
const historyShare = 8

// openCache starts a cache that is measured, logged and shown like other relays.
func (s *relayServer) openCache(of clusterrelay.Opening) (*relay.Relay, func()) {
	spec := s.options.specOf(of.Resource)
	spec.encoding, spec.framings, spec.probeWait = of.Encoding, of.Framings, of.ProbeWait
	spec.trace, spec.client, spec.removable = *of.Relay, of.Client, true
	if memory := s.WatchServer.Limits.Memory; memory > 0 {
		// The history of one busy resource must not drop the caches of the others.
		spec.history.Bytes = min(spec.history.Bytes, memory/historyShare)
	}
	opened := s.openRelay(spec)
	return opened.Relay, func() { s.relays.close(opened) }
}
