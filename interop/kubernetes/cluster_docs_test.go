//go:build !race

package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
)

// TestTenMinutesOfTheClusterRelay runs the commands of docs/relay-cluster.md as they are printed,
// except for the ports.
func TestTenMinutesOfTheClusterRelay(t *testing.T) {
	text, err := os.ReadFile("../../docs/relay-cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## In ten minutes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	script := "set -e\nset -m\ntrap 'kill %1' EXIT\n"
	wanted := []string{
		"ok", `"gitVersion"`, `"widgets.demo.example.com"`, `"type":"ADDED"`, `"watchers"`, "CLIENT",
		"401\n",
	}
	_, err = exec.LookPath("kubectl")
	hasKubectl := err == nil
	if hasKubectl {
		wanted = append(wanted, "\nwidgets.demo.example.com ")
	}
	for line := range strings.Lines(section) {
		command, ok := strings.CutPrefix(line, "    ")
		if ok && (hasKubectl || !strings.HasPrefix(command, "kubectl ")) {
			script += command
		}
	}
	for _, port := range []string{"8082", "8083", "8443", "9464"} {
		if !strings.Contains(script, ":"+port) {
			t.Fatalf("the commands do not use port %s:\n%s", port, script)
		}
		script = strings.ReplaceAll(script, "127.0.0.1:"+port, ports.Address(t))
	}
	server := apiserver.Start(t)
	createCRD(t, server.Config(), relayWidgets, "Widget")
	config := writeKubeconfig(t, server)
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Dir = filepath.Dir(config)
	if err := os.Symlink(program.Build(t), filepath.Join(shell.Dir, "listwatch")); err != nil {
		t.Fatal(err)
	}
	shell.Env = append(os.Environ(), "TOKEN="+server.Token, "HOME="+shell.Dir, "PATH="+shell.Dir+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	for _, want := range wanted {
		if !strings.Contains(string(out), want) {
			t.Errorf("the commands print no %s:\n%s", want, out)
		}
	}
}
