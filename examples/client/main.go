// Command client prints the changes of the flags that examples/server serves.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

func main() {
	flags := &client.Remote{URL: "http://127.0.0.1:8081/flags"}
	w, err := flags.Watch(context.Background(), listwatch.Query{})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range listwatch.All(context.Background(), w) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Type, e.Object.Key, string(e.Object.Data))
	}
}
