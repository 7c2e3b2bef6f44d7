package workqueue_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/listwatch/listwatch/workqueue"
)

func ExampleQueue() {
	var q workqueue.Queue[string]
	q.Add("web")
	q.Add("db")
	q.Add("web") // is queued already
	attempts := 0
	for range 3 {
		key, err := q.Get(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		if attempts++; attempts == 1 {
			err = errors.New("not now")
		}
		if err != nil {
			fmt.Println(key, "failed: retried in", q.AddRateLimited(key, 0))
		} else {
			fmt.Println(key, "done")
			q.Forget(key)
		}
		q.Done(key)
	}
	// Output:
	// web failed: retried in 5ms
	// db done
	// web done
}
