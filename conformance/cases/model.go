package cases

import "github.com/listwatch/listwatch"

// A model replays a history. Its writes must have been made one after another.
type model struct {
	history []write
	state   map[string]listwatch.Version
}

// advance makes state what it was at v, which must not be older than before.
func (m *model) advance(v listwatch.Version) {
	for len(m.history) > 0 && m.history[0].version <= v {
		w := m.history[0]
		m.history = m.history[1:]
		if m.state[w.name] = w.version; w.labels == nil {
			delete(m.state, w.name)
		}
	}
}

// stateAt returns the versions of the objects that there were at v.
func (d *data) stateAt(v listwatch.Version) map[string]listwatch.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &model{history: d.history, state: map[string]listwatch.Version{}}
	m.advance(v)
	return m.state
}
