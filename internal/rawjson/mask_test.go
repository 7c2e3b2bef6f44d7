package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/internal/racetest"
)

func parseMask(t testing.TB, text string) *Mask {
	t.Helper()
	m, err := ParseMask(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

const maskDoc = `{"kind":"Pod","apiVersion":"v1",` +
	`"metadata":{"name":"a","resourceVersion":"7","labels":{"a.b/c":"1","d":"2"},"managedFields":[{"manager":"x"}]},` +
	`"spec":{"nodeName":"n","on":{"a":1,"b":2}},` +
	`"status":{"conditions":[{"type":"Ready","status":"True","at":"1"},{"at":"2"}],"phase":"Running"},` +
	`"list":[1,{"a":1,"b":2},[{"b":3}]]}`

func TestMaskShowsTheLongestPath(t *testing.T) {
	identity := func(metadata, rest string) string {
		return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"` + metadata + `}` +
			rest + `}`
	}
	for _, test := range []struct{ fields, want, canonical string }{
		{"status.phase", identity("", `,"status":{"phase":"Running"}`), ""},
		{"metadata.name", identity("", ""), ""},
		{"absent.x", identity("", ""), ""},
		{"spec.absent,absent", identity("", `,"spec":{}`), "absent,spec.absent"},
		{"spec.nodeName.x", identity("", `,"spec":{}`), ""},
		{"status.conditions.type", identity("", `,"status":{"conditions":[{"type":"Ready"},{}]}`), ""},
		{"list.a", identity("", `,"list":[null,{"a":1},[{}]]`), ""},
		{"metadata.labels['a.b/c']", identity(`,"labels":{"a.b/c":"1"}`, ""), ""},
		{"['metadata']['labels']['d']", identity(`,"labels":{"d":"2"}`, ""), "metadata.labels.d"},
		{
			"metadata,-metadata.managedFields,-spec",
			identity(`,"labels":{"a.b/c":"1","d":"2"}`, ""), "metadata,-metadata.managedFields",
		},
		{
			"spec,-spec.on,spec.on.b,spec.nodeName", identity("", `,"spec":{"nodeName":"n","on":{"b":2}}`),
			"spec,-spec.on,spec.on.b",
		},
		{
			"-status,status.phase,-metadata,-spec,-list",
			identity("", `,"status":{"phase":"Running"}`), "-list,-metadata,-spec,-status,status.phase",
		},
		{
			"-metadata.labels,-metadata.managedFields,-spec.on,-spec.nodeName.x,-status,-list.b",
			identity("", `,"spec":{"nodeName":"n"},"list":[1,{"a":1},[{}]]`),
			"-list.b,-metadata.labels,-metadata.managedFields,-spec.nodeName.x,-spec.on,-status",
		},
	} {
		m := parseMask(t, test.fields)
		if got := string(m.Append(nil, []byte(maskDoc))); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.fields, got, test.want)
		}
		if test.canonical == "" {
			test.canonical = test.fields
		}
		if m.String() != test.canonical {
			t.Errorf("%s: got the canonical text %s, want %s", test.fields, m, test.canonical)
		}
	}
}

func TestMaskHidesChanges(t *testing.T) {
	m := parseMask(t, "spec,metadata.labels")
	doc := func(version, label, spec string) []byte {
		return fmt.Appendf(nil,
			`{"metadata":{"name":"a","resourceVersion":%q,"labels":{"l":%q}},"spec":%s,"status":%q}`,
			version, label, spec, version)
	}
	if !m.Hides(doc("1", "x", `{"a":1}`), doc("2", "x", `{"a":1}`)) {
		t.Error("a change of resourceVersion and status: want it hidden")
	}
	if m.Hides(doc("1", "x", `{"a":1}`), doc("2", "y", `{"a":1}`)) {
		t.Error("a change of a label: want it shown")
	}
	if m.Hides(doc("1", "x", `{"a":1}`), doc("2", "x", `{"a":2}`)) {
		t.Error("a change of the spec: want it shown")
	}
}

