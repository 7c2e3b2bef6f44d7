package kubetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// The clock of a bubble is years behind the start of the process.
func TestErrorsOfClientsDoNotPauseForYears(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster) {
		started := time.Now()
		utilruntime.HandleErrorWithContext(t.Context(), errors.New("forbidden"), "a client has failed")
		if took := time.Since(started); took > time.Second {
			t.Errorf("an error has paused a client for %v", took)
		}
	}, kubetest.Options{})
}
