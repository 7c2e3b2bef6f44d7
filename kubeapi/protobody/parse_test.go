package protobody

import (
	"strings"
	"testing"
)

func TestKubernetesMessagesAreParsed(t *testing.T) {
	all, err := kubernetesMessages()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ apiVersion, kind, want string }{
		{"v1", "Pod", "core.v1.Pod"},
		{"apps/v1", "Deployment", "apps.v1.Deployment"},
		{"coordination.k8s.io/v1", "Lease", "coordination.v1.Lease"},
		{"events.k8s.io/v1", "Event", "events.v1.Event"},
		{"autoscaling/v1", "Scale", "autoscaling.v1.Scale"},
		{"apps/v1", "DeleteOptions", "meta.v1.DeleteOptions"},
		{"demo.example.com/v1", "DeleteOptions", "meta.v1.DeleteOptions"},
	} {
		if m := all.kind(c.apiVersion, c.kind); m == nil || m.name != c.want {
			t.Errorf("%s of %s: got %v, want %s", c.kind, c.apiVersion, m, c.want)
		}
	}
	if m := all.kind("v1", "PodSpec"); m != nil {
		t.Errorf("got %s, which is not an object", m.name)
	}
	template := all.kind("apps/v1", "Deployment").field("spec").message.field("template").message
	if template.field("spec").message != all.kind("v1", "Pod").field("spec").message {
		t.Error("deployments and pods must have the same message for pod specs")
	}
}

func (m *message) field(name string) field {
	for _, f := range m.fields {
		if f.name == name {
			return f
		}
	}
	return field{}
}

func TestParseRejectsInvalidTables(t *testing.T) {
	for text, want := range map[string]string{
		"\t1 a string":                      `line 1: "1 a string": a field precedes the first message`,
		"A\npackage x\n\t1 a string":        `line 3: "1 a string": a field precedes the first message`,
		"A\nA":                              `line 2: "A": the message is defined twice`,
		"A\n\t1 a B":                        "the message B is used but not defined",
		"package x\nA\n\t1 a B":             "the message x.B is used but not defined",
		"A\n\t1 a":                          `line 2: "1 a": must be a number, a name and a type`,
		"A\n\t0 a string":                   `line 2: "0": must be a field number`,
		"A\n\tx a string":                   `line 2: "x": must be a field number`,
		"A\n\t536870912 a string":           `line 2: "536870912": must be a field number`,
		"A\n\t1 a string\n\t1 b string":     "line 3: A has two fields with number 1",
		"A\n\t1 a text":                     `line 2: "text" is neither a scalar nor a message`,
		"A\n\t1 a [][]string":               `line 2: "[]string" is neither a scalar nor a message`,
		"A\n\t1 a x.":                       `line 2: "x." is neither a scalar nor a message`,
		"A\n\t1 . string":                   `line 2: "1 . string": only a message has members`,
		"A\n\t1 . *A":                       `line 2: "1 . *A": only a message has members`,
		"A\n\t1 a? string":                  `line 2: "1 a? string": only a time can be omitted if it is zero`,
		"# fine\n\nA v1\r\n\t1 a *time\r\n": "",
	} {
		_, err := parse(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
