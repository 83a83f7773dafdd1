/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When, and how often, an LND tries to connect to a peer. This is policy only:
 * the LND opens connections when told to, and reports the outcome.
 *
 *	idle		no connection is needed, or the peer is opening one
 *	queued		waits for its turn, where the LND limits the number of
 *			attempts
 *	connecting	an attempt is under way
 *	again		the peer has asked for another attempt, now or later
 *	paused		an attempt has failed: those who waited were told, and
 *			new messages wait for the end of the pause
 *
 * An attempt counts as one failure, however many messages wait for it; all of
 * them share its outcome. Pauses grow with each failure in a row, by
 * exponential back-off with full jitter (base/backoff.h). Messages wait for
 * law.timeout at most, which includes waiting for a turn and retries that the
 * peer asks for, but not pauses. When the peer opens a connection, or a link
 * comes up, pauses and failures end.
 *
 * While nothing waits for a peer, its failures are remembered for law.memory,
 * but only for the last CONNECT_FAILURES_MAX such peers of a CPT.
 *
 * Owner: whoever has the peer that a struct connect is part of. Thread: its
 * CPT's.
 */
#ifndef LND_CONNECT_H
#define LND_CONNECT_H

#include "base/fsm.h"
#include "base/list.h"
#include "base/loop.h"
#include "ulnet/lnet.h"

#define CONNECT_FAILURES_MAX 1024

enum connect_state {
	CONNECT_IDLE,
	CONNECT_QUEUED,
	CONNECT_CONNECTING,
	CONNECT_AGAIN,
	CONNECT_PAUSED,
	CONNECT_STATES
};
extern const struct fsm_state connect_states[CONNECT_STATES];

/* ns */
struct connect_law {
	uint64_t min_pause, max_pause; /* after failures; not 0 */
	uint64_t timeout;	       /* for those who wait */
	/* how long failures are remembered after the pause; TIME_NEVER: without
	 * limit */
	uint64_t memory;
};

struct connect;

/* What the LND provides. */
struct connect_ops {
	/* Fills @law, which the LND may change at any time. */
	void (*law)(const struct connect *c, struct connect_law *law);
	/* Is an attempt to be made? 0: yes; -ENOENT: no; -EAGAIN: not now, and
	 * those who wait do so without limit; -EINPROGRESS: not now, and they
	 * wait for law.timeout; another errno: no, and it ends what waits. */
	int (*is_due)(const struct connect *c);
	/* Begins an attempt: calls connect_move(), or connect_failed() if it
	 * cannot begin one. */
	void (*begin)(struct connect *c);
	/* Optional; called before the state becomes @to. Drops what belongs to
	 * the attempt under way, if any, and tells nobody. */
	void (*leave)(struct connect *c, enum connect_state to);
	/* The time given to connect_look_at() has come. */
	void (*look)(struct connect *c);
	/* An attempt has failed with @status; @first: the first failure in a
	 * row. For the log. */
	void (*failed)(struct connect *c, int status, bool first);
	/* Tells those who wait (@wanted: there are some) the outcome; called
	 * with @status 0 even if nobody waits. Users' handlers may run. */
	void (*tell)(struct connect *c, bool wanted, int status,
		     enum ulnet_cause cause);
	/* Tells those who wait that nothing was heard for @ns. */
	void (*silent)(struct connect *c, uint64_t ns);
	/* Schedules connect_settle() for the end of the turn. */
	void (*settle)(struct connect *c);
	/* true: an attempt goes on after those who wait have timed out. */
	bool outlasts;
};

/* What one CPT keeps for one NI. */
struct connect_set {
	struct loop *loop;
	const struct connect_ops *ops;
	struct list failed; /* connect.failed, the oldest first */
	unsigned int nfailed;
};

/* Part of a peer. */
struct connect {
	struct connect_set *set;
	struct fsm fsm;
	bool wanted;	       /* somebody waits, and is to be told */
	bool told_silent;      /* they were told that nothing was heard */
	unsigned int retries;  /* asked for by the peer, in a row */
	unsigned int failures; /* of attempts, in a row */
	/* status and cause of the last connect_again() */
	int status;
	enum ulnet_cause cause;
	uint64_t began; /* ns: since when nothing was heard */
	/* ns: when those who wait time out. Set when their first attempt is
	 * due, and kept while queued and for retries that the peer asks for; 0:
	 * they have been told. */
	uint64_t give_up;
	uint64_t next; /* ns: when the present state ends, or ops->look() is
			* due; TIME_NEVER */
	struct timer timer;
	struct list failed; /* in connect_set.failed, while nobody waits */
};

void connect_set_init(struct connect_set *set, struct loop *loop,
		      const struct connect_ops *ops);
void connect_init(struct connect *c, struct connect_set *set);

static inline uint64_t connect_now(const struct connect *c)
{
	return loop_now(c->set->loop);
}

/* Is @c idle, with nobody waiting and no failures that are remembered? */
bool connect_is_idle(const struct connect *c);

/* When the pause ends, ns; 0: @c does not pause. */
static inline uint64_t connect_paused_until(const struct connect *c)
{
	return c->fsm.state == CONNECT_PAUSED ? c->next : 0;
}

/* ---- from outside ---- */

/* Somebody waits for a connection: an attempt begins at the end of the turn, or
 * later. */
void connect_want(struct connect *c);
/* At the end of a turn: begins an attempt if one is due. Users' handlers may
 * run. */
void connect_settle(struct connect *c);
/* There is a connection, whoever has opened it: ends pauses and retries.
 * connect_tell() may follow. */
void connect_opened(struct connect *c);
/* Tells those who wait. Users' handlers may run. */
void connect_tell(struct connect *c, int status, enum ulnet_cause cause);
/* Ends what is under way, and forgets failures. */
void connect_reset(struct connect *c);
/* Ends a pause now. */
void connect_retry_now(struct connect *c);
/* Pauses as after a failure, but tells nobody. */
void connect_pause(struct connect *c);
/* The owner keeps the peer only for its failures: they are remembered for
 * law.memory. */
void connect_remember(struct connect *c);
void connect_unremember(struct connect *c);

/* ---- during attempts ---- */

/* Ends what is under way, and moves on:
 *	CONNECT_IDLE		the attempt has ended, well or not
 *	CONNECT_CONNECTING	an attempt is under way from now on
 *	CONNECT_QUEUED		waits for its turn, or times out */
void connect_move(struct connect *c, enum connect_state to);
/* Schedules ops->look() for @at, ns; TIME_NEVER: cancels it. */
void connect_look_at(struct connect *c, uint64_t at);
/* If nothing was heard for @least ns, tells those who wait, who may know
 * another path; but only once. */
void connect_tell_silent(struct connect *c, uint64_t least);
/* The pause before retry @n, ns. */
uint64_t connect_pause_ns(const struct connect *c, unsigned int n);
/* The peer has asked for another attempt, not before @at (ns). Those who wait
 * and time out before are told @status and @cause. */
void connect_again(struct connect *c, uint64_t at, int status,
		   enum ulnet_cause cause);
/* The attempt has failed. Users' handlers may run. */
void connect_failed(struct connect *c, int status, enum ulnet_cause cause);

#endif
