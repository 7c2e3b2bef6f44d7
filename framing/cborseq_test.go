package framing

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"pgregory.net/rapid"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	return testkit.Must(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(tb)
}

// asCBOR converts a JSON value to CBOR in hexadecimal.
func asCBOR(tb testing.TB, value string) (string, error) {
	tb.Helper()
	out, err := exactCBOR.appendObject(nil, []byte(`{"":`+value+`}`))
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(out[2:]), nil
}

// asJSON converts a CBOR item to JSON.
func asJSON(item []byte) (string, error) {
	message := append([]byte("\xa2\x64type\x61A\x66object\xa1\x60"), item...)
	e, err := CBORSeq{}.DecodeMessage(message)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(e.Object), `{"":`), "}"), nil
}

// Each row has a JSON value, its CBOR in hexadecimal, and the JSON after the round trip. This is
// the conformance case framing/cbor-seq.
func TestJSONValuesAsCBOR(t *testing.T) {
	for _, c := range []struct{ value, item, back string }{
		{"0", "00", "0"},
		{"23", "17", "23"},
		{"24", "1818", "24"},
		{"-1", "20", "-1"},
		{"65536", "1a00010000", "65536"},
		{"9007199254740993", "1b0020000000000001", "9007199254740993"},
		{"18446744073709551615", "1bffffffffffffffff", "18446744073709551615"},
		{"18446744073709551616", "c249010000000000000000", "18446744073709551616"},
		{"-18446744073709551616", "3bffffffffffffffff", "-18446744073709551616"},
		{"-18446744073709551617", "c349010000000000000000", "-18446744073709551617"},
		{"-0", "fb8000000000000000", "-0.0"},
		{"-0.0e77", "fb8000000000000000", "-0.0"},
		{"0.0", "fb0000000000000000", "0.0"},
		{"0.1", "fb3fb999999999999a", "0.1"},
		{"0.10", "fb3fb999999999999a", "0.1"},
		{"1.0", "fb3ff0000000000000", "1.0"},
		{"1e3", "fb408f400000000000", "1000.0"},
		{"1e21", "fb444b1ae4d6e2ef50", "1e+21"},
		{"5e-324", "fb0000000000000001", "5e-324"},
		{"4.9e-324", "c482390144 1831", "49e-325"},
		{"1e400", "c48219019001", "1e400"},
		{"-1e400", "c48219019020", "-1e400"},
		{"1e-400", "c48239018f01", "1e-400"},
		{"9007199254740993.0", "c482201b0140000000000 00a", "9007199254740993.0"},
		{"3.14159265358979323846", "", "3.14159265358979323846"},
		{"0.1000000000000000055511151231257827", "", "0.1000000000000000055511151231257827"},
		{"0.000000100000000000000005551", "", "0.000000100000000000000005551"},
		{"0.0000000100000000000000005551", "", "100000000000000005551e-28"},
		{"1." + strings.Repeat("0", 20_000), "fb3ff0000000000000", "1.0"},
		{"1" + strings.Repeat("0", 500) + ".0e-500", "fb3ff0000000000000", "1.0"},
		{"1e9223372036854775807", "c4821b7fffffffffffffff01", "1e9223372036854775807"},
		{"1e-9223372036854775808", "c4823b7fffffffffffffff01", "1e-9223372036854775808"},
		{"0e99999999999999999999", "fb0000000000000000", "0.0"},
		{`""`, "60", `""`},
		{`"a"`, "6161", `"a"`},
		{`"\u00e9\/\n"`, "64c3a92f0a", `"é/\n"`},
		{`"\ud83d\ude00"`, "64f09f9880", `"😀"`},
		{`"\ud800"`, "63efbfbd", "\"\uFFFD\""},
		{`"\ud800\ud83d\ude00x\udc00"`, "6b efbfbd f09f9880 78 efbfbd", "\"\uFFFD😀x\uFFFD\""},
		{`"\u0000\u001f\u007f"`, "63001f7f", "\"\\u0000\\u001f\x7f\""},
		{"[]", "80", "[]"},
		{"{}", "a0", "{}"},
		{"[1,[2,3]]", "8201820203", "[1,[2,3]]"},
		{`{"b":1,"a":{"c":null},"b":true}`, "a3616201 6161a16163f6 6162f5", `{"b":1,"a":{"c":null},"b":true}`},
		{"[false,true,null]", "83f4f5f6", "[false,true,null]"},
		{"[ 1 , { } ]", "8201a0", "[1,{}]"},
	} {
		got, err := asCBOR(t, c.value)
		if want := strings.ReplaceAll(c.item, " ", ""); err != nil || c.back != "" && want != "" && got != want {
			t.Errorf("%s: got %s and %v, want %s", c.value, got, err, want)
		}
		back, err := asJSON(unhex(t, got))
		if c.back == "" {
			c.back = c.value
		}
		if err != nil || back != c.back {
			t.Errorf("%s: after the round trip got %s and %v, want %s", c.value, back, err, c.back)
		}
		again, err := asCBOR(t, back)
		if err != nil || again != got {
			t.Errorf("%s: encoded as %s first, and as %s (%v) after the round trip", c.value, got, again, err)
		}
	}
	// Test lengths around 24, because from 24 on a head needs a second byte.
	for size := 22; size < 26; size++ {
		value := "[" + strings.Repeat("1,", size-1) + `"` + strings.Repeat("é", size) + `\n"]`
		got, err := asCBOR(t, value)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := asJSON(unhex(t, got)); err != nil || back != value {
			t.Errorf("%s: after the round trip got %s, %v", value, back, err)
		}
	}
}

func TestUnsupportedCBORNumbersAreRejected(t *testing.T) {
	for _, value := range []string{
		"1e99999999999999999999", "1e-9223372036854775809", "1.5e-9223372036854775808",
		strings.Repeat("9", maxDigits+1),
		"0." + strings.Repeat("9", maxDigits+1), "1" + strings.Repeat("0", 1_000_000),
	} {
		if _, err := asCBOR(t, value); !errors.Is(err, listwatch.Unsupported) {
			t.Errorf("%.40s: got %v, want Unsupported", value, err)
		}
	}
	longest := strings.Repeat("9", maxDigits)
	item, err := asCBOR(t, "-"+longest)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := asJSON(unhex(t, item)); err != nil || back != "-"+longest {
		t.Errorf("a number of %d digits became %.40s, %v", maxDigits, back, err)
	}
}

func TestCBOREncoderChecksTheJSON(t *testing.T) {
	for _, object := range []string{"{", `{"a":1}}`, `{"a":}`, "{\"a\":\"\xff\"}", `{"a":[}`, `{"a":1} x`} {
		if _, err := (CBORSeq{}).AppendEvent(nil, WatchEvent{Type: "ADDED", Object: []byte(object)}); !errors.Is(err,
			listwatch.Invalid) {
			t.Errorf("%s: got %v, want Invalid", object, err)
		}
	}
}

