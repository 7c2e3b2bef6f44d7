package kubetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
)

// notices logs that parts of objects have no effect, so that the author of a test does not search
// for the reason in the program under test.
type notices struct {
	t testing.TB

	mu sync.Mutex
	// Guarded by mu.
	logged map[string]bool
	ended  bool // the test may be over, so that nothing can be logged
}

// log logs a text once.
func (n *notices) log(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || n.logged[text] {
		return
	}
	n.logged[text] = true
	n.t.Logf("kubetest: %s; see docs/kubetest.md", text)
}

func (n *notices) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
}

// webhooks returns a function that is called after each write to r. It logs that webhooks are not
// called, if r has configurations of webhooks.
func (n *notices) webhooks(r kubeapi.Resource) func(*listwatch.Object, bool) {
	if r.Kind != "ValidatingWebhookConfiguration" && r.Kind != "MutatingWebhookConfiguration" {
		return nil
	}
	return func(o *listwatch.Object, deleted bool) {
		if !deleted {
			n.log(fmt.Sprintf("the webhooks of the %s %s are never called", r.Kind, o.Key.Name))
		}
	}
}
