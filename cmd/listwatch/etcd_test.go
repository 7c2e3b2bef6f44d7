package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

func TestInvalidEtcdFlagsAreRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const members = "--etcd http://127.0.0.1:1 "
	for args, want := range map[string]struct {
		code   int
		stderr string
	}{
		"--etcd-prefix /x": {
			cli.ExitUsage,
			"--etcd-prefix requires --etcd",
		},
		"--etcd-read-only": {
			cli.ExitUsage,
			"--etcd-read-only requires --etcd",
		},
		"--etcd unix:///tmp/x": {
			cli.ExitUsage,
			"must be an http or https URL",
		},
		members + "--data x": {cli.ExitUsage, "not both"},
		members + "--etcd-layout mine": {
			cli.ExitUsage,
			`must be "listwatch" or "kubernetes"`,
		},
		members + "--etcd-user u":                                       {cli.ExitUsage, "must be set together"},
		members + "--etcd-cert " + empty:                                {cli.ExitUsage, "must be set together"},
		members + "--etcd-ca " + empty:                                  {cli.ExitFailure, "the file is empty"},
		members + "--etcd-ca " + dir + "/none":                          {cli.ExitFailure, "none"},
		members + "--etcd-user u --etcd-password-file " + dir + "/none": {cli.ExitFailure, "none"},
	} {
		p := start(t, append([]string{"serve", "--addr", "127.0.0.1:0"}, strings.Fields(args)...)...)
		code := p.exit(t)
		if stderr := p.stderr.String(); code != want.code || !strings.Contains(stderr, want.stderr) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stderr %q; want %d and one line with %q", args, code, stderr, want.code,
				want.stderr)
		}
	}
}
