// Command rivals compares listwatch with other ways to send changes to many watchers: it lets each
// of them do the same work and prints a table. Run it with make rivals.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/clients"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/report"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/runner"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/servers"
)

func main() {
	if err := runRole(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

// runRole runs the role that the arguments select: a server, the clients, or by default the
// comparison. The comparison starts this program in the other roles, as further processes.
func runRole(args []string) error {
	if len(args) == 3 && args[1] == "serve" {
		var p runner.ServeParameters
		if err := json.Unmarshal([]byte(args[2]), &p); err != nil {
			return err
		}
		return servers.Serve(p.Server, p.Objects, os.Stdin, os.Stdout)
	}
	if len(args) == 3 && args[1] == "load" {
		var t clients.Target
		if err := json.Unmarshal([]byte(args[2]), &t); err != nil {
			return err
		}
		return clients.Load(t, os.Stdin, os.Stdout)
	}
	return compare(args[1:])
}

// defaultWork takes about ten seconds for each rival.
var defaultWork = runner.Work{
	Watchers: 1000, Singles: 30, Bursts: 10, Burst: 16,
	Paced: 1000, StallEvents: 8000, PacedInterval: 200 * time.Microsecond,
	Objects: 10_000, StateReads: 5,
	Returning: 20, Missed: 100,
}

func compare(args []string) error {
	o := runner.Options{Work: defaultWork, Progress: os.Stderr}
	flags := flag.NewFlagSet("rivals", flag.ExitOnError)
	names := flags.String("rivals", "", "comma-separated `names`; if empty, all rivals")
	flags.IntVar(&o.Watchers, "watchers", o.Watchers, "`number` of watchers")
	flags.IntVar(&o.Objects, "objects", o.Objects, "`number` of objects in the initial state")
	flags.IntVar(&o.Returning, "returning", o.Returning, "`number` of watchers that return at the same time")
	flags.IntVar(&o.StallEvents, "stall-events", o.StallEvents, "`number` of events next to a stalled reader")
	flags.IntVar(&o.Rounds, "rounds", 5, "`number` of rounds, whose medians are reported")
	flags.StringVar(&o.Kubernetes, "kubernetes", "",
		"test `binary` of interop/rivals, which runs the Kubernetes API server")
	dir := flags.String("out", "", "`directory` for the table, the plots and the results as JSON")
	docs := flags.String("docs", "", "`file` in which the tables replace the text between the marks")
	_ = flags.Parse(args) // exits on an error
	selected, err := runner.Select(*names)
	if err != nil {
		return err
	}
	if min(o.Watchers, o.Rounds, o.Objects, o.StallEvents, o.Returning) < 1 {
		return fmt.Errorf("-watchers %d -rounds %d -objects %d -stall-events %d -returning %d: all must be positive", o.Watchers,
			o.Rounds, o.Objects, o.StallEvents, o.Returning)
	}
	// Only so many objects have changed.
	o.Missed = min(o.Missed, o.Objects)
	results, err := runner.Run(selected, o)
	if err != nil {
		return err
	}
	r := report.Report{Rivals: selected, Work: o.Work, Rounds: o.Rounds, Results: results}
	fmt.Print(r.Table(), "\n", r.Storm())
	if *dir != "" {
		if err := r.Write(*dir); err != nil {
			return err
		}
	}
	if *docs != "" {
		return r.Update(*docs)
	}
	return nil
}
