package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/framing"
)

// unicodeTexts maps ASCII names to texts that encoders often damage.
var unicodeTexts = map[string]string{
	"two bytes":      "é ß Ж א",
	"three bytes":    "€ 漢字 ‰",
	"astral":         "\U0001D11E \U0001F600 \U0010FFFF",
	"family":         "\U0001F469\u200D\U0001F469\u200D\U0001F467",
	"combining":      "e\u0301 n\u0303", // must not become é and ñ
	"right to left":  "\u202Eשלום مرحبا\u202C",
	"separators":     "a\u2028b\u2029c\u0085d",
	"marks":          "\uFEFFx\uFFFD\uFFFE",
	"controls":       "\x00\x01\x1e\x1f\x7f\t\r\n\b\f",
	"markup":         `<a href="x">&amp;</a>\/'`,
	"nothing":        "",
	"data:\n\nid: 9": "data: x\n\nevent: ERROR\r\rdata:",
}

func unicodeRoundtrip(e *harness.Env) {
	spec, keys := map[string]any{}, map[string]string{}
	for name, text := range unicodeTexts {
		spec[name], keys["key "+text] = text, name
	}
	spec["keys"] = keys
	text, err := json.Marshal(spec)
	if err != nil {
		e.Fatal(err)
	}
	e.Put("before")
	for name, spec := range map[string]string{"plain": string(text), "escaped": escapeNonASCII(string(text))} {
		before := e.Newest()
		e.PutJSON(name, spec)
		checkAllFramings(e, harness.From(before), func(mediaType string, object []byte) {
			found, want := map[string]bool{}, slices.Concat(slices.Collect(maps.Values(unicodeTexts)),
				slices.Collect(maps.Keys(keys)))
			collectStrings(harness.DecodeJSON(object), found)
			for _, text := range want {
				if !found[text] {
					e.Errorf("%s, %s: got %s, want it to contain %+q", mediaType, name, object, text)
				}
			}
		})
	}
}

// collectStrings adds every string in v to found, keys included. It also searches strings that
// contain a JSON object, because some targets store the spec in a ConfigMap, whose data can only
// hold strings.
func collectStrings(v any, found map[string]bool) {
	switch v := v.(type) {
	case string:
		found[v] = true
		var inner map[string]any
		if json.Unmarshal([]byte(v), &inner) == nil {
			collectStrings(inner, found)
		}
	case []any:
		for _, element := range v {
			collectStrings(element, found)
		}
	case map[string]any:
		for key, value := range v {
			found[key] = true
			collectStrings(value, found)
		}
	}
}

