//go:build unix

package logical

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/postgres"
)

// typeValues are SQL types, and values with the extremes of each.
var typeValues = []struct {
	sqlType string
	values  []string
}{
	{"bool", []string{"true", "false"}},
	{"int2", []string{"-32768"}},
	{"int4", []string{"2147483647"}},
	{"int8", []string{"9223372036854775807", "-9007199254740993"}},
	{"numeric", []string{"1e400", "-0.00010", "'NaN'", "'Infinity'", "12345678901234567890.12345678901234567890"}},
	{"numeric(10,2)", []string{"1.5"}},
	{"float4", []string{"1.1", "'NaN'", "'-Infinity'", "1e38"}},
	{"float8", []string{"0.1", "1e-300", "1e20", "'Infinity'", "-0"}},
	{"oid", []string{"4294967295"}},
	{"text", []string{"''", `'a "b" \ c'`, `E'line\nend\ttab\x01'`, "'ü€😀</script>'"}},
	{"varchar(5)", []string{"'abc'"}},
	{"char(5)", []string{"'abc'"}},
	{`"char"`, []string{"'x'"}},
	{"name", []string{"'n'"}},
	{"uuid", []string{"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"}},
	{"bytea", []string{`'\xDEADBEEF'`, "''"}},
	{"json", []string{`'{ "b": 1.0, "a": [1, 2, {}], "a": null }'`, "'null'", "'\"x\"'"}},
	{"jsonb", []string{`'{ "b": 1.0, "a": [1, 2, {}] }'`}},
	{"date", []string{"'2026-01-02'", "'infinity'", "'0044-03-15 BC'"}},
	{"time", []string{"'03:04:05.6'", "'24:00'"}},
	{"timetz", []string{"'03:04:05.6+02'"}},
	{"timestamp", []string{"'2026-01-02 03:04:05.678901'", "'-infinity'", "'0044-03-15 01:02:03 BC'"}},
	{"timestamptz", []string{
		"'2026-01-02 03:04:05.6+02'", "'infinity'", "'10000-01-01 00:00:00+00'",
		"'0044-03-15 01:02:03+00 BC'",
	}},
	{"interval", []string{"'1 year 2 mons -3 days 04:05:06.7'"}},
	{"inet", []string{"'10.0.0.1/8'", "'::1'"}},
	{"cidr", []string{"'10.0.0.0/8'"}},
	{"macaddr", []string{"'08:00:2b:01:02:03'"}},
	{"bit(3)", []string{"B'101'"}},
	{"varbit", []string{"B''"}},
	{"money", []string{"1234.5"}},
	{"point", []string{"'(1.5,2)'"}},
	{"box", []string{"'(1,1),(0,0)'"}},
	{"xml", []string{"'<a>x</a>'"}},
	{"tsvector", []string{"'a fat cat'"}},
	{"pg_lsn", []string{"'16/B374D848'"}},
	{"xid8", []string{"'42'"}},
	{"int4range", []string{"'[1,5)'", "'empty'"}},
	{"tstzrange", []string{"'[2026-01-01,)'"}},
	{"int4multirange", []string{"'{[1,2),[5,6)}'"}},
	{"int4[]", []string{"'{}'", "'{1,NULL,3}'", "'[0:1]={1,2}'", "'{{1,2},{3,4}}'"}},
	{"text[]", []string{`ARRAY['a', 'b,"c\d', NULL, 'NULL', '', '{x}']`}},
	{"bool[]", []string{"'{t,f}'"}},
	{"timestamptz[]", []string{"ARRAY['2026-01-02 03:04:05+00'::timestamptz]"}},
	{"jsonb[]", []string{`ARRAY['{"a": "x,y"}'::jsonb, 'null'::jsonb]`}},
	{"box[]", []string{"ARRAY['(1,1),(0,0)'::box, '(2,2),(1,1)'::box]"}},
	{"numeric[]", []string{"ARRAY[1.50, 'NaN']"}},
	{"mood", []string{"'ok'"}},
	{"mood[]", []string{"'{ok,sad}'"}},
	{"positive", []string{"7"}},
	{"positive[]", []string{"'{7,8}'"}},
	{"pair", []string{`ROW(1, 'a "b", (c)', '{1,2}')`, "ROW(NULL, '', NULL)"}},
	{"pair[]", []string{`ARRAY[ROW(1, 'x,y', '{}')::pair, NULL]`}},
	{"nest", []string{`ROW(ROW(1, 'q"', '{3}'), true)`}},
}

var typeDefinitions = []string{
	"CREATE TYPE mood AS ENUM ('sad', 'ok')",
	"CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
	"CREATE TYPE pair AS (n int, t text, more int[])",
	"CREATE TYPE nest AS (p pair, b bool)",
}

// A row has the same JSON in the first state, in a change, and in PostgreSQL's own conversion.
func TestValuesAreThoseOfRowToJSON(t *testing.T) {
	var columns []string
	most := 0
	for i, v := range typeValues {
		columns = append(columns, fmt.Sprintf("c%d %s", i, v.sqlType))
		most = max(most, len(v.values))
	}
	d := newDatabase(t, typeDefinitions...)
	d.exec("CREATE TABLE typed (id int PRIMARY KEY, " + strings.Join(columns, ", ") + ")")
	insert := func(id int) {
		values := []string{fmt.Sprint(id)}
		for _, v := range typeValues {
			value := "NULL"
			if n := id % 100; n < len(v.values) {
				value = v.values[n]
			}
			values = append(values, value)
		}
		d.exec("INSERT INTO typed VALUES (" + strings.Join(values, ", ") + ")")
	}
	for n := range most + 1 {
		insert(n)
	}
	source := d.open(postgres.Options{}, postgres.Table{Name: "typed"}).Source("typed")
	for n := range most + 1 {
		insert(100 + n)
	}
	objects := map[string]*listwatch.Object{}
	for _, o := range d.list(source) {
		objects[o.Key.Name] = o
	}
	rows, err := d.conn.Query(t.Context(), "SELECT id::text, row_to_json(t)::text FROM typed t")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var id, text string
		if err := rows.Scan(&id, &text); err != nil {
			t.Fatal(err)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		var got struct{ Spec map[string]json.RawMessage }
		if o := objects[id]; o == nil || json.Unmarshal(o.Data, &got) != nil {
			t.Fatalf("row %s: got %v", id, o)
		}
		for i, v := range typeValues {
			name := fmt.Sprint("c", i)
			if !equalJSON(got.Spec[name], want[name]) {
				t.Errorf("row %s, %s: got %s, want %s", id, v.sqlType, got.Spec[name], want[name])
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// equalJSON reports whether two values are equal, apart from insignificant space and the escapes in
// strings.
func equalJSON(a, b json.RawMessage) bool {
	normal := func(text json.RawMessage) string {
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return err.Error()
		}
		out, _ := json.Marshal(value) // it was just decoded
		return string(out)
	}
	return normal(a) == normal(b)
}
