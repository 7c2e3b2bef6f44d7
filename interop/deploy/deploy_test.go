package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/testbuild"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

const folder = "../../deploy"

// TestUnitsAreValid also checks that systemd-analyze rates the exposure of the service, on its
// scale from 0 to 10, at 2 or less.
func TestUnitsAreValid(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("systemd-analyze is not installed; with CI=true it is required")
		}
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"listwatch.socket", "listwatch.service"} {
		data, err := os.ReadFile(filepath.Join(folder, "systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		// systemd-analyze requires that the program of the service exists.
		data = bytes.ReplaceAll(data, []byte("/usr/local/bin/listwatch"), []byte("/bin/true"))
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"verify", "--man=no", dir + "/listwatch.socket", dir + "/listwatch.service"},
		{"security", "--offline=yes", "--threshold=20", dir + "/listwatch.service"},
	} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestManifestsAreValid(t *testing.T) {
	listwatch := testbuild.Program(t, "../../cmd/listwatch")
	for name, want := range map[string]string{
		"listwatch.yaml":  "Deployment Service PodDisruptionBudget",
		"relay-rbac.yaml": "ServiceAccount ClusterRoleBinding ClusterRole ClusterRoleBinding",
		"relay-node.yaml": "DaemonSet",
		"relay.yaml":      "Deployment Service PodDisruptionBudget",
	} {
		data, err := os.ReadFile(filepath.Join(folder, "kubernetes", name))
		if err != nil {
			t.Fatal(err)
		}
		strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
		var kinds []string
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			o, kind, err := strict.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, document)
				continue
			}
			kinds = append(kinds, kind.Kind)
			var containers []corev1.Container
			switch o := o.(type) {
			case *appsv1.Deployment:
				containers = o.Spec.Template.Spec.Containers
			case *appsv1.DaemonSet:
				containers = o.Spec.Template.Spec.Containers
			}
			for _, c := range containers {
				if out, err := exec.Command(listwatch,
					append(c.Args, "--print-config")...).CombinedOutput(); err != nil {
					t.Errorf("%s: listwatch %q: %v: %s", name, c.Args, err, out)
				}
			}
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
