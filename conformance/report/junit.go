package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/cases"
)

// The elements of JUnit's XML, as build servers read them; there is no standard.
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

// JUnit writes r as JUnit's XML: a suite for each group, a test for each run. A warning is no failure there, but text; an expected failure is
// skipped.
func JUnit(w io.Writer, r *conformance.Report) error {
	all := suites{Name: "listwatch conformance: " + r.Target, Time: seconds(r.Seconds)}
	byGroup := map[string]*suite{}
	for _, o := range r.Outcomes {
		group, _, _ := strings.Cut(o.ID, "/")
		s := byGroup[group]
		if s == nil {
			s = &suite{Name: group, Timestamp: r.Started.Format("2006-01-02T15:04:05")}
			byGroup[group], all.Suites = s, append(all.Suites, s)
		}
		s.add(r, o)
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
	why := &problem{Message: firstLine(o), Text: explain(r, o)}
	switch o.Verdict {
	case cases.Fail, cases.XPass:
		t.Failure = why
		s.Failures++
	case cases.SetupError:
		t.Error = why
		s.Errors++
	case cases.Skip, cases.NotRun, cases.XFail:
		t.Skipped = &problem{Message: string(o.Verdict) + ": " + o.Reason}
		s.Skipped++
	case cases.Warn, cases.Info:
		t.Out = string(o.Verdict) + ": " + why.Text
	}
	s.Cases = append(s.Cases, t)
}

func firstLine(o conformance.Outcome) string {
	line, _, _ := strings.Cut(strings.Join(append(o.Messages, o.Reason), "\n"), "\n")
	return line
}

// explain is all there is to say of an outcome.
func explain(r *conformance.Report, o conformance.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", o.Level.Word(), o.Says)
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
	if command := again(r, o.Name()); command != "" && o.Verdict != cases.Info {
		b.WriteString("again: " + command + "\n")
	}
	return b.String()
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }
