// Package browsertest opens pages in a headless browser. The environment variable LISTWATCH_BROWSER
// names the browser. Without it, the tests look for Chromium or Chrome in PATH. OpenIn opens a page
// in Firefox or WebKit, too.
package browsertest
