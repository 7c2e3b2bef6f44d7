// Package certs issues the TLS certificates of the conformance cases.
package certs

import (
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

// An Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	Key         *ecdsa.PrivateKey
	Certificate *x509.Certificate
	Pool        *x509.CertPool // contains only Certificate
}

var (
	// Trusted returns the authority that the clients and servers of the cases trust.
	Trusted = sync.OnceValue(newAuthority)
	// Untrusted returns an authority that no client or server trusts.
	Untrusted = sync.OnceValue(newAuthority)
)

func newAuthority() *Authority {
	a := &Authority{Key: newKey(), Pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "conformance"},
		NotBefore: valid[0], NotAfter: valid[1],
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.Certificate = sign(template, template, a.Key, a.Key)
	a.Pool.AddCert(a.Certificate)
	return a
}

// valid is the default validity period. It includes the year 2000, in which a synctest
// bubble starts.
var valid = [2]time.Time{time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)}

// Issue returns a new certificate with a new key. It calls change to complete the template before
// it signs the certificate.
func (a *Authority) Issue(change func(*x509.Certificate)) tls.Certificate {
	template := &x509.Certificate{
		SerialNumber: newSerial(), NotBefore: valid[0], NotAfter: valid[1], KeyUsage: x509.KeyUsageDigitalSignature,
	}
	change(template)
	key := newKey()
	leaf := sign(template, a.Certificate, key, a.Key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, a.Certificate.Raw}, PrivateKey: key, Leaf: leaf}
}

// ForServer makes c the certificate of a server at 127.0.0.1.
func ForServer(c *x509.Certificate) {
	c.Subject.CommonName, c.IPAddresses = "server", []net.IP{net.IPv4(127, 0, 0, 1)}
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

// ForUser returns a function that changes a certificate into the client certificate of a
// user.
func ForUser(user string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject.CommonName, c.ExtKeyUsage = user, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
}

// newKey, newSerial and sign panic on errors, which occur only if the system has no source of
// randomness or a case asks for an invalid certificate.

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func newSerial() *big.Int {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err)
	}
	return serial
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return leaf
}

// ServeTrusted configures a server with a certificate that clients trust.
func ServeTrusted(c *tls.Config) { c.Certificates = []tls.Certificate{Trusted().Issue(ForServer)} }
