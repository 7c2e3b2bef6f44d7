// Package report writes the results of a conformance run: [Text] for a terminal, [HTML] for
// a browser, [JUnit] for build servers, and [JSON] for programs. [Progress] shows a run in
// progress.
//
// Every format shows the same parts of a failure: the case and its variants, the rule, the
// expected and the actual result, the end of the timeline, and the command that repeats the
// run.
package report
