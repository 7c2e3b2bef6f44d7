package testapi

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestClientsReachARestartedServer(t *testing.T) {
	s := Start(t)
	for _, p := range Protocols {
		client, err := kubernetes.NewForConfig(s.Config(p))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			_, err := client.CoreV1().Pods("").List(t.Context(), v1.ListOptions{})
			if i > 0 && IsLostConnection(err) {
				_, err = client.CoreV1().Pods("").List(t.Context(), v1.ListOptions{})
			}
			if err != nil {
				t.Errorf("%s: %v", p, err)
			}
			s.Restart(nil)
		}
	}
}
