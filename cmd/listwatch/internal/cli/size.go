package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A ByteSize is a flag for a number of bytes, such as "256MiB", "64KB" or "1000".
type ByteSize int64

var byteUnits = []struct {
	names []string
	bytes int64
}{
	{[]string{"", "b"}, 1},
	{[]string{"kib", "ki"}, 1 << 10},
	{[]string{"mib", "mi"}, 1 << 20},
	{[]string{"gib", "gi"}, 1 << 30},
	{[]string{"tib", "ti"}, 1 << 40},
	{[]string{"kb", "k"}, 1e3},
	{[]string{"mb", "m"}, 1e6},
	{[]string{"gb", "g"}, 1e9},
	{[]string{"tb", "t"}, 1e12},
}

// Set implements [pflag.Value].
func (b *ByteSize) Set(s string) error {
	number := strings.TrimRight(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz")
	unit := strings.ToLower(s[len(number):])
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil {
		return fmt.Errorf("size %q: must be a number with a unit, such as 256MiB", s)
	}
	for _, u := range byteUnits {
		for _, name := range u.names {
			if name != unit {
				continue
			}
			if n > math.MaxInt64/u.bytes || n < math.MinInt64/u.bytes {
				return fmt.Errorf("size %q: too large", s)
			}
			*b = ByteSize(n * u.bytes)
			return nil
		}
	}
	return fmt.Errorf("size %q: unknown unit, must be B, KiB, MiB, GiB or TiB", s)
}

// String implements [pflag.Value].
func (b *ByteSize) String() string {
	n := int64(*b)
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Type implements [pflag.Value].
func (b *ByteSize) Type() string { return "size" }
