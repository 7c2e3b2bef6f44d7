package httpheader

import (
	"strings"
	"testing"
)

// The conformance case comp/not-asked tests some of these rules with a server.
func TestChooseEncoding(t *testing.T) {
	const none = "none"
	tests := []struct {
		accept string
		want   string // none if the header excludes all offered codings
	}{
		{"", ""},
		{"identity", ""},
		{"br, deflate", ""},
		{"gzip", "gzip"},
		{"GZIP", "gzip"},
		{"x-gzip", "gzip"},
		{"zstd", "zstd"},
		{"zstd, gzip", "gzip"},
		{"gzip, deflate, br, zstd", "gzip"}, // a browser, or curl --compressed
		{"zstd, gzip;q=0.9", "zstd"},
		{"gzip, zstd;q=0.9", "gzip"}, // the header that package client sends
		{"zstd;q=0.5, gzip", "gzip"},
		{"zstd;q=0.5, gzip;q=0.500", "gzip"},
		{"gzip;q=0.001", "gzip"},
		{"gzip ; Q = 0.1", "gzip"},
		{"br;q=1.0, gzip;q=0.8, *;q=0.1", "gzip"},
		{"identity, gzip;q=0.5", ""},
		{"identity;q=1, gzip;q=0", ""},
		{"identity;q=0.5, gzip;q=0.5", "gzip"},
		{"identity;q=0.5, gzip;q=0.4, zstd;q=0.6", "zstd"},
		{"gzip;q=0", ""},
		{"gzip;q=0.000, zstd;q=0", ""},
		{"*", "gzip"},
		{"*;q=0.5, identity", ""},
		{"*, gzip;q=0", ""},
		{"*, gzip;q=0, identity;q=0", none},
		{"zstd;q=0, *;q=0.1", "gzip"},
		{"*;q=0", none},
		{"*;q=0, identity", ""},
		{"*;q=0, gzip", "gzip"},
		{"identity;q=0", none},
		{"identity;q=0, br", none},
		{"identity;q=0, gzip;q=0.1", "gzip"},
		{"identity;q=0, *", "gzip"},
		// Malformed elements are ignored.
		{"gzip;q=x", ""},
		{"gzip;q=NaN", ""},
		{"gzip;q=2", ""},
		{"gzip;level=1", ""},
		{"identity;q=-1", ""},
		{";;, ,gzip", "gzip"},
	}
	for _, tt := range tests {
		got, ok := ChooseEncoding([]string{tt.accept}, "gzip", "zstd")
		if !ok {
			got = none
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.accept, got, tt.want)
		}
	}
	if got, ok := ChooseEncoding(nil, "gzip"); got != "" || !ok {
		t.Errorf("no header: got %q, %t", got, ok)
	}
	if got, _ := ChooseEncoding([]string{"br", "gzip"}, "gzip"); got != "gzip" {
		t.Errorf("two headers: got %q, want gzip", got)
	}
	if got, ok := ChooseEncoding([]string{"gzip, *"}); got != "" || !ok {
		t.Errorf("nothing on offer: got %q, %t", got, ok)
	}
}

// FuzzChooseEncoding checks that a coding is chosen only if the header contains it or a
// wildcard.
func FuzzChooseEncoding(f *testing.F) {
	f.Add("gzip, deflate;q=0.5, *;q=0")
	f.Add("identity;q=0,,;x-gzip")
	f.Fuzz(func(t *testing.T, accept string) {
		name, ok := ChooseEncoding([]string{accept}, "gzip", "zstd")
		lower := strings.ToLower(accept)
		if name != "" && !strings.Contains(lower, name) && (name == "zstd" || !strings.Contains(lower, "*")) {
			t.Errorf("%q: chose %q", accept, name)
		}
		if name != "" && !ok || !ok && !strings.Contains(lower, "identity") && !strings.Contains(lower, "*") {
			t.Errorf("%q: %q, %t", accept, name, ok)
		}
	})
}
