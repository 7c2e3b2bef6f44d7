package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

// selfSigned returns a certificate for 127.0.0.1 and a pool that trusts it.
func selfSigned(t *testing.T, serial int64) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

func TestEachConnectionUsesTheCurrentCertificates(t *testing.T) {
	member, trusted := selfSigned(t, 1)
	client, _ := selfSigned(t, 2)
	current := &tls.Config{RootCAs: x509.NewCertPool()}
	o := Options{Endpoints: []string{"https://127.0.0.1:2379"}, TLSConfig: func() *tls.Config { return current }}
	if n := len(o.dialOptions()); n != 1 {
		t.Fatalf("got %d options, want the credentials", n)
	}
	creds := currentTLS{credentials.NewTLS(o.TLSConfig()), o.TLSConfig}.Clone()
	handshake := func() (*x509.Certificate, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		done := make(chan []*x509.Certificate)
		go func() {
			var sent []*x509.Certificate
			if theirs, err := l.Accept(); err == nil {
				server := tls.Server(theirs,
					&tls.Config{
						Certificates: []tls.Certificate{member}, ClientAuth: tls.RequestClientCert,
						NextProtos: []string{"h2"},
					})
				_ = server.Handshake() // the client reports the error
				sent = server.ConnectionState().PeerCertificates
				theirs.Close()
			}
			done <- sent
		}()
		ours, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = creds.ClientHandshake(t.Context(), "127.0.0.1", ours)
		ours.Close()
		if sent := <-done; len(sent) > 0 {
			return sent[0], err
		}
		return nil, err
	}
	if _, err := handshake(); err == nil {
		t.Error("a member with an unknown CA was trusted")
	}
	current = &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{client}}
	sent, err := handshake()
	if err != nil || !sent.Equal(client.Leaf) {
		t.Errorf("got certificate %v, error %v; want the current one", sent, err)
	}
	for _, endpoint := range []string{"http://127.0.0.1:2379", "unix:///etcd"} {
		if o.Endpoints[0] = endpoint; o.dialOptions() != nil {
			t.Errorf("%s: a connection in clear text got credentials", endpoint)
		}
	}
}
