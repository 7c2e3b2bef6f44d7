//go:build unix

package table

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCellsTakeLinearTime(t *testing.T) {
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	gates := list(20000, `{"conditionType":"a"}`)
	conditions := list(20000, `{"type":"a","status":"True"}`)
	all, err := Column{Name: "All", Type: "string", Path: ".spec[*]"}.compile()
	if err != nil {
		t.Fatal(err)
	}
	word := strings.Repeat("x", 25)
	for name, c := range map[string]struct {
		cell         cellFunc
		object, want string
	}{
		"gates": {
			podGates, `{"spec":{"readinessGates":` + gates + `},"status":{"conditions":` + conditions + `}}`,
			`"20000/20000"`,
		},
		"selector": {deploymentSelector, `{"spec":{"selector":{"matchExpressions":` +
			list(60000, `{"key":"`+word+`","operator":"Exists"}`) + `}}}`, word + "," + word},
		"path": {all, `{"spec":` + list(60000, `"`+word+`"`) + `}`, `"` + word + `"`},
	} {
		start := cpuTime(t)
		if got := string(c.cell(nil, newRow([]byte(c.object), noon))); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %d bytes without %s", name, len(got), c.want)
		}
		// Quadratic time would take minutes. The CPU time does not depend on how busy the machine
		// is.
		if took := cpuTime(t) - start; took > 20*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// cpuTime returns the CPU time that this process has used so far.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
