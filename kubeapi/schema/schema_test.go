package schema

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
)

func TestParse(t *testing.T) {
	types, err := Parse("# a comment\n\nx.Widget\n\tlabels map[string]string\n\tparts []x.Part merge=name,retainKeys\n\ttags []string merge\n\tweight any\nx.Part\n\tof x.Widget retainKeys\n\tn integer\r\n")
	if err != nil {
		t.Fatal(err)
	}
	widget, part := types["x.Widget"], types["x.Part"]
	if widget.Name != "x.Widget" || widget.Field("parts").Type != part || part.Field("of").Type != widget {
		t.Errorf("got %+v and %+v, want types that refer to each other", widget, part)
	}
	want := map[string]Field{
		"labels": {Type: &Type{AdditionalProperties: &Field{Scalar: String}}},
		"parts":  {List: true, Merge: true, MergeKey: "name", RetainKeys: true},
		"tags":   {List: true, Merge: true, Scalar: String},
		"weight": {},
	}
	got := map[string]Field{}
	for name := range widget.Fields {
		f := widget.Field(name)
		if f.Type == part {
			f.Type = nil
		}
		got[name] = f
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := widget.Field("labels").Type.Field("any name"); f.Scalar != String {
		t.Errorf("additional property: got %+v, want a string", f)
	}
	if f := widget.Field("none"); !reflect.DeepEqual(f, Field{}) {
		t.Errorf("unknown field: got %+v", f)
	}
	if f := (*Type)(nil).Field("none"); !reflect.DeepEqual(f, Field{}) {
		t.Errorf("field of a nil Type: got %+v", f)
	}
}

func TestParseRejectsInvalidText(t *testing.T) {
	for text, want := range map[string]string{
		"\ta string":                             "line 1: a field precedes the first type",
		"x.A\n\ta":                               `line 2: "a": must be a name, a type and optionally a strategy`,
		"x.A\n\ta string merge":                  `line 2: "merge" is not a strategy; must be merge, merge=KEY, set or keys=KEY+KEY (for lists), retainKeys, atomic or default=TEXT (for strings)`,
		"x.A\n\ta []string mend":                 `line 2: "mend" is not a strategy; must be merge, merge=KEY, set or keys=KEY+KEY (for lists), retainKeys, atomic or default=TEXT (for strings)`,
		"x.A\n\ta x.B":                           "the type x.B is used but not defined",
		"x.A\n\ta text":                          `line 2: "text" is not a type; must be any, one of [string integer int32 number boolean date-time micro-time byte int-or-string quantity], or a name with a dot`,
		"x.A\n\tb string\n\ta map[string]text x": `line 3: "text" is not a type; must be any, one of [string integer int32 number boolean date-time micro-time byte int-or-string quantity], or a name with a dot`,
	} {
		got, err := Parse(text)
		if e := listwatch.AsError(err); !errors.Is(err, listwatch.Invalid) || e.Message != want {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestKubernetesTypes(t *testing.T) {
	if _, err := types(); err != nil {
		t.Fatal(err)
	}
	container := Kubernetes("io.k8s.api.core.v1.Pod").Field("spec").Type.Field("containers")
	if container.MergeKey != "name" || container.Strategy() != "merge" || container.Type.Field("ports").MergeKey != "containerPort" {
		t.Errorf("got %+v, want containers merged by name, and their ports by containerPort", container)
	}
	template := Kubernetes("io.k8s.api.apps.v1.Deployment").Field("spec").Type.Field("template").Type
	if template.Field("spec").Type.Field("containers").Type != container.Type {
		t.Error("deployments and pods must have the same container type")
	}
	if s := template.Field("spec").Type.Field("volumes").Strategy(); s != "merge,retainKeys" {
		t.Errorf("volumes: got %q, want merge,retainKeys", s)
	}
	if s := Kubernetes("io.k8s.api.apps.v1.Deployment").Field("spec").Type.Field("strategy").Strategy(); s != "retainKeys" {
		t.Errorf("strategy: got %q, want retainKeys", s)
	}
	if Kubernetes("io.k8s.api.core.v1.None") != nil {
		t.Error("Kubernetes returned an unknown type")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("x.A\n\ta []x.A merge=b,retainKeys\n\tc map[string]map[string]string\n")
	f.Fuzz(func(t *testing.T, text string) {
		types, err := Parse(text)
		for name, typ := range types {
			if typ.Name != name || typ.Fields == nil || err != nil {
				t.Errorf("%q: got %+v as %q, %v", text, typ, name, err)
			}
		}
	})
}
