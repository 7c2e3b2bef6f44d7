package kubetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi/kubetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The garbage collection would not see an object that the store deletes at the end of a TTL.
func TestNoObjectEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, kubetest.Options{})
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "e"},
			InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "a"},
		}
		testkit.Must(c.CoreV1().Events("default").Create(t.Context(), e, metav1.CreateOptions{}))(t)
		time.Sleep(24 * time.Hour)
		testkit.Must(c.CoreV1().Events("default").Get(t.Context(), "e", metav1.GetOptions{}))(t)
	})
}