// A write of excluded members raises the generation, so a change of the generation alone is hidden.
func TestExclusionsHideTheGeneration(t *testing.T) {
	doc := func(generation, hidden string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"name":"a","resourceVersion":%q,"generation":%s},"hidden":%q,"shown":1}`,
			generation, generation, hidden)
	}
	before, after := doc("1", "x"), doc("2", "y")
	for text, want := range map[string]bool{
		"-hidden": true, "-hidden,-metadata.generation": true, "-metadata.labels": false, "shown": true,
		"-metadata,-hidden":         true,
		"shown,metadata.generation": false, "metadata": false, "-metadata,metadata.generation,-hidden": false,
	} {
		m := parseMask(t, text)
		if got := m.Hides(before, after); got != want {
			t.Errorf("%s: got hidden %v, want %v", text, got, want)
		}
		if got := m.HidesDifferences(Compare(before, after), before, after); got != want {
			t.Errorf("%s by differences: got hidden %v, want %v", text, got, want)
		}
	}
	if got := string(parseMask(t, "-hidden").Append(nil, after)); !strings.Contains(got, `"generation":2`) {
		t.Errorf("got %s, want it with its generation", got)
	}
}

func TestParseMaskNamesTheWrongPath(t *testing.T) {
	deep := strings.Repeat("a.", 16) + "a"
	for text, want := range map[string]string{
		"":                             `path "": a name is missing at the end`,
		"a,":                           `path "": a name is missing at the end`,
		"a,,b":                         `want a name before ",b"`,
		"a.":                           `path "a.": a name is missing`,
		"a,b..c":                       `path "b.": want a name`,
		"--a,-":                        `path "-": a name is missing`,
		"a.b[0]":                       `path "a.b": want a dot, a comma or a name in brackets before "[0]"`,
		"a.*":                          `indexes and wildcards are not supported`,
		"a['b":                         `must end with a quote and a bracket`,
		"a['b'":                        `want a bracket after the name "b"`,
		`a['\b']`:                      `a backslash must be followed by`,
		"a['b\n']":                     `control characters`,
		"a b":                          `before " b"`,
		"b,a.c,-a.c":                   `path "-a.c": the path is also given as "a.c"`,
		"-kind":                        `path "-kind": this member is always shown`,
		"-metadata.name.x":             `path "-metadata.name.x": this member is always shown`,
		"-metadata.uid":                `path "-metadata.uid"`,
		deep:                           `must have at most 16 names`,
		strings.Repeat("a,", 64) + "a": `at most 64 paths`,
		strings.Repeat("a", 4097):      `at most 4096 bytes, got 4097`,
		"a['\xff']":                    "UTF-8",
	} {
		if m, err := ParseMask(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want an error with %s", text, m, err, want)
		}
	}
}

// maskNames are names of random documents and paths, with their forms in JSON.
var maskNames = map[string][]string{
	"a": {`"a"`, `"\u0061"`}, "b": {`"b"`}, "a.b/c": {`"a.b/c"`, `"a.b\/c"`}, "é": {`"é"`, `"\u00e9"`}, "": {`""`},
	`"`: {`"\""`}, `\'`: {`"\\'"`}, "metadata": {`"metadata"`}, "name": {`"name"`, `"n\u0061me"`}, "-x": {`"-x"`},
	"kind": {`"kind"`}, "resourceVersion": {`"resourceVersion"`},
}

// A randomMask generates documents and masks.
type randomMask struct {
	*rand.Rand
	names []string
}

func newRandomMask(seed uint64) randomMask {
	r := randomMask{Rand: rand.New(rand.NewPCG(seed, 30))}
	for name := range maskNames {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	return r
}

func (r randomMask) name() string { return r.names[r.IntN(len(r.names))] }

func (r randomMask) value(depth int) string {
	var b strings.Builder
	switch n := r.IntN(6); {
	case depth > 0 && n < 3:
		return r.object(depth)
	case depth > 0 && n == 3:
		b.WriteByte('[')
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(r.value(depth - 1))
		}
		b.WriteByte(']')
		return b.String()
	}
	return []string{"1", "2.50", "true", "null", `"{,\""`, `""`, "{}", "[]"}[r.IntN(8)]
}

