/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of calls that must run at most once, for spin: a client with
 * slots, whose attempts are numbered and who asks what became of a call before
 * it sends the call again; a network; a server that has a record for each slot,
 * and may restart. exactly_once.sh says how it is checked.
 *
 *	CALLS, SLOTS, ATTEMPTS	how many calls, slots, and messages for a call
 *	RESTARTS	how often the server restarts
 *	RECONNECTS	how often the client connects again for other reasons
 *	DURABLE		the service commits a record with what it does
 *	FAIR		the network loses and copies a few messages only (LOST,
 *			COPIED), nobody is impatient, and every call is to end
 *			answered. Otherwise a message arrives never, or any
 *			number of times and at any time, time-outs come whenever
 *			they like, and what the caller is told is to be true.
 *	BREAK_*		a rule is broken, which is to be found out
 *	SEE_*		claims that something never happens which does
 *
 * A call has the number xid, from 1. An attempt is sent once, so that the two
 * numbers name a message, and what answers it.
 */
#ifndef CALLS
#define CALLS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef RECONNECTS
#define RECONNECTS 0
#endif
#ifndef LOST
#define LOST 2
#endif
#ifndef COPIED
#define COPIED 1
#endif

#define MESSAGES (CALLS * ATTEMPTS)
#define AT(xid, attempt) (((xid) - 1) * ATTEMPTS + (attempt))

/* ---- what is true, which neither side can see ---- */

byte executed[CALLS + 1];

/* ---- the network ---- */

typedef request {
	bit there, query, resent;
	byte connection, acked;
	bit arrived; /* at least once */
};
request requests[MESSAGES];

/* Answers to each attempt. */
bit replies[MESSAGES];	/* it was executed, and this is the result */
bit unknowns[MESSAGES];	/* to a query: not executed, nor will any attempt be
			 * that is older than the query */
bit stales[MESSAGES];	/* of an older connection: as unknowns */
#ifdef BREAK_STRANGER
bit strangers[MESSAGES]; /* the client is not known: which proves nothing */
#endif
bit cancels[CALLS + 1];	/* from the client: the call is over for it */

#ifdef FAIR
byte lost, copied;
#define arrives(what)                                             \
	if                                                        \
	:: what = 0                                               \
	:: copied < COPIED -> copied++                            \
	fi
#else
#define arrives(what) skip
#endif

/* ---- the client ---- */

mtype = { WAITS, UNDER_WAY, EXECUTED, NOT_EXECUTED, UNKNOWN };
mtype told[CALLS + 1] = WAITS;
byte slot_of[CALLS + 1];
byte attempt[CALLS + 1]; /* of the last message */
bit asks[CALLS + 1];	 /* that was a query */
bit clean[CALLS + 1];	 /* no attempt has run or can run: proven */
bit resent[CALLS + 1];	 /* an earlier server may have executed it */
bit slot_used[SLOTS];
byte under_way, started, client_acked, connection = 1;

/* ---- the server ---- */

mtype = { FREE, QUEUED, RUNNING, KEPT, NONE };
typedef record {
	byte xid, attempt;
	mtype state;
};
record records[SLOTS];
byte server_acked, server_connection = 1, restarts, reconnects;
byte oldest = 1; /* connection that this server knows */
bit durable[CALLS + 1];
bit forgot; /* the server does not know the client */

/* An answer to an attempt. None goes out for a call that is over, because the
 * client would not look at it: fewer states to look at. */
#define answer(what, x, a) what[AT(x, a)] = (told[x] == UNDER_WAY)

/* ---- the server's side ---- */

#define of(slot) records[slot].xid

inline execute(slot)
{
	assert(executed[of(slot)] == 0);	     /* at most once */
	assert(told[of(slot)] != NOT_EXECUTED); /* as the caller was told */
	executed[of(slot)]++;
}

/* A request that has not been executed as far as the record knows. */
inline admit(s, x, a)
{
	records[s].xid = x;
	records[s].attempt = a;
	if
#ifdef DURABLE
	:: requests[AT(x, a)].resent && durable[x] ->
		records[s].state = KEPT;
		answer(replies, x, a);
#ifdef SEE_REPLAY
		assert(false);
#endif
	:: !(requests[AT(x, a)].resent && durable[x]) ->
		records[s].state = QUEUED;
#else
	:: records[s].state = QUEUED;
#endif
	fi
}

