package framing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/listwatch/listwatch"
	"pgregory.net/rapid"
)

// kubernetesDecMode returns a decoding mode with the options of
// k8s.io/apimachinery/pkg/runtime/serializer/cbor that matter for the CBOR of a server.
func kubernetesDecMode(tb testing.TB) cbor.DecMode {
	tb.Helper()
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IntDec: cbor.IntDecConvertSignedOrFail,
		MapKeyByteString: cbor.MapKeyByteStringForbidden,
		DefaultMapType:   reflect.TypeFor[map[string]any](), UTF8: cbor.UTF8RejectInvalid,
		DefaultByteStringType:    reflect.TypeFor[string](),
		ByteStringToString:       cbor.ByteStringToStringAllowedWithExpectedLaterEncoding,
		FieldNameByteString:      cbor.FieldNameByteStringAllowed,
		ByteStringExpectedFormat: cbor.ByteStringExpectedBase64, BignumTag: cbor.BignumTagForbidden,
		NaN: cbor.NaNDecodeForbidden, Inf: cbor.InfDecodeForbidden,
	}.DecMode()
	if err != nil {
		tb.Fatal(err)
	}
	return mode
}

// Kubernetes' clients must decode the same values from CBOR as from JSON.
func TestKubernetesReadsBodiesInCBOR(t *testing.T) {
	mode := kubernetesDecMode(t)
	rapid.Check(t, func(t *rapid.T) {
		object := genObject(3).Filter(finite).Filter(unique).Draw(t, "object")
		item, err := AppendCBOR([]byte(CBORSelfDescribed), []byte(object))
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := mode.Unmarshal(item, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(object), &want); err != nil {
			t.Fatal(err)
		}
		if got = floats(got); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// unique reports whether no object of the JSON text has two members of the same name.
func unique(text string) bool {
	_, err := CBORToJSON(must(exactCBOR.appendObject(nil, []byte(text))), len(text)*9+100)
	return err == nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// floats converts all integers of a decoded value to float64, as encoding/json decodes them.
func floats(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = floats(v[name])
		}
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case int64:
		return float64(v)
	}
	return v
}

func TestNumbersInCBORForKubernetes(t *testing.T) {
	for number, want := range map[string]string{
		"0": "00", "-1": "20", "9007199254740993": "1b0020000000000001", "9223372036854775807": "1b7fffffffffffffff",
		"-9223372036854775808": "3b7fffffffffffffff", "9223372036854775808": "fb43e0000000000000",
		"18446744073709551616": "fb43f0000000000000",
		"-0":                   "00", "1.0": "fb3ff0000000000000", "0.1": "fb3fb999999999999a",
		"1e3":                    "fb408f400000000000",
		"1e-400":                 "fb0000000000000000",
		"3.14159265358979323846": "fb400921fb54442d18", "1e400": "fb7ff0000000000000", "-1e400": "fbfff0000000000000",
	} {
		got, err := AppendCBOR(nil, []byte(`{"":`+number+`}`))
		if err != nil || !bytes.Equal(got, unhex(t, "a140"+want)) {
			t.Errorf("%s: got % x and %v, want %s", number, got, err, want)
		}
	}
	if err := kubernetesDecMode(t).Unmarshal(unhex(t, "a140fb7ff0000000000000"), new(any)); err == nil {
		t.Error("Kubernetes accepts an infinity: a number beyond float64 needs another form")
	}
}

func TestKubernetesDecodesBase64InCBOR(t *testing.T) {
	item, err := AppendCBOR(nil, []byte(`{"data":{"key":"AP8="}}`))
	if err != nil {
		t.Fatal(err)
	}
	var secret struct {
		Data map[string][]byte `json:"data"`
	}
	if err := kubernetesDecMode(t).Unmarshal(item, &secret); err != nil || string(secret.Data["key"]) != "\x00\xff" {
		t.Errorf("got %q and %v, want the decoded bytes", secret.Data, err)
	}
}

func TestEventsInCBORForKubernetes(t *testing.T) {
	framer, err := negotiate("application/json;q=0.9,application/cbor;q=1")
	if err != nil || framer != Framer(CBORSeq{Kubernetes: true}) || framer.MediaType() != "application/cbor-seq" {
		t.Fatalf("got %#v and %v, want CBORSeq for Kubernetes", framer, err)
	}
	if exact, err := negotiate("application/cbor-seq, application/cbor"); err != nil || exact != Framer(CBORSeq{}) {
		t.Errorf("got %#v and %v, want the exact form for application/cbor-seq", exact, err)
	}
	event := WatchEvent{Type: "ADDED", Object: []byte(`{"a":"x","n":1}`)}
	item, err := framer.AppendEvent([]byte("before"), event)
	if want := unhex(t,
		"6265666f7265 d9d9f7 a2 4474797065 454144444544 466f626a656374 a2 4161 4178 416e 01"); err != nil ||
		!bytes.Equal(item, want) {
		t.Errorf("got % x and %v, want % x", item, err, want)
	}
	back, err := CBORSeq{}.DecodeMessage(item[len("before"):])
	if err != nil || string(back.Object) != string(event.Object) {
		t.Errorf("decoded %s and %v, want %s", back.Object, err, event.Object)
	}
}

func TestCBORBodiesAsJSON(t *testing.T) {
	for item, want := range map[string]string{
		"d9d9f7a1416142c3a9":           `{"a":"é"}`,
		"a16161d64200ff":               `{"a":"` + base64.StdEncoding.EncodeToString([]byte("\x00\xff")) + `"}`,
		"a161611b0020000000000001":     `{"a":9007199254740993}`,
		"a16161c249010000000000000000": `{"a":18446744073709551616}`,
		"bf61619fffff":                 `{"a":[]}`,
	} {
		if got, err := CBORToJSON(unhex(t, item), 100); err != nil || string(got) != want {
			t.Errorf("%s: got %s and %v, want %s", item, got, err, want)
		}
	}
	for item, want := range map[string]string{
		"": "ends within", "a1": "ends within", "a16161": "ends within", "bf": "ends within", "a1616162": "ends within",
		"a0a0": "after the first item", "80": "must be a map", "01": "must be a map",
		"a2616101416102": `more than one member "a"`, "a16161f97e00": "NaN", "a16161c0613a": "unknown tag 0",
		"a10102": "name", "7b7b": "item",
	} {
		_, err := CBORToJSON(unhex(t, item), 100)
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "event") {
			t.Errorf("%s: got %v, want Invalid with %q", item, err, want)
		}
	}
}

// CBORToJSON must not allocate much more than the limit, even if the JSON of a body is many times
// longer than its CBOR.
func TestCBORBodiesAreBoundedInMemory(t *testing.T) {
	const limit = 1 << 10
	for name, body := range map[string]string{
		"floats":  "\xa1\x61a\x9f" + strings.Repeat("\xf9\x00\x01", 1<<16),
		"arrays":  "\xa1\x61a" + strings.Repeat("\x9f", 5000),
		"escapes": "\xa1\x61a\x79\x10\x00" + strings.Repeat("\x00", 1<<12),
		"members": "\xbf" + strings.Repeat("\x60\x60", 1<<16),
	} {
		allocated := allocatedBy(func() {
			if _, err := CBORToJSON([]byte(body), limit); err != ErrTooLarge {
				t.Errorf("%s: got %v, want ErrTooLarge", name, err)
			}
		})
		if most := uint64(len(body) + 128*limit); allocated > most {
			t.Errorf("%s: allocated %d bytes, want at most %d", name, allocated, most)
		}
	}
	exact := []byte("\xa1\x61a\x61b")
	if got, err := CBORToJSON(exact, len(`{"a":"b"}`)); err != nil || string(got) != `{"a":"b"}` {
		t.Errorf("got %s and %v at exactly the limit", got, err)
	}
}

func negotiate(accept string) (Framer, error) {
	ranges, err := ParseAccept([]string{accept})
	if err != nil {
		return nil, err
	}
	return Default().Negotiate(ranges, false)
}
