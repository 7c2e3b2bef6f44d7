// Package persist configures the copies of collections that informers and relays keep in files.
package persist

import (
	"time"

	"github.com/listwatch/listwatch"
)

// A File keeps a copy of a collection in a file, so that an informer or a relay that starts again
// receives only what has changed since. The zero value keeps no copy.
//
// If the file is missing or damaged, or is a copy of something else, it is not used, and the
// informer or relay receives the whole state. The file is removed when the Source refuses the
// reader with 401 or 403. Some Sources, such as a Kubernetes API server, do not identify their
// states. There is no copy of such a Source, because a reader could not detect that its versions
// have started over.
type File struct {
	// Path is the path of the file. Each informer or relay needs a file of its own. Only the user
	// of the process can read the file. If Path is empty, there is no file. The file should be on a
	// local disk, because the start waits until it is read, and the end waits until it is saved.
	Path string
	// Form must be equal to the Form with which the file was saved; otherwise the file is not used.
	// Change the Form of an informer when its Decode or Transform changes, because the file holds
	// their results as JSON. Change the Form of a relay when its upstream becomes another one,
	// because the relay serves the copy before the upstream has responded. A change of the type of
	// the values, or of the URL of a client.Remote, is detected without a new Form.
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
	// Took is the time that saving the copy took.
	Took time.Duration
	// Err is the reason why the copy could not be saved, removed or used, or nil.
	Err error
}
