package spans_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/listwatch/listwatch/observe/spans"
)

func ExampleHeader() {
	ctx, span := sdktrace.NewTracerProvider().Tracer("example").Start(context.Background(), "reconcile")
	defer span.End()

	header, err := spans.Header(nil)(ctx, false) // client.Remote calls it for each request
	fmt.Println(len(header.Get("Traceparent")), err)
	// Output: 55 <nil>
}
