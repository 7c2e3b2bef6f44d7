package listwatch

import (
	"fmt"
	"strings"
)

// CheckName returns an error of code [Invalid] if name is not a DNS subdomain, as Kubernetes
// requires for most objects ("Object Names and IDs"): at most 253 characters, in labels joined by
// dots. Each label consists of lower-case letters, digits and '-', and begins and ends with a
// letter or digit.
func CheckName(name string) error {
	if !isSubdomain(name) {
		return &Error{Code: Invalid, Message: fmt.Sprintf("name %q: must be a DNS subdomain: at most 253 lower-case letters, "+
			"digits, '-' or '.', with a letter or digit at both ends and around each dot", name)}
	}
	return nil
}

// CheckNamespace returns an error of code [Invalid] if name is not a DNS label, as Kubernetes
// requires for namespaces: 1 to 63 lower-case letters, digits and '-', with a letter or digit at
// both ends.
func CheckNamespace(name string) error {
	if len(name) > 63 || !isDNSLabel(name) {
		return &Error{Code: Invalid, Message: fmt.Sprintf("namespace %q: must be a DNS label: 1 to 63 lower-case letters, "+
			"digits or '-', with a letter or digit at both ends", name)}
	}
	return nil
}

// isSubdomain limits the length of the whole and not of each label, as Kubernetes does. RFC 1123
// limits a label to 63 characters.
func isSubdomain(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !isDNSLabel(label) {
			return false
		}
	}
	return true
}

func isDNSLabel(s string) bool {
	return s != "" && isName(s, "-") && strings.ToLower(s) == s
}

// isName reports whether s consists of ASCII letters, digits and characters of inner, and has a
// letter or digit at both ends.
func isName(s, inner string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || i == len(s)-1 || strings.IndexByte(inner, c) < 0) {
			return false
		}
	}
	return true
}
