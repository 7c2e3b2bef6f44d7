// Package reload reads files again when they change, such as certificates that are renewed.
package reload

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// interval is the time between two checks of the files. Files are compared by their content,
	// so that a symbolic link that is swapped counts as a change.
	interval = 10 * time.Second
	// settle is the time that a changed file must stay the same before it is used, because its
	// writer may have written only half of it.
	settle = time.Second
)

// A File is the value of a flag that names a file.
type File struct{ Flag, Name string }

// Files are the files that a server reads again. Its methods must not be called concurrently. The
// zero Files contains no files.
type Files struct{ sets []*set }

// A set is a group of files that are used together, such as a certificate and its key.
type set struct {
	name    string // identifies the set in messages
	read    func() ([][]byte, error)
	apply   func(contents [][]byte) error
	used    [sha256.Size]byte // the digest of the contents that were passed to apply last
	pending [sha256.Size]byte // the digest of the contents at the last check
}

// Add reads files, and calls apply with their contents, now and whenever they have changed. Errors
// of the first read and call are returned. Later errors are logged. If apply returns an error, it
// must keep the previous state.
func (f *Files) Add(apply func(contents [][]byte) error, files ...File) error {
	var names []string
	for _, file := range files {
		names = append(names, file.Flag+" "+file.Name)
	}
	return f.AddFunc(strings.Join(names, ", "), func() ([][]byte, error) { return readAll(files) }, apply)
}

// AddFunc is like Add, but read returns the contents. name identifies them in messages.
func (f *Files) AddFunc(name string, read func() ([][]byte, error), apply func(contents [][]byte) error) error {
	s := &set{name: name, read: read, apply: apply}
	contents, err := read()
	if err == nil {
		s.used = digest(contents, nil)
		s.pending = s.used
		err = s.call(contents)
	}
	if err == nil {
		f.sets = append(f.sets, s)
	}
	return err
}

func (s *set) call(contents [][]byte) error {
	if err := s.apply(contents); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// AddTLS adds the files of a client's TLS configuration: CAs, a certificate and its key. A file
// without a name is omitted. The certificate and its key must be set together. The returned
// function returns a configuration that combines base with the current contents of the files.
func (f *Files) AddTLS(base *tls.Config, ca, cert, key File) (func() *tls.Config, error) {
	var named []File
	for _, file := range []File{ca, cert, key} {
		if file.Name != "" {
			named = append(named, file)
		}
	}
	var current atomic.Pointer[tls.Config]
	current.Store(base)
	if named == nil {
		return current.Load, nil
	}
	return current.Load, f.Add(func(contents [][]byte) error {
		c := base.Clone()
		if ca.Name != "" {
			c.RootCAs = x509.NewCertPool()
			if !c.RootCAs.AppendCertsFromPEM(contents[0]) {
				return errors.New(ca.Name + ": the file contains no certificate in PEM format")
			}
			contents = contents[1:]
		}
		if cert.Name != "" {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err != nil {
				return err
			}
			c.Certificates = []tls.Certificate{pair}
		}
		current.Store(c)
		return nil
	}, named...)
}

func readAll(files []File) ([][]byte, error) {
	var all [][]byte
	for _, f := range files {
		data, err := os.ReadFile(f.Name)
		if err == nil && len(data) == 0 {
			err = errors.New(f.Name + ": the file is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Flag, err)
		}
		all = append(all, data)
	}
	return all, nil
}

// digest returns the digest of contents or of an error, so that a change or an error is reported
// only once.
func digest(contents [][]byte, err error) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%v\n", err)
	for _, data := range contents {
		fmt.Fprintf(h, "%d\n%s", len(data), data)
	}
	h.Sum(sum[:0])
	return sum
}

// Run checks the files every ten seconds, and after each signal from hangup, until ctx ends. After
// it has applied a change, it calls changed.
func (f *Files) Run(ctx context.Context, log *slog.Logger, hangup <-chan os.Signal, changed func()) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	again := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-hangup:
			log.Info("SIGHUP: reading the files again")
		}
		next := interval
		applied := false
		for _, s := range f.sets {
			ok, unsettled := s.check(log)
			applied = applied || ok
			if unsettled {
				next = settle
			}
		}
		// After a change, call changed again at the next check, for requests that began before the
		// change.
		if applied || again {
			changed()
		}
		again = applied
		timer.Reset(next)
	}
}

// check reads the files of s. It applies changed contents once two checks in a row have read the
// same contents. Until then unsettled is true, and the caller must call check again soon.
func (s *set) check(log *slog.Logger) (applied, unsettled bool) {
	contents, err := s.read()
	sum := digest(contents, err)
	last := s.pending
	s.pending = sum
	switch {
	case sum == s.used:
		return false, false
	case sum != last:
		return false, true
	}
	s.used = sum
	if err == nil {
		err = s.call(contents)
	}
	if err != nil {
		log.Warn("cannot use the changed files, so the previous ones stay in use", "error", err)
		return false, false
	}
	log.Info("using the changed files", "files", s.name)
	return true, false
}
