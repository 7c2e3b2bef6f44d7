package listen

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/reload"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/watchserver"
)

// tlsOptions contains the flags about certificates.
type tlsOptions struct {
	cert, key  string
	selfSigned bool
	caOut      string
	clientCA   string
}

func (o tlsOptions) check() error {
	switch {
	case (o.cert == "") != (o.key == ""):
		return cli.Usagef("--tls-cert and --tls-key must be set together")
	case o.cert != "" && o.selfSigned:
		return cli.Usagef("set either --tls-self-signed or --tls-cert, not both")
	case o.cert == "" && !o.selfSigned:
		return cli.Usagef("--tls-addr requires --tls-cert and --tls-key, or --tls-self-signed")
	case o.caOut != "" && !o.selfSigned:
		return cli.Usagef("--tls-ca-out requires --tls-self-signed, whose certificate it writes")
	}
	return nil
}

// listenTLS returns the TLS configuration of the server, and adds its certificate to files. A
// client without a certificate may connect, because it may have a token.
func (a *Auth) listenTLS(files *reload.Files) (*tls.Config, error) {
	o := a.tls
	if err := o.check(); err != nil {
		return nil, err
	}
	c := a.baseTLS()
	if a.cas != nil {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return a.cas.Load().config, nil }
	}
	if !o.selfSigned {
		return c, files.Add(func(contents [][]byte) error {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err == nil {
				a.pair.Store(&pair)
			}
			return err
		}, reload.File{Flag: "--tls-cert", Name: o.cert}, reload.File{Flag: "--tls-key", Name: o.key})
	}
	pair, err := selfSigned(time.Now())
	if err != nil {
		return nil, err
	}
	a.pair.Store(&pair)
	return c, nil
}

// writeCertificate writes the self-signed certificate to the file of --tls-ca-out, if that is set.
func (a *Auth) writeCertificate() error {
	if a.tls.caOut == "" {
		return nil
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.pair.Load().Certificate[0]})
	if err := os.WriteFile(a.tls.caOut, block, 0o644); err != nil {
		return fmt.Errorf("--tls-ca-out: %w", err)
	}
	return nil
}

// baseTLS returns the part of the TLS configuration that does not depend on the client CAs.
func (a *Auth) baseTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// net/http adds these protocols to its own configuration, but not to a configuration that
		// GetConfigForClient returns.
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.pair.Load(), nil },
	}
}

// trustedCAs are the CAs of client certificates. They are immutable.
type trustedCAs struct {
	pool   *x509.CertPool
	raw    map[string]bool // the certificates of the pool
	config *tls.Config     // used by connections that begin while these CAs are trusted
}

func (a *Auth) parseCAs(data []byte) (*trustedCAs, error) {
	cas := &trustedCAs{pool: x509.NewCertPool(), raw: make(map[string]bool)}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		cas.pool.AddCert(ca)
		cas.raw[string(ca.Raw)] = true
	}
	if len(cas.raw) == 0 {
		return nil, errors.New("the file contains no certificate in PEM format")
	}
	cas.config = a.baseTLS()
	cas.config.ClientAuth, cas.config.ClientCAs = tls.VerifyClientCertIfGiven, cas.pool
	return cas, nil
}

// trust reports whether one of the chains, which were verified when the connection began, still
// leads to a trusted CA, and has not expired.
func (c *trustedCAs) trust(chains [][]*x509.Certificate) bool {
	for _, chain := range chains {
		if c.raw[string(chain[len(chain)-1].Raw)] && !expired(chain) {
			return true
		}
	}
	// The new file may contain renewed certificates of the same CAs, so verify the chains again.
	options := x509.VerifyOptions{
		Roots: c.pool, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, chain := range chains {
		for _, intermediate := range chain[1:] {
			options.Intermediates.AddCert(intermediate)
		}
	}
	_, err := chains[0][0].Verify(options)
	return err == nil
}

func expired(chain []*x509.Certificate) bool {
	now := time.Now()
	return slices.ContainsFunc(chain, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
}

// ClientCertificates returns an authenticator of client certificates, or nil without --client-ca.
func (a *Auth) ClientCertificates() watchserver.Authenticator {
	if a.cas == nil {
		return nil
	}
	return a.clientCertificate
}

// clientCertificate is like [kubeapi.ClientCertificate], but supports CAs that change while
// connections are open.
func (a *Auth) clientCertificate(r *http.Request) (kubeapi.User, error) {
	user, err := kubeapi.ClientCertificate(r)
	if err != nil || user.Name == "" {
		return user, err
	}
	same, chains := user, r.TLS.VerifiedChains
	user.Recheck = func() (kubeapi.User, error) {
		if !a.cas.Load().trust(chains) {
			return kubeapi.User{}, errors.New("the client certificate has expired, or its CA is no longer trusted")
		}
		return same, nil
	}
	_, err = user.Recheck()
	return user, err
}

// selfSigned creates a certificate for this machine. The certificate is its own CA.
func selfSigned(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "listwatch, self-signed"},
		NotBefore:             now.Add(-time.Hour), // tolerates clock skew
		NotAfter:              now.AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           loopbackIPs(),
	}
	if host, err := os.Hostname(); err == nil && host != "localhost" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func loopbackIPs() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} }

// closeDistrusted closes connections whose client certificate has expired, or was signed by a CA
// that is no longer trusted, so that clients with a new certificate open a new connection. It
// passes the current request to next, which refuses it.
func (a *Auth) closeDistrusted(next http.Handler) http.Handler {
	if a.cas == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && !a.cas.Load().trust(r.TLS.VerifiedChains) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
