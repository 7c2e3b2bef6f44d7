package listwatch

import (
	"fmt"
	"strings"
)

// CheckName returns an error of code [Invalid] where name is no DNS subdomain, which Kubernetes demands of the names of most
// objects ("Object Names and IDs"): at most 253 characters; labels joined by dots, each of lower-case letters, digits and '-',
// with a letter or digit at both ends.
func CheckName(name string) error {
	if !isSubdomain(name) {
		return &Error{Code: Invalid, Message: fmt.Sprintf("name %q: want a DNS subdomain: at most 253 lower-case letters, digits, '-' or '.', "+
			"with a letter or digit at both ends and around each dot", name)}
	}
	return nil
}

// CheckNamespace returns an error of code [Invalid] where name is no DNS label, which Kubernetes demands of namespaces: 1 to 63
// lower-case letters, digits and '-', with a letter or digit at both ends.
func CheckNamespace(name string) error {
	if len(name) > 63 || !isDNSLabel(name) {
		return &Error{Code: Invalid, Message: fmt.Sprintf("namespace %q: want a DNS label: 1 to 63 lower-case letters, digits or '-', "+
			"with a letter or digit at both ends", name)}
	}
	return nil
}

// isSubdomain bounds the whole, not the labels in it: so does Kubernetes (RFC 1123 would have them below 64).
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

// isName reports whether s is made of ASCII letters, digits and the characters of inner, with none of inner at its ends.
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
