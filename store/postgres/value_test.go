package postgres

import (
	"encoding/json"
	"testing"
)

func TestValuesAreJSON(t *testing.T) {
	number, text := &dataType{form: asNumber}, &dataType{}
	numbers := dataType{form: asArray, element: number, delimiter: ','}
	point := dataType{form: asComposite, members: []member{{"x", *number}, {"label", *text}, {"more", numbers}}}
	for _, tt := range []struct {
		kind       dataType
		text, want string
	}{
		{dataType{form: asBool}, "t", "true"},
		{dataType{form: asBool}, "f", "false"},
		{*number, "-12.50", "-12.50"},
		{*number, "1e+20", "1e+20"},
		{*number, "NaN", `"NaN"`},
		{*number, "-Infinity", `"-Infinity"`},
		{*text, "a\n\"b\"<", `"a\n\"b\"<"`},
		{dataType{form: asJSON}, "{ \"a\" : 1.0, \"a\":2 }", `{"a":1.0,"a":2}`},
		{dataType{form: asTime}, "2026-01-02 03:04:05.6", `"2026-01-02T03:04:05.6"`},
		{dataType{form: asTime}, "infinity", `"infinity"`},
		{dataType{form: asTime}, "0044-03-15 00:00:00 BC", `"0044-03-15T00:00:00 BC"`},
		{dataType{form: asTimeZ}, "0044-03-15 00:00:00+00 BC", `"0044-03-15T00:00:00+00:00 BC"`},
		{dataType{form: asTimeZ}, "2026-01-02 03:04:05+00", `"2026-01-02T03:04:05+00:00"`},
		{numbers, "{}", "[]"},
		{numbers, "{1,NULL,3}", "[1,null,3]"},
		{numbers, "[0:1]={1,2}", "[1,2]"},
		{numbers, "{{1,2},{3,4}}", "[[1,2],[3,4]]"},
		{
			dataType{form: asArray, element: text, delimiter: ','},
			`{a,"b,\"c\\","NULL",NULL,""}`,
			`["a","b,\"c\\","NULL",null,""]`,
		},
		{point, `(1,"a ""b"", \\c","{1,2}")`, `{"x":1,"label":"a \"b\", \\c","more":[1,2]}`},
		{point, `(,"",)`, `{"x":null,"label":"","more":null}`},
		{
			dataType{form: asArray, element: &point, delimiter: ','},
			`{"(1,\"b,c\",\"{1,2}\")",NULL}`,
			`[{"x":1,"label":"b,c","more":[1,2]},null]`,
		},
	} {
		got, err := appendValue(nil, &tt.kind, []byte(tt.text))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s (%v), want %s", tt.text, got, err, tt.want)
		}
	}
}

func TestJSONBecomesSQL(t *testing.T) {
	number, text := &dataType{form: asNumber}, &dataType{}
	texts := &dataType{form: asArray, element: text, delimiter: ','}
	const refused = "refused"
	for _, tt := range []struct {
		kind       *dataType
		json, want string
	}{
		{text, `""`, ""},
		{text, `"a\"\u00e9"`, `a"é`},
		{text, `1`, refused},
		{text, `"\u0000"`, refused},
		{number, `-1.50`, "-1.50"},
		{number, `"Infinity"`, "Infinity"},
		{number, `"1"`, refused},
		{number, `true`, refused},
		{&dataType{form: asBool}, `false`, "false"},
		{&dataType{form: asBool}, `0`, refused},
		{&dataType{form: asJSON}, `[1]`, "[1]"},
		{&dataType{form: asTime}, `"2026-01-02T03:04:05"`, "2026-01-02T03:04:05"},
		{texts, `[]`, "{}"},
		{texts, `["a\\\"",null,"NULL",""]`, `{"a\\\"",NULL,"NULL",""}`},
		{texts, `[["a"],["b"]]`, `{{"a"},{"b"}}`},
		{texts, `[1]`, refused},
		{texts, `{}`, refused},
		{&dataType{form: asArray, element: number, delimiter: ';'}, `[1,2.5]`, `{"1";"2.5"}`},
		{&dataType{form: asArray, element: &dataType{form: asJSON}, delimiter: ','}, `[1]`, refused},
		{&dataType{form: asComposite}, `{"a":1}`, refused},
	} {
		got, err := sqlText(tt.kind, []byte(tt.json))
		if isRefused := err != nil; isRefused != (tt.want == refused) || !isRefused && string(got) != tt.want {
			t.Errorf("%s: got %s (%v), want %s", tt.json, got, err, tt.want)
		}
	}
	if got, err := sqlText(text, []byte("null")); got != nil || err != nil {
		t.Errorf("null: got %q and %v, want NULL", got, err)
	}
}

func FuzzLiterals(f *testing.F) {
	f.Add("{1,NULL,\"a\\\"b\"}")
	f.Add("(1,\"a\"\"b\",)")
	f.Add("[0:1]={{1},{2}}")
	text := &dataType{}
	list := &dataType{form: asArray, element: text, delimiter: ','}
	pair := &dataType{form: asComposite, members: []member{{"a", *text}, {"b", *list}}}
	f.Fuzz(func(t *testing.T, literal string) {
		for _, kind := range []*dataType{list, pair} {
			doc, err := appendValue(nil, kind, []byte(literal))
			if err == nil && !json.Valid(doc) {
				t.Errorf("%q becomes %s, which is no JSON", literal, doc)
			}
		}
	})
}
