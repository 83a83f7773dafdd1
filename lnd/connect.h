/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When an LND connects to a peer, and how often: the one clock of reconnecting,
 * for all LNDs that have connections. Knows nothing of connections: whoever has
 * them opens them when told to, and says what has come of it.
 *
 *	idle		nothing is to be opened; or the peer opens something
 *	queued		waits for its turn, where only so many may connect
 *	connecting	an attempt is under way
 *	again		the peer has said how it wants to be asked: the next
 *			attempt follows, now or at a time
 *	paused		an attempt has failed: those who waited were told, and
 *			who comes now waits for the end of the pause
 *
 * One attempt is one failure, however many messages wait for it, and all of
 * them share its outcome. Pauses are longer after each failure in a row, by the
 * law of pauses (base/backoff.h) with full jitter. Those who wait do so for
 * law.patience at most: waiting for a turn, and retries that the peer asks for,
 * count; pauses do not. A connection that the peer opens, or an event of a
 * link, shows that the peer or the way to it is back, and ends all that.
 *
 * If nobody waits for a peer, its failures are remembered for law.memory, but
 * only for the last CONNECT_FAILURES_MAX such peers of a CPT.
 *
 * Owner: whoever has the peer that this is part of. Thread: its CPT's.
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
	uint64_t patience;	       /* of those who wait */
	uint64_t memory; /* of failures, from the end of the pause on;
			    * TIME_NEVER */
};

struct connect;

/* What an LND does. A function below calls none of these but where its comment
 * says so. */
struct connect_ops {
	/* Sets @law, which the LND may change at any time. */
	void (*law)(const struct connect *c, struct connect_law *law);
	/* Is an attempt to be made? 0: yes; -ENOENT: no; -EAGAIN: not now, and
	 * those who wait do so without limit; -EINPROGRESS: not now, and they
	 * wait for law.patience; another: never, and they are told it. */
	int (*is_due)(const struct connect *c);
	/* Begins an attempt: connect_move(), or connect_failed(). */
	void (*begin)(struct connect *c);
	/* Optional: the state becomes @to. What was under way ends, and nobody
	 * is told. */
	void (*leave)(struct connect *c, enum connect_state to);
	/* The time of connect_look_at() has come: look after the attempt. */
	void (*look)(struct connect *c);
	/* An attempt has failed with @status, the first in a row or another
	 * one: for the log. */
	void (*failed)(struct connect *c, int status, bool first);
	/* Tells those who wait, if any do (@wanted); and if there is a
	 * connection (@status 0), all others. Users' handlers may run. */
	void (*tell)(struct connect *c, bool wanted, int status,
		     enum ulnet_cause cause);
	/* Nothing was heard for @ns. */
	void (*silent)(struct connect *c, uint64_t ns);
	/* At the end of the turn: connect_settle(). */
	void (*settle)(struct connect *c);
	/* Attempts go on when those who wait give up, and end by themselves. */
	bool outlasts;
};

/* What a CPT has for an NI. */
struct connect_set {
	struct loop *loop;
	const struct connect_ops *ops;
	struct list failed; /* connect.failed, the oldest first */
	unsigned int nfailed;
};

/* A part of a peer. */
struct connect {
	struct connect_set *set;
	struct fsm fsm;
	bool wanted;	       /* somebody waits, and is to be told */
	bool told_silent;      /* ... and knows that nothing was heard */
	unsigned int retries;  /* in a row that the peer has asked for */
	unsigned int failures; /* of attempts, in a row */
	int status;	       /* of the last that was refused ... */
	enum ulnet_cause cause;
	uint64_t began; /* ns: since when nothing was heard */
	/* ns: those who wait are told then that it failed. Set when their first
	 * attempt is due, kept through turns and what the peer asks for; 0 when
	 * they have been told. */
	uint64_t give_up;
	uint64_t next; /* ns: something is to be done then; TIME_NEVER */
	struct timer timer;
	struct list failed; /* connect_set.failed: remembered, nobody waits */
};

void connect_set_init(struct connect_set *set, struct loop *loop,
		      const struct connect_ops *ops);
void connect_init(struct connect *c, struct connect_set *set);

static inline uint64_t connect_now(const struct connect *c)
{
	return loop_now(c->set->loop);
}

/* Does @c neither wait for anything nor have failures to be remembered for a
 * time? */
bool connect_is_idle(const struct connect *c);

/* ---- from outside ---- */

/* Somebody waits: an attempt begins, at the end of the turn or later. */
void connect_want(struct connect *c);
/* At the end of a turn: begins what is to begin now. Users' handlers may
 * run. */
void connect_settle(struct connect *c);
/* A connection is there, whoever has opened it: nothing else is begun.
 * connect_tell() may follow. */
void connect_opened(struct connect *c);
/* Those who wait are told. */
void connect_tell(struct connect *c, int status, enum ulnet_cause cause);
/* What goes on ends, and it is as if nothing had failed before. */
void connect_reset(struct connect *c);
/* Pauses end. */
void connect_hurry(struct connect *c);
/* Pauses as after a failure, of which nobody is told. */
void connect_pause(struct connect *c);
/* The peer is all but gone: remember what has failed. */
void connect_remember(struct connect *c);
void connect_unremember(struct connect *c);

/* ---- of attempts ---- */

/* What goes on ends, and what follows is @to:
 *	CONNECT_IDLE		the attempt has ended, well or not
 *	CONNECT_CONNECTING	an attempt is under way from now on
 *	CONNECT_QUEUED		it waits for its turn, or ends in time */
void connect_move(struct connect *c, enum connect_state to);
/* ops->look() is to be called at @at, ns, or TIME_NEVER. */
void connect_look_at(struct connect *c, uint64_t at);
/* If nothing was heard for @least ns, tells those who wait, since they may know
 * another way; but only once. */
void connect_tell_silent(struct connect *c, uint64_t least);
/* The pause before retry @n, ns. */
uint64_t connect_pause_ns(const struct connect *c, unsigned int n);
/* The peer wants to be asked again, not before @at. With no time left, the
 * attempt has failed with @status and @cause. */
void connect_again(struct connect *c, uint64_t at, int status,
		   enum ulnet_cause cause);
/* The attempt has failed. */
void connect_failed(struct connect *c, int status, enum ulnet_cause cause);

#endif
