package kubetest

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/memo"
)

// documents has the documents in files, by the kinds and the text of the file. The conversion of
// YAML takes longer than the creation of the objects.
var documents memo.Memo[[][]byte]

// eachDocument calls do for each document of the given kinds in files and directories. Without
// kinds, it calls do for all documents.
func eachDocument(paths, kinds []string, do func(document []byte) error) error {
	for _, path := range paths {
		files, err := crd.Files(path)
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			key := strings.Join(kinds, " ") + "\n" + string(text)
			documents, err := documents.Get(key, func() ([][]byte, error) { return crd.Documents(text, kinds...) })
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, document := range documents {
				if err := do(bytes.Clone(document)); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return nil
}
