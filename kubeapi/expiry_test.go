package kubeapi

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAWatchEndsWhenItsTokenExpires(t *testing.T) {
	a := startServer(t, func(h *Handler) {
		h.Authenticate = func(*http.Request) (User, error) {
			return User{Name: "ada", Expires: time.Now().Add(100 * time.Millisecond)}, nil
		}
	})
	body := a.want(t, 200, "GET", pods+"?watch=1&timeoutSeconds=600", "")
	if !strings.Contains(body, `"type":"ERROR"`) || !strings.Contains(body, `"code":401`) {
		t.Errorf("got %s, want an ERROR event with code 401", body)
	}
}
