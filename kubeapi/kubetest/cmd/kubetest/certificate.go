package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// managerCerts is the directory in which a manager of controller-runtime looks for the certificate
// of its webhook server by default.
var managerCerts = filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")

// writeCertificate writes the files tls.crt and tls.key, with which the webhook server of a manager
// can start. If dir has a certificate, it stays. kubetest does not verify the certificate.
func writeCertificate(dir string) error {
	name := filepath.Join(dir, "tls.crt")
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "tls.key"), "PRIVATE KEY", private); err != nil {
		return err
	}
	return writePEM(name, "CERTIFICATE", certificate)
}

func writePEM(name, kind string, content []byte) error {
	return os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)
}
