package abac

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
)

func line(spec string) string {
	return `{"apiVersion":"` + apiVersion + `","kind":"Policy","spec":` + spec + `}`
}

func read(t *testing.T, specs ...string) *Policy {
	t.Helper()
	var text strings.Builder
	for _, spec := range specs {
		fmt.Fprintln(&text, line(spec))
	}
	p, err := Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// attributes parses "VERB GROUP/RESOURCE NAMESPACE NAME", in which "-" is an empty string, or
// "VERB PATH".
func attributes(text string) kubeapi.Attributes {
	words := strings.Fields(strings.ReplaceAll(text, "-", "\x00"))
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "\x00", "")
	}
	a := kubeapi.Attributes{Verb: words[0]}
	if len(words) == 2 {
		a.Path = words[1]
		return a
	}
	a.Resource.Group, a.Resource.Plural, _ = strings.Cut(words[1], "/")
	a.Namespace, a.Name = words[2], words[3]
	return a
}

func TestPolicyAllowsWhatOneLineAllows(t *testing.T) {
	const pods, all = `"resource":"pods"`, `"resource":"*","apiGroup":"*","namespace":"*"`
	for _, c := range []struct {
		spec    string
		allowed string
		denied  string
	}{
		{`{"user":"ada",` + all + `}`, "delete apps/deployments team one", ""},
		{`{"user":"bob",` + all + `}`, "", "get /pods team one"},
		{`{"user":"*",` + all + `}`, "get /pods team one", "get /metrics"},
		{`{"group":"*",` + all + `}`, "get /pods team one", ""},
		{`{"group":"admins",` + all + `}`, "get /pods team one", ""},
		{`{"group":"system:authenticated",` + all + `}`, "get /pods team one", ""},
		{`{"group":"others",` + all + `}`, "", "get /pods team one"},
		{`{"user":"ada","group":"others",` + all + `}`, "", "get /pods team one"},
		{`{"user":"*","group":"others",` + all + `}`, "", "get /pods team one"},
		{`{"user":"ada","group":"admins",` + all + `}`, "get /pods team one", ""},
		{`{"user":"ada","readonly":true,` + all + `}`, "watch /pods team -", "create /pods team -"},
		{`{"user":"ada","namespace":"team",` + pods + `}`, "create /pods team -", "create /pods other -"},
		{`{"user":"ada","namespace":"team",` + pods + `}`, "patch /pods team one", "list /pods - -"},
		{`{"user":"ada","namespace":"*",` + pods + `}`, "list /pods - -", "list /services - -"},
		{`{"user":"ada",` + pods + `}`, "list /pods - -", "list /pods team -"},
		{
			`{"user":"ada","namespace":"*","apiGroup":"apps","resource":"*"}`, "list apps/deployments - -",
			"list /pods - -",
		},
		{`{"user":"ada","namespace":"*","resource":"*"}`, "list /pods - -", "list apps/deployments - -"},
		{`{"user":"ada","namespace":"team","resource":"*"}`, "get /namespaces - team", "get /namespaces - other"},
		{`{"user":"ada","nonResourcePath":"/flags"}`, "get /flags", "get /flags/more"},
		{`{"user":"ada","nonResourcePath":"/flags*"}`, "get /flags/more", "get /other"},
		{`{"user":"ada","nonResourcePath":"*"}`, "get /flags/more", "get /pods team one"},
		{`{"user":"ada","nonResourcePath":"*","readonly":true}`, "get /flags", "post /flags"},
	} {
		p := read(t, `{"user":"nobody",`+pods+`}`, c.spec)
		ada := kubeapi.User{Name: "ada", Groups: []string{"writers", "admins"}}
		if c.allowed != "" && allowed(t, p, ada, c.allowed) != nil {
			t.Errorf("%s: %s is denied", c.spec, c.allowed)
		}
		if c.denied != "" && allowed(t, p, ada, c.denied) == nil {
			t.Errorf("%s: %s is allowed", c.spec, c.denied)
		}
	}
}

func allowed(t *testing.T, p *Policy, u kubeapi.User, what string) error {
	return p.Authorize(t.Context(), u, attributes(what))
}

