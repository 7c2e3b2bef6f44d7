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

// kubeconfig contains the fields of a kubeconfig file that are supported (Kubernetes,
// "Organizing Cluster Access Using kubeconfig Files").
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

// ReadKubeconfig returns the server that the current context of a kubeconfig file names,
// and o with the credentials from that file. It does not run credential plugins (exec). It
// also returns the contents of the file and of the files that it names, so that a caller can
// detect changes by comparing them.
func ReadKubeconfig(file string, o Options) (base string, options Options, contents [][]byte, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", o, nil, err
	}
	f := kubeconfigFile{dir: filepath.Dir(file), contents: [][]byte{data}}
	if err := yaml.Unmarshal(data, &f.kubeconfig); err != nil {
		return "", o, nil, invalidf("%s: not a kubeconfig file: %v", file, err)
	}
	if base, err = f.apply(&o); err != nil {
		return "", o, nil, fmt.Errorf("%s: %w", file, err)
	}
	return base, o, f.contents, nil
}

// A kubeconfigFile is a kubeconfig and the directory that its relative paths refer to.
type kubeconfigFile struct {
	kubeconfig
	dir      string
	contents [][]byte // of all files that were read
}

// apply adds the credentials to o and returns the URL of the server.
func (k *kubeconfigFile) apply(o *Options) (string, error) {
	cluster, user := "", ""
	for _, c := range k.Contexts {
		if c.Name == k.CurrentContext {
			cluster, user = c.Context.Cluster, c.Context.User
		}
	}
	config := new(tls.Config)
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	if o.Header = o.Header.Clone(); o.Header == nil {
		o.Header = http.Header{}
	}
	server, err := k.cluster(cluster, config)
	if err != nil {
		return "", err
	}
	o.TLS = config
	return server, k.user(user, config, o.Header)
}

func (k *kubeconfigFile) cluster(name string, config *tls.Config) (string, error) {
	for _, c := range k.Clusters {
		if c.Name != name {
			continue
		}
		config.InsecureSkipVerify = config.InsecureSkipVerify || c.Cluster.Insecure
		config.ServerName = c.Cluster.ServerName
		ca, err := k.readData("certificate-authority", c.Cluster.CAData, c.Cluster.CAFile)
		if err != nil {
			return "", err
		}
		if ca != nil {
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(ca) {
				return "", invalidf("cluster %s: certificate-authority must contain a certificate in PEM", name)
			}
		}
		return c.Cluster.Server, nil
	}
	return "", invalidf("current-context %q does not refer to a cluster in the file", k.CurrentContext)
}

func (k *kubeconfigFile) user(name string, config *tls.Config, header http.Header) error {
	for _, u := range k.Users {
		if u.Name != name {
			continue
		}
		if u.User.Exec != nil {
			return invalidf("user %s: credential plugins (exec) are not supported; pass --token instead", name)
		}
		token := []byte(u.User.Token)
		if len(token) == 0 && u.User.TokenFile != "" {
			var err error
			if token, err = k.readData("token", "", u.User.TokenFile); err != nil {
				return err
			}
		}
		if len(token) > 0 {
			header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		}
		return k.certificate(config, u.User.CertData, u.User.CertFile, u.User.KeyData, u.User.KeyFile)
	}
	return nil
}

func (k *kubeconfigFile) certificate(config *tls.Config, certData, certFile, keyData, keyFile string) error {
	cert, err := k.readData("client-certificate", certData, certFile)
	if err != nil || cert == nil {
		return err
	}
	key, err := k.readData("client-key", keyData, keyFile)
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

// readData returns the decoded base64 data, or the content of a file whose name is relative to the
// kubeconfig. It returns nil if data and file are both empty.
func (k *kubeconfigFile) readData(what, data, file string) ([]byte, error) {
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
		file = filepath.Join(k.dir, file)
	}
	content, err := os.ReadFile(file)
	k.contents = append(k.contents, content)
	return content, err
}
