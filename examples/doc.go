// Package examples holds small programs, one a folder, that show listwatch at work; the README prints two of them.
package examples
