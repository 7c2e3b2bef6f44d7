package kubetest

import (
	"fmt"
	"os"

	"github.com/listwatch/listwatch/kubeapi/crd"
)

// eachDocument calls do for each document of the given kinds in files and directories.
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
			documents, err := crd.Documents(text, kinds...)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, document := range documents {
				if err := do(document); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return nil
}
