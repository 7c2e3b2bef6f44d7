package adapters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A hook is a command that speaks lines of JSON: it is told on its standard input what to do, and answers on its standard output. What it writes to
// its standard error goes to notes.
type hook struct {
	// Immutable after construction.
	command *exec.Cmd
	answers *json.Decoder
	over    chan struct{} // closed when nobody answers any more

	sending sync.Mutex
	in      io.WriteCloser // guarded by sending

	mu sync.Mutex
	// Guarded by mu.
	last    int
	waiting map[int]func(line json.RawMessage)
	err     error // why it is over
}

// helloTime is how long a command may take to say what it is: it may have to be compiled first.
const helloTime = 2 * time.Minute

// startHook starts a command of a shell, and reads its first line into hello.
func startHook(ctx context.Context, command string, notes io.Writer, hello any) (*hook, error) {
	h := &hook{command: exec.Command("sh", "-c", command), over: make(chan struct{}), waiting: map[int]func(json.RawMessage){}}
	h.command.Stderr, h.command.WaitDelay = notes, byeTime
	in, err := h.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.in, h.answers = in, json.NewDecoder(bufio.NewReaderSize(out, 64<<10))
	if err := h.command.Start(); err != nil {
		return nil, unusable(command, err)
	}
	said := make(chan error, 1)
	go func() {
		defer close(h.over)
		err := h.answers.Decode(hello)
		said <- err
		if err == nil {
			h.read()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, helloTime, errors.New("it says nothing"))
	defer cancel()
	select {
	case err = <-said:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		return h, nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended before it said what it is")
	}
	h.kill()
	return nil, unusable("the command "+command, &listwatch.Error{Code: listwatch.Unavailable, Err: err})
}

// read hands every answer to who waits for it.
func (h *hook) read() {
	for {
		var line json.RawMessage
		var to struct{ ID int }
		err := h.answers.Decode(&line)
		if err == nil {
			err = json.Unmarshal(line, &to)
		}
		if err != nil {
			h.end(err)
			return
		}
		h.mu.Lock()
		tell := h.waiting[to.ID]
		h.mu.Unlock()
		if tell != nil {
			tell(line)
		}
	}
}

func (h *hook) end(err error) {
	if errors.Is(err, io.EOF) {
		err = errors.New("it has ended")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = &listwatch.Error{Code: listwatch.Unavailable, Message: "the command does not answer", Err: err}
}

// failure says why the hook is over.
func (h *hook) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// listen has tell called with every answer of a new id, until stop is called. It is called by one goroutine and must be quick.
func (h *hook) listen(tell func(line json.RawMessage)) (id int, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	id = h.last
	h.waiting[id] = tell
	return id, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, id)
	}
}

func (h *hook) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h.sending.Lock()
	defer h.sending.Unlock()
	if _, err := h.in.Write(append(line, '\n')); err != nil {
		return &listwatch.Error{Code: listwatch.Unavailable, Message: "the command takes no more requests", Err: err}
	}
	return nil
}

// ask sends what request makes of a new id, and reads the one answer into v.
func (h *hook) ask(ctx context.Context, request func(id int) any, v any) error {
	answer := make(chan json.RawMessage, 1)
	id, stop := h.listen(func(line json.RawMessage) {
		select {
		case answer <- line:
		default: // one is enough
		}
	})
	defer stop()
	if err := h.send(request(id)); err != nil {
		return err
	}
	select {
	case line := <-answer:
		var failed struct{ Error string }
		if err := json.Unmarshal(line, &failed); err != nil {
			return fmt.Errorf("the answer %s: %w", line, err)
		}
		if failed.Error != "" {
			return errors.New(failed.Error)
		}
		return json.Unmarshal(line, v)
	case <-h.over:
		return h.failure()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// byeTime is how long a command may take to end.
const byeTime = 5 * time.Second

// Close ends the command: its standard input ends, and it is killed if it does not end of itself.
func (h *hook) Close() error {
	h.sending.Lock()
	h.in.Close()
	h.sending.Unlock()
	late := time.AfterFunc(byeTime, func() { _ = h.command.Process.Kill() })
	defer late.Stop()
	<-h.over
	return h.command.Wait()
}

func (h *hook) kill() {
	_ = h.command.Process.Kill()
	h.in.Close()
	_ = h.command.Wait() // it was killed; this closes the pipes
	<-h.over
}
