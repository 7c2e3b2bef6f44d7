package servers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
	"github.com/listwatch/listwatch/benchmarks/rivals/internal/usage"
)

// Serve is the main function of a server process. It runs the named server with a number of
// objects, prints "ready ADDRESS", and executes the commands on its standard input until end of
// file:
//
//	publish N MICROSECONDS    publish N changes at this interval, and print "ok"
//	usage                     print the resources that the process has used, as JSON
func Serve(name string, objects int, in io.Reader, out io.Writer) error {
	start, ok := All[name]
	if !ok {
		return fmt.Errorf("unknown server %q", name)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	generator := event.NewGenerator()
	server, err := start(l, generator.State(objects))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready", l.Addr())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var n, interval int
		if lines.Text() == "usage" {
			if err := printUsage(out); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "publish %d %d", &n, &interval); err != nil {
			return fmt.Errorf("command %q: must be publish N MICROSECONDS, or usage", lines.Text())
		}
		publish(server, generator, n, time.Duration(interval)*time.Microsecond)
		fmt.Fprintln(out, "ok")
	}
	return nil
}

// publish publishes n changes. interval is the time between two changes; zero means no delay.
func publish(s Server, g *event.Generator, n int, interval time.Duration) {
	if interval == 0 {
		for range n {
			s.Publish(g.Next())
		}
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for range n {
		<-ticker.C
		s.Publish(g.Next())
	}
}

// printUsage prints the resources that this process has used. It reads the CPU time first, because
// the garbage collection before the measurement of the memory is not part of the server's work.
func printUsage(out io.Writer) error {
	cpu, err := usage.CPU()
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	resident, err := usage.Resident(os.Getpid())
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(usage.Usage{CPU: cpu, Resident: resident})
}
