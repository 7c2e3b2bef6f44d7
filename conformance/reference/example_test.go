package reference_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/reference"
)

// An interceptor breaks the reference server, to show that the cases can fail.
func ExampleNew() {
	ignoreSelector := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			query.Del("labelSelector")
			r.URL.RawQuery = query.Encode()
			next.ServeHTTP(w, r)
		})
	}
	for _, target := range []conformance.Target{
		reference.New("correct", reference.Interceptors{}),
		reference.New("broken", reference.Interceptors{Handler: ignoreSelector}),
	} {
		r, err := conformance.Execute(context.Background(), target,
			conformance.Options{Run: []string{"select/label*/h2"}}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(target.Name, r.OK())
	}
	// Output:
	// correct true
	// broken false
}
