package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// renderCells renders the cells of an object at noon, and joins them with vertical bars.
func renderCells(t *testing.T, columns []Column, object string) string {
	t.Helper()
	doc, err := rawjson.Compact([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	table, err := New(columns)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, cell := range table.cells {
		var v any
		if err := json.Unmarshal(cell(nil, newRow(doc, noon)), &v); err != nil {
			t.Fatalf("%s: cell %s: %v", doc, cell(nil, newRow(doc, noon)), err)
		}
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, "|")
}

const created = `"metadata":{"name":"a","creationTimestamp":"2026-05-01T11:54:30Z"}`

func TestDefaultColumnsMatchKubectl(t *testing.T) {
	for _, c := range []struct {
		columns      []Column
		object, want string
	}{
		{nil, `{` + created + `}`, "a|5m30s"},
		{nil, `{"metadata":{"name":"é\"\n"}}`, "é\"\n|<unknown>"},
		{
			ServiceColumns(), `{` + created +
				`,"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1","ports":[{"port":80,"protocol":"TCP"},{"port":53,"nodePort":30053,"protocol":"UDP"}],"selector":{"b":"2","a":"1"}}}`,
			"a|ClusterIP|10.0.0.1|<none>|80/TCP,53:30053/UDP|5m30s|a=1,b=2",
		},
		{
			ServiceColumns(), `{` + created + `,"spec":{"type":"LoadBalancer"}}`,
			"a|LoadBalancer|<none>|<pending>|<none>|5m30s|<none>",
		},
		{
			ServiceColumns(), `{` + created +
				`,"spec":{"type":"LoadBalancer","externalIPs":["9.9.9.9"]},"status":{"loadBalancer":{"ingress":[{"ip":"2.2.2.2"},{"hostname":"1.example"}]}}}`,
			"a|LoadBalancer|<none>|1.example,2.2.2.2,9.9.9.9|<none>|5m30s|<none>",
		},
		{
			ServiceColumns(), `{` + created + `,"spec":{"type":"ExternalName","externalName":"x.example"}}`,
			"a|ExternalName|<none>|x.example|<none>|5m30s|<none>",
		},
		{
			DeploymentColumns(),
			`{` + created +
				`,"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["1","2"]},{"key":"x","operator":"DoesNotExist"}]},"template":{"spec":{"containers":[{"name":"c","image":"i:1"},{"name":"d","image":"j"}]}}},"status":{"readyReplicas":2,"updatedReplicas":1}}`,
			"a|2/3|1|0|5m30s|c,d|i:1,j|a=b,k in (1,2),!x",
		},
		{DeploymentColumns(), `{` + created + `}`, "a|0/1|0|0|5m30s|||<none>"},
		{ServiceColumns(), `{` + created + `}`, "a|ClusterIP|<none>|<none>|<none>|5m30s|<none>"},
		{
			NamespaceColumns(), `{"metadata":{"name":"a","deletionTimestamp":"2026-05-01T11:54:30Z"}}`,
			"a|Terminating|<unknown>",
		},
		{
			EventColumns(), `{` + created +
				`,"lastTimestamp":"2026-05-01T11:55:30Z","type":"Normal","reason":"Started","involvedObject":{"kind":"Pod","name":"p"},"message":"m","source":{"component":"c"},"count":2}`,
			"a|4m30s|Normal|Started|pod/p|c|m|2",
		},
		{
			EventColumns(), `{` + created + `,"eventTime":"2026-05-01T11:00:00.000000Z","lastTimestamp":null}`,
			"a|60m|<nil>|<nil>|/|<nil>|<nil>|<nil>",
		},
		{ConfigMapColumns(), `{` + created + `,"data":{"a":"{","b":""},"binaryData":{"c":""}}`, "a|3|5m30s"},
		{NamespaceColumns(), `{` + created + `,"status":{"phase":"Active"}}`, "a|Active|5m30s"},
		{NamespaceColumns(), `{` + created + `,"status":7}`, "a|Active|5m30s"},
	} {
		if diff := cmp.Diff(c.want, renderCells(t, c.columns, c.object)); diff != "" {
			t.Errorf("%s: %s", c.object, diff)
		}
	}
}

func TestPodStatusMatchesKubectl(t *testing.T) {
	const two = `"spec":{"containers":[{"name":"x"},{"name":"y"}],"initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}]}`
	const deleted = `"metadata":{"name":"a","deletionTimestamp":"2026-05-01T11:54:30Z"}`
	for _, c := range []struct{ object, want string }{
		{`{` + created + `}`, "0/0|Pending|0"},
		{`{"spec":{"containers":[{}]},"status":{"phase":"Pending"}}`, "0/1|Pending|0"},
		{`{"status":{"phase":"Failed","reason":"Evicted"}}`, "0/0|Evicted|0"},
		{
			`{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","reason":"SchedulingGated"}]}}`,
			"0/0|SchedulingGated|0",
		},
		{
			`{"spec":{"containers":[{},{}]},"status":{"phase":"Running","containerStatuses":[{"ready":true,"restartCount":1,"state":{"running":{}},"lastState":{"terminated":{"finishedAt":"2026-05-01T11:00:00Z"}}},{"restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
			"1/2|CrashLoopBackOff|4 (60m ago)",
		},
		{
			`{"spec":{"containers":[{}]},"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":3}}}]}}`, "0/1|ExitCode:3|0",
		},
		{
			`{"spec":{"containers":[{}]},"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":137,"signal":9}}}]}}`, "0/1|Signal:9|0",
		},
		{
			`{"spec":{"containers":[{},{}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"state":{"terminated":{"reason":"Completed"}}},{"ready":true,"state":{"running":{}}}]}}`,
			"1/2|Running|0",
		},
		{
			`{"spec":{"containers":[{},{}]},"status":{"phase":"Running","containerStatuses":[{"state":{"terminated":{"reason":"Completed"}}},{"ready":true,"state":{"running":{}}}]}}`,
			"1/2|NotReady|0",
		},
		{`{` + two +
			`,"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","restartCount":2,"state":{"running":{}}}]}}`, "0/3|Init:0/2|2"},
		{`{` + two +
			`,"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}`, "0/3|Init:Error|0"},
		{`{` + two +
			`,"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}`, "0/3|Init:ImagePullBackOff|0"},
		{
			`{` + two +
				`,"status":{"phase":"Running","initContainerStatuses":[{"name":"i","restartCount":2,"state":{"terminated":{"exitCode":0}}},{"name":"s","restartCount":1,"started":true,"ready":true,"state":{"running":{}}}],"containerStatuses":[{"ready":true,"state":{"running":{}}}]}}`,
			"2/3|Running|1",
		},
		{`{` + deleted + `,"status":{"phase":"Running"}}`, "0/0|Terminating|0"},
		{`{` + deleted + `,"status":{"phase":"Succeeded"}}`, "0/0|Succeeded|0"},
		{`{` + deleted + `,"status":{"phase":"Running","reason":"NodeLost"}}`, "0/0|Unknown|0"},
		{
			`{"spec":[],"status":{"containerStatuses":{},"conditions":[null,7],"initContainerStatuses":[0]}}`,
			"0/0|Init:0/0|0",
		},
	} {
		if diff := cmp.Diff(c.want,
			renderCells(t, PodColumns()[:3], `{"metadata":{"name":"a"},`+c.object[1:])[2:]); diff != "" {
			t.Errorf("%s: %s", c.object, diff)
		}
	}
	gates := `{"metadata":{"name":"a"},"spec":{"readinessGates":[{"conditionType":"x"},{"conditionType":"y"}]},"status":{"conditions":[{"type":"y","status":"True"}]}}`
	if got := renderCells(t, PodColumns()[7:], gates); got != "a|1/2" {
		t.Errorf("got cells %s, want a|1/2", got)
	}
}

