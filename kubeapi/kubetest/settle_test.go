package kubetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/kubeapi/kubetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestSettleWaitsForRetries creates objects with growing pauses, as a controller does that fails.
func TestSettleWaitsForRetries(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		go func() { // ends before Settle
			for i, pause := 0, time.Second; pause < 10*time.Second; i, pause = i+1, 2*pause {
				time.Sleep(pause)
				c.createConfigMap(t, named(fmt.Sprint("n", i)))
			}
		}()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		go func() { // ends with the test
			for {
				select {
				case <-ticker.C:
					_, _ = c.CoreV1().ConfigMaps("default").Get(t.Context(), "n0", metav1.GetOptions{})
				case <-t.Context().Done():
					return
				}
			}
		}()
		start := time.Now()
		c.Settle()
		if n := len(c.configMaps(t)); n != 4 || time.Since(start) != 25*time.Second {
			t.Errorf("got %d objects after %v, want 4, and ten seconds without writes", n, time.Since(start))
		}
	})
}

// A fatal is a testing.TB that keeps the text of Fatal.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestSettleNamesEndlessWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fatal{TB: t}
		env := kubetest.New(f, kubetest.Options{})
		clients, err := kubernetes.NewForConfig(env.Config())
		if err != nil {
			t.Fatal(err)
		}
		ticker := time.NewTicker(5 * time.Second)
		defer ticker.Stop()
		go func() { // ends with the test
			for {
				select {
				case <-ticker.C:
					_ = clients.CoreV1().ConfigMaps("default").Delete(t.Context(), "a", metav1.DeleteOptions{})
				case <-t.Context().Done():
					return
				}
			}
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			env.Settle()
		}()
		<-done
		if !strings.Contains(f.text, "DELETE /api/v1/namespaces/default/configmaps/a (72") {
			t.Errorf("got %q, want the name of the request", f.text)
		}
	})
}

// A manager starts and stops slowly, and spins if it is stopped while it starts.
type manager struct {
	elected chan struct{}
	err     error
}

func (m *manager) Elected() <-chan struct{} { return m.elected }

func (m *manager) Start(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return errors.New("stopped while it starts")
	}
	if m.err != nil {
		return m.err
	}
	close(m.elected)
	<-ctx.Done()
	time.Sleep(time.Second)
	return nil
}

func TestRunWaitsForTheManager(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "", "no kind Widget": "no kind Widget"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &failure{TB: t}
				s := &scope{TB: f}
				m := &manager{elected: make(chan struct{})}
				if want != "" {
					m.err = errors.New(want)
				}
				ended := make(chan struct{})
				go func() { // Run ends it if the manager fails
					defer close(ended)
					kubetest.New(s, kubetest.Options{}).Run(m)
					<-m.elected
				}()
				<-ended
				s.end()
				if got := strings.Join(f.texts, ""); want == "" && got != "" || !strings.Contains(got, want) {
					t.Errorf("got the errors %q, want %q", got, want)
				}
			})
		})
	}
}
