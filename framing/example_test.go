package framing_test

import (
	"fmt"
	"strings"

	"github.com/listwatch/listwatch/framing"
)

func ExampleRegistry_Negotiate() {
	accept, err := framing.ParseAccept([]string{"application/json;q=0.5, text/event-stream"})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := framing.Default().Negotiate(accept, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	event := framing.WatchEvent{
		Type: "ADDED", Object: []byte(`{"metadata":{"name":"a","resourceVersion":"7"}}`),
		Version: 7,
	}
	stream, err := f.AppendEvent(nil, event)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(stream))
	// Output:
	// id: 7
	// event: ADDED
	// data: {"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}
}

func ExampleDecoder() {
	stream := strings.NewReader(`{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"8"}}}` + "\n")
	d := framing.JSON{}.NewDecoder(stream, 0)
	for {
		w, err := d.Decode()
		if err != nil {
			fmt.Println(err)
			return
		}
		e, err := w.Event()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Type, e.Object.Key, e.Version)
	}
	// Output:
	// DELETED a 8
	// EOF
}

func ExampleCBORSeq() {
	event := framing.WatchEvent{Type: "ADDED", Object: []byte(`{"n":9007199254740993,"big":1e400}`)}
	message, err := framing.CBORSeq{}.AppendMessage(nil, event)
	if err != nil {
		fmt.Println(err)
		return
	}
	decoded, err := framing.CBORSeq{}.DecodeMessage(message)
	fmt.Println(len(message), string(decoded.Object), err)
	// Output: 41 {"n":9007199254740993,"big":1e400} <nil>
}
