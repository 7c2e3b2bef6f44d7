package testhttp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"time"
)

// tlsConfigs returns the configurations of a server and of clients that trust it.
func tlsConfigs() (server, client *tls.Config) {
	c := certificate()
	roots := x509.NewCertPool()
	roots.AddCert(c.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{c}}, &tls.Config{RootCAs: roots}
}

// certificate returns the certificate for 127.0.0.1 that all servers of the process share.
var certificate = sync.OnceValue(func() tls.Certificate {
	return Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "testhttp"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}, nil)
})

// Sign returns a certificate with the subject, names and purposes of template, which it completes.
// ca signs it, or it signs itself if ca is nil. It is already valid in the year 2000, because the
// clock of a synctest bubble starts then.
func Sign(template *x509.Certificate, ca *tls.Certificate) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.NotBefore = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	template.NotAfter = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
	parent, signer := template, crypto.PrivateKey(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
