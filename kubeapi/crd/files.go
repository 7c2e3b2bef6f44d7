package crd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns path or, if it is a directory, the files in it whose names end with .yaml, .yml or
// .json, without those in subdirectories and without kustomization.yaml, which has no objects.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		isData := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
		if isData && !e.IsDir() && strings.TrimSuffix(name, filepath.Ext(name)) != "kustomization" {
			files = append(files, filepath.Join(path, name))
		}
	}
	return files, nil
}
