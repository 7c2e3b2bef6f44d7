package websocket

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
)

func TestBearerToken(t *testing.T) {
	enc := base64.RawURLEncoding.EncodeToString
	tests := []struct {
		offers []string
		token  string
		ok     bool
		bad    bool
	}{
		{nil, "", false, false},
		{[]string{"v1"}, "", false, false},
		{[]string{"v1, " + bearerPrefix + enc([]byte("abc?>~"))}, "abc?>~", true, false},
		{[]string{"v1", bearerPrefix + enc([]byte("abc"))}, "abc", true, false},
		{[]string{bearerPrefix}, "", false, true},
		{[]string{bearerPrefix + "a+b/"}, "", false, true},
		{[]string{bearerPrefix + enc([]byte("abcd")) + "=="}, "", false, true},
		{[]string{bearerPrefix + enc([]byte{0xFF, 0xFE})}, "", false, true},
		{[]string{bearerPrefix + enc([]byte("a")) + "," + bearerPrefix + enc([]byte("b"))}, "", false, true},
	}
	for _, tt := range tests {
		r := &http.Request{Header: http.Header{"Sec-Websocket-Protocol": tt.offers}}
		token, ok, err := BearerToken(r)
		if token != tt.token || ok != tt.ok || (err != nil) != tt.bad {
			t.Errorf("%q: got %q, %v, %v", tt.offers, token, ok, err)
		}
		if tt.bad {
			if listwatch.CodeOf(err) != listwatch.Unauthorized {
				t.Errorf("%q: got error %v, want %v", tt.offers, err, listwatch.Unauthorized)
			}
		}
	}
}

func FuzzBearerToken(f *testing.F) {
	for _, s := range []string{"", "v1", bearerPrefix + "YWJj, v1", ",,  ,", bearerPrefix + "YQ==", "v1\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, ok, err := BearerToken(&http.Request{Header: http.Header{"Sec-Websocket-Protocol": {s}}})
		if ok != (token != "") || err != nil && ok {
			t.Errorf("%q: got %q, %v, %v", s, token, ok, err)
		}
		if ok && !strings.Contains(s, bearerPrefix+base64.RawURLEncoding.EncodeToString([]byte(token))) {
			t.Errorf("%q does not contain the token %q", s, token)
		}
	})
}
