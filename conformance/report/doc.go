// Package report writes what a conformance run found: [Text] for people, [HTML] for a browser, [Markdown] for a pull request, [JUnit] for build
// servers and [JSON], which [Read] reads back and [Diff] compares. [Progress] shows a run while it goes on.
//
// All tell a failure the same way: which case over which ways, the rule in a sentence, what was wanted and what came, the last lines of what
// went over the wires, and the command that runs it again.
package report
