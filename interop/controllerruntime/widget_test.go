package controllerruntime

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// widgets declares what a Widget is to the server.
const widgets = "widgets.v1.demo.example.com=Widget"

var widgetVersion = schema.GroupVersion{Group: "demo.example.com", Version: "v1"}

// A Widget is a resource of our own: it wants a ConfigMap with its text, as often as it says.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Text   string `json:"text"`
	Copies int    `json:"copies,omitempty"`
}

type WidgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// A WidgetList is what a list of widgets is read into.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (w *Widget) DeepCopyObject() runtime.Object { return w.copy() }

func (w *Widget) copy() *Widget {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &out
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].copy()
	}
	return &out
}

// newScheme knows widgets beside the types of Kubernetes.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	scheme.AddKnownTypes(widgetVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgetVersion)
	return scheme
}

// newWidget returns a widget of namespace default.
func newWidget(name, text string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: WidgetSpec{Text: text}}
}
