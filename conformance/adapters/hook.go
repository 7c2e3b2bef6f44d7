package adapters

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
)

// A hookProcess is a command that implements the control hook. It reads requests from its
// standard input and writes replies to its standard output, as lines of JSON.
type hookProcess struct {
	// Immutable after construction.
	command *exec.Cmd
	replies *bufio.Reader
	done    chan struct{} // closed when no more replies can arrive

	sendMu sync.Mutex
	stdin  io.WriteCloser // guarded by sendMu

	mu sync.Mutex
	// Guarded by mu.
	lastID   int
	handlers map[int]func(line json.RawMessage)
	invalid  []error // lines that are not JSON, since the last call of takeInvalid
	err      error   // the reason why no more replies can arrive
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
	h.stdin, h.replies = in, bufio.NewReaderSize(out, 64<<10)
	if err := h.command.Start(); err != nil {
		return nil, untestable(fmt.Sprintf("command %q", command), err)
	}
	started := make(chan error, 1)
	go func() {
		defer close(h.done)
		err := h.readHello(hello)
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

func (h *hookProcess) readHello(hello any) error {
	line, err := h.readLine()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, hello); err != nil {
		return invalidLine(line, err)
	}
	return nil
}

// readLine returns the next line that is not empty.
func (h *hookProcess) readLine() (json.RawMessage, error) {
	for {
		line, err := h.replies.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// readReplies passes each reply to its handler. A line that is not JSON fails the running case. If
// it contains an ID, it also fails the watch or request with that ID.
func (h *hookProcess) readReplies() {
	for {
		line, err := h.readLine()
		if err != nil {
			h.setError(err)
			return
		}
		var target struct{ ID int }
		if err := json.Unmarshal(line, &target); err != nil {
			line = h.reject(line, err)
			_ = json.Unmarshal(line, &target) // reject has made it valid
		}
		h.mu.Lock()
		handle := h.handlers[target.ID]
		h.mu.Unlock()
		if handle != nil {
			handle(line)
		}
	}
}

// idInLine finds the ID in a line that is not JSON.
var idInLine = regexp.MustCompile(`"id"\s*:\s*(\d{1,9})`)

// reject records that line is invalid because of err. It returns a reply that reports this to the
// handler of the request that the line belongs to.
func (h *hookProcess) reject(line []byte, err error) json.RawMessage {
	err = invalidLine(line, err)
	h.mu.Lock()
	h.invalid = append(h.invalid, err)
	h.mu.Unlock()
	reply := struct {
		ID    int    `json:"id"`
		Error string `json:"error"`
	}{Error: err.Error()}
	if id := idInLine.FindSubmatch(line); id != nil {
		reply.ID, _ = strconv.Atoi(string(id[1])) // at most nine digits
	}
	text, _ := json.Marshal(reply) // an integer and a string
	return text
}

// invalidLine returns the error of a line that is not JSON. It shows the line.
func invalidLine(line []byte, err error) error {
	const limit = 300
	if len(line) <= limit {
		return fmt.Errorf("the command wrote a line that is not JSON (%w): %s", err, line)
	}
	return fmt.Errorf("the command wrote a line of %d bytes that is not JSON (%w), which begins with %s",
		len(line), err, line[:limit])
}

// takeInvalid returns the errors of the invalid lines since its last call.
func (h *hookProcess) takeInvalid() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errors.Join(h.invalid...)
	h.invalid = nil
	return err
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
		var failed struct{ Error, Code string }
		if err := json.Unmarshal(line, &failed); err != nil {
			return fmt.Errorf("reply %s: %w", line, err)
		}
		if failed.Error != "" {
			return &listwatch.Error{Code: requestCodes[failed.Code], Message: failed.Error}
		}
		return json.Unmarshal(line, v)
	case <-h.done:
		return h.failure()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// requestCodes holds the codes of failed requests that some cases permit. Any other code is
// Unknown.
var requestCodes = map[string]listwatch.Code{"NotFound": listwatch.NotFound, "Conflict": listwatch.Conflict}

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
