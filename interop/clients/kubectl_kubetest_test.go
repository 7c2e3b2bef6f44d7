package clients

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/testbuild"
	"k8s.io/apimachinery/pkg/util/wait"
)

// startKubetest runs the program kubetest with the definitions until the test ends.
func startKubetest(t *testing.T, crds string) *kubectlUser {
	t.Helper()
	u := newKubectlUser(t)
	c := exec.Command(testbuild.Program(t, "../../kubeapi/kubetest/cmd/kubetest"), "--crd", crds,
		"--kubeconfig", filepath.Join(u.dir, "kubeconfig"))
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("the program kubetest: %v", err)
		}
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestKubectlUsesTheProgramKubetest does what a developer of an operator tries.
func TestKubectlUsesTheProgramKubetest(t *testing.T) {
	t.Parallel()
	u := startKubetest(t, "../../kubeapi/kubetest/testdata/versions.yaml")
	u.wantOutput("namespace/one created\n", "create", "namespace", "one")

	const robot = "--as=system:serviceaccount:one:robot"
	u.run("-n", "one", "create", "serviceaccount", "robot")
	u.run("-n", "one", "create", "role", "reader", "--verb=get,list", "--resource=pods")
	u.run("-n", "one", "create", "rolebinding", "reader", "--role=reader", "--serviceaccount=one:robot")
	u.wantOutput("yes\n", "auth", "can-i", "list", "pods", "-n", "one", robot)
	u.wantFailure("", "auth", "can-i", "list", "secrets", "-n", "one", robot)
	if rows := tableRows(u.run("auth", "can-i", "--list", "-n", "one", robot)); !slices.Contains(rows,
		"pods [] [] [get list]") {
		t.Errorf("got the rights %q", rows)
	}
	u.run("-n", "one", "get", "pods", robot)
	u.wantFailure(`secrets is forbidden: User "system:serviceaccount:one:robot" cannot list resource "secrets"`,
		"-n", "one", "get", "secrets", robot)
	if got := u.run("auth", "whoami"); !strings.Contains(got, "admin") {
		t.Errorf("kubectl auth whoami printed %s", got)
	}
	if parts := strings.Split(u.run("-n", "one", "create", "token", "robot"), "."); len(parts) != 3 {
		t.Errorf("got a token of %d parts", len(parts))
	}

	gear := u.file("apiVersion: demo.example.com/v1beta1\nkind: Gear\nmetadata: {name: a, namespace: one}\n" +
		"spec: {teeth: 3}\n")
	if _, stderr, code := u.try("", "apply", "-f", gear); code != 0 ||
		!strings.Contains(stderr, "Gear is deprecated; use demo.example.com/v1 Gear") {
		t.Errorf("kubectl apply: exit status %d, %s", code, stderr)
	}
	u.wantTable([]string{"NAME AGE", "a AGE"}, "-n", "one", "get", "gears")
	u.wantOutput("demo.example.com/v1beta1 3", "-n", "one", "get", "gears.v1beta1.demo.example.com", "a", "-o",
		"jsonpath={.apiVersion} {.spec.teeth}")
	if got := u.run("explain", "gears.spec.material"); !strings.Contains(got, "VERSION:    v1\n") {
		t.Errorf("kubectl explain printed %s", got)
	}

	owner := u.run("-n", "one", "get", "gears", "a", "-o", "jsonpath={.metadata.uid}")
	u.runWithInput("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned, namespace: one, ownerReferences: ["+
		"{apiVersion: demo.example.com/v1beta1, kind: Gear, name: a, uid: "+owner+"}]}\n", "create", "-f", "-")
	u.run("-n", "one", "delete", "gears", "a")
	u.run("-n", "one", "wait", patiently, "configmap/owned", "--for=delete")
	u.runWithInput(podOneManifest, "-n", "one", "apply", "-f", "-")
	u.run("delete", "namespace", "one", patiently) // waits until the namespace is empty
	u.wantFailure("not found", "get", "namespace", "one")
}

func TestProgramKubetestRemovesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := exec.Command(testbuild.Program(t, "../../kubeapi/kubetest/cmd/kubetest"))
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	files := func() int {
		found, _ := filepath.Glob(filepath.Join(dir, "*", "kubeconfig")) // the pattern is valid
		return len(found)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, commandTimeout, true,
		func(context.Context) (bool, error) { return files() == 1, nil })
	if err == nil {
		err = c.Process.Signal(os.Interrupt)
	}
	if err != nil {
		t.Error(err)
		_ = c.Process.Kill() // Wait reports that it was killed
	}
	if err := c.Wait(); err != nil || files() != 0 {
		t.Errorf("the program ended with %v and left %d files", err, files())
	}
}
