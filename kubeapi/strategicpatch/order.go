package strategicpatch

import "slices"

// isSubsequence reports whether order is empty or has keys as a subsequence.
func isSubsequence(keys, order []string) bool {
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

// reorder moves the items whose keys are elements of order into that order. All other items keep
// their relative order, and stay before the moved items that they preceded. A new item is placed as
// early as possible, as in Kubernetes.
func (l *list) reorder(order []string) {
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
		if stoodBefore(others[0], ordered[0]) {
			next = &others
		}
		all = append(all, (*next)[0])
		*next = (*next)[1:]
	}
	l.items = append(append(all, ordered...), others...)
}

// stoodBefore reports whether a preceded b before the patch.
func stoodBefore(a, b *item) bool {
	return a.position >= 0 && b.position >= 0 && a.position < b.position
}
