package clients

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/program"
)

// startProgram runs `listwatch serve` until the test ends. It returns the URL that the program
// prints, and the second URL if args contain --tls-addr.
func startProgram(t *testing.T, args ...string) (urls []string) {
	t.Helper()
	return program.Start(t, program.Build(t), append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...).URLs
}

// The test runs the commands that a new user might try on a new server, with a watch in a
// second terminal.
func TestKubectlAgainstANewServer(t *testing.T) {
	t.Parallel()
	u := newKubectlUser(t, "--server", startProgram(t)[0])
	if out, stderr, _ := u.try("", "get", "pods"); out != "" || stderr != "No resources found in default namespace.\n" {
		t.Errorf("got %q and %q from a new server", out, stderr)
	}
	pod := func(image string) string {
		return u.file(
			"apiVersion: v1\nkind: Pod\nmetadata: {name: one, labels: {app: web}}\nspec: {containers: [{name: c, image: \"" + image + "\"}]}\n")
	}
	u.wantOutput("pod/one created\n", "apply", "-f", pod("nginx:1"))
	watch := u.start("get", "pods", "-w")
	waiting, running := "one 0/1 Pending 0 AGE", "one 0/1 Running 0 AGE"
	watch.waitForLines(podColumns, waiting)
	u.wantOutput("pod/one unchanged\n", "apply", "-f", pod("nginx:1"))
	u.wantOutput("pod/one configured\n", "apply", "-f", pod("nginx:2"))
	watch.waitForLines(podColumns, waiting, waiting)
	wait := u.start("wait", patiently, "pod/one", "--for=jsonpath={.status.phase}=Running")
	u.wantOutput("pod/one patched\n", "patch", "pod", "one", "--subresource=status", "-p",
		`{"status":{"phase":"Running"}}`)
	wait.waitForExit("pod/one condition met\n")
	watch.waitForLines(podColumns, waiting, waiting, running)
	u.wantTable([]string{podColumns + " LABELS", "one 0/1 Running 0 AGE app=web"}, "get", "pods", "--show-labels")
	u.wantOutput("pod \"one\" deleted from default namespace\n", "delete", "pod", "one")
	watch.waitForLines(podColumns, waiting, waiting, running, running)
	u.wantFailure(`Error from server (NotFound): pods "one" not found`, "get", "pod", "one")
}

func TestKubectlAuthenticates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens, ca := filepath.Join(dir, "tokens"), filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(tokens, []byte("secret,ada,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	urls := startProgram(t, "--token-file", tokens, "--tls-addr", "127.0.0.1:0", "--tls-self-signed",
		"--tls-ca-out", ca)
	u := newKubectlUser(t, "--server", urls[1], "--certificate-authority", ca)
	u.wantFailure("error: You must be logged in to the server", "get", "pods", "--token", "wrong")
	u.run("get", "pods", "--token", "secret")
	clear := newKubectlUser(t, "--server", urls[0], "--token", "secret")
	// kubectl sends no token in clear text.
	clear.wantFailure("error: You must be logged in to the server", "get", "pods")

	certificate, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer(
		"https://127.0.0.1:8443", urls[1], "certificate-authority: ca.pem",
		"certificate-authority-data: "+base64.StdEncoding.EncodeToString(certificate),
	).Replace(documentedBlock(t, "```yaml\n"))
	reader := newKubectlUser(t)
	if err := os.WriteFile(filepath.Join(reader.dir, "kubeconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := reader.try("", "get", "pods"); code != 0 ||
		stderr != "No resources found in default namespace.\n" {
		t.Errorf("got exit status %d and %q with the kubeconfig of docs/kubernetes.md", code, stderr)
	}
}

func TestKubectlListsWhatIsAllowed(t *testing.T) {
	t.Parallel()
	tokens, policy := filepath.Join(t.TempDir(), "tokens"), filepath.Join(t.TempDir(), "policy")
	for file, text := range map[string]string{
		tokens: "eve-token,eve,1\n",
		policy: `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"eve","namespace":"default","resource":"pods","readonly":true}}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	urls := startProgram(t, "--token-file", tokens, "--authorization-policy", policy, "--tls-addr", "127.0.0.1:0",
		"--tls-self-signed")
	u := newKubectlUser(t, "--server", urls[1], "--insecure-skip-tls-verify", "--token", "eve-token")
	u.wantOutput("yes\n", "auth", "can-i", "list", "pods")
	rows := tableRows(u.run("auth", "can-i", "--list"))
	if want := "pods [] [] [get list watch]"; !slices.Contains(rows, want) {
		t.Errorf("got the rows %q, want %q among them", rows, want)
	}
	if rows = tableRows(u.run("auth", "can-i", "--list", "-n", "other")); strings.Contains(strings.Join(rows, "\n"),
		"pods") {
		t.Errorf("in another namespace: got the rows %q, want none for pods", rows)
	}
}

// documentedBlock returns the rest of a code block in docs/kubernetes.md: the text between the
// first occurrence of start and the end of the block.
func documentedBlock(t *testing.T, start string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), start)
	block, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("docs/kubernetes.md has no code block after %q", start)
	}
	return block
}

func TestKubectlCommandsOfTheDocsWork(t *testing.T) {
	t.Parallel()
	s, u := startForKubectl(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", self)
	if err := os.WriteFile(filepath.Join(u.dir, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(documentedBlock(t, "<!-- kubectl -->\n```sh\n")) {
		c := exec.CommandContext(t.Context(), "/bin/sh", "-c",
			strings.ReplaceAll(line, "http://127.0.0.1:8080", s.URL()))
		c.Env = append(u.command(t.Context()).Env, "PATH="+u.dir+":"+os.Getenv("PATH"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	u.wantOutput("3", "get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")
}
