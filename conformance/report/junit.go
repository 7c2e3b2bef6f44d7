package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/runner"
)

// These types describe the elements of JUnit's XML as build servers read them, because no
// standard defines them.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Time     string   `xml:"time,attr"`
		Suites   []*suite `xml:"testsuite"`
	}
	suite struct {
		Name      string     `xml:"name,attr"`
		Tests     int        `xml:"tests,attr"`
		Failures  int        `xml:"failures,attr"`
		Errors    int        `xml:"errors,attr"`
		Skipped   int        `xml:"skipped,attr"`
		Time      string     `xml:"time,attr"`
		Timestamp string     `xml:"timestamp,attr"`
		Cases     []testcase `xml:"testcase"`

		seconds float64
	}
	testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *problem `xml:"failure"`
		Error   *problem `xml:"error"`
		Skipped *problem `xml:"skipped"`
		Out     string   `xml:"system-out,omitempty"`
	}
	problem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes r as JUnit XML, with a suite for each group and a test for each run. A warning is
// reported in the output of a test that passes, and an expected failure as a skipped test.
func JUnit(w io.Writer, r *conformance.Report) error {
	all := suites{Name: "listwatch conformance: " + r.Target, Time: seconds(r.Seconds)}
	byGroup := map[string]*suite{}
	for _, o := range r.Outcomes {
		group, _, _ := strings.Cut(o.ID, "/")
		s := byGroup[group]
		if s == nil {
			s = &suite{Name: group, Timestamp: timestamp(r)}
			byGroup[group], all.Suites = s, append(all.Suites, s)
		}
		s.add(r, o)
	}
	if r.Levels != nil {
		all.Suites = append(all.Suites, levelsSuite(r))
	}
	if r.Robustness != nil {
		all.Suites = append(all.Suites, robustnessSuite(r))
	}
	for _, s := range all.Suites {
		s.Time = seconds(s.seconds)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *suite) add(r *conformance.Report, o conformance.Outcome) {
	t := testcase{Class: s.Name, Name: strings.TrimPrefix(o.Name(), s.Name+"/"), Time: seconds(o.Seconds)}
	s.Tests++
	s.seconds += o.Seconds
	found := &problem{Message: firstLine(o), Text: details(r, o)}
	switch o.Verdict {
	case runner.Fail, runner.XPass:
		t.Failure = found
		s.Failures++
	case runner.SetupError:
		t.Error = found
		s.Errors++
	case runner.Skip, runner.NotRun, runner.XFail:
		t.Skipped = &problem{Message: string(o.Verdict) + ": " + o.Reason}
		s.Skipped++
	case runner.Warn, runner.Info:
		t.Out = string(o.Verdict) + ": " + found.Text
	}
	s.Cases = append(s.Cases, t)
}

// levelsSuite returns a JUnit suite with a test for each level. A level that the target lacks is a
// skipped test, because the tests of its cases fail.
func levelsSuite(r *conformance.Report) *suite {
	s := &suite{Name: "levels", Timestamp: timestamp(r)}
	for _, row := range levelRows(r) {
		t := testcase{Class: "levels", Name: row.Name, Time: seconds(0), Out: row.Verdict + ": " + row.Share}
		switch missing := strings.Join(row.Missing, "\n"); {
		case row.Verdict != "not passed":
		case len(r.Levels.Missing) > 0:
			t.Failure = &problem{Message: row.Share, Text: missing}
			s.Failures++
		default:
			t.Skipped = &problem{Message: "not passed: " + row.Share, Text: missing}
			s.Skipped++
		}
		s.Tests++
		s.Cases = append(s.Cases, t)
	}
	return s
}

// robustnessSuite returns a suite with one test, the robustness test.
func robustnessSuite(r *conformance.Report) *suite {
	f := r.Robustness
	t := testcase{Class: "faults", Name: "guarantees", Time: seconds(f.Seconds), Out: joinFigures(robustnessFigures(f))}
	for _, row := range faultRows(f) {
		t.Out += fmt.Sprintf("\n%s was injected %d times and ended %d connections", row.Kind, row.Injected, row.Ended)
	}
	s := &suite{Name: t.Class, Tests: 1, Timestamp: timestamp(r), seconds: f.Seconds}
	if problems := robustnessProblems(r); problems != nil {
		t.Failure = &problem{Message: robustnessRule, Text: strings.Join(problems, "\n")}
		s.Failures++
	}
	s.Cases = []testcase{t}
	return s
}

func timestamp(r *conformance.Report) string { return r.Started.Format("2006-01-02T15:04:05") }

func firstLine(o conformance.Outcome) string {
	line, _, _ := strings.Cut(strings.Join(append(o.Messages, o.Reason), "\n"), "\n")
	return line
}

// details returns the rule, the messages, the log and the timeline of an outcome, and the
// command that repeats the run.
func details(r *conformance.Report, o conformance.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", o.Strength.String(), o.Rule)
	for _, line := range append(o.Messages, o.Log...) {
		b.WriteString(line + "\n")
	}
	if o.Reason != "" {
		b.WriteString(o.Reason + "\n")
	}
	shown, _ := lastLines(o.Timeline)
	for _, line := range shown {
		b.WriteString(line + "\n")
	}
	if command := rerunCommand(r, o.Name()); command != "" && o.Verdict != runner.Info {
		b.WriteString("run again: " + command + "\n")
	}
	return b.String()
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }
