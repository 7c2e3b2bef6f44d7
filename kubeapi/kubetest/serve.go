package kubetest

import (
	"context"
	"log"
	"net"
	"slices"
	"testing"
)

// Serve serves a cluster at l until ctx ends, for kubectl and for programs under development that
// run on the same machine. It writes a kubeconfig file with the URL of the cluster to the path
// kubeconfig. Every client that reaches l is an administrator, so l should have a loopback address.
// Serve returns an error if a definition is invalid or the file cannot be written. Before it
// serves, it calls ready.
func Serve(
	ctx context.Context, l net.Listener, kubeconfig string, o Options, log *log.Logger, ready func(),
) error {
	p := &program{log: log}
	defer p.end()
	e, err := newEnv(p, o)
	if err != nil {
		return err
	}
	if err := writeKubeconfig(kubeconfig, "http://"+l.Addr().String()); err != nil {
		return err
	}
	ready()
	e.serve(l)
	<-ctx.Done()
	return nil
}

// A program is the program that serves an [Env], where otherwise a test does. Only the methods
// below are called.
type program struct {
	testing.TB // nil
	log        *log.Logger
	cleanups   []func()
}

func (p *program) end() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}

// Cleanup implements [testing.TB].
func (p *program) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

// Helper implements [testing.TB].
func (p *program) Helper() {}

// Context implements [testing.TB]. There is no test whose end an Env could watch.
func (p *program) Context() context.Context { return nil }

// Failed implements [testing.TB].
func (p *program) Failed() bool { return false }

// Logf implements [testing.TB].
func (p *program) Logf(format string, args ...any) { p.log.Printf(format, args...) }

// Errorf implements [testing.TB].
func (p *program) Errorf(format string, args ...any) { p.log.Printf(format, args...) }
