//go:build unix

package postgres

import (
	"bytes"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testbuild"
)

// programTimeout limits the time until the program serves. Only failing tests wait that long.
const programTimeout = 5 * time.Minute

// A program is examples/postgres as a process of its own, which can be killed.
type program struct {
	*testing.T
	path   string
	args   []string
	url    string // the URL of the collection
	cmd    *exec.Cmd
	output bytes.Buffer
}

// startProgram builds and starts the program. It makes the table in the database watchable.
func startProgram(t *testing.T, database string) *program {
	t.Helper()
	p := &program{T: t, path: testbuild.Program(t, "../../examples/postgres")}
	addr := ports.Address(t) // the program listens there, also after a restart
	p.args = []string{"-database", database, "-addr", addr}
	p.url = "http://" + addr + "/settings"
	p.start("-install")
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of the program:\n%s", p.output.Bytes()[max(0, p.output.Len()-4<<10):])
		}
	})
	return p
}

// start starts the program and waits until it serves the table.
func (p *program) start(args ...string) {
	p.Helper()
	p.cmd = exec.Command(p.path, append(args, p.args...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	deadline := time.After(programTimeout)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		response, err := http.Get(p.url + "?limit=1")
		if err == nil {
			_ = response.Body.Close() // only the status matters
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-deadline:
			p.Fatalf("the program does not serve the table: %v", err)
		}
	}
}

// kill ends the program with SIGKILL.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // fails only if the process has already exited
	_ = p.cmd.Wait()         // the error is that the process was killed
}
