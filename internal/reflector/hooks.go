package reflector

import "reflect"

// Hooks returns a copy of t, a struct of functions without results, in which functions that do
// nothing replace the nil functions. t may be nil.
func Hooks[T any](t *T) *T {
	full := new(T)
	if t != nil {
		*full = *t
	}
	for field, hook := range reflect.ValueOf(full).Elem().Fields() {
		if hook.IsNil() {
			hook.Set(reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value { return nil }))
		}
	}
	return full
}
