package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// appendExact appends an encoding of a JSON text. The encodings of two texts are equal if and only
// if the texts have the same value and the same order of members. Numbers are compared as decimals
// and never become floats, so that 1e400 and 2^64+1 remain exact.
func appendExact(dst, text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return nil, err
		}
		switch v := token.(type) {
		case json.Delim:
			dst = append(dst, byte(v))
		case string:
			// The length prefix prevents collisions with other values.
			dst = append(strconv.AppendInt(append(dst, 's'), int64(len(v)), 10), ':')
			dst = append(dst, v...)
		case json.Number:
			if dst, err = appendDecimal(append(dst, 'n'), v.String()); err != nil {
				return nil, err
			}
		default:
			dst = fmt.Append(dst, v) // true, false, <nil>
		}
		dst = append(dst, ' ')
	}
}

// appendDecimal appends a JSON number as its sign, its digits without leading and trailing
// zeros, and the exponent of the last digit. Minus zero keeps its sign, because a framing
// must not lose it.
func appendDecimal(dst []byte, number string) ([]byte, error) {
	rest, negative := strings.CutPrefix(number, "-")
	if negative {
		dst = append(dst, '-')
	}
	mantissa, power := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		var err error
		if power, err = strconv.Atoi(rest[i+1:]); err != nil {
			return nil, fmt.Errorf("exponent of %s: %w", number, err)
		}
		mantissa = rest[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	power -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return append(dst, '0'), nil
	}
	trimmed := strings.TrimRight(digits, "0")
	power += len(digits) - len(trimmed)
	return strconv.AppendInt(append(append(dst, trimmed...), 'e'), int64(power), 10), nil
}

func TestExactEncodingComparesValues(t *testing.T) {
	exact := func(text string) string {
		t.Helper()
		b, err := appendExact(nil, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return string(b)
	}
	for _, same := range [][]string{
		{"1", "1.0", "10e-1", "0.1e1", "1E+0"},
		{"1e400", "10e399", "1" + strings.Repeat("0", 400)},
		{"0", "0.0", "0e5"},
		{"-0", "-0.0"},
		{"123456789012345678901234567890.5", "1234567890123456789012345678905e-1"},
		{`"a\u0000\ud83d\ude00\/"`, "\"a\\u0000\U0001F600/\""},
		{`{"a":[1,{"b":null}],"c":true}`, `{ "a" : [1.0, {"b":null} ] , "c":true}`},
	} {
		for _, text := range same[1:] {
			if exact(text) != exact(same[0]) {
				t.Errorf("%.40s and %.40s have the same value, got %q and %q", same[0], text,
					exact(same[0]), exact(text))
			}
		}
	}
	seen := make(map[string]string)
	for _, text := range []string{
		"0", "-0", "1", "-1", "10", "0.1", "9007199254740993", "9007199254740992",
		"18446744073709551617", "18446744073709551616",
		"1e400", "1e401", "1e-400", "123456789012345678901234567890.5", "123456789012345678901234567890",
		`"1"`, `""`, "null", "true", "false", "[]", "{}", "[[]]", "[1,2]", "[12]", `["1 n2e0"]`, `{"a":1}`, `["a",1]`,
		`{"a":1,"b":2}`, `{"b":2,"a":1}`, `"\u0000"`, `"\\u0000"`,
	} {
		if other, ok := seen[exact(text)]; ok {
			t.Errorf("%s and %s have different values, got %q for both", other, text, exact(text))
		}
		seen[exact(text)] = text
	}
}
