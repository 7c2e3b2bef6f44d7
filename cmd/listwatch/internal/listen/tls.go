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

// tlsOptions say which certificate to show and which to demand.
type tlsOptions struct {
	cert, key  string
	selfSigned bool
	caOut      string
	clientCA   string
}

func (o tlsOptions) check() error {
	switch {
	case (o.cert == "") != (o.key == ""):
		return cli.Usagef("--tls-cert and --tls-key go together")
	case o.cert != "" && o.selfSigned:
		return cli.Usagef("--tls-self-signed and --tls-cert exclude each other")
	case o.cert == "" && !o.selfSigned:
		return cli.Usagef("--tls-addr needs --tls-cert and --tls-key, or --tls-self-signed")
	case o.caOut != "" && !o.selfSigned:
		return cli.Usagef("--tls-ca-out writes the certificate of --tls-self-signed, which is not given")
	}
	return nil
}

// config returns the TLS of the server. Who shows no certificate gets in, to be answered 401 or to show a token.
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

// selfSigned makes a certificate for this machine that is its own CA, so that a client can trust it and nothing else.
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
		NotBefore:             now.Add(-time.Hour), // clocks differ
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
