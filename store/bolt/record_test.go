package bolt

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
)

var sampleRecords = []record{
	{at: 1700000000000000000, key: listwatch.Key{Namespace: "n", Name: "a"}, data: []byte(`{"metadata":{}}`)},
	{at: 1, previous: 4, key: listwatch.Key{Name: strings.Repeat("x", 253)}, data: []byte(`{}`)},
	{at: -1, previous: 1, deleted: true, key: listwatch.Key{Namespace: "n", Name: "a"}, data: []byte{}},
}

func TestParseRecordInvertsAppendTo(t *testing.T) {
	for _, want := range sampleRecords {
		got, err := parseRecord(want.appendTo(nil, 5), 5)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAnyChangedBitOfARecordIsDetected(t *testing.T) {
	for _, r := range sampleRecords {
		data := r.appendTo(nil, 5)
		for i := range 8 * len(data) {
			data[i/8] ^= 1 << (i % 8)
			if got, err := parseRecord(data, 5); err == nil {
				t.Fatalf("with bit %d changed it parses as %+v", i, got)
			}
			data[i/8] ^= 1 << (i % 8)
		}
		for n := range data {
			if got, err := parseRecord(data[:n], 5); err == nil {
				t.Fatalf("truncated to %d bytes it parses as %+v", n, got)
			}
		}
		if got, err := parseRecord(data, 6); err == nil {
			t.Errorf("under another version it parses as %+v", got)
		}
	}
}

func TestParseRecordRejectsInvalidRecords(t *testing.T) {
	seal := func(body string, v listwatch.Version) []byte {
		return binary.BigEndian.AppendUint32([]byte(body), checksum(v, []byte(body)))
	}
	const at = "\x00\x00\x00\x00\x00\x00\x00\x01"
	for want, data := range map[string][]byte{
		"too few":        []byte("abc"),
		"truncated":      seal("\x01"+at+"\x00\x01n\x05a", 5),
		"kind is 3":      seal("\x03"+at+"\x00\x01n\x01a{}", 5),
		"with 2 bytes":   seal("\x02"+at+"\x04\x01n\x01a{}", 5),
		"not before its": seal("\x01"+at+"\x05\x01n\x01a{}", 5),
		"checksum":       []byte("\x01" + at + "\x00\x01n\x01a{}1234"),
	} {
		if _, err := parseRecord(data, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := versionOf([]byte("seven..")); err == nil {
		t.Error("versionOf accepts seven bytes")
	}
}

// FuzzParseRecord parses arbitrary bytes, with and without a valid checksum. If they can be
// parsed, encoding and parsing the record again must return the same record.
func FuzzParseRecord(f *testing.F) {
	for _, r := range sampleRecords {
		data := r.appendTo(nil, 5)
		f.Add(data[:len(data)-checksumBytes], uint64(5))
	}
	f.Fuzz(func(t *testing.T, body []byte, version uint64) {
		v := listwatch.Version(version)
		_, _ = parseRecord(body, v) // must not panic
		r, err := parseRecord(binary.BigEndian.AppendUint32(bytes.Clone(body), checksum(v, body)), v)
		if err != nil {
			return
		}
		again, err := parseRecord(r.appendTo(nil, v), v)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again, cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
