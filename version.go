package listwatch

import (
	"fmt"
	"strconv"
)

// A Version is a point in the history of a database. Versions are totally ordered and grow with every write; zero means
// "none given". On the wire a Version is a decimal resourceVersion, which Kubernetes lets clients compare since KEP-5504.
type Version uint64

// ParseVersion reads a decimal resourceVersion. The empty string and "0" are zero. Signs, fractions, spaces, leading zeros and
// numbers beyond 64 bits are an error of code [Invalid].
func ParseVersion(s string) (Version, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || s[0] == '0' || s[0] == '+' {
		return 0, &Error{Code: Invalid, Message: fmt.Sprintf("resourceVersion %q is not a decimal number below 2^64", s)}
	}
	return Version(v), nil
}

// String returns v as the wire spells it.
func (v Version) String() string { return strconv.FormatUint(uint64(v), 10) }
