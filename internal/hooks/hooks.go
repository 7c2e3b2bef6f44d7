// Package hooks fills the structs with which programs trace what a package does.
package hooks

import "reflect"

// Fill returns a copy of t, a struct of functions without results, in which functions that do
// nothing replace the nil functions. t may be nil.
func Fill[T any](t *T) *T {
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
