package framing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/listwatch/listwatch/internal/rawjson"
)

// allFramers lists the framings that eachFramer tests.
var allFramers = []Framer{JSON{}, LengthPrefixed{}, SSE{}, JSONSeq{}, CBORSeq{}}

// sameBytes reports whether f preserves the bytes of an object. Other framings preserve
// only its value.
func sameBytes(f Framer) bool { return f != Framer(CBORSeq{}) }

// genEvent generates events whose objects are compact JSON with values of all kinds.
func genEvent() *rapid.Generator[WatchEvent] {
	return rapid.Custom(func(t *rapid.T) WatchEvent {
		return WatchEvent{
			Type: rapid.SampledFrom([]string{
				"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "FUTURE",
				"ça \"va\"",
			}).Draw(t, "type"),
			Object: []byte(genObject(3).Draw(t, "object")),
		}
	})
}

func genObject(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			members = append(members, genString().Draw(t, "name")+":"+genValue(depth).Draw(t, "value"))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

func genValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		switch {
		case kind == 0 && depth > 0:
			return genObject(depth-1).Draw(t, "object")
		case kind == 1 && depth > 0:
			return "[" + strings.Join(rapid.SliceOfN(genValue(depth-1), 0, 30).Draw(t, "array"), ",") + "]"
		case kind == 2:
			return rapid.SampledFrom([]string{"true", "false", "null", "[]", "{}"}).Draw(t, "literal")
		case kind < 5:
			return genNumber().Draw(t, "number")
		}
		return genString().Draw(t, "string")
	})
}

func genNumber() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(specialNumbers),
		rapid.Map(rapid.Int64(), func(n int64) string { return fmt.Sprint(n) }),
		rapid.Map(rapid.Float64(), func(f float64) string {
			data, err := json.Marshal(f)
			if err != nil {
				return "0.5"
			}
			return string(data)
		}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,5})?`),
	)
}

var specialNumbers = []string{
	"0", "-0", "-0.0", "0e5", "0.000e-99999999999999999999", "1", "-1", "23", "24", "255", "256", "65535", "65536",
	"4294967295", "4294967296",
	"9007199254740993", "9007199254740993.0", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
	"18446744073709551616",
	"-18446744073709551615", "-18446744073709551616", "-18446744073709551617", "123456789012345678901234567890", "0.1",
	"0.10", "1.5", "1e3",
	"1E400", "-1e400", "1e-400", "4.9e-324", "5e-324", "2.4703282292062328e-324", "1.7976931348623157e308",
	"1.7976931348623159e308",
	"3.14159265358979323846264338327950288", "0.30000000000000004", "0.3000000000000000444", "1e21", "1e22", "1e23",
	"123e-2",
	"1e9223372036854775807", "1e-9223372036854775807", "0.0000001", "0.00000000000000000000001234567890123456789",
	"100000000000000000000000e-23",
}

func genString() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			`""`, `"a"`, `"\u0000"`, `"\u00e9\\\/\b\f\n\r\t\""`, `"\ud83d\ude00"`, `"😀"`, `"<&>"`,
			`"` + "\u2028\u2029\uFEFF" + `"`, `"data: x"`,
			`"\r\n\u001e"`, `"type"`, `"object"`, `"]}{["`,
		}),
		rapid.Map(rapid.String(),
			func(s string) string { return string(rawjson.AppendString(nil, strings.ToValidUTF8(s, "?"))) }),
	)
}

// sameJSON returns an error if two JSON texts have different values. It compares the exact
// decimal values of numbers, distinguishes -0 from 0, and compares the order of members.
func sameJSON(a, b []byte) error {
	x, y := json.NewDecoder(bytes.NewReader(a)), json.NewDecoder(bytes.NewReader(b))
	x.UseNumber()
	y.UseNumber()
	for {
		s, errS := x.Token()
		t, errT := y.Token()
		if errS != nil || errT != nil {
			if errS != errT { //nolint:errorlint // both are io.EOF in a valid text
				return fmt.Errorf("ends with %v and %v", errS, errT)
			}
			return nil
		}
		n, isNumber := s.(json.Number)
		m, both := t.(json.Number)
		switch {
		case isNumber && both && exactNumber(string(n)) == exactNumber(string(m)):
		case isNumber || both || s != t:
			return fmt.Errorf("got %v (%T) and %v (%T)", s, s, t, t)
		}
	}
}

// exactNumber returns a canonical form of a JSON number, without expanding its exponent.
func exactNumber(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	exponent, _ := new(big.Int).SetString(strings.TrimPrefix("0"+power, "0+"), 10)
	if strings.HasPrefix(power, "-") {
		exponent, _ = new(big.Int).SetString(power, 10)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	short := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(short))))
	if short == "" {
		return sign + "0"
	}
	return sign + short + "e" + exponent.String()
}

func TestSameJSONDistinguishesValues(t *testing.T) {
	for _, same := range [][2]string{
		{"1", "1.0"},
		{"100", "1e2"},
		{"-0", "-0.0"},
		{"1e400", "10E+399"},
		{"0.001", "1e-3"},
		{`"\u00e9"`, `"é"`},
	} {
		if err := sameJSON([]byte(same[0]), []byte(same[1])); err != nil {
			t.Errorf("%s and %s: %v", same[0], same[1], err)
		}
	}
	for _, other := range [][2]string{
		{"0", "-0"},
		{"1", "2"},
		{"1", `"1"`},
		{"1e400", "1e401"},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`},
		{"[1]", "[1,1]"},
		{"9007199254740993", "9007199254740992"},
	} {
		if sameJSON([]byte(other[0]), []byte(other[1])) == nil {
			t.Errorf("sameJSON treats %s and %s as equal", other[0], other[1])
		}
	}
}

// encode returns the stream of events, and the offset of the end of each event.
func encode(tb testing.TB, f Framer, events ...WatchEvent) (stream []byte, ends []int) {
	tb.Helper()
	for _, e := range events {
		var err error
		if stream, err = f.AppendEvent(stream, e); err != nil {
			tb.Fatalf("%s: %v", f.MediaType(), err)
		}
		ends = append(ends, len(stream))
	}
	return stream, ends
}

// decodeAll reads a stream to its end, and returns the last error.
func decodeAll(d Decoder) (events []WatchEvent, err error) {
	for {
		e, err := d.Decode()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// checkSame fails the test unless got can be the result of sending want through f.
func checkSame(tb testing.TB, f Framer, want, got WatchEvent) {
	tb.Helper()
	if got.Type != want.Type {
		tb.Fatalf("%s: got type %q, want %q", f.MediaType(), got.Type, want.Type)
	}
	if sameBytes(f) {
		if !bytes.Equal(got.Object, want.Object) {
			tb.Fatalf("%s: got object %s, want %s", f.MediaType(), got.Object, want.Object)
		}
		return
	}
	if err := sameJSON(want.Object, got.Object); err != nil {
		tb.Fatalf("%s: got object %s, want %s: %v", f.MediaType(), got.Object, want.Object, err)
	}
}
