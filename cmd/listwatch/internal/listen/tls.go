package listen

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
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

// config returns the TLS configuration of the server. A client without a certificate may
// connect, because it may have a token.
func (o tlsOptions) config(clientCAs *x509.CertPool) (*tls.Config, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if clientCAs != nil {
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, clientCAs
	}
	var cert tls.Certificate
	var err error
	if o.selfSigned {
		cert, err = selfSigned(time.Now())
	} else if cert, err = tls.LoadX509KeyPair(o.cert, o.key); err != nil {
		err = fmt.Errorf("--tls-cert %s, --tls-key %s: %w", o.cert, o.key, err)
	}
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{cert}
	if o.caOut == "" {
		return c, nil
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	if err := os.WriteFile(o.caOut, block, 0o644); err != nil {
		return nil, fmt.Errorf("--tls-ca-out: %w", err)
	}
	return c, nil
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
