package runner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// answerTimeout limits the time until a process answers. A server that blocks in Publish does not
// answer at all.
const answerTimeout = time.Minute

// errNoAnswer is the error of a process that does not answer in time.
var errNoAnswer = errors.New("no answer")

// A process is a server or load process, which executes commands line by line.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string // closed at the end of the process
	stderr  tail
}

// A tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const keep = 2000
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-keep):]
	return len(p), nil
}

// String returns the bytes that the tail has kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

func start(env []string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), answers: make(chan string, 1)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.answers)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.answers <- strings.TrimSpace(line)
		}
	}()
	return p, nil
}

// startSelf starts this program in another role, with its parameters as JSON.
func startSelf(role string, parameters any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}
	return start(nil, self, role, string(text))
}

// answer waits for the next line of output.
func (p *process) answer(timeout time.Duration) (string, error) {
	select {
	case line, ok := <-p.answers:
		if !ok {
			return "", fmt.Errorf("the process has ended; it wrote %q", &p.stderr)
		}
		return line, nil
	case <-time.After(timeout):
		return "", errNoAnswer
	}
}

// ask executes a command and decodes the answer, unless result is nil.
func (p *process) ask(result any, format string, args ...any) error {
	command := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	line, err := p.answer(answerTimeout)
	if err == nil && result != nil {
		err = json.Unmarshal([]byte(line), result)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// stop kills the process, which may be blocked, and waits until it has ended.
func (p *process) stop() {
	p.in.Close()
	_ = p.cmd.Process.Kill() // fails if the process has already ended
	for range p.answers {
	}
	_ = p.cmd.Wait() // the process was killed
}
