// Package examples holds small programs that show how to use listwatch, one in each folder.
// The README shows two of them.
package examples
