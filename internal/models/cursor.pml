/*
 * A watcher of a log that resumes by difference: internal/history (Log, Cursor) and a client that
 * holds a copy of the objects. All interleavings of writes, of the loss of history, of the steps of
 * a cursor, and of broken connections are explored.
 *
 * Each write changes one object. An object is absent, selected by the watcher's selectors, or not
 * selected. The labels of the process Cursor are the stages in internal/history. A start version in
 * the future (startWait) only delays the first step, and live reads the same records as backlog.
 */
#define KEYS 2
#define WRITES 3

#define ABSENT 0
#define SELECTED 1
#define OTHER 2

#define STATE(v, k) state[(v) * KEYS + (k)]
#define WROTE(v, k) wrote[(v) * KEYS + (k)]
/* A departure of version v, whose object the selection had before. */
#define DEPARTED(v, k) (STATE((v) - 1, k) == SELECTED && STATE(v, k) != SELECTED)

byte state[(WRITES + 1) * KEYS]; /* the objects at each version */
byte wrote[(WRITES + 1) * KEYS]; /* the version of the last write of each object */
byte newest;                     /* Log.version */
byte floor;                      /* records after this version are retained: records.floor */
byte horizon;                    /* departures after this version are known: departures.horizon */

mtype = { ADDED, MODIFIED, DELETED, SYNCED, EXPIRED };
chan wire = [1] of { mtype, byte, byte, bool }; /* type, key, version, and whether it is a difference */

/* What the client holds: the selected objects as of version `at`. */
bool copy[KEYS];
bool hasState;
byte at;

active proctype Writer()
{
	byte k, next, i;
	do
	:: newest < WRITES ->
		atomic {
			if :: k = 0 :: k = 1 fi;
			if :: next = SELECTED :: next = OTHER :: STATE(newest, k) != ABSENT -> next = ABSENT fi;
			for (i : 0 .. KEYS - 1) {
				STATE(newest + 1, i) = STATE(newest, i);
				WROTE(newest + 1, i) = WROTE(newest, i)
			}
			STATE(newest + 1, k) = next;
			WROTE(newest + 1, k) = newest + 1;
			newest++
		}
	:: floor < newest -> floor++
	:: atomic { horizon < newest -> horizon++ }
	:: newest == WRITES -> break
	od
}

/* A cursor sends what a watch returns. It ends when the history is lost or the client disconnects. */
bool connected, serving;

proctype Cursor(bool initial; byte after; byte since)
{
	byte snapshot, oldest, v, k, now;
	bool known;
	if
	:: !initial && after < floor -> goto expired
	:: !initial && after >= floor -> snapshot = after; goto backlog
	:: initial
	fi;
	atomic { /* begin: the snapshot, and the departures since then, if all of them are known */
		snapshot = newest;
		oldest = (since > horizon -> since : horizon);
#ifdef IGNORE_HORIZON
		known = (since > 0)
#else
		known = (since > 0 && since >= horizon && since <= snapshot)
#endif
	}
objects: /* the stage snapshot */
	for (k : 0 .. KEYS - 1) {
		if
		:: STATE(snapshot, k) == SELECTED && (!known || WROTE(snapshot, k) > since) ->
			if :: wire!ADDED(k, 0, 0) :: !connected -> goto end fi
		:: else
		fi
	}
departed:
	if
	:: known ->
		for (v : oldest + 1 .. snapshot) {
			for (k : 0 .. KEYS - 1) {
				now = snapshot;
#ifdef DEPARTURES_OF_NEWEST_STATE
				now = newest;
#endif
				if
				:: DEPARTED(v, k) && STATE(now, k) != SELECTED ->
					if :: wire!DELETED(k, 0, 0) :: !connected -> goto end fi
				:: else
				fi
			}
		}
	:: else
	fi;
synced:
	if :: wire!SYNCED(0, snapshot, known) :: !connected -> goto end fi;
backlog:
	v = snapshot;
	do
	:: v < newest && v < floor -> goto expired
	:: v < newest && v >= floor ->
		v++;
		for (k : 0 .. KEYS - 1) {
			if
			:: WROTE(v, k) == v && STATE(v, k) == SELECTED ->
				if :: wire!MODIFIED(k, v, 0) :: !connected -> goto end fi
			:: WROTE(v, k) == v && DEPARTED(v, k) ->
				if :: wire!DELETED(k, v, 0) :: !connected -> goto end fi
			:: else
			fi
		}
	:: !connected -> goto end
	od;
expired:
	if :: wire!EXPIRED(0, 0, 0) :: !connected fi;
end:
	serving = false
}

/* The copy equals the state at its version. Only versions of events are known, so later writes of
 * objects that are not selected may have happened. */
inline check()
{
	d_step {
		for (i : 0 .. KEYS - 1) {
			assert(copy[i] == (STATE(at, i) == SELECTED))
		}
		i = 0
	}
}

active proctype Client()
{
	byte k, v, i, connections;
	mtype type;
	bool difference, wantsInitial = true;
	bool set[KEYS], gone[KEYS];
	do
	:: connections < 2 ->
		connections++;
		connected = true; serving = true;
		run Cursor(wantsInitial, at, (wantsInitial && hasState -> at : 0));
		do
		:: wire?type(k, v, difference) ->
			if
			:: type == EXPIRED -> wantsInitial = true; break
			:: type == SYNCED ->
				d_step { /* apply all initial events in one step */
					for (i : 0 .. KEYS - 1) {
#ifdef IGNORE_MARK
						difference = false;
#endif
						copy[i] = set[i] || (difference && copy[i] && !gone[i])
					}
					i = 0; at = v; hasState = true; wantsInitial = false
				}
				check()
			:: type == ADDED -> set[k] = true
			:: type == DELETED && v == 0 -> gone[k] = true
			:: else -> d_step { copy[k] = (type == MODIFIED); at = v } check()
			fi
		:: skip -> break /* the connection breaks */
		od;
		skip;
		d_step { /* nothing of an incomplete state remains */
			connected = false;
			for (i : 0 .. KEYS - 1) { set[i] = false; gone[i] = false }
			i = 0
		}
		!serving; /* the next connection is another cursor */
		do :: wire?_,_,_,_ :: empty(wire) -> break od
	:: connections == 2 -> break
	od
}