/* "Not executed", from now on also true of what is on its way. */
inline disown(s, x, a)
{
	records[s].xid = x;
#ifdef BREAK_NOTE
	records[s].attempt = 0;
	records[s].xid = x - 1;
#else
	records[s].attempt = a;
#endif
	records[s].state = NONE;
	answer(unknowns, x, a);
}

/* The answer goes to where the last message came from. */
inline readdress(s, a)
{
#ifdef BREAK_ADDRESS
	skip
#else
	records[s].attempt = a
#endif
}

/* Nothing is executed on an older connection, but it is noted as any attempt. */
inline refuse(s, x, a)
{
#ifndef BREAK_STALE
	records[s].xid = x;
	records[s].attempt = a;
	records[s].state = NONE;
#endif
	answer(stales, x, a)
}

inline decide(s, x, a)
{
	if
	:: requests[AT(x, a)].query -> disown(s, x, a)
	:: else ->
		if
		:: requests[AT(x, a)].connection == server_connection ->
			admit(s, x, a)
		:: else -> refuse(s, x, a)
		fi
	fi
}

inline serve(s, x, a)
{
	if
	:: server_acked < requests[AT(x, a)].acked ->
		server_acked = requests[AT(x, a)].acked
	:: else
	fi;
	if
#ifdef BREAK_STALE
	:: requests[AT(x, a)].connection != server_connection &&
	   !requests[AT(x, a)].query -> refuse(s, x, a)
#endif
#ifdef BREAK_LATE
	:: x < records[s].xid
#else
	/* A late copy. */
	:: x <= server_acked || x < records[s].xid
#endif
	:: else ->
		if
		:: x == records[s].xid && a <= records[s].attempt
			/* a copy */
		:: x > records[s].xid ->
			/* The client has given up what was there. */
			decide(s, x, a)
		:: x == records[s].xid && a > records[s].attempt ->
			if
#ifdef BREAK_REPEAT
			:: records[s].state != KEPT &&
			   !requests[AT(x, a)].query -> admit(s, x, a)
#endif
			:: records[s].state == QUEUED ||
			   records[s].state == RUNNING ->
				/* Still working. */
				readdress(s, a)
			:: records[s].state == KEPT ->
				readdress(s, a);
#ifndef BREAK_SILENT
				answer(replies, x, records[s].attempt)
#endif
			:: records[s].state == NONE -> decide(s, x, a)
			fi
		fi
	fi
}

/* A worker of the service, for each slot. */
proctype worker(byte s)
{
end:	do
	:: atomic { records[s].state == QUEUED ->
		execute(s);
#if defined(DURABLE) && !defined(BREAK_COMMIT)
		durable[of(s)] = 1;
#endif
		records[s].state = RUNNING }
	:: atomic { records[s].state == RUNNING ->
#if defined(DURABLE) && defined(BREAK_COMMIT)
		durable[of(s)] = 1;
#endif
		answer(replies, of(s), records[s].attempt);
#ifdef BREAK_KEEP
		records[s].xid = 0;
		records[s].attempt = 0;
		records[s].state = FREE
#else
		records[s].state = KEPT
#endif
		}
	/* The client has the answer, or does not want it any more. */
	:: atomic { (records[s].state == KEPT || records[s].state == NONE) &&
		    records[s].xid <= server_acked ->
		records[s].xid = 0;
		records[s].attempt = 0;
		records[s].state = FREE }
	od
}

#ifdef DURABLE
proctype keeper(byte x)
{
end:	do
#ifdef BREAK_RELEASE
	:: atomic { durable[x] -> durable[x] = 0 }
#else
	:: atomic { durable[x] && x <= server_acked -> durable[x] = 0 }
#endif
	od
}
#endif

/* Memory is gone, and with it what was queued or running; what was done
 * remains done. */
proctype fate()
{
	byte i;

end:	do
	:: atomic { restarts < RESTARTS ->
		restarts++;
		forgot = 1;
		server_acked = 0;
		i = 0;
		do
		:: i < SLOTS ->
			records[i].xid = 0;
			records[i].attempt = 0;
			records[i].state = FREE;
			i++
		:: else -> break
		od;
		i = 0 }
	od
}

/* ---- the client's side ---- */

