package protobody

import (
	"strings"
	"testing"
)

func TestTheTableIsRead(t *testing.T) {
	all, err := known()
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
		t.Errorf("got %s, which is no object", m.name)
	}
	template := all.kind("apps/v1", "Deployment").field("spec").message.field("template").message
	if template.field("spec").message != all.kind("v1", "Pod").field("spec").message {
		t.Error("the pods of a deployment must be pods")
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

func TestTextThatTellsNoMessagesIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"\t1 a string":                      `line 1: "1 a string": a field before the first message`,
		"A\npackage x\n\t1 a string":        `line 3: "1 a string": a field before the first message`,
		"A\nA":                              `line 2: "A": the message is there twice`,
		"A\n\t1 a B":                        "the message B is used and not there",
		"package x\nA\n\t1 a B":             "the message x.B is used and not there",
		"A\n\t1 a":                          `line 2: "1 a": want a number, a name and a type`,
		"A\n\t0 a string":                   `line 2: "0": want a number of a field`,
		"A\n\tx a string":                   `line 2: "x": want a number of a field`,
		"A\n\t536870912 a string":           `line 2: "536870912": want a number of a field`,
		"A\n\t1 a string\n\t1 b string":     "line 3: A has two fields 1",
		"A\n\t1 a text":                     `line 2: "text" is no scalar and no message`,
		"A\n\t1 a [][]string":               `line 2: "[]string" is no scalar and no message`,
		"A\n\t1 a x.":                       `line 2: "x." is no scalar and no message`,
		"A\n\t1 . string":                   `line 2: "1 . string": only a message has members`,
		"A\n\t1 . *A":                       `line 2: "1 . *A": only a message has members`,
		"A\n\t1 a? string":                  `line 2: "1 a? string": only a time is left out where it is zero`,
		"# fine\n\nA v1\r\n\t1 a *time\r\n": "",
	} {
		_, err := parse(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
