package jsonscan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestCompactRejectsInvalidJSON(t *testing.T) {
	for _, bad := range []string{
		`{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{"a":[1,]}`, `{"a":[1}`, `{"a":{]}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`,
		`{"a":1e}`, `{"a":1e+}`, `{"a":+1}`, `{"a":tru}`, `{"a":nulL}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"` + "\x01" + `"}`, `{1:2}`, `{"a":1}}`, `{"a":--1}`,
		`{"a":1-1}`, `{"a":NaN}`, `{'a':1}`, `{"a":1.5.5}`, `{"a":1e5e5}`, `{"a":00}`, `{"a"::1}`, "{\"a\"\u00a0:1}",
	} {
		var s Scanner
		if out, err := s.Compact([]byte(bad)); err == nil {
			t.Errorf("%s: got %s, want an error", bad, out)
		}
	}
}

func TestPlainLengthEndsAtTheFirstSpecialByte(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				text := []byte("\x7fbcde\xffghijklmnopqr\x80t")[:n]
				text[at] = byte(c)
				want := n
				if c < ' ' || c == '"' || c == '\\' {
					want = at
				}
				text = append(text, '"') // a special byte after the first one changes nothing
				if got := PlainLength(text); got != want {
					t.Fatalf("%q: got %d, want %d", text, got, want)
				}
			}
		}
	}
}

func TestObjectsMayBeAsDeepAsInEncodingJSON(t *testing.T) {
	for _, depth := range []int{MaxDepth - 1, MaxDepth} {
		text := []byte(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}")
		if _, err := AppendObject(nil, text); (err == nil) != json.Valid(text) {
			t.Errorf("depth %d: got %v, but encoding/json accepts it: %v", depth, err, json.Valid(text))
		}
	}
}

// FuzzCompact compares the result with encoding/json, and with a scan that reads byte by
// byte.
func FuzzCompact(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0,1e400,"\ud800"]}`, "{ }", `{"a":01}`, "{\"a\":\r\n[ {} , null ]}", `{"a":1} x`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Scanner
		got, err := s.Compact(bytes.Clone(text))
		if (err == nil) != (Validate(text) == nil) {
			t.Fatalf("Compact: %v, Validate: %v", err, Validate(text))
		}
		if appended, err2 := AppendObject(nil, text); !bytes.Equal(appended, got) || (err2 == nil) != (err == nil) {
			t.Fatalf("Compact: %q, %v, AppendObject: %q, %v", got, err, appended, err2)
		}
		var want bytes.Buffer
		isObject := json.Compact(&want, text) == nil && want.Len() > 0 && want.Bytes()[0] == '{'
		if (err == nil) != isObject || isObject && !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%q: got %q and %v, want %q", text, got, err, want.Bytes())
		}
		if err != nil {
			return
		}
		s.Reset()
		var bytewise []byte
		for i := 0; i < len(text) && !s.Done(); i++ {
			if bytewise, _, err = s.Scan(bytewise, text[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(bytewise, got) {
			t.Fatalf("got %q byte by byte, want %q", bytewise, got)
		}
	})
}
