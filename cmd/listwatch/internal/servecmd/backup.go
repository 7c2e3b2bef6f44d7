package servecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store/bolt"
)

// NewBackup returns the command listwatch backup.
func NewBackup() *cobra.Command {
	var debugURL string
	cmd := &cobra.Command{
		Use:   "backup FILE OUT",
		Short: "Copy the data file of serve consistently, even while it is open",
		Long: `Copy FILE, which serve --data has written, to OUT.

Only one process can open a data file, so a running server makes the copy
itself: pass the URL of its --debug-addr, on the same machine, with
--debug-url. The server writes FILE.backup, which this command moves to OUT.
A copy by other programs, such as cp, is damaged if the server writes meanwhile.

To restore, stop the server, replace FILE by OUT, and start it once with
--data-restored. Without that flag, serve refuses OUT.`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if debugURL == "" {
				err := bolt.BackupFile(args[0], args[1])
				if errors.Is(err, listwatch.Unavailable) {
					return fmt.Errorf("%w; pass the URL of its --debug-addr with --debug-url", err)
				}
				return err
			}
			return requestBackup(cmd.Context(), debugURL, args[0], args[1])
		},
	}
	cmd.Flags().StringVar(&debugURL, "debug-url", "",
		"`URL` of the --debug-addr of the server that has FILE open, such as http://127.0.0.1:6060")
	return cmd
}

// requestBackup requests a backup from the server at debugURL, and moves the backup to the path
// out. The server must have the given data file open.
func requestBackup(ctx context.Context, debugURL, file, out string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, debugURL+backupPath, http.NoBody)
	if err != nil {
		return cli.Usagef("--debug-url: %w", err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %w", backupPath, kubestatus.Parse(body))
	}
	var made struct{ File string }
	if err := json.Unmarshal(body, &made); err != nil {
		return fmt.Errorf("POST %s: %w", backupPath, err)
	}
	if open := strings.TrimSuffix(made.File, backupSuffix); !isSameFile(open, file) {
		return errors.Join(cli.Usagef("the server at %s has the file %s open, not %s", debugURL, open, file),
			os.Remove(made.File))
	}
	if err := os.Rename(made.File, out); err != nil {
		return fmt.Errorf("the backup is complete, but could not be moved: %w", err)
	}
	return nil
}

func isSameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

const (
	backupPath = "/debug/backup"
	// backupSuffix is the end of the name of a backup that a server writes.
	backupSuffix = ".backup"
)

// serveBackup writes a backup next to the data file. A client cannot choose the path, because the
// debug address requires no credentials.
func (s *server) serveBackup(w http.ResponseWriter, r *http.Request) {
	db, ok := s.db.(*bolt.DB)
	if !ok {
		apihttp.WriteError(w, r, &listwatch.Error{Code: listwatch.NotFound, Message: "the server has no --data file"})
		return
	}
	file := db.RealPath() + backupSuffix
	if err := db.Backup(file); err != nil {
		apihttp.WriteError(w, r, err)
		return
	}
	s.Log.Info("backup written", "file", file)
	apihttp.WriteJSON(w, r, http.StatusOK, map[string]string{"file": file})
}
