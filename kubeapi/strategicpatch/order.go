package strategicpatch

import "slices"

// inOrder reports whether order has all of keys, one after the other. Where either says nothing, there is nothing to hold it to.
func inOrder(keys, order []string) bool {
	if len(order) == 0 {
		return true
	}
	i := 0
	for _, k := range order {
		if i < len(keys) && keys[i] == k {
			i++
		}
	}
	return i == len(keys)
}

// arrange brings the items of those keys into that order. The others keep theirs, and stand before those behind which they stood; an
// item that is new comes as early as the order allows. That is what Kubernetes does.
func (l *list) arrange(order []string) {
	rank := make(map[string]int, len(order))
	for i, k := range order {
		if _, twice := rank[k]; !twice {
			rank[k] = i
		}
	}
	var ordered, others []*item
	for _, it := range l.items {
		if _, ok := rank[it.key]; ok {
			ordered = append(ordered, it)
		} else {
			others = append(others, it)
		}
	}
	slices.SortStableFunc(ordered, func(a, b *item) int { return rank[a.key] - rank[b.key] })
	all := make([]*item, 0, len(l.items))
	for len(ordered) > 0 && len(others) > 0 {
		next := &ordered
		if before(others[0], ordered[0]) {
			next = &others
		}
		all = append(all, (*next)[0])
		*next = (*next)[1:]
	}
	l.items = append(append(all, ordered...), others...)
}

// before reports whether a is known to have stood before b.
func before(a, b *item) bool { return a.position >= 0 && b.position >= 0 && a.position < b.position }
