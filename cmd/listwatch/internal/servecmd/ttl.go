package servecmd

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/store"
)

// A ttl is a value of the flag --ttl: the TTL of the objects of a resource.
type ttl struct {
	resource string // its qualified name
	of       func(data []byte) time.Duration
}

// parseTTL parses RESOURCE=DURATION, or RESOURCE=PATH with the path of a number of seconds.
func parseTTL(text string) (ttl, error) {
	resource, value, _ := strings.Cut(text, "=")
	if resource == "" || value == "" {
		return ttl{}, cli.Usagef("--ttl %q: must be RESOURCE=DURATION or RESOURCE=PATH, such as "+
			"events=1h or leases.coordination.k8s.io=spec.leaseDurationSeconds", text)
	}
	if d, err := time.ParseDuration(value); err == nil {
		if d <= 0 {
			return ttl{}, cli.Usagef("--ttl %q: the duration must be positive", text)
		}
		return ttl{resource, func([]byte) time.Duration { return d }}, nil
	}
	if slices.Contains(strings.Split(value, "."), "") || strings.ContainsAny(value[:1], "0123456789-") {
		return ttl{}, cli.Usagef("--ttl %q: %q is neither a duration, such as 90s, nor the path of a number of seconds",
			text, value)
	}
	fields := listwatch.Description{Fields: []string{value}}
	return ttl{resource, func(data []byte) time.Duration { return seconds(fields.ReadFields(data)[value]) }}, nil
}

// maxTTL keeps the TTL within the range of time.Duration.
const maxTTL = 100 * 365 * 24 * time.Hour

// seconds returns the duration of a number of seconds. Anything else means that the object does not
// end.
func seconds(text string) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) { // or not a number
		return 0
	}
	return time.Duration(min(n, maxTTL.Seconds()) * float64(time.Second))
}

// checkExpiry returns an error if the objects of c have a TTL and its store cannot delete them.
func checkExpiry(c *store.Collection) error {
	if _, ok := listwatch.As[store.Renewer](c.Backend()); c.Spec().TTL == nil || ok {
		return nil
	}
	return cli.Usagef("--ttl: this store does not end objects of %s; memory, --data and --etcd do",
		c.Spec().QualifiedName())
}

// parseTTLs parses the flags --ttl.
func parseTTLs(texts []string) (map[string]func([]byte) time.Duration, error) {
	all := make(map[string]func([]byte) time.Duration, len(texts))
	for _, text := range texts {
		t, err := parseTTL(text)
		if err != nil {
			return nil, err
		}
		if all[t.resource] != nil {
			return nil, cli.Usagef("--ttl %q: the resource already has one", text)
		}
		all[t.resource] = t.of
	}
	return all, nil
}
