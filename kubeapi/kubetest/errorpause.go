package kubetest

import (
	"context"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// errorPause is the pause after an error that client-go can only log, as in client-go.
const errorPause = time.Millisecond

// client-go pauses after an error if the last one was less than errorPause ago, and considers the
// start of the process as the time of the first one. The clock of a bubble of testing/synctest
// begins in the year 2000, so the first error in a bubble would pause until today, and no context
// would end the pause.
func init() {
	utilruntime.ErrorHandlers = append(utilruntime.ErrorHandlers[:1:1], func(context.Context, error, string, ...any) {
		time.Sleep(errorPause)
	})
}
