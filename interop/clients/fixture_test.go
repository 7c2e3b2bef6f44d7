package clients

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	if os.Getenv(kubectlEnv) != "" {
		runKubectl()
		return
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// waitTimeout limits the time that eventually waits. Only failing tests wait that long.
const waitTimeout = 5 * time.Minute

// eventually calls done repeatedly until it returns true. It fails the test if done returns an
// error.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Millisecond, waitTimeout, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
