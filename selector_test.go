package listwatch_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"pgregory.net/rapid"
)

// The rules are in Kubernetes' "Labels and Selectors".
func TestLabelSelectorOperators(t *testing.T) {
	labels := map[string]string{"app": "web", "tier": "", "cores": "8", "x.io/zone": "b"}
	for selector, want := range map[string]bool{
		"":                       true,
		"  ":                     true,
		"app=web":                true,
		"app==web":               true,
		" app = web ":            true,
		"app=db":                 false,
		"app=":                   false,
		"tier=":                  true,
		"tier":                   true,
		"none=":                  false,
		"app!=db":                true,
		"app!=web":               false,
		"none!=x":                true, // an object without the label matches
		"app in (db,web)":        true,
		"app in (db)":            false,
		"tier in (,x)":           true,
		"none in (x)":            false,
		"app notin (db,web)":     false,
		"app notin (db)":         true,
		"none notin (x)":         true,
		"app":                    true,
		"none":                   false,
		"!app":                   false,
		"!none":                  true,
		"cores>7":                true,
		"cores>8":                false,
		"cores<9":                true,
		"cores<8":                false,
		"app>1":                  false, // "web" is not a number
		"none<1":                 false,
		"x.io/zone=b":            true,
		"app=web,cores>1,!none":  true,
		"app=web,cores>1,none":   false,
		"in in (in)":             false,
		"app=web,app notin (db)": true,
	} {
		if got := testkit.Labels(t, selector).Matches(labels); got != want {
			t.Errorf("%q selects %v: got %v, want %v", selector, labels, got, want)
		}
	}
}

func TestLabelSelectorRejectsInvalidText(t *testing.T) {
	for selector, want := range map[string]string{
		"!!":                           "expected a label key",
		",":                            "expected a label key",
		"a,":                           "found the end, expected a label key",
		"a b":                          `found "b" at byte 2`,
		"a===b":                        "expected a comma or the end",
		"a=b=c":                        "expected a comma or the end",
		"!a=b":                         "expected a comma or the end",
		"a in b":                       "expected an opening parenthesis",
		"a in (b":                      "expected a comma or a closing parenthesis",
		"a in (b c)":                   "expected a comma or a closing parenthesis",
		"a>b":                          "expected an integer",
		"a>-1":                         "expected an integer without a sign",
		"a>":                           "found the end, expected an integer",
		"a=b!":                         "expected a comma or the end",
		"-a=b":                         "label key",
		"a/b/c=d":                      "label key",
		"A.io/b":                       "DNS subdomain",
		"a..io/b":                      "DNS subdomain",
		"/b":                           "DNS subdomain",
		"a=-":                          "label value",
		"a=é":                          "label value",
		"a=" + strings.Repeat("x", 64): "label value",
		strings.Repeat("x", 64):        "label key",
	} {
		_, err := listwatch.ParseLabelSelector(selector)
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want an error of code Invalid with %q", selector, err, want)
		}
	}
}

func TestLabelSelectorHasOneCanonicalForm(t *testing.T) {
	for _, same := range [][]string{
		{"a=b", "a==b", " a = b ", "a in (b)", "a in (b,b)", "a=b,a=b"},
		{"a!=b", "a notin (b)"},
		{"a in (b,c)", "a in ( c , b )", "a in (c,b,c)"},
		{"a,b=c", "b=c,a"},
		{"a>7", "a>007"},
		{"", " "},
	} {
		want := testkit.Labels(t, same[0]).String()
		for _, s := range same[1:] {
			if got := testkit.Labels(t, s).String(); got != want {
				t.Errorf("%q is %q, %q is %q, want the same", same[0], want, s, got)
			}
		}
	}
}

func TestLabelSelectorEqualityHasFewestValues(t *testing.T) {
	for selector, want := range map[string]string{
		"":                      "",
		"a!=b,c,!d,e>1":         "",
		"a=b":                   "a [b]",
		"a in (b,c),d=e,f!=g":   "d [e]",
		"a in (b,c),d in (e,f)": "a [b c]",
	} {
		key, values, ok := testkit.Labels(t, selector).Equality()
		got := ""
		if ok {
			got = fmt.Sprint(key, " ", values)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", selector, got, want)
		}
	}
}

func TestEmptySelectorsSelectEverything(t *testing.T) {
	o := &listwatch.Object{}
	var labels listwatch.LabelSelector
	var fields listwatch.FieldSelector
	for name, ok := range map[string]bool{
		"labels are empty": labels.Empty(), "fields are empty": fields.Empty(),
		"labels match": labels.Matches(nil), "fields match": fields.Matches(o),
	} {
		if !ok {
			t.Errorf("a zero selector: %s: got false, want true", name)
		}
	}
	if testkit.Labels(t, "a").Empty() {
		t.Error("a label selector with a term must not be empty")
	}
	if testkit.Fields(t, "a=b").Empty() {
		t.Error("a field selector with a term must not be empty")
	}
}

