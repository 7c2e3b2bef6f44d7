// Package kubeconfig reads the server and the credentials from a kubeconfig file.
package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/listwatch/listwatch"
	"go.yaml.in/yaml/v3"
)

// fields contains the fields of a kubeconfig file that are supported (Kubernetes,
// "Organizing Cluster Access Using kubeconfig Files").
type fields struct {
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

// A Config is the content of a kubeconfig file.
type Config struct {
	// Server is the URL of the server that the current context names. TLS and Header hold the CAs
	// and credentials for that server.
	Server string
	TLS    *tls.Config
	Header http.Header
	// Contents are the contents of the file and of the files that it names, so that a caller can
	// detect changes by comparing them.
	Contents [][]byte
}

// Read reads a kubeconfig file. Its TLS settings are added to a copy of base, which may be nil.
// Read does not run credential plugins (exec).
func Read(name string, base *tls.Config) (*Config, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := file{dir: filepath.Dir(name), config: Config{Header: http.Header{}, Contents: [][]byte{data}}}
	if err := yaml.Unmarshal(data, &f.fields); err != nil {
		return nil, invalidf("%s: not a kubeconfig file: %v", name, err)
	}
	if f.config.TLS = base.Clone(); base == nil {
		f.config.TLS = new(tls.Config)
	}
	if err := f.apply(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &f.config, nil
}

// A file is a kubeconfig file while it is being read. Its relative paths refer to dir.
type file struct {
	fields fields
	dir    string
	config Config
}

// apply sets the server, and adds the credentials to f.config.
func (f *file) apply() error {
	for _, c := range f.fields.Contexts {
		if c.Name == f.fields.CurrentContext {
			if err := f.cluster(c.Context.Cluster); err != nil {
				return err
			}
			return f.user(c.Context.User)
		}
	}
	return f.cluster("")
}

func (f *file) cluster(name string) error {
	config := f.config.TLS
	for _, c := range f.fields.Clusters {
		if c.Name != name {
			continue
		}
		config.InsecureSkipVerify = config.InsecureSkipVerify || c.Cluster.Insecure
		config.ServerName = c.Cluster.ServerName
		ca, err := f.readData("certificate-authority", c.Cluster.CAData, c.Cluster.CAFile)
		if err != nil {
			return err
		}
		if ca != nil {
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(ca) {
				return invalidf("cluster %s: certificate-authority must contain a certificate in PEM", name)
			}
		}
		f.config.Server = c.Cluster.Server
		return nil
	}
	return invalidf("current-context %q does not refer to a cluster in the file", f.fields.CurrentContext)
}

func (f *file) user(name string) error {
	for _, u := range f.fields.Users {
		if u.Name != name {
			continue
		}
		if u.User.Exec != nil {
			return invalidf("user %s: credential plugins (exec) are not supported; pass --token instead", name)
		}
		token := []byte(u.User.Token)
		if len(token) == 0 && u.User.TokenFile != "" {
			var err error
			if token, err = f.readData("token", "", u.User.TokenFile); err != nil {
				return err
			}
		}
		if len(token) > 0 {
			f.config.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		}
		return f.certificate(u.User.CertData, u.User.CertFile, u.User.KeyData, u.User.KeyFile)
	}
	return nil
}

func (f *file) certificate(certData, certFile, keyData, keyFile string) error {
	cert, err := f.readData("client-certificate", certData, certFile)
	if err != nil || cert == nil {
		return err
	}
	key, err := f.readData("client-key", keyData, keyFile)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return invalidf("client-certificate: %v", err)
	}
	f.config.TLS.Certificates = []tls.Certificate{pair}
	return nil
}

// readData returns the decoded base64 data, or the content of a file whose name is relative to
// f.dir. It returns nil if data and name are both empty.
func (f *file) readData(what, data, name string) ([]byte, error) {
	switch {
	case data != "":
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, invalidf("%s-data: %v", what, err)
		}
		return raw, nil
	case name == "":
		return nil, nil
	case !filepath.IsAbs(name):
		name = filepath.Join(f.dir, name)
	}
	content, err := os.ReadFile(name)
	f.config.Contents = append(f.config.Contents, content)
	return content, err
}

func invalidf(format string, args ...any) error {
	return &listwatch.Error{Code: listwatch.Invalid, Message: fmt.Sprintf(format, args...)}
}
