// Package archtest holds the tests that keep the source of all modules in order: which package
// may import which, what each module may require, and what every file owes its reader. It
// parses the source and runs none of it, so it also works on code that does not compile yet.
//
// The rules of imports are tables: layers_test.go for packages, modulerules_test.go for
// modules. A new package, module or dependency gets a line there.
package archtest
