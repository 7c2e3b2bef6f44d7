// Package archtest checks the source of all modules: which package may import which, which modules
// each module may require, and the form of every file: its size, its width, its comments, the
// layers within its package. It parses the source and runs none of it, so it also works on code
// that does not compile yet.
//
// The rules of imports are tables: layers_test.go for packages, modulerules_test.go for
// modules. A new package, module or dependency gets a line there.
package archtest