inline send(x, is_query)
{
	asks[x] = is_query;
	requests[AT(x, attempt[x])].there = 1;
	requests[AT(x, attempt[x])].query = is_query;
	requests[AT(x, attempt[x])].connection = connection;
	requests[AT(x, attempt[x])].acked = client_acked;
#ifndef BREAK_RESENT
	requests[AT(x, attempt[x])].resent = resent[x];
#endif
	if
	:: is_query
	:: else -> clean[x] = 0
	fi
}

#define can_send(x) (attempt[x] + 1 < ATTEMPTS)

inline forget(x)
{
	byte f = 0;

	do
	:: f < ATTEMPTS ->
		replies[AT(x, f)] = 0;
		unknowns[AT(x, f)] = 0;
		stales[AT(x, f)] = 0;
		f++
	:: else -> break
	od;
	f = 0
}

inline finish(x, what)
{
	assert(told[x] == UNDER_WAY);
	assert(what != EXECUTED || executed[x] == 1);
	assert(what != NOT_EXECUTED || executed[x] == 0);
	told[x] = what;
	slot_used[slot_of[x]] = 0;
	under_way--;
	forget(x);
	cancels[x] = 1;
#ifdef BREAK_ACKED
	client_acked = x;
#else
	do
	:: client_acked < CALLS && told[client_acked + 1] != WAITS &&
	   told[client_acked + 1] != UNDER_WAY -> client_acked++
	:: else -> break
	od
#endif
}

/* What the client can say of a call that was not answered. */
inline give_up(x)
{
	if
	:: clean[x] ->
#ifdef SEE_NOT_EXECUTED
		assert(attempt[x] == 0);
#endif
		finish(x, NOT_EXECUTED)
	:: !clean[x] -> finish(x, UNKNOWN)
	fi
}

/* The server does not know this client any more: what it says of calls that
 * were sent before proves nothing. */
inline bereaved(x)
{
	if
	:: told[x] == UNDER_WAY && !clean[x] ->
#if defined(DURABLE) || defined(BREAK_RESTART)
		resent[x] = 1;
		if
		:: can_send(x) -> attempt[x]++; send(x, 0)
		:: else
		fi
#else
		finish(x, UNKNOWN)
#endif
	:: else
	fi
}

/* The server still knows the client: it may be sent again without being asked
 * about, for the records tell whether it is to be executed. */
inline repeat(x)
{
	if
	:: told[x] == UNDER_WAY && can_send(x) -> attempt[x]++; send(x, 0)
	:: skip
	fi
}

proctype connector()
{
	byte i, was;

end:	do
	:: atomic { forgot || reconnects < RECONNECTS ->
		was = forgot;
		if
		:: was
		:: else -> reconnects++
		fi;
		forgot = 0;
		connection++;
		server_connection = connection;
		if
		:: was -> oldest = connection
		:: else
		fi;
		i = 1;
		do
		:: i <= CALLS ->
			if
			:: was -> bereaved(i)
			:: else -> repeat(i)
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		was = 0 }
	od
}

inline hear_reply(x, a)
{
	/* The attempt before can still receive its reply. */
	if
	:: told[x] == UNDER_WAY && a + 1 >= attempt[x] -> finish(x, EXECUTED)
	:: else
	fi
}

inline hear_unknown(x, a)
{
	if
#ifdef BREAK_TRUST
	:: told[x] == UNDER_WAY ->
#else
	:: told[x] == UNDER_WAY && a == attempt[x] && asks[x] ->
#endif
#ifdef BREAK_BELIEVE
		clean[x] = 1;
#else
		clean[x] = !resent[x];
#endif
		if
		:: can_send(x) -> attempt[x]++; send(x, 0)
#ifndef FAIR
		:: skip /* the deadline comes first */
#endif
		fi
	:: else
	fi
}

/* A query is repeated in its time, as if it had not been answered. */
inline hear_stale(x, a)
{
	if
	:: told[x] == UNDER_WAY && a == attempt[x] && !asks[x] ->
		clean[x] = !resent[x];
		if
		:: can_send(x) && connection == server_connection ->
			attempt[x]++;
			send(x, 0)
#ifndef FAIR
		:: skip
#endif
		fi
	:: else
	fi
}

#ifdef BREAK_STRANGER
inline hear_stranger(x, a)
{
	if
	:: told[x] == UNDER_WAY && a == attempt[x] -> clean[x] = 1
	:: else
	fi
}
#endif

