package cases

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

// An authority signs certificates. It is safe for concurrent use.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool // has cert alone
}

// ours is whom clients and servers trust here, strange is whom nobody does.
var (
	ours    = sync.OnceValue(newAuthority)
	strange = sync.OnceValue(newAuthority)
)

func newAuthority() *authority {
	a := &authority{key: newKey(), pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "conformance"}, NotBefore: valid[0], NotAfter: valid[1],
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = sign(template, template, a.key, a.key)
	a.pool.AddCert(a.cert)
	return a
}

// valid is when: in a bubble it is the year 2000.
var valid = [2]time.Time{time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)}

// issue returns a new certificate of the kind that change makes it.
func (a *authority) issue(change func(*x509.Certificate)) tls.Certificate {
	template := &x509.Certificate{
		SerialNumber: newSerial(), NotBefore: valid[0], NotAfter: valid[1], KeyUsage: x509.KeyUsageDigitalSignature,
	}
	change(template)
	key := newKey()
	leaf := sign(template, a.cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, a.cert.Raw}, PrivateKey: key, Leaf: leaf}
}

// serves makes a certificate that of a server at 127.0.0.1.
func serves(c *x509.Certificate) {
	c.Subject.CommonName, c.IPAddresses = "server", []net.IP{net.IPv4(127, 0, 0, 1)}
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

// identifies makes a certificate that of a user.
func identifies(user string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject.CommonName, c.ExtKeyUsage = user, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
}

// The three below fail only where the machine has no randomness.

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

// sound makes a server one that clients trust.
func sound(c *tls.Config) { c.Certificates = []tls.Certificate{ours().issue(serves)} }
