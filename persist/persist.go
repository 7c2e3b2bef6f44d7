// Package persist configures the copies of collections that informers and relays keep in files.
package persist

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A File keeps a copy of a collection in a file, so that an informer or a relay that starts again
// receives only what has changed since. The zero value keeps no copy.
//
// A file that is missing or damaged, or is a copy of something else, is not used: the informer or
// relay then receives the whole state. The file is removed when the Source answers that its reader
// may not read the collection (401 or 403). A Source that does not identify its states, such as an
// API server of Kubernetes, has no copy, because nothing would tell when its versions have started
// over.
type File struct {
	// Path is the path of the file, which belongs to one informer or relay. Only the user of the
	// process can read it. If empty, there is no file. It should be on a local disk: the start
	// waits for the file, and the end for the last save, as long as the file system takes.
	Path string
	// Form is compared with the Form of the program that saved the file. An informer must change it
	// when its Decode or Transform change, because the file holds their results as JSON. A change
	// of the type of the values is noticed without it. A relay must change it when its upstream
	// becomes another one, because the relay serves the copy before the upstream has answered. A
	// change of the URL of a client.Remote is noticed without it.
	Form string
	// Interval is the minimum time between two saves. If zero, one minute is used. A negative value
	// saves only at the end.
	Interval time.Duration
	// Secrets permits copies of collections of the kind Secret.
	Secrets bool
}

// Saved describes what happened to the file of a [File].
type Saved struct {
	// Objects is the number of objects in the copy, and Version is the version of the copy. Both
	// are zero if the copy was removed, or could not be used at the start.
	Objects int
	Version listwatch.Version
	// Took is the time that was needed to save the copy.
	Took time.Duration
	// Err is the reason if the copy could not be saved, removed or used.
	Err error
}
