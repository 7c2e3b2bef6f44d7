package listwatch

import (
	"fmt"
	"strconv"
)

// A Version is a point in the history of a database. Versions are totally ordered and grow with
// every write. Zero means that no version is given. On the wire a Version is a decimal
// resourceVersion; Kubernetes allows clients to compare resourceVersions since KEP-5504.
type Version uint64

// ParseVersion parses a decimal resourceVersion. The empty string and "0" are zero. For anything
// other than a decimal number below 2^64, without a sign, a space or a leading zero, the error
// has code [Invalid].
func ParseVersion(s string) (Version, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || s[0] == '0' || s[0] == '+' {
		return 0, &Error{
			Code: Invalid, Message: fmt.Sprintf("resourceVersion %q: must be a decimal number below 2^64", s),
		}
	}
	return Version(v), nil
}

// String returns v in decimal, as on the wire.
func (v Version) String() string { return strconv.FormatUint(uint64(v), 10) }
