package kubeapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch/store/memory"
)

func TestAWatchEndsWhenItsTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gadgets, err := ParseResource("gadgets.v1.demo.example.com=Gadget,cluster")
		if err != nil {
			t.Fatal(err)
		}
		h := new(Handler)
		h.Server.Access.Authenticator = func(*http.Request) (User, error) {
			return User{Name: "ada", Expires: time.Now().Add(time.Minute)}, nil
		}
		c, err := memory.Open(memory.Options{}).Collection(gadgets.CollectionSpec())
		if err == nil {
			err = h.Add(gadgets, c)
		}
		if err != nil {
			t.Fatal(err)
		}
		start, w := time.Now(), httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET",
			"/apis/demo.example.com/v1/gadgets?watch=1&timeoutSeconds=600", nil))
		if took := time.Since(start); took != time.Minute {
			t.Errorf("the watch ended after %v, want 1m0s", took)
		}
		if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `"type":"ERROR"`) ||
			!strings.Contains(body, `"code":401`) {
			t.Errorf("got %d %s, want 200 and an ERROR event with code 401", w.Code, body)
		}
	})
}
