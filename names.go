package listwatch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// CheckName returns an error of code [Invalid] if name is not a DNS subdomain, as Kubernetes
// requires for most objects ("Object Names and IDs"): at most 253 characters, in labels joined by
// dots. Each label consists of lower-case letters, digits and '-', and begins and ends with a
// letter or digit.
func CheckName(name string) error {
	if !isSubdomain(name) {
		return &Error{Code: Invalid, Message: fmt.Sprintf(
			"name %q: must be a DNS subdomain: at most 253 lower-case letters, "+
				"digits, '-' or '.', with a letter or digit at both ends and around each dot", name)}
	}
	return nil
}

// CheckNamespace returns an error of code [Invalid] if name is not a DNS label, as Kubernetes
// requires for namespaces: 1 to 63 lower-case letters, digits and '-', with a letter or digit at
// both ends.
func CheckNamespace(name string) error {
	if len(name) > 63 || !isDNSLabel(name) {
		return &Error{Code: Invalid, Message: fmt.Sprintf(
			"namespace %q: must be a DNS label: 1 to 63 lower-case letters, "+
				"digits or '-', with a letter or digit at both ends", name)}
	}
	return nil
}

// isSubdomain limits only the length of the whole name, as Kubernetes does. RFC 1123 also
// limits each label to 63 characters.
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

// isName reports whether s is empty, or consists of ASCII letters, digits and the characters in
// inner, with a letter or digit at both ends.
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

// CheckLabels returns an error of code [Invalid] if a key or value is not valid in Kubernetes.
// The error has a cause for each invalid key or value, sorted by message.
func CheckLabels(labels map[string]string) error {
	var causes []Cause
	for k, v := range labels {
		for _, err := range []error{checkLabelKey(k), checkLabelValue(v)} {
			if err != nil {
				causes = append(causes, Cause{Reason: CauseInvalid, Message: err.Error(), Field: "metadata.labels"})
			}
		}
	}
	if causes == nil {
		return nil
	}
	slices.SortFunc(causes, func(a, b Cause) int { return strings.Compare(a.Message, b.Message) })
	return &Error{
		Code: Invalid, Status: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: "metadata.labels: " + causes[0].Message, Details: &Details{Causes: causes},
	}
}

// checkLabelKey implements Kubernetes' "Labels and Selectors": a name of at most 63 characters, and
// before it an optional DNS subdomain of at most 253 characters and a slash.
func checkLabelKey(key string) error {
	name := key
	if prefix, rest, ok := strings.Cut(key, "/"); ok {
		name = rest
		if !isSubdomain(prefix) {
			return fmt.Errorf("label key %q: the prefix must be a lower-case DNS subdomain", key)
		}
	}
	if name == "" || len(name) > 63 || !isName(name, "-_.") {
		return fmt.Errorf(
			"label key %q: the name must be 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends", key)
	}
	return nil
}

func checkLabelValue(value string) error {
	if len(value) > 63 || value != "" && !isName(value, "-_.") {
		return fmt.Errorf(
			"label value %q: must be at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends",
			value)
	}
	return nil
}
