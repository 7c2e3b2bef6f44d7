// Package archtest checks the source of all modules: which packages each package may import, which
// modules each module may require, and the form of files and types. The size of a file, the width
// of a line, the fields of a struct, the methods of an interface, and the place of a type's methods
// belong to the form. These checks only parse the source, so they also work on code that does not
// compile yet. Only outside_test.go builds a program.
//
// The import rules are tables: layers_test.go has those for packages, and modulerules_test.go has
// those for modules. Each new package, module or dependency needs a line there.
package archtest
