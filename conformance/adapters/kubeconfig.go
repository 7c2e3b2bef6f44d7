package adapters

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is what is read of such a file (Kubernetes, "Organizing Cluster Access Using kubeconfig Files").
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster struct {
			Server     string
			CAFile     string `yaml:"certificate-authority"`
			CAData     string `yaml:"certificate-authority-data"`
			ServerName string `yaml:"tls-server-name"`
			Insecure   bool   `yaml:"insecure-skip-tls-verify"`
		}
	}
	Users []struct {
		Name string
		User struct {
			Token     string
			TokenFile string `yaml:"tokenFile"`
			CertFile  string `yaml:"client-certificate"`
			CertData  string `yaml:"client-certificate-data"`
			KeyFile   string `yaml:"client-key"`
			KeyData   string `yaml:"client-key-data"`
			Exec      any
		}
	}
}

// Kubeconfig returns the server that the current context of a file names, and a with the credentials that it has. Credentials that a program would
// have to get are not supported.
func ReadKubeconfig(file string, a Options) (base string, with Options, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", a, err
	}
	var config kubeconfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		return "", a, invalidf("%s is no kubeconfig: %v", file, err)
	}
	f := kubeFile{config, filepath.Dir(file)}
	if base, err = f.access(&a); err != nil {
		return "", a, fmt.Errorf("%s: %w", file, err)
	}
	return base, a, nil
}

// A kubeFile is a kubeconfig and where the files are that it names.
type kubeFile struct {
	kubeconfig
	dir string
}

// access puts the credentials into a and returns the server.
func (f kubeFile) access(a *Options) (string, error) {
	cluster, user := "", ""
	for _, c := range f.Contexts {
		if c.Name == f.CurrentContext {
			cluster, user = c.Context.Cluster, c.Context.User
		}
	}
	config := new(tls.Config)
	if a.TLS != nil {
		config = a.TLS.Clone()
	}
	if a.Header = a.Header.Clone(); a.Header == nil {
		a.Header = http.Header{}
	}
	server, err := f.cluster(cluster, config)
	if err != nil {
		return "", err
	}
	a.TLS = config
	return server, f.user(user, config, a.Header)
}

func (f kubeFile) cluster(name string, config *tls.Config) (string, error) {
	for _, c := range f.Clusters {
		if c.Name != name {
			continue
		}
		config.InsecureSkipVerify = config.InsecureSkipVerify || c.Cluster.Insecure
		config.ServerName = c.Cluster.ServerName
		ca, err := f.read("certificate-authority", c.Cluster.CAData, c.Cluster.CAFile)
		if err != nil {
			return "", err
		}
		if ca != nil {
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(ca) {
				return "", invalidf("cluster %s: there is no certificate in PEM in its certificate-authority", name)
			}
		}
		return c.Cluster.Server, nil
	}
	return "", invalidf("its current-context %q names no cluster in it", f.CurrentContext)
}

func (f kubeFile) user(name string, config *tls.Config, header http.Header) error {
	for _, u := range f.Users {
		if u.Name != name {
			continue
		}
		if u.User.Exec != nil {
			return invalidf("user %s: its credentials come from a program (exec), which is not run; give --token", name)
		}
		token := []byte(u.User.Token)
		if len(token) == 0 && u.User.TokenFile != "" {
			var err error
			if token, err = f.read("token", "", u.User.TokenFile); err != nil {
				return err
			}
		}
		if len(token) > 0 {
			header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		}
		return f.certificate(config, u.User.CertData, u.User.CertFile, u.User.KeyData, u.User.KeyFile)
	}
	return nil
}

func (f kubeFile) certificate(config *tls.Config, certData, certFile, keyData, keyFile string) error {
	cert, err := f.read("client-certificate", certData, certFile)
	if err != nil || cert == nil {
		return err
	}
	key, err := f.read("client-key", keyData, keyFile)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return invalidf("client-certificate: %v", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

// read returns data, which is in base64, or what is in a file, whose name is relative to the kubeconfig; nil, if there is neither.
func (f kubeFile) read(what, data, file string) ([]byte, error) {
	switch {
	case data != "":
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, invalidf("%s-data: %v", what, err)
		}
		return raw, nil
	case file == "":
		return nil, nil
	case !filepath.IsAbs(file):
		file = filepath.Join(f.dir, file)
	}
	return os.ReadFile(file)
}
