package kubestatus_test

import (
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
)

func ExampleOf() {
	err := &listwatch.Error{Code: listwatch.Expired, Message: "version 7 is too old: list again"}
	s := kubestatus.Of(err)
	fmt.Println(s.Code, s.Reason, s.Message)
	// Output: 410 Expired version 7 is too old: list again
}