// The rows are the examples of RFC 8949, appendix A, and other items that encoders may produce.
func TestCBORItemsAsJSON(t *testing.T) {
	for item, want := range map[string]string{
		"1bffffffffffffffff": "18446744073709551615", "c249010000000000000000": "18446744073709551616",
		"3bffffffffffffffff":     "-18446744073709551616",
		"c349010000000000000000": "-18446744073709551617", "f90000": "0.0", "f98000": "-0.0", "f93c00": "1.0",
		"fb3ff199999999999a": "1.1", "f93e00": "1.5",
		"f97bff": "65504.0", "fa47c35000": "100000.0", "fa7f7fffff": "3.4028234663852886e+38",
		"fb7e37e43c8800759c": "1e+300", "f90001": "5.960464477539063e-08",
		"f90400": "0.00006103515625", "f9c400": "-4.0", "fbc010666666666666": "-4.1", "f4": "false", "f6": "null",
		"6449455446": `"IETF"`, "62225c": `"\"\\"`, "64f0908591": `"𐅑"`,
		"98190102030405060708090a0b0c0d0e0f101112131415161718181819": "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]",
		"7f657374726561646d696e67ff":                                 `"streaming"`, "9fff": "[]",
		"9f018202039f0405ffff":   "[1,[2,3],[4,5]]",
		"83018202039f0405ff":     "[1,[2,3],[4,5]]",
		"bf61610161629f0203ffff": `{"a":1,"b":[2,3]}`, "bf6346756ef563416d7421ff": `{"Fun":true,"Amt":-2}`,
		"bfff": "{}", "7fff": `""`, "5fff": `""`,
		// A head may be longer than necessary.
		"1800": "0", "1b0000000000000001": "1", "9a0000000101": "[1]", "7b000000000000000161": `"a"`,
		"d9d9f701": "1", "d9d9f7d9d9f780": "[]", "81d9d9f7a0": "[{}]", // the tag 55799 at any place
		// Kubernetes encodes strings as byte strings.
		"43616263": `"abc"`, "5f4161426263ff": `"abc"`, "a1416101": `{"a":1}`,
		"d64401020304": `"AQIDBA=="`, "d640": `""`, // tag 22: bytes become base64, as in Kubernetes
		"c240": "0", "c340": "-1", "c24100": "0", "c2420001": "1", "c25f4101414fff": "335",
		"c48221196ab3": "273.15", "c48200c249010000000000000000": "18446744073709551616e0", "c4820303": "3e3",
		"c49f2003ff": "0.3", "c4822000": "0.0", "c48226 01": "0.0000001",
		"c48227 01": "1e-8", "c4822120": "-0.01", "c4823bffffffffffffffff01": "1e-18446744073709551616",
	} {
		raw := unhex(t, item)
		if got, err := asJSON(raw); err != nil || got != want {
			t.Errorf("%s: got %s and %v, want %s", item, got, err, want)
		}
	}
}

func TestInvalidCBORIsRejected(t *testing.T) {
	for item, want := range map[string]string{
		"f97e00": "NaN", "f97c00": "infinity", "fa7f800000": "infinity", "fbfff0000000000000": "infinity",
		"f7": "simple value 23", "f0": "simple value 16",
		"f818": "simple value 24", "f8ff": "simple value 255", "c074323031332d30332d32315432303a30343a30305a": "tag 0",
		"c11a514b67b0": "tag 1", "d818456449455446": "tag 24",
		"c5822003": "tag 5", "d74401020304": "tag 23", "d6416101": "unexpected data", "d66161": "tag 22",
		"c201": "bignum", "c26161": "bignum", "c401": "decimal", "c48101": "decimal", "c4830101 01": "decimal",
		"c4826161 01": "decimal", "c48201f90000": "decimal", "c482c2410101": "decimal", "c49f010101ff": "decimal",
		"c4820182": "decimal",
		"1c":       "0x1c", "1f": "0x1f", "3f": "0x3f", "df": "0xdf", "ff": "0xff", "fc": "0xfc", "62c328": "UTF-8",
		"42c328": "UTF-8", "7f61c3 61a9 ff": "UTF-8",
		"7f4161ff": "chunk", "5f6161ff": "chunk", "7f7f6161ffff": "chunk", "a10102": "name", "a1f502": "name",
		"a1d9d9f701 02": "name", "a18001": "name", "bf6161ff": "after a name",
		"81ff": "0xff", "a16161ff": "0xff", "0000": "unexpected data",
	} {
		got, err := asJSON(unhex(t, item))
		if !errors.Is(err, listwatch.Corrupt) || errors.Is(err, io.ErrUnexpectedEOF) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s and %v, want Corrupt with %q", item, got, err, want)
		}
	}
	for _, item := range []string{"01", "80", "f6", "6161", "c24101", "a0"} {
		if _, err := (CBORSeq{}).DecodeMessage(unhex(t, item)); !errors.Is(err, listwatch.Corrupt) {
			t.Errorf("%s for an event: got %v, want Corrupt", item, err)
		}
	}
	huge := append(unhex(t, "c2591ac1"), bytes.Repeat([]byte{0xff}, 0x1ac1)...)
	if _, err := asJSON(huge); err == nil || !strings.Contains(err.Error(), "bignum of 6849 bytes") {
		t.Errorf("got %v, want an error with the size of the bignum", err)
	}
}

