package aesgcm_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/listwatch/listwatch/store/aesgcm"
	"github.com/listwatch/listwatch/store/bolt"
)

func Example() {
	current := make([]byte, aesgcm.KeyBytes) // in a program: from a file or a secret store
	_, _ = rand.Read(current)
	transformer, err := aesgcm.New(current)
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := bolt.Open(filepath.Join(dir, "test.db"), bolt.Options{Transformer: transformer})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(db.Close())
	// Output: <nil>
}