proctype caller(byte x)
{
	byte i;

	atomic { started == x - 1 && under_way < SLOTS;
		do
		:: slot_used[i] -> i++
		:: else -> break
		od;
		slot_used[i] = 1;
		under_way++;
		slot_of[x] = i;
		started = x;
		told[x] = UNDER_WAY;
		clean[x] = 1;
		i = 0;
		send(x, 0) }
	do
	:: told[x] != UNDER_WAY -> break
#ifdef FAIR
	:: atomic { timeout -> assert(can_send(x)); attempt[x]++; send(x, 1) }
#else
	/* No answer in time: what became of it? */
	:: atomic { told[x] == UNDER_WAY && can_send(x) ->
		attempt[x]++; send(x, 1) }
	/* LNet says that the message has not been delivered, and never will
	 * be. */
	:: atomic { told[x] == UNDER_WAY && requests[AT(x, attempt[x])].there &&
		    !requests[AT(x, attempt[x])].arrived && !asks[x] &&
		    attempt[x] == 0 ->
		requests[AT(x, attempt[x])].there = 0;
		clean[x] = 1;
		if
		:: can_send(x) -> attempt[x]++; send(x, 0)
		:: skip
		fi }
	:: atomic { told[x] == UNDER_WAY -> give_up(x) } /* its deadline */
#endif
	od;
#ifdef FAIR
	assert(told[x] == EXECUTED);
#endif
#ifdef SEE_EXECUTED
	assert(told[x] != EXECUTED || attempt[x] == 0);
#endif
#ifdef SEE_UNKNOWN
	assert(told[x] != UNKNOWN || executed[x] == 0);
#endif
}

/* ---- the way between ---- */

proctype carrier(byte x, a)
{
end:	do
	:: atomic { requests[AT(x, a)].there ->
		arrives(requests[AT(x, a)].there);
		requests[AT(x, a)].arrived = 1;
		if
		:: !forgot && requests[AT(x, a)].connection >= oldest ->
			serve(slot_of[x], x, a)
		:: else ->
#ifdef BREAK_STRANGER
			answer(strangers, x, a)
#else
			skip
#endif
		fi }
	:: atomic { replies[AT(x, a)] ->
		arrives(replies[AT(x, a)]);
		hear_reply(x, a) }
	:: atomic { unknowns[AT(x, a)] ->
		arrives(unknowns[AT(x, a)]);
		hear_unknown(x, a) }
	:: atomic { stales[AT(x, a)] ->
		arrives(stales[AT(x, a)]);
		hear_stale(x, a) }
#ifdef BREAK_STRANGER
	:: atomic { strangers[AT(x, a)] -> hear_stranger(x, a) }
#endif
#ifdef FAIR
	:: atomic { lost < LOST && requests[AT(x, a)].there ->
		lost++; requests[AT(x, a)].there = 0 }
	:: atomic { lost < LOST && replies[AT(x, a)] ->
		lost++; replies[AT(x, a)] = 0 }
	:: atomic { lost < LOST && unknowns[AT(x, a)] ->
		lost++; unknowns[AT(x, a)] = 0 }
#endif
	od
}

/* Cancels: what is queued is not run, nor what comes late. */
proctype canceler(byte x)
{
end:	do
	:: atomic { cancels[x] ->
		cancels[x] = 0;
		if
		:: forgot
		:: !forgot && records[slot_of[x]].xid == x &&
		   records[slot_of[x]].state == QUEUED ->
			records[slot_of[x]].state = NONE
		:: !forgot && records[slot_of[x]].xid < x ->
			records[slot_of[x]].xid = x;
			records[slot_of[x]].attempt = ATTEMPTS;
			records[slot_of[x]].state = NONE
		:: else
		fi }
	od
}

init {
	byte i, k;

	atomic {
		i = 0;
		do
		:: i < SLOTS -> records[i].state = FREE; run worker(i); i++
		:: else -> break
		od;
		i = 1;
		do
		:: i <= CALLS ->
			run caller(i);
			run canceler(i);
#ifdef DURABLE
			run keeper(i);
#endif
			k = 0;
			do
			:: k < ATTEMPTS -> run carrier(i, k); k++
			:: else -> break
			od;
			i++
		:: else -> break
		od;
		run fate();
		run connector();
		i = 0;
		k = 0
	}
}
