//go:build !race

package cases

// raced is false: cases about many bytes have them all.
const raced = false