func TestRulesListWhatThePolicyAllows(t *testing.T) {
	p := read(t,
		`{"user":"ada","namespace":"*","resource":"*","apiGroup":"*"}`,
		`{"group":"admins","namespace":"team","resource":"pods","readonly":true}`,
		`{"user":"*","nonResourcePath":"/flags*","readonly":true}`, `{"user":"ada","resource":"nodes"}`,
		`{"user":"eve","namespace":"*","resource":"secrets"}`)
	for namespace, want := range map[string]string{
		"team":  "{[{[*] [*] [*] []} {[get list watch] [] [pods] []}] [{[get list watch] [/flags*]}] false}",
		"other": "{[{[*] [*] [*] []}] [{[get list watch] [/flags*]}] false}",
	} {
		rules, err := p.RulesFor(t.Context(), kubeapi.User{Name: "ada", Groups: []string{"admins"}}, namespace)
		if got := fmt.Sprint(rules); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", namespace, got, err, want)
		}
	}
	if rules, err := p.RulesFor(t.Context(), kubeapi.Anonymous(), "team"); err != nil || rules.Resources != nil ||
		rules.Paths != nil {
		t.Errorf("anonymous: got %v, %v, want nothing", rules, err)
	}
}

func TestAnonymousUsersMustBeNamed(t *testing.T) {
	for spec, want := range map[string]bool{
		`{"user":"*","resource":"pods"}`:                       false,
		`{"group":"*","resource":"pods"}`:                      false,
		`{"group":"system:authenticated","resource":"pods"}`:   false,
		`{"user":"system:anonymous","resource":"pods"}`:        true,
		`{"group":"system:unauthenticated","resource":"pods"}`: true,
	} {
		p := read(t, spec)
		if err := allowed(t, p, kubeapi.Anonymous(), "list /pods - -"); (err == nil) != want {
			t.Errorf("%s: got %v, want it to be allowed: %v", spec, err, want)
		}
		if allowed(t, p, kubeapi.User{}, "list /pods - -") == nil {
			t.Errorf("%s: a user without a name is allowed", spec)
		}
	}
}

func TestEmptyPolicyDeniesEverything(t *testing.T) {
	p, err := Read(strings.NewReader("# nothing\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	if allowed(t, p, kubeapi.User{Name: "ada"}, "get /pods - -") == nil {
		t.Error("an empty policy allows a request")
	}
}

func TestPolicyErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                             "line 2: must be a JSON object",
		`[]`:                            "must be JSON objects",
		`null`:                          "must be \"abac.authorization.kubernetes.io/v1beta1\"",
		`{} {}`:                         "must be a JSON object",
		line(`1`):                       "must be JSON objects",
		`{"user":"ada","resource":"*"}`: `unknown member "resource": must be one of apiVersion, kind, spec`,
		`{"apiVersion":"v1","kind":"Policy","spec":{}}`:       `apiVersion "v1" and kind "Policy": must be "abac.`,
		`{"apiVersion":"` + apiVersion + `","kind":"Policy"}`: "spec is missing",
		line(
			`{"user":"ada","resource":"*","readOnly":true}`): `unknown member "spec.readOnly": must be one of apiGroup, group, namespace, nonResourcePath, readonly, resource, user`,
		line(
			`{"user":"ada","resource":"*","readonly":"yes"}`): "spec.readonly: must be a boolean",
		line(
			`{"user":1,"resource":"*"}`): "spec.user: must be a string",
		line(
			`{"user":"ada","user":"bob","resource":"*"}`): "spec.user is repeated",
		line(
			`{"resource":"*"}`): "neither user nor group",
		line(
			`{"user":"ada"}`): "neither resource nor nonResourcePath",
		line(`{"user":"ada","nonResourcePath":"/","namespace":"team"}`): "no resource",
		line(`{"user":"ada","resource":"*","apiGroup":"` + strings.Repeat("x", maxLine) +
			`"}`): "line 2: must be shorter",
	} {
		_, err := Read(strings.NewReader("# a comment\n" + text))
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "line 2: ") {
			t.Errorf("%.80s: got %v, want Invalid with line 2 and %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(line(`{"user":"ada","group":"*","resource":"pods","apiGroup":"apps","namespace":"team","readonly":true}`))
	f.Add("# a comment\n\n" + line(`{"user":"*","nonResourcePath":"/flags*"}`))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Read(strings.NewReader(text))
		if (p == nil) == (err == nil) {
			t.Fatalf("got policy %v and error %v", p, err)
		}
		if err != nil {
			return
		}
		for _, r := range p.rules {
			if r.user == "" && r.group == "" {
				t.Errorf("a rule without a user applies to everybody: %+v", r)
			}
		}
		// A line grants nothing to users whom the policy does not name.
		stranger := kubeapi.User{Name: "\x00", Groups: []string{"system:unauthenticated\x00"}}
		if !strings.Contains(text, "*") && !strings.Contains(text, `\`) && !strings.Contains(text, "system:") &&
			allowed(t, p, stranger, "get /pods - -") == nil {
			t.Errorf("%q: a stranger may read", text)
		}
	})
}