// An independent decoder must accept the CBOR of CBORSeq and return the same values.
func TestIndependentDecoderReadsOurCBOR(t *testing.T) {
	mode, err := cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertNone,
		MaxNestedLevels: 100, UTF8: cbor.UTF8RejectInvalid, IndefLength: cbor.IndefLengthForbidden,
	}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := genEvent().Draw(t, "event")
		item, err := CBORSeq{}.AppendEvent(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Type   string `cbor:"type"`
			Object any    `cbor:"object"`
		}
		if err := mode.Unmarshal(item, &got); err != nil {
			t.Fatal(err)
		}
		var object any
		d := json.NewDecoder(bytes.NewReader(want.Object))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			t.Fatal(err)
		}
		if got.Type != want.Type {
			t.Fatalf("got type %q, want %q", got.Type, want.Type)
		}
		if a, b := exactNumbers(got.Object), exactNumbers(object); !reflect.DeepEqual(a, b) {
			t.Fatalf("got %v, want %v", a, b)
		}
	})
}

// exactNumbers replaces the numbers of a decoded value with their canonical form.
func exactNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = exactNumbers(v[name])
		}
		return v
	case []any:
		for i := range v {
			v[i] = exactNumbers(v[i])
		}
		return v
	case uint64, int64:
		data, _ := json.Marshal(v)
		return json.Number(exactNumber(string(data)))
	case big.Int:
		return json.Number(exactNumber(v.String()))
	case float64:
		return json.Number(exactNumber(string(appendFloat(nil, v))))
	case json.Number:
		return json.Number(exactNumber(string(v)))
	case cbor.Tag:
		parts := v.Content.([]any)
		exponent, mantissa := intText(parts[0]), intText(parts[1])
		return json.Number(exactNumber(mantissa + "e" + exponent))
	}
	return v
}

func intText(v any) string {
	if n, ok := v.(big.Int); ok {
		return n.String()
	}
	data, _ := json.Marshal(v)
	return string(data)
}

// CBORSeq's decoder must read the CBOR of an independent encoder, both with Kubernetes' options
// and with the default options.
func TestDecoderReadsIndependentCBOR(t *testing.T) {
	plain, err := cbor.EncOptions{}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := cbor.EncOptions{
		Sort: cbor.SortBytewiseLexical, ShortestFloat: cbor.ShortestFloat16, String: cbor.StringToByteString,
		FieldName:            cbor.FieldNameToByteString,
		ByteSliceLaterFormat: cbor.ByteSliceLaterFormatBase64,
	}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var object any
		if err := json.Unmarshal([]byte(genObject(3).Filter(finite).Draw(t, "object")), &object); err != nil {
			t.Skip(err)
		}
		want, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]cbor.EncMode{"plain": plain, "kube": kube} {
			item,
				err := mode.Marshal(cbor.Tag{Number: 55799, Content: map[string]any{"type": "ADDED", "object": object}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := CBORSeq{}.DecodeMessage(item)
			if err != nil {
				t.Fatalf("%s: %x: %v", name, item, err)
			}
			var back any
			if err := json.Unmarshal(got.Object, &back); err != nil {
				t.Fatal(err)
			}
			if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, want) {
				t.Fatalf("%s: got %s and %v, want %s", name, again, err, want)
			}
		}
	})
	item, err := kube.Marshal(map[string]any{"": []byte("\x00\xff")})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := asJSON(item[2:]); err != nil || got != `"AP8="` {
		t.Errorf("a byte string of Kubernetes: got %s and %v", got, err)
	}
}

// finite reports whether all numbers of a JSON text fit into float64.
func finite(text string) bool {
	var v any
	return json.Unmarshal([]byte(text), &v) == nil
}