// escapeNonASCII returns JSON text with \u escapes for all characters outside ASCII.
func escapeNonASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04X\u%04X`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		}
	}
	return b.String()
}

// checkAllFramings opens a watch in each framing and calls check with the object of the first
// event. The bytes of that object must be the same in all text framings.
func checkAllFramings(e *harness.Env, query string, check func(mediaType string, object []byte)) {
	e.Helper()
	var text []byte
	for _, f := range framings(e) {
		s, err := e.TryDialIn(f, query)
		if !supports(e, f, err) {
			continue
		}
		if err != nil {
			if e.Supports(harness.InProcess) || f == framing.Framer(framing.JSON{}) {
				e.Errorf("%s: %v", f.MediaType(), err)
			}
			continue
		}
		object := s.Next().Object.Data
		s.Close()
		check(f.MediaType(), object)
		switch {
		case !slices.Contains(textFramings(e), f):
		case text == nil:
			text = object
		case !bytes.Equal(text, object):
			e.Errorf("%s: the object differs from the one in the JSON framing (-JSON +this framing):\n%s",
				f.MediaType(), cmp.Diff(string(text), string(object)))
		}
	}
}

// surrogatesSpec is an object with unpaired surrogates. These are not valid Unicode, but JSON
// can contain them as escapes.
const surrogatesSpec = `{"high":"a\ud800b","low":"\udc00","swapped":"\udc00\ud800","end":"\ud83d",` +
	`"pair":"\ud83d\ude00","\udfff":"key"}`

func unicodeSurrogates(e *harness.Env) {
	before := e.Put("before")
	if _, err := e.TryPutJSON("a", surrogatesSpec); err != nil {
		e.Logf("the server rejects unpaired surrogates: %v", err)
		return
	}
	list := e.ListRaw("")
	list.WantStatus(http.StatusOK)
	var page struct{ Items []json.RawMessage }
	if err := json.Unmarshal(list.ReadAll(), &page); err != nil {
		e.Fatal(err)
	}
	i := slices.IndexFunc(page.Items,
		func(item json.RawMessage) bool { return bytes.Contains(item, []byte(`"name":"a"`)) })
	if i < 0 {
		e.Fatalf("the list of %d objects does not contain the object a", len(page.Items))
	}
	// Decoding replaces each unpaired surrogate with U+FFFD. Therefore the comparison accepts both
	// a server that keeps the surrogate and a server that replaces it with U+FFFD.
	want := decodeSpec(page.Items[i])
	checkAllFramings(e, harness.From(before), func(mediaType string, object []byte) {
		if diff := cmp.Diff(want, decodeSpec(object)); diff != "" {
			e.Errorf("%s differs from the list (-list +event):\n%s", mediaType, diff)
		}
	})
}

// decodeSpec returns the decoded values of the spec that a case wrote.
func decodeSpec(object []byte) map[string]any {
	all := map[string]any{}
	for key, value := range harness.SpecOf(object) {
		all[key] = harness.DecodeJSON(value)
	}
	return all
}

// numbers are numbers that a float64 cannot represent, or that Go formats differently.
var numbers = map[string]string{
	"two53": "9007199254740993", "huge": "1e400", "tiny": "-1e-400", "tenth": "0.1", "zeros": "0.10", "negative": "-0",
	"max": "18446744073709551615", "big": "123456789012345678901234567890",
	"pi": "3.14159265358979323846264338327950288",
}

// putNumbers writes an object with the numbers, and returns the numbers that it wrote. If a server
// other than this module's rejects the number beyond the range of float64, as Kubernetes does,
// putNumbers writes the object without that number.
func putNumbers(e *harness.Env) map[string]string {
	e.Helper()
	written := maps.Clone(numbers)
	for {
		var members []string
		for name, number := range written {
			members = append(members, `"`+name+`":`+number)
		}
		_, err := e.TryPutJSON("a", "{"+strings.Join(members, ",")+"}")
		switch {
		case err == nil:
			return written
		case !errors.Is(err, listwatch.Invalid) || e.Supports(harness.InProcess) || written["huge"] == "":
			e.Fatal(err)
		}
		delete(written, "huge")
	}
}

func unicodeNumbers(e *harness.Env) {
	before := e.Put("before")
	written := putNumbers(e)
	checkAllFramings(e, harness.From(before), func(mediaType string, object []byte) {
		got := harness.SpecOf(object)
		for name, want := range written {
			switch number := strings.Trim(string(got[name]), `"`); {
			case mediaType == (framing.CBORSeq{}).MediaType():
				// CBOR keeps the value of a number but not its spelling.
				if !sameNumber(number, want) {
					e.Errorf("%s: %s became %s", mediaType, want, number)
				}
			case number != want:
				e.Errorf("%s: %s became %s", mediaType, want, number)
			}
		}
	})
}

// sameNumber reports whether a and b are the same number. It distinguishes -0 from 0.
func sameNumber(a, b string) bool {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0 && strings.HasPrefix(a, "-") == strings.HasPrefix(b, "-")
}

func namesInSelectors(e *harness.Env) {
	e.Put("a", "color", "red")
	e.Put("b", "color", "blue")
	_, err := e.TryPutSpec("c", map[string]string{"color": "red"}, map[string]any{"phase": "größer €/𝄞 +%"})
	if err != nil {
		e.Fatal(err)
	}
	phase := "größer €/𝄞 +%"
	for query, want := range map[string][]string{
		"fieldSelector=" + percentEncode("metadata.name=b"):                     {"ADDED b"},
		percentEncode("labelSelector") + "=" + percentEncode("color==red"):      {"ADDED a", "ADDED c"},
		"labelSelector=color%20in%20%28red%2Cgr%65en%29":                        {"ADDED a", "ADDED c"},
		"labelSelector=color+in+(blue)":                                         {"ADDED b"},
		harness.FieldSelector("spec.phase=" + phase):                            {"ADDED c"},
		"fieldSelector=spec.phase%3D" + strings.ToLower(url.QueryEscape(phase)): {"ADDED c"},
		// This text looks like the phase above, but consists of different characters.
		harness.FieldSelector("spec.phase=gro\u0308ßer €/𝄞 +%"): nil,
		harness.FieldSelector("metadata.name=größer"):           nil,
	} {
		s := e.Dial(query + harness.InitialEvents)
		s.Want(append(slices.Clone(want), "BOOKMARK")...)
		s.Close()
	}
	e.WatchRaw("labelSelector=a%zz").WantRefused(http.StatusBadRequest, "BadRequest")
	for _, bad := range []string{"%ff", "%c3%28", "%ed%a0%80", "%c0%af", "a%e2%82"} {
		for _, parameter := range []string{
			"fieldSelector=metadata.name%3D", "fieldSelector=spec.phase%3D", "labelSelector=color%3D",
		} {
			e.WatchRaw(parameter+bad).WantRefused(http.StatusBadRequest, "BadRequest")
			e.ListRaw(parameter+bad).WantRefused(http.StatusBadRequest, "BadRequest")
		}
	}
}

// percentEncode returns text with every byte percent-encoded.
func percentEncode(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02x", text[i])
	}
	return b.String()
}
