package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/conformance/robustness"
	"github.com/listwatch/listwatch/conformance/runner"
)

func outcome(id, variant string, v runner.Verdict, messages ...string) conformance.Outcome {
	return conformance.Outcome{
		ID: id, Variant: variant, Strength: harness.Must, Subject: harness.Server, Rule: "rule of " + id,
		Verdict: v, Messages: messages, Seconds: 0.25,
	}
}

// sample returns a report with an outcome of every verdict.
func sample() *conformance.Report {
	skipped := outcome("drain/ends-all", "", runner.Skip)
	skipped.Reason = "it cannot <be> drained"
	failed := outcome("resume/from-rv", "h2", runner.Fail, `got version 17, want "ADDED a" </script><b>`)
	failed.Timeline, failed.Log = []string{
		"   0.1 ms  put a []: version 16", "   0.2 ms  received ADDED b at version 17",
	}, []string{"seed 5"}
	first := outcome("resume/from-rv", "h1", runner.Fail, `got version 17, want "ADDED a" </script><b>`)
	first.Timeline = failed.Timeline
	known := outcome("select/field-name", "h1", runner.XFail, "got 200")
	known.Reason = "it has | no fields"
	warned := outcome("error/negotiated", "h1", runner.Warn, "got text/html")
	warned.Strength = harness.Should
	return &conformance.Report{
		Tool: "listwatch v1.2.3", Target: "here", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 1.5,
		Notes:             []string{"ws is not tested"},
		Command:           []string{"listwatch", "conformance", "server", "--url", "http://h/x y", "--token", "$TOKEN"},
		UnmatchedPatterns: []string{"no/such"},
		Outcomes: []conformance.Outcome{
			first, failed,
			outcome("resume/from-rv", "ws-gorilla", runner.Pass), skipped, known, warned,
			outcome("event/latency", "h1", runner.Info, "3 ms"), outcome("select/label-ops", "h1", runner.XPass),
			outcome("bookmark/shape", "h1", runner.SetupError, "dial: refused"),
			outcome("bookmark/sound", "h1", runner.SetupError, "dial: refused"),
			outcome("initial/empty", "h1", runner.NotRun),
		},
	}
}

func text(t *testing.T, write func(io.Writer, *conformance.Report) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, sample()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing from:\n%s", part, text)
		}
	}
}

