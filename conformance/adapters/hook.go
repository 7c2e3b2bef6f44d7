package adapters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A hookProcess is a command that implements the control hook. It reads requests from its
// standard input and writes replies to its standard output, as lines of JSON.
type hookProcess struct {
	// Immutable after construction.
	command *exec.Cmd
	replies *json.Decoder
	done    chan struct{} // closed when no more replies can arrive

	sendMu sync.Mutex
	stdin  io.WriteCloser // guarded by sendMu

	mu sync.Mutex
	// Guarded by mu.
	lastID   int
	handlers map[int]func(line json.RawMessage)
	err      error // the reason why no more replies can arrive
}

// startTimeout limits the time until a command writes its first line. It is long because the
// command may have to be compiled.
const startTimeout = 2 * time.Minute

// startHook starts a shell command and decodes its first line into hello.
func startHook(ctx context.Context, command string, notes io.Writer, hello any) (*hookProcess, error) {
	h := &hookProcess{
		command: exec.Command("sh", "-c", command), done: make(chan struct{}),
		handlers: map[int]func(json.RawMessage){},
	}
	h.command.Stderr, h.command.WaitDelay = notes, stopTimeout
	in, err := h.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.stdin, h.replies = in, json.NewDecoder(bufio.NewReaderSize(out, 64<<10))
	if err := h.command.Start(); err != nil {
		return nil, untestable(fmt.Sprintf("command %q", command), err)
	}
	started := make(chan error, 1)
	go func() {
		defer close(h.done)
		err := h.replies.Decode(hello)
		started <- err
		if err == nil {
			h.readReplies()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("it wrote no first line within %v", startTimeout))
	defer cancel()
	select {
	case err = <-started:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		return h, nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it exited before it wrote its first line")
	}
	h.kill()
	return nil, untestable(fmt.Sprintf("command %q", command), &listwatch.Error{Code: listwatch.Unavailable, Err: err})
}

// readReplies passes each reply to its handler.
func (h *hookProcess) readReplies() {
	for {
		var line json.RawMessage
		var target struct{ ID int }
		err := h.replies.Decode(&line)
		if err == nil {
			err = json.Unmarshal(line, &target)
		}
		if err != nil {
			h.setError(err)
			return
		}
		h.mu.Lock()
		handle := h.handlers[target.ID]
		h.mu.Unlock()
		if handle != nil {
			handle(line)
		}
	}
}

func (h *hookProcess) setError(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = exitedError{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = &listwatch.Error{Code: listwatch.Unavailable, Message: "the command does not reply", Err: err}
}

// An exitedError is an [os.ErrProcessDone] with a message of its own.
type exitedError struct{}

func (exitedError) Error() string        { return "it has exited" }
func (exitedError) Is(target error) bool { return target == os.ErrProcessDone }

// failure returns the reason why no more replies can arrive, or nil if they can.
func (h *hookProcess) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// subscribe returns a new request ID. Until stop is called, handle receives every reply to that ID,
// one call at a time. handle must return quickly.
func (h *hookProcess) subscribe(handle func(line json.RawMessage)) (id int, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	id = h.lastID
	h.handlers[id] = handle
	return id, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.handlers, id)
	}
}

func (h *hookProcess) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h.sendMu.Lock()
	defer h.sendMu.Unlock()
	if _, err := h.stdin.Write(append(line, '\n')); err != nil {
		return &listwatch.Error{Code: listwatch.Unavailable, Message: "cannot send a request to the command", Err: err}
	}
	return nil
}

// request sends the request that newRequest creates for a new ID, and decodes the first
// reply into v.
func (h *hookProcess) request(ctx context.Context, newRequest func(id int) any, v any) error {
	reply := make(chan json.RawMessage, 1)
	id, stop := h.subscribe(func(line json.RawMessage) {
		select {
		case reply <- line:
		default: // only the first reply counts
		}
	})
	defer stop()
	if err := h.send(newRequest(id)); err != nil {
		return err
	}
	select {
	case line := <-reply:
		var failed struct{ Error string }
		if err := json.Unmarshal(line, &failed); err != nil {
			return fmt.Errorf("reply %s: %w", line, err)
		}
		if failed.Error != "" {
			return errors.New(failed.Error)
		}
		return json.Unmarshal(line, v)
	case <-h.done:
		return h.failure()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopTimeout limits the time until a command exits.
const stopTimeout = 5 * time.Second

// Close closes the command's standard input and waits until the command exits. It kills the command
// after five seconds.
func (h *hookProcess) Close() error {
	h.sendMu.Lock()
	h.stdin.Close()
	h.sendMu.Unlock()
	late := time.AfterFunc(stopTimeout, func() { _ = h.command.Process.Kill() })
	defer late.Stop()
	<-h.done
	return h.command.Wait()
}

func (h *hookProcess) kill() {
	_ = h.command.Process.Kill()
	h.stdin.Close()
	_ = h.command.Wait() // closes the pipes; its error only reports that the command was killed
	<-h.done
}