func TestFieldSelectorOperators(t *testing.T) {
	o := &listwatch.Object{
		Key:    listwatch.Key{Namespace: "prod", Name: "web"},
		Fields: map[string]string{"spec.node": "n1", "status.odd": `a,b=c\d`},
	}
	for selector, want := range map[string]bool{
		"":                                 true,
		",":                                true, // Kubernetes ignores empty terms
		"metadata.name=web":                true,
		"metadata.name==web":               true,
		"metadata.name!=web":               false,
		"metadata.namespace=prod":          true,
		"metadata.namespace=test":          false,
		"spec.node=n1,metadata.name=web":   true,
		"spec.node=n1,metadata.name=db":    false,
		"spec.node!=n1":                    false,
		"spec.none=":                       true, // an absent field is empty
		"spec.none!=":                      false,
		`status.odd=a\,b\=c\\d`:            true,
		"metadata.name=web,,spec.node!=n2": true,
		"metadata.namespace=prod,spec.node==n1,,": true,
	} {
		if got := testkit.Fields(t, selector).Matches(o); got != want {
			t.Errorf("%q: got %v, want %v", selector, got, want)
		}
	}
}

func TestFieldSelectorRejectsInvalidText(t *testing.T) {
	for _, selector := range []string{"a", "=b", "!=b", "a=b=c", `a=\b`, `a=b\`, "a b=c", `a\=b`, "! =b", "a!b=c"} {
		if _, err := listwatch.ParseFieldSelector(selector); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%q: got error %v, want an error of code Invalid", selector, err)
		}
	}
}

func TestFieldSelectorCheckRejectsUnknownFields(t *testing.T) {
	declared := []string{"spec.node"}
	if err := testkit.Fields(t, "metadata.name=a,metadata.namespace=b,spec.node=c").Check(declared); err != nil {
		t.Errorf("got %v, want every field to be known", err)
	}
	err := testkit.Fields(t, "spec.other=c").Check(declared)
	if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), `"spec.other"`) ||
		!strings.Contains(err.Error(), "spec.node") {
		t.Errorf("got %v, want an error of code Invalid that names the field and the supported fields", err)
	}
}

func TestFieldSelectorEqualityAndPaths(t *testing.T) {
	s := testkit.Fields(t, "b=1,a!=2,b!=3")
	if v, ok := s.Equality("b"); v != "1" || !ok {
		t.Errorf("b: got %q, %v, want 1", v, ok)
	}
	if v, ok := s.Equality("a"); ok {
		t.Errorf("a: got %q, want no value: the term is an inequality", v)
	}
	if got := s.Paths(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got paths %v, want a and b once each", got)
	}
}

func TestAndReturnsACopy(t *testing.T) {
	s := testkit.Fields(t, "b=1")
	narrow := s.And(listwatch.FieldEquals(listwatch.FieldName, `odd,=\`))
	if got, want := narrow.String(), `b=1,metadata.name=odd\,\=\\`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if s.String() != "b=1" {
		t.Errorf("the original selector became %q", s.String())
	}
	if again := s.And(listwatch.FieldEquals("b", "1")); again.String() != "b=1" {
		t.Errorf("after adding a duplicate term: got %q, want b=1", again.String())
	}
}

func TestLabelEqualsDoesNotParse(t *testing.T) {
	s, err := listwatch.LabelEquals("tenant", "acme")
	if err != nil || s.String() != "tenant=acme" || !s.Matches(map[string]string{"tenant": "acme"}) ||
		s.Matches(map[string]string{"tenant": "b"}) {
		t.Errorf("got %q, %v", s, err)
	}
	for _, value := range []string{" acme", "=acme", "acme,other", "acme "} {
		if s, err := listwatch.LabelEquals("tenant", value); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("value %q: got %q, %v, want %v", value, s, err, listwatch.Invalid)
		}
	}
	if s, err := listwatch.LabelEquals("a b", "x"); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("invalid key: got %q, %v, want %v", s, err, listwatch.Invalid)
	}
}

// Property: a conjunction selects exactly the objects that both of its parts select, and equals the
// selector that is parsed from the two texts, joined by a comma.
func TestLabelSelectorAndIsAConjunction(t *testing.T) {
	selectors := []string{"", "a", "!a", "a=1", "a!=1", "a in (1,2)", "b notin (1,2),a", "a>1", "b<2,a=1"}
	values := []string{"absent", "1", "2"}
	for _, x := range selectors {
		for _, y := range selectors {
			sx, sy := testkit.Labels(t, x), testkit.Labels(t, y)
			both := sx.And(sy)
			if want := testkit.Labels(t, strings.Trim(x+","+y, ",")); both.String() != want.String() ||
				both.Empty() != want.Empty() {
				t.Errorf("%q and %q: got %q, want %q", x, y, both, want)
			}
			if sx.String() != testkit.Labels(t, x).String() {
				t.Errorf("And changed %q to %q", x, sx)
			}
			for _, a := range values {
				for _, b := range values {
					labels := map[string]string{"a": a, "b": b}
					maps.DeleteFunc(labels, func(_, v string) bool { return v == "absent" })
					if got, want := both.Matches(labels), sx.Matches(labels) && sy.Matches(labels); got != want {
						t.Errorf("%q and %q select %v: got %v, want %v", x, y, labels, got, want)
					}
				}
			}
		}
	}
}

func TestCheckLabelsReportsEveryCause(t *testing.T) {
	if err := listwatch.CheckLabels(map[string]string{"a": "", "x.io/b": "c_d.e-f"}); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	err := listwatch.CheckLabels(map[string]string{"-a": "b", "c": "_", "/d": "-"})
	if !errors.Is(err, listwatch.Invalid) {
		t.Fatalf("got %v, want code Invalid", err)
	}
	if n := len(listwatch.AsError(err).Details.Causes); n != 4 {
		t.Errorf("got %d causes, want 4: %v", n, listwatch.AsError(err).Details.Causes)
	}
}

func TestCheckNameAndNamespaceFollowKubernetes(t *testing.T) {
	long := strings.Repeat("a", 63)
	for name, want := range map[string][2]bool{ // whether it is a valid name, and a valid namespace
		"a":                             {true, true},
		"a-1":                           {true, true},
		"1":                             {true, true},
		long:                            {true, true},
		long + "a":                      {true, false},
		"a.b":                           {true, false},
		strings.Repeat("a.", 126):       {},
		strings.Repeat("a", 253):        {true, false},
		strings.Repeat("a", 254):        {},
		"":                              {},
		"A":                             {},
		"-a":                            {},
		"a-":                            {},
		"a.-b":                          {},
		"a..b":                          {},
		".a":                            {},
		"a_b":                           {},
		"é":                             {},
		"a/b":                           {},
		strings.Repeat("a.", 126) + "b": {true, false},
	} {
		if err := listwatch.CheckName(name); (err == nil) != want[0] ||
			err != nil && !errors.Is(err, listwatch.Invalid) {
			t.Errorf("name %q: got %v, want valid: %v", name, err, want[0])
		}
		if err := listwatch.CheckNamespace(name); (err == nil) != want[1] ||
			err != nil && !errors.Is(err, listwatch.Invalid) {
			t.Errorf("namespace %q: got %v, want valid: %v", name, err, want[1])
		}
	}
}

// Property: parsing the canonical form of a selector returns an equal selector.
func TestLabelSelectorCanonicalFormIsEqual(t *testing.T) {
	keys := []string{"a", "b", "in", "x.io/c"}
	values := []string{"", "a", "b", "1", "2"}
	rapid.Check(t, func(t *rapid.T) {
		term := rapid.Custom(func(t *rapid.T) string {
			key := rapid.SampledFrom(keys).Draw(t, "key")
			list := strings.Join(rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(t, "values"), ",")
			value, _, _ := strings.Cut(list, ",")
			return rapid.SampledFrom([]string{
				key, "!" + key, key + "=" + value, key + " != " + value,
				key + " in (" + list + ")", key + " notin (" + list + ")", key + ">1", key + "<2",
			}).Draw(t, "term")
		})
		text := strings.Join(rapid.SliceOfN(term, 1, 4).Draw(t, "terms"), ", ")
		s, err := listwatch.ParseLabelSelector(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := listwatch.ParseLabelSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("the canonical form of %q is %q, which parses as %q, %v", text, s, again, err)
		}
		labels := rapid.MapOf(rapid.SampledFrom(keys), rapid.SampledFrom(values)).Draw(t, "labels")
		if s.Matches(labels) != again.Matches(labels) {
			t.Fatalf("%q and %q disagree on %v", text, s, labels)
		}
		key, among, ok := s.Equality()
		if ok && s.Matches(labels) && !slices.Contains(among, labels[key]) {
			t.Fatalf("%q selects %v, but an index on %s=%v would not find it", text, maps.Clone(labels), key, among)
		}
	})
}

func FuzzParseLabelSelector(f *testing.F) {
	for _, s := range []string{
		"", "a=b", "a in (b,c),!d", "a notin ()", "a>1,b<2", "x.io/a==b", "!!", "a in (", "é=ü",
		"a!=b,c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := listwatch.ParseLabelSelector(text)
		if err != nil {
			if !errors.Is(err, listwatch.Invalid) {
				t.Fatalf("got %v, want code Invalid", err)
			}
			return
		}
		again, err := listwatch.ParseLabelSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("the canonical form of %q is %q, which parses as %q, %v", text, s, again, err)
		}
	})
}

func FuzzParseFieldSelector(f *testing.F) {
	for _, s := range []string{"", "a=b", "a!=b,c==d", `a=\,\=\\`, "a", "! =b", ",,", "a=b=c", "metadata.name=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := listwatch.ParseFieldSelector(text)
		if err != nil {
			if !errors.Is(err, listwatch.Invalid) {
				t.Fatalf("got %v, want code Invalid", err)
			}
			return
		}
		again, err := listwatch.ParseFieldSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("the canonical form of %q is %q, which parses as %q, %v", text, s, again, err)
		}
	})
}

func BenchmarkLabelSelectorMatches(b *testing.B) {
	s := testkit.Labels(b, "app in (web,db),tier=front,!canary")
	labels := map[string]string{"app": "web", "tier": "front", "zone": "b"}
	for b.Loop() {
		if !s.Matches(labels) {
			b.Fatal("want a match")
		}
	}
}