func TestFindingsGroupEqualFailures(t *testing.T) {
	got := map[string]int{}
	for _, f := range report.Findings(sample()) {
		got[f.Location] = len(f.Names)
	}
	want := map[string]int{
		"resume/from-rv over h1, h2": 2, "select/label-ops over h1": 1, "bookmark/shape/h1 and 1 other run": 2,
		"error/negotiated over h1": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestTextExplainsFailures(t *testing.T) {
	wantParts(t, text(t, report.Text),
		"    >    0.2 ms  received ADDED b at version 17", "         0.1 ms  put a []: version 16",
		"FAIL  resume/from-rv over h1, h2", "must: rule of resume/from-rv", `got version 17, want "ADDED a"`,
		"run again: listwatch conformance server --url 'http://h/x y' --token $TOKEN --run resume/from-rv/h1",
		`the known failure "no/such" matches no run`, "xfail select/field-name/h1: it has | no fields",
		"    1  it cannot <be> drained", "Note: ws is not tested.", "FAILED: 5 runs did not pass")
}

func TestSummaryCountsWorstVerdicts(t *testing.T) {
	s := report.Summarize(sample())
	if s.Cases != 9 || s.Runs != 9 || s.ByStrength[harness.Must][runner.Fail] != 1 ||
		s.ByStrength[harness.Should][runner.Warn] != 1 || s.ByVerdict[runner.Pass] != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestJSONSurvivesWriteAndRead(t *testing.T) {
	got := new(conformance.Report)
	if err := json.Unmarshal([]byte(text(t, report.JSON)), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Errorf("the report after reading it (-want +got):\n%s", diff)
	}
}

func TestJUnitCounts(t *testing.T) {
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(text(t, report.JUnit)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 11 || got.Failures != 3 || got.Errors != 2 || got.Skipped != 3 || len(got.Suites) != 7 {
		t.Errorf("got %+v", got)
	}
	if c := got.Suites[0].Cases[0]; c.Name != "from-rv/h1" || c.Failure == nil ||
		!strings.Contains(c.Failure.Message, "</script>") {
		t.Errorf("got %+v as first test, want the failure and its message", c)
	}
}

func TestHTMLIsSelfContainedAndEscaped(t *testing.T) {
	page := text(t, report.HTML)
	wantParts(t, page, "<title>Conformance of here</title>", "<code>resume/from-rv</code>",
		"it cannot &lt;be&gt; drained", "prefers-color-scheme: dark", "h1, h2 of 3 variants")
	for _, bad := range []string{"<script", "<b>\"", "</script><b>", "<link", "src=", "@import", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

// robustnessSample returns a report in which an event was lost under faults.
func robustnessSample() *conformance.Report {
	r := sample()
	r.Outcomes, r.UnmatchedPatterns = r.Outcomes[2:3], nil
	r.Robustness = &robustness.Result{Seconds: 3, Report: &checker.Report{
		Meta: checker.Meta{Seed: 17, Requirements: checker.Requirements{Lists: 3}},
		Summary: checker.Summary{
			Events: 1234, Writes: 99, Violations: 2, Faults: map[string]int{"cut": 5, "drip": 4},
			ConnectionsEndedByFault: map[string]int{"cut": 3, "kill": 6},
		},
		Violations: []checker.Violation{
			{
				Guarantee: checker.Reliable, Watcher: "h1 & more", Session: 0, Event: 4,
				Want: "ADDED a/n1", Got: "nothing",
			},
		},
	}}
	return r
}

func TestReportsContainFiguresOfFaults(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *conformance.Report) error{
		"text": report.Text, "HTML": report.HTML, "JUnit": report.JUnit, "JSON": report.JSON,
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b, robustnessSample()); err != nil {
				t.Fatal(err)
			}
			wantParts(t, b.String(), "1234", "cut", "kill", "ADDED a/n1", "17")
			if name != "JSON" {
				wantParts(t, b.String(), "requirement not met")
			}
			if name == "text" || name == "HTML" {
				wantParts(t, b.String(), "FAILED: faults; under faults 2 violations of 1234 events")
			}
			if strings.Contains(b.String(), "h1 & more") && (name == "HTML" || name == "JUnit") {
				t.Errorf("%s does not escape its text", name)
			}
		})
	}
}

func TestProblemsUnderFaultsFailTheRun(t *testing.T) {
	if robustnessSample().OK() {
		t.Error("a report with violations is OK")
	}
	interrupted := robustnessSample()
	interrupted.Robustness, interrupted.Unfinished = nil, "faults: interrupted"
	if interrupted.OK() {
		t.Error("a report of an interrupted run is OK")
	}
	if line := report.Headline(interrupted); !strings.Contains(line, "NOT FINISHED: faults: interrupted") {
		t.Errorf("got the headline %q", line)
	}
	healthy := robustnessSample()
	healthy.Robustness.Report = &checker.Report{}
	if !healthy.OK() {
		t.Error("a report without violations is not OK")
	}
}

func TestProgressWritesALineForEachCase(t *testing.T) {
	var b bytes.Buffer
	p := report.NewProgress(&b)
	for _, o := range sample().Outcomes {
		p.Add(o)
	}
	p.Close()
	wantParts(t, b.String(), "FAIL  resume/from-rv", "h1, h2 of 3 variants",
		"skip  drain/ends-all", "SETUP bookmark/sound")
}

// judged returns the sample with levels.
func judged() *conformance.Report {
	r := sample()
	r.Levels = &conformance.Levels{
		Set: "2026-12", Subject: harness.Server, Passed: 1, Levels: []conformance.Level{
			{Level: 1, Musts: conformance.Share{Passed: 5, Of: 5}, Shoulds: conformance.Share{Passed: 1, Of: 2}},
			{
				Level: 2, Musts: conformance.Share{Passed: 3, Of: 5}, Failed: []string{"select/field-name"},
				Untested: []string{"bookmark/shape"},
			},
		},
		Extensions: []conformance.ExtensionShare{{Name: "differences", Share: conformance.Share{Passed: 9, Of: 9}}},
	}
	return r
}

func TestEveryFormatShowsTheLevels(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *conformance.Report) error{
		"text": report.Text, "HTML": report.HTML, "JUnit": report.JUnit, "JSON": report.JSON,
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := write(&b, judged()); err != nil {
				t.Fatal(err)
			}
			if name == "JSON" {
				wantParts(t, b.String(), `"set": "2026-12"`, `"untested": [`, `"name": "differences"`)
				return
			}
			wantParts(t, b.String(), "Watch 1", "5 of 5 musts, 1 of 2 shoulds", "not passed", "3 of 5 musts",
				"failed: select/field-name", "not tested: bookmark/shape", "differences", "9 of 9 cases")
		})
	}
	failed := judged()
	failed.Outcomes, failed.UnmatchedPatterns = nil, nil
	failed.Levels.Required, failed.Levels.Missing = 2, []string{"bookmark/shape"}
	if got := report.Headline(failed); failed.OK() || !strings.Contains(got, "FAILED: 1 must of level 2 not tested") ||
		!strings.HasSuffix(got, "Watch 1") {
		t.Errorf("got OK %v and the headline %q, want a failure", failed.OK(), got)
	}
}
