//go:build !race

package kubernetes

import (
	"fmt"
	"testing"

	"github.com/listwatch/listwatch/interop/internal/apiserver"
)

func TestInformersFollowAKubernetesServer(t *testing.T) {
	s := apiserver.Start(t)
	groups := 0
	for name, build := range informerBuilders {
		groups++
		r := widgetGVR
		r.Group = fmt.Sprintf("group-%d.%s", groups, widgetGVR.Group)
		t.Run(name, func(t *testing.T) {
			createCRD(t, s.Config(), r, "Widget")
			runScenario(t, scenarioServer{serverEndpoint: serverEndpoint{
				config: s.Config(), group: r.GroupVersion(),
				kind: "Widget",
			}}, r, build)
		})
	}
}