func (r randomMask) object(depth int) string {
	members := make([]string, 0, 6)
	for _, i := range r.Perm(len(r.names))[:r.IntN(7)] {
		forms := maskNames[r.names[i]]
		value := r.value(depth - 1)
		if r.names[i] == "metadata" && r.IntN(2) == 0 {
			value = r.object(depth - 1)
		}
		members = append(members, forms[r.IntN(len(forms))]+":"+value)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// mask returns the paths of a random mask, by their text, and the text of the mask. It is empty if
// the paths contradict each other.
func (r randomMask) mask() (paths map[string]maskPath, text string) {
	paths = make(map[string]maskPath)
	var texts []string
	for range 1 + r.IntN(5) {
		p := maskPath{exclude: r.IntN(2) == 0}
		for i := range 1 + r.IntN(3) {
			name := r.name()
			p.names = append(p.names, name)
			p.text += nameText(name, i == 0)
		}
		if other, known := paths[p.text]; known && other.exclude != p.exclude {
			return nil, ""
		}
		paths[p.text] = p
		if texts = append(texts, p.text); p.exclude {
			texts[len(texts)-1] = "-" + p.text
		}
	}
	return paths, strings.Join(texts, ",")
}

// maskModel applies a mask in the simplest way: it decodes a document, looks up the paths above
// each value, and encodes what remains.
type maskModel struct {
	paths    map[string]maskPath
	byLength []maskPath // the longest first
	keep     bool       // members without a path
	hidden   []string   // this path is never shown
}

func newMaskModel(paths map[string]maskPath, hidden ...string) maskModel {
	m := maskModel{paths: paths, keep: true, hidden: hidden}
	for _, p := range paths {
		m.byLength = append(m.byLength, p)
	}
	slices.SortFunc(m.byLength, func(a, b maskPath) int { return len(b.names) - len(a.names) })
	for _, p := range paths {
		below := false
		for _, q := range paths {
			below = below || q.exclude && len(q.names) < len(p.names) && slices.Equal(q.names, p.names[:len(q.names)])
		}
		m.keep = m.keep && (p.exclude || below)
	}
	return m
}

func isAlways(at []string) bool {
	return slices.ContainsFunc(always,
		func(a []string) bool { return len(at) >= len(a) && slices.Equal(a, at[:len(a)]) })
}

// shows reports whether m shows a value at the given path, and whether it shows something below.
func (m maskModel) shows(at []string) (all, some bool) {
	if m.hidden != nil && slices.Equal(at, m.hidden) {
		return false, false
	}
	if isAlways(at) {
		return true, true
	}
	all = m.keep
	for _, p := range m.byLength {
		if len(p.names) <= len(at) && slices.Equal(p.names, at[:len(p.names)]) {
			all = !p.exclude
			break
		}
	}
	some = all || len(at) == 1 && at[0] == "metadata"
	for _, p := range m.byLength {
		some = some || !p.exclude && len(p.names) > len(at) && slices.Equal(p.names[:len(at)], at)
	}
	return all, some
}

func (m maskModel) reduce(doc []byte, at []string) []byte {
	var out bytes.Buffer
	switch doc[0] {
	case '{':
		members, _ := Split(doc)
		for _, member := range members {
			below, v := append(slices.Clone(at), member.Name), member.Value
			if all, some := m.shows(below); all || some && (v[0] == '{' || v[0] == '[') {
				fmt.Fprintf(&out, ",%s:%s", member.Key, m.reduce(v, below))
			}
		}
		return fmt.Appendf(nil, "{%s}", bytes.TrimPrefix(out.Bytes(), []byte{','}))
	case '[':
		all, _ := m.shows(at)
		_ = Elements(doc, func(value Span) error {
			out.WriteByte(',')
			if v := value.Of(doc); all || v[0] == '{' || v[0] == '[' {
				out.Write(m.reduce(v, at))
			} else {
				out.WriteString("null")
			}
			return nil
		})
		return fmt.Appendf(nil, "[%s]", bytes.TrimPrefix(out.Bytes(), []byte{','}))
	}
	return doc
}

func TestMaskEqualsDecodeReduceEncode(t *testing.T) {
	seed := rand.Uint64()
	r := newRandomMask(seed)
	for n := 0; n < racetest.Rounds(20_000); {
		paths, text := r.mask()
		m, err := ParseMask(text)
		excluded := false
		for _, p := range paths {
			excluded = excluded || p.exclude && isAlways(p.names)
		}
		if (err != nil) != (paths == nil || excluded) {
			t.Fatalf("seed %d: %s: %v", seed, text, err)
		}
		if err != nil {
			continue
		}
		n++
		doc, other := []byte(r.object(4)), []byte(r.object(4))
		if r.IntN(2) == 0 {
			other = r.change(doc)
		}
		got, wantDoc := m.Append(nil, doc), newMaskModel(paths).reduce(doc, nil)
		if !bytes.Equal(got, wantDoc) || !json.Valid(got) {
			t.Fatalf("seed %d: %s of %s:\n got %s\nwant %s", seed, text, doc, got, wantDoc)
		}
		if again := m.Append(nil, got); !bytes.Equal(again, got) {
			t.Fatalf("seed %d: %s of %s: reduced twice\n got %s\nwant %s", seed, text, doc, again, got)
		}
		canonical := parseMask(t, m.String())
		if canonical.String() != m.String() {
			t.Fatalf("seed %d: %s: the canonical form %s has the canonical form %s", seed, text, m, canonical)
		}
		if shown := canonical.Append(nil, doc); !bytes.Equal(shown, got) {
			t.Fatalf("seed %d: %s: the canonical form %s shows %s, want %s", seed, text, m, shown, got)
		}
		if _, text := r.mask(); text != "" {
			if o, err := ParseMask(text); err == nil && m.Contains(o) &&
				!bytes.Equal(o.Append(nil, got), o.Append(nil, doc)) {
				t.Fatalf("seed %d: %s contains %s, but lacks members of %s", seed, m, o, doc)
			}
		}
		compared := newMaskModel(paths, "metadata", "resourceVersion")
		want := bytes.Equal(compared.reduce(doc, nil), compared.reduce(other, nil))
		if hides := m.Hides(doc, other); hides != want {
			t.Fatalf("seed %d: %s: the change from %s to %s: got hidden %v, want %v", seed, text, doc, other,
				hides, want)
		}
		if hides := m.HidesDifferences(Compare(doc, other), doc, other); hides != want {
			t.Fatalf("seed %d: %s: the differences of %s and %s: got hidden %v, want %v", seed, text, doc, other,
				hides, want)
		}
	}
}

// change returns doc with one value replaced.
func (r randomMask) change(doc []byte) []byte {
	var values []Span
	for i := range doc {
		if i > 0 && (doc[i-1] == ':' || doc[i-1] == '[' && doc[i] != ']') && doc[i] != ',' {
			values = append(values, Span{i, valueEnd(doc, i)})
		}
	}
	if len(values) == 0 {
		return doc
	}
	v := values[r.IntN(len(values))]
	return slices.Concat(doc[:v.Start], []byte(r.value(1)), doc[v.End:])
}

func FuzzMask(f *testing.F) {
	f.Add("metadata,-metadata.managedFields,spec['a.b']", maskDoc)
	f.Fuzz(func(t *testing.T, text, doc string) {
		m, err := ParseMask(text)
		if err != nil {
			return
		}
		if again := parseMask(t, m.String()); again.String() != m.String() {
			t.Errorf("%q: got the canonical text %s, and from it %s", text, m, again)
		}
		compact, err := Compact([]byte(doc))
		if err != nil || compact[0] != '{' {
			return
		}
		if got := m.Append(nil, compact); !json.Valid(got) || !IsCompact(got) || !bytes.Equal(m.Append(nil, got), got) {
			t.Errorf("%q of %s: got %s", text, compact, got)
		}
		if !m.Hides(compact, compact) {
			t.Errorf("%q: a change of nothing is shown", text)
		}
	})
}

func FuzzCompare(f *testing.F) {
	f.Add("status.conditions.type", maskDoc, `{"kind":"Pod","status":{"conditions":[{"type":"x"}]}}`)
	f.Fuzz(func(t *testing.T, text, doc, other string) {
		m, errMask := ParseMask(text)
		a, errA := Compact([]byte(doc))
		b, errB := Compact([]byte(other))
		if errMask != nil || errA != nil || errB != nil || a[0] != '{' || b[0] != '{' {
			return
		}
		if got, want := m.HidesDifferences(Compare(a, b), a, b), m.Hides(a, b); got != want {
			t.Errorf("%q: the change from %s to %s: got hidden %v, want %v", text, a, b, got, want)
		}
	})
}
