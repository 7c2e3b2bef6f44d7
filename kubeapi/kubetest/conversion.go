package kubetest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/rawjson"
	"github.com/listwatch/listwatch/kubeapi"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/util/webhook"
)

// converter returns the Converter of the objects of a definition whose webhook converts them. It
// uses Kubernetes' own code.
func (a *api) converter(definition *listwatch.Object) kubeapi.Converter {
	convertor := sync.OnceValues(func() (runtime.ObjectConvertor, error) {
		var c v1.CustomResourceDefinition
		if err := json.Unmarshal(definition.Data, &c); err != nil {
			return nil, err
		}
		v1.SetObjectDefaults_CustomResourceDefinition(&c)
		if config := c.Spec.Conversion.Webhook.ClientConfig; config.Service != nil {
			// The server is in this process, or its certificate is not verified.
			config.CABundle = nil
		}
		services := webhook.NewDefaultServiceResolver()
		factory, err := conversion.NewCRConverterFactory(services, a.chain.Webhooks.Resolver())
		if err != nil {
			return nil, err
		}
		safe, _, err := factory.NewConverter(&c)
		return safe, err
	})
	return func(_ context.Context, object []byte, apiVersion string) ([]byte, error) {
		to, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, err
		}
		c, err := convertor()
		if err != nil {
			return nil, conversionFailed(err)
		}
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(object, &u.Object); err != nil {
			return nil, err
		}
		converted, err := c.ConvertToVersion(u, to)
		if err != nil {
			return nil, conversionFailed(err)
		}
		return rawjson.Encode(converted.(*unstructured.Unstructured).Object)
	}
}

func conversionFailed(err error) error {
	return &listwatch.Error{Status: http.StatusInternalServerError, Message: err.Error()}
}
