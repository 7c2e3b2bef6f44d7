package apihttp

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func writeBody(t *testing.T, accept string, parts ...[]byte) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", accept)
	w := httptest.NewRecorder()
	WriteBody(w, r, http.StatusAccepted, parts...)
	res := w.Result()
	if res.StatusCode != http.StatusAccepted || res.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("got status %d and Vary %q, want 202 and Accept-Encoding", res.StatusCode, res.Header.Get("Vary"))
	}
	return res
}

func TestLargeBodiesAreCompressed(t *testing.T) {
	half := bytes.Repeat([]byte("listwatch "), compressAbove/16)
	for range 2 { // the second response uses a pooled compressor
		res := writeBody(t, "gzip", half, half)
		if res.Header.Get("Content-Encoding") != "gzip" || res.Header.Get("Content-Length") != "" {
			t.Fatalf("got headers %v, want gzip and no length", res.Header)
		}
		z, err := gzip.NewReader(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, append(half[:len(half):len(half)], half...)) {
			t.Errorf("got %d bytes, %v; want both parts", len(got), err)
		}
	}
	res := writeBody(t, "identity", half, half)
	if got, _ := io.ReadAll(res.Body); len(got) != 2*len(half) || res.Header.Get("Content-Encoding") != "" {
		t.Errorf("got %d bytes, %v", len(got), res.Header)
	}
}

func TestSmallBodiesAreNotCompressed(t *testing.T) {
	body := strings.Repeat("x", compressAbove)
	res := writeBody(t, "gzip", []byte(body))
	got, _ := io.ReadAll(res.Body)
	if string(got) != body || res.Header.Get("Content-Encoding") != "" || res.ContentLength != compressAbove {
		t.Errorf("got %d bytes, %v", len(got), res.Header)
	}
}
