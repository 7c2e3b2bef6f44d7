package kubeconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/kubeconfig"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("token", "t0ken\n")
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: b\ncontexts:\n- {name: a, context: {cluster: x, user: x}}\n" +
		"- {name: b, context: {cluster: c, user: u}}\n"
	const cluster = head + "clusters: [{name: c, cluster: {server: x"
	const user = cluster + "}}]\nusers: [{name: u, user: {"
	good := write("config", head+`
clusters:
- name: c
  cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true, tls-server-name: kube}
users:
- name: u
  user: {tokenFile: token}
`)
	c, err := kubeconfig.Read(good, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://127.0.0.1:6443"; c.Server != want {
		t.Errorf("got the server %s, want %s", c.Server, want)
	}
	if !c.TLS.InsecureSkipVerify || c.TLS.ServerName != "kube" {
		t.Errorf("got the TLS configuration %+v", c.TLS)
	}
	if got := c.Header.Get("Authorization"); got != "Bearer t0ken" {
		t.Errorf("got the credentials %q, want the token", got)
	}
	if contents := c.Contents; len(contents) != 2 || string(contents[1]) != "t0ken\n" {
		t.Errorf("got contents %q, want those of the kubeconfig and of the token file", contents)
	}
	for text, want := range map[string]string{
		"{":                        "not a kubeconfig file",
		"current-context: nowhere": "does not refer to a cluster",
		cluster + ", certificate-authority-data: '!'}}]":  "certificate-authority-data",
		cluster + ", certificate-authority-data: eA==}}]": "must contain a certificate in PEM",
		user + "exec: {command: x}}}]":                    "exec",
		user + "client-certificate: missing}}]":           "missing",
		user + "client-certificate-data: eA==}}]":         "client-certificate",
	} {
		if _, err := kubeconfig.Read(write("bad", text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}
