package kubernetes

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		runChild(role)
		return
	}
	os.Exit(m.Run())
}

// waitTimeout limits the time that a test waits. Only failing tests wait that long.
const waitTimeout = 2 * time.Minute

// eventually calls done repeatedly until it returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	check := func(context.Context) (bool, error) { return done(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Millisecond, waitTimeout, true, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
