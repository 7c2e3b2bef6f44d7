package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var fqName = regexp.MustCompile(`fqName: "([a-z0-9_]+)"`)

// names returns the names of the metrics of m.
func names(m *Metrics) (all []string) {
	descs := make(chan *prometheus.Desc, 1000)
	m.Describe(descs)
	close(descs)
	for d := range descs {
		all = append(all, fqName.FindStringSubmatch(d.String())[1])
	}
	return all
}

// missingMetrics returns the names of the metrics of m that have no series in text, a scrape.
func missingMetrics(m *Metrics, text string) []string {
	return slices.DeleteFunc(names(m), func(name string) bool { return strings.Contains(text, "# TYPE "+name+" ") })
}

// metricName matches the names of metrics in a PromQL expression by their prefixes.
var metricName = regexp.MustCompile(`\b(listwatch|go|process|pg)_[a-z0-9_]+`)

// unknownMetrics returns the names of metrics in expression that do not occur in text, a scrape.
func unknownMetrics(text, expression string) (unknown []string) {
	for _, name := range metricName.FindAllString(expression, -1) {
		if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func TestAlertsAndDashboardNameExistingMetrics(t *testing.T) {
	// An alert uses this metric of postgres_exporter.
	const postgresExporter = "\npg_replication_slots_pg_wal_lsn_diff{}"
	text := everything(t) + postgresExporter
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	expressions := regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(string(rules), -1)
	if len(expressions) < 5 {
		t.Errorf("found %d expressions in the alerts, want at least 5", len(expressions))
	}
	tests, err := os.ReadFile("../../deploy/prometheus/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range regexp.MustCompile(`alert: (.*)`).FindAllStringSubmatch(string(rules), -1) {
		if n := strings.Count(string(tests), "alertname: "+alert[1]+"\n"); n < 2 {
			t.Errorf("alert %s: %d tests, want one in which it fires and one in which it does not", alert[1], n)
		}
	}
	for _, e := range expressions {
		if unknown := unknownMetrics(text, e[1]); len(unknown) > 0 || !metricName.MatchString(e[1]) {
			t.Errorf("alert %q: unknown metrics %q", e[1], unknown)
		}
	}
	data, err := os.ReadFile("../../deploy/grafana/listwatch.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) < 10 {
		t.Errorf("the dashboard has %d panels, want at least 10", len(dashboard.Panels))
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no expression", p.Title)
		}
		for _, target := range p.Targets {
			if unknown := unknownMetrics(text, target.Expr); len(unknown) > 0 || !metricName.MatchString(target.Expr) {
				t.Errorf("panel %q: unknown metrics %q in %s", p.Title, unknown, target.Expr)
			}
		}
	}
	if unknown := unknownMetrics(text, "rate(listwatch_nothing_total[5m])"); len(unknown) != 1 {
		t.Error("an unknown metric was not detected")
	}
}

func TestAlertsFireAsTheirTestsSay(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "../../deploy/prometheus/alerts.yml"},
		{"test", "rules", "../../deploy/prometheus/alerts_test.yml"},
	} {
		if out, err := promtool(t, nil, args...); err != nil {
			t.Errorf("promtool %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
}