func TestAgesMatchKubectl(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"<invalid>": -2 * time.Second, "0s": -time.Second, "119s": 2*time.Minute - 1, "2m": 2 * time.Minute,
		"9m59s": 10*time.Minute - 1,
		"10m":   10*time.Minute + 59*time.Second, "179m": 3*time.Hour - 1, "3h": 3*time.Hour + 59*time.Second,
		"7h59m": 8*time.Hour - 1, "8h": 8*time.Hour + 59*time.Minute,
		"47h": 2*day - 1, "2d": 2 * day, "7d23h": 8*day - 1, "8d": 8*day + 23*time.Hour, "729d": 2*year - 1,
		"2y": 2 * year, "7y364d": 8*year - 1, "9y": 9*year + 3*day,
	} {
		if got := formatAge(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestPathSelectsCell(t *testing.T) {
	const object = `{"metadata":{"name":"n","labels":{"a.b/c":"dotted"}},"i":3,"f":1.5e3,"t":true,"z":null,"s":"x\ny","d":"2026-05-01T11:00:00Z",
		"h":1.5,
		"l":[{"k":"A","v":"one","n":4},{"k":"B","v":"two","on":true,"n":6},{"k":"A","v":"three","n":4}],"m":{"p":1,"q":{"r":2}}}`
	for _, c := range []struct{ kind, path, want string }{
		{"string", ".s", "x\ny"},
		{"", ".s", "x\ny"},
		{"string", ".i", "3"},
		{"string", ".z", "<no value>"},
		{"integer", ".z", "<nil>"},
		{"string", ".none.deep", "<nil>"},
		{"string", ".m", `{"p":1,"q":{"r":2}}`},
		{"integer", ".i", "3"},
		{"integer", ".f", "1500"},
		{"integer", ".h", "1"},
		{"integer", ".s", "<nil>"},
		{"number", ".f", "1500"},
		{"number", ".t", "<nil>"},
		{"boolean", ".t", "true"},
		{"boolean", ".i", "<nil>"},
		{"date", ".d", "60m"},
		{"date", ".s", "<invalid>"},
		{"date", ".i", "<nil>"},
		{"date", ".none", "<nil>"},
		{"string", ".l[0].v", "one"},
		{"string", ".l[-1].v", "three"},
		{"string", ".l[3].v", "<nil>"},
		{"string", ".l[*].v", "one"},
		{"string", ".l[-1:].v", "three"},
		{"string", ".l[0:2].v", "one"},
		{"string", "..r", "2"},
		{"string", "['s']", "x\ny"},
		{"string", ".m['p','q']", "1"},
		{"integer", `.l[?(@.n>5)].n`, "6"},
		{"integer", `.l[?(@.n!=6)].n`, "4"},
		{"string", `.l[?(@.on==true)].v`, "two"},
		{"string", `.l[?(@.on)].v`, "two"},
		{"string", `.l[?(@.k=="A")].v`, "one"},
		{"string", `.l[?(@.k == 'B')].v`, "two"},
		{"string", `.l[?(@.k=="C")].v`, "<nil>"},
		{"string", `.metadata.labels['a\.b/c']`, "dotted"},
		{"string", `.metadata.labels['a.b/c']`, "<nil>"}, // as in kubectl, the dot separates names
		{"string", `.metadata.labels.a\.b/c`, "dotted"},
		{"integer", ".l[*].n", "4"},
		{"integer", ".m.q.r", "2"},
		{"string", ".s[0]", "<nil>"},
		{"string", ".s.x", "<nil>"},
	} {
		if got := renderCells(t, []Column{{Name: "C", Type: c.kind, Path: c.path}}, object); got != "n|"+c.want {
			t.Errorf("%s %s: got %s, want %s", c.kind, c.path, got, c.want)
		}
	}
}

func TestCellFunctionRendersCell(t *testing.T) {
	column := Column{Name: "C", Type: "boolean", Cell: func(dst, object []byte, now time.Time) []byte {
		return strconv.AppendBool(dst, now.Equal(noon) && string(object) == `{"metadata":{"name":"a"}}`)
	}}
	if got := renderCells(t, []Column{column}, `{"metadata": {"name": "a"}}`); got != "a|true" {
		t.Errorf("got cells %s, want a|true", got)
	}
}

func TestNewRejectsInvalidColumns(t *testing.T) {
	for _, c := range []Column{
		{Path: ".a"},
		{Name: "A"},
		{Name: "A", Type: "float", Path: ".a"},
		{Name: "A", Path: "a"},
		{Name: "A", Path: ".a["},
		{Name: "A", Path: ".a[x]"},
		{Name: "A", Path: ".a[0"},
		{Name: "A", Path: ".a['b'"},
		{Name: "A", Path: ".a['b"},
		{Name: "A", Path: `.a[?(@.b=="c"]`},
	} {
		_, err := New([]Column{c})
		if !errors.Is(err, listwatch.Invalid) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{".a.b", `.a[?(@.b=="c")].d`, ".a[*][-1]['x']", `.a\.b`} {
		f.Add(s, `{"a":[{"b":"c","d":1}],"a.b":null}`)
	}
	f.Fuzz(func(t *testing.T, path, object string) {
		doc, err := rawjson.Compact([]byte(object))
		if err != nil {
			t.Skip()
		}
		for _, kind := range cellTypes {
			cell, err := Column{Name: "A", Type: kind, Path: path}.compile()
			if err != nil {
				return
			}
			if out := cell(nil, newRow(doc, noon)); !json.Valid(out) {
				t.Errorf("%s of %s: got %s", path, doc, out)
			}
		}
		for _, columns := range [][]Column{
			PodColumns(), ServiceColumns(), DeploymentColumns(), ConfigMapColumns(),
			NamespaceColumns(), EventColumns(), nil,
		} {
			table, err := New(columns)
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range table.cells {
				if out := cell(nil, newRow(doc, noon)); !json.Valid(out) {
					t.Errorf("%s: got %s", doc, out)
				}
			}
		}
	})
}
