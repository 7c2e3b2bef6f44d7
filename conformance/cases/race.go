//go:build race

package cases

// raced: the race detector looks at every byte, so that cases about many of them do with fewer.
const raced = true
