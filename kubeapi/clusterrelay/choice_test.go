package clusterrelay

import (
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/kubeapi/table"
)

// The ranges that a list, a get and a watch choose. "server" means that only the API server can
// respond.
func TestChoiceIsThatOfTheServer(t *testing.T) {
	const (
		server = "server"
		as     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		list   = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		rows   = ";as=Table;g=meta.k8s.io;v=v1"
		json   = "application/json"
	)
	metadata, err := table.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ accept, list, get, watch string }{
		{"", "*/*", "*/*", "*/*"},
		{"*/*", "*/*", "*/*", "*/*"},
		{"application/*", "application/*", "application/*", "application/*"},
		{json, json, json, json},
		{"application/yaml", server, server, server},
		{"application/json,application/yaml", json, json, json},
		{"application/yaml,application/json", server, server, server},
		{"application/yaml;q=0.5,application/json", json, json, json},
		{"application/yaml;q=0.5,*/*;q=0.1", server, server, server},
		{"text/html,*/*;q=0.8", "*/*; q=0.800", "*/*; q=0.800", "*/*; q=0.800"},
		{"text/html", server, server, server},
		{json + ";q=0", server, server, server},
		{json + ";unknown=1", json + "; unknown=1", json + "; unknown=1", json + "; unknown=1"},
		{json + rows, server, server, server},
		{json + rows + "," + json, server, server, server},
		{json + "," + json + rows, json, json, json},
		{json + ";as=Table;g=meta.k8s.io;v=v2," + json, json, json, json},
		{
			json + as + "," + json, server, json + "; as=PartialObjectMetadata; g=meta.k8s.io; v=v1",
			json + "; as=PartialObjectMetadata; g=meta.k8s.io; v=v1",
		},
		{json + list, json + "; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1", server, server},
		{"application/cbor," + json, json, json, "application/cbor"},
		{"text/event-stream," + json, json, json, "text/event-stream"},
		{"malformed", server, server, server},
		{protobufType, protobufType, protobufType, protobufType},
		{typedClient, protobufType, protobufType, protobufType},
		{json + "," + protobufType, json, json, json},
		{protobufType + ";q=0.5," + json, json, json, json},
		{"*/*," + protobufType, protobufType, protobufType, protobufType},
		{"application/yaml," + protobufType, server, server, server},
		{protobufType + rows + "," + json, json, json, json},
		{protobufType + rows, server, server, server},
		{
			protobufType + list + "," + json + list + "," + json,
			protobufType + "; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1", server, server,
		},
		{
			protobufType + as + "," + json + as + "," + json, server,
			protobufType + "; as=PartialObjectMetadata; g=meta.k8s.io; v=v1",
			protobufType + "; as=PartialObjectMetadata; g=meta.k8s.io; v=v1",
		},
		{
			protobufType + ";stream=watch," + json, protobufType + "; stream=watch", protobufType + "; stream=watch",
			protobufType + "; stream=watch",
		},
	} {
		for verb, want := range map[string]string{"list": tt.list, "get": tt.get, "watch": tt.watch} {
			r := httptest.NewRequest("GET", "/api/v1/pods", nil)
			if tt.accept != "" {
				// The API server ignores the second header.
				r.Header["Accept"] = []string{tt.accept, "application/yaml"}
			}
			c, got := &call{verb: verb, admitted: &apihttp.Admitted{Parsed: apihttp.Parse(r)}}, server
			if c.choose(r, metadata, func(listwatch.Encoding) bool { return true }) {
				got = c.accept.String()
			}
			if got != want {
				t.Errorf("%s with Accept %q: got %s, want %s", verb, tt.accept, got, want)
			}
		}
	}
}
