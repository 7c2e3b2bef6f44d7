// Package javascript contains only tests. They run the conformance suite's cases for clients
// against the JavaScript client, in Node.js and in headless Chromium, open pages that use it in
// Chromium, Firefox and WebKit, measure its size, and run its adapter for TanStack DB.
package javascript
