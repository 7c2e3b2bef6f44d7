// Package browsertest opens pages in a headless browser. Tests find the browser in the variable
// LISTWATCH_BROWSER or on the path.
package browsertest
