/*
 * A relay between an upstream and a reader: relay/logwriter.go, relay/epoch.go and the departures
 * of internal/history. The upstream may restart with another epoch, lose history, and be read by
 * the reader directly, as another replica with the same versions would be. The steps of one cursor
 * are in cursor.pml, so a state or a difference is one step here.
 *
 * An object is the version of its last write, or 0 if it does not exist.
 */
#define KEYS 1 /* keys do not depend on each other */
#define EPOCHS 2
#define WRITES 3
#define NONE 2

/* What the upstream had at each version of each epoch. */
#define TRUTH(e, v, k) truth[((e) * (WRITES + 1) + (v)) * KEYS + (k)]
byte truth[EPOCHS * (WRITES + 1) * KEYS];
byte epoch, newest, floor, horizon;

/* The epochCaches of the relay: one per epoch. */
#define TREE(e, k) tree[(e) * KEYS + (k)]
#define DEPARTED(e, v, k) departed[((e) * (WRITES + 1) + (v)) * KEYS + (k)]
byte tree[EPOCHS * KEYS];
bool departed[EPOCHS * (WRITES + 1) * KEYS];
byte version[EPOCHS], known[EPOCHS];     /* Log.version, departures.horizon */
byte gapAfter[EPOCHS], gapUntil[EPOCHS];             /* departures.gaps */
byte filling = NONE, served = NONE;                  /* epochs.next, epochs.served */

active proctype Upstream()
{
	byte i, k;
	do
	:: newest < WRITES -> atomic {
		for (i : 0 .. KEYS - 1) { TRUTH(epoch, newest + 1, i) = TRUTH(epoch, newest, i) }
		if :: k = 0 :: KEYS > 1 -> k = 1 fi;
		if
		:: TRUTH(epoch, newest, k) > 0 -> TRUTH(epoch, newest + 1, k) = 0
		:: TRUTH(epoch, newest + 1, k) = newest + 1
		fi;
		newest++; i = 0; k = 0
	}
	:: epoch == 0 && newest > 0 -> atomic { /* a restart: the versions start over */
		epoch = 1; newest = 1; floor = 1; horizon = 1;
		for (i : 0 .. KEYS - 1) { if :: TRUTH(1, 1, i) = 1 :: TRUTH(1, 1, i) = 0 fi }
		i = 0
	}
	:: atomic { floor < newest -> floor++ }
	:: atomic { horizon < floor -> horizon++ }
	:: newest == WRITES -> break
	od
}

/* Whether key k left the upstream's state after version s. */
inline leftTruth(e, s, n, k, result)
{
	result = false;
	for (j : s + 1 .. n) {
		result = result || (TRUTH(e, j - 1, k) > 0 && TRUTH(e, j, k) == 0)
	}
	j = 0
}

/* logWriter: the upstream's state or difference becomes the state of the epoch that is filled. */
inline replace(e, v, isNew)
{
	for (i : 0 .. KEYS - 1) {
		if
		:: !isNew && TREE(e, i) > 0 && state[i] == 0 -> DEPARTED(e, v, i) = true
		:: else
		fi;
		TREE(e, i) = state[i]
	}
	if
	:: isNew -> known[e] = v
	:: !isNew && v > version[e] -> /* only one gap is remembered */
		if :: gapUntil[e] > 0 -> known[e] = gapUntil[e] :: else fi;
		gapAfter[e] = version[e]; gapUntil[e] = v
	:: else
	fi;
	version[e] = v; i = 0
}

/* Leaves no value behind, so that equal states are equal. */
inline forget()
{
	for (i : 0 .. KEYS - 1) { state[i] = 0 }
	i = 0; e = 0; v = 0; since = 0
}

active proctype Relay()
{
	byte i, j, e, v, since;
	byte state[KEYS];
	bool left;
	do
	:: newest > 0 -> atomic { /* Reflector: the state arrives, as a difference if the upstream knows it */
			e = epoch; v = newest;
			since = 0;
			if
			:: filling == e && version[e] >= horizon -> since = version[e]
#ifdef EPOCH_IGNORED
			:: filling != NONE && filling != e && version[filling] >= horizon && version[filling] <= v ->
				since = version[filling];
				for (i : 0 .. KEYS - 1) { TREE(e, i) = TREE(filling, i) }
#endif
			:: else
			fi;
			for (i : 0 .. KEYS - 1) {
				leftTruth(e, since, v, i, left);
				if
				:: TRUTH(e, v, i) > since -> state[i] = TRUTH(e, v, i)
				:: TRUTH(e, v, i) <= since && since > 0 && !left -> state[i] = TREE(e, i)
				:: else -> state[i] = 0
				fi
			}
			i = 0; left = false
		}
		if /* logWriter.synced: the upstream may have moved on */
		:: atomic { filling != e -> replace(e, v, true); filling = e; forget() }
		:: atomic { filling == e && v > version[e] -> replace(e, v, false); forget() }
		:: atomic { filling == e && v <= version[e] -> forget() }
		fi
	:: atomic { filling != NONE && served != filling -> served = filling } /* epochs.serve, in a task of its own */
	:: atomic { filling == epoch && version[filling] < newest && version[filling] >= floor ->
			e = filling; v = version[e] + 1; /* logWriter.flush: the changes of one version */
			for (i : 0 .. KEYS - 1) {
				if
				:: TRUTH(e, v, i) != TREE(e, i) ->
					DEPARTED(e, v, i) = (TRUTH(e, v, i) == 0);
					TREE(e, i) = TRUTH(e, v, i)
				:: else
				fi
			}
			version[e] = v; i = 0; e = 0; v = 0
		}
	:: newest == WRITES && served == epoch && version[served] == newest -> break
	od
}

/* The reader begins with a state, and then receives differences from one server or the other. */
active proctype Reader()
{
	byte i, j, e, v, reads;
	byte copy[KEYS];
	byte at, from;
	bool left, isDifference;
	do
	:: reads < 2 ->
		if
		:: atomic { newest > 0 -> /* from the upstream */
			e = epoch; v = newest;
			isDifference = (at > 0 && from == e && at >= horizon && at <= v);
			for (i : 0 .. KEYS - 1) {
				leftTruth(e, at, v, i, left);
				copy[i] = (!isDifference || TRUTH(e, v, i) > at || left -> TRUTH(e, v, i) : copy[i])
			}
		}
		:: atomic { served != NONE -> /* from the relay */
			e = served; v = version[e];
			isDifference = (at > 0 && from == e && at >= known[e] && at <= v
#ifndef GAPS_IGNORED
				&& !(at > gapAfter[e] && at < gapUntil[e])
#endif
				);
			for (i : 0 .. KEYS - 1) {
				left = false;
				for (j : at + 1 .. v) { left = left || DEPARTED(e, j, i) }
				copy[i] = (!isDifference || TREE(e, i) > at || (left && TREE(e, i) == 0) -> TREE(e, i) : copy[i])
			}
			j = 0
		}
		fi;
		d_step {
			from = e; at = v; reads++; e = 0; v = 0; left = false; isDifference = false;
			for (i : 0 .. KEYS - 1) { assert(copy[i] == TRUTH(from, at, i)) }
			i = 0
		}
	:: reads == 2 -> break
	od
}
