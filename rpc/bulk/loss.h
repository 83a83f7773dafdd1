/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done about messages that may be lost: the schedule by which a GET or
 * PUT is repeated, and what follows from the loss of a connection. Pure
 * functions: any thread.
 */
#ifndef RPC_LOSS_H
#define RPC_LOSS_H

#include <errno.h>
#include "base/backoff.h"
#include "ulnet/nid.h"

/* ---- repeating a GET or PUT ---- */

/*
 * The time of each try is a quarter of what is left, but at least 50 ms, and at
 * most a limit. The limit is 5 s, or, when it is known how long tries take that
 * succeed, four times that (200 ms to 5 s). Each try that timed out doubles the
 * limit, up to six times.
 *
 * The network is not slow, but loses messages, in two cases: later tries have
 * succeeded before this one was answered, or the connection has lost messages
 * lately. Then a longer time would be of no use: the limit has a minimum of 50
 * ms only, and is not doubled before six tries have timed out. It is improbable
 * that six are lost in a row: then the network is slow, too.
 *
 * After a time-out the next try begins at once. A try that failed sooner is
 * repeated at once the first time, and later after a pause (base/backoff.h),
 * counted from the beginning of the failed try.
 */
struct retry_schedule {
	unsigned int timeouts; /* how many tries timed out */
	unsigned int refusals; /* how many tries failed sooner */
	bool lossy;	       /* the network is known to lose messages */
};

#define RETRY_TIME_MIN	 (50 * NSEC_PER_MSEC)
#define RETRY_TIME_MAX	 (5 * NSEC_PER_SEC)
#define RETRY_TIME_KNOWN (200 * NSEC_PER_MSEC)
#define RETRY_TIME_LOSSY (50 * NSEC_PER_MSEC)
#define RETRY_DOUBLINGS	 6
#define RETRY_LOSSES	 6

/* Returns the limit in ns. @usual: ns that tries usually take; 0: not known. */
static inline uint64_t retry_schedule_limit(const struct retry_schedule *t,
					    uint64_t usual)
{
	unsigned int lost = t->lossy ? MIN(t->timeouts, RETRY_LOSSES) : 0;
	uint64_t least = t->lossy ? RETRY_TIME_LOSSY : RETRY_TIME_KNOWN;
	uint64_t limit = RETRY_TIME_MAX;

	if (usual)
		limit = MIN(limit, MAX(4 * usual, least));
	return limit << MIN(t->timeouts - lost, RETRY_DOUBLINGS);
}

/* Returns the time, in ns, of a try that begins at @now (ns); 0: no time is
 * left. @deadline: ns, or TIME_NEVER. @usual: ns that tries usually take; 0:
 * not known. */
static inline uint64_t retry_schedule_time(const struct retry_schedule *t,
					   uint64_t now, uint64_t deadline,
					   uint64_t usual)
{
	uint64_t longest = retry_schedule_limit(t, usual);
	uint64_t left;

	if (deadline == TIME_NEVER)
		return longest;
	if (deadline < now + NSEC_PER_USEC)
		return 0;
	left = deadline - now;
	return MIN(left, MIN(MAX(left / 4, RETRY_TIME_MIN), longest));
}

/* Called when a try has failed with @status. Returns how many ns after its
 * beginning the next one begins. @passed: tries that began later have
 * succeeded. @random: 64 bits. */
static inline uint64_t retry_schedule_pause(struct retry_schedule *t,
					    int status, bool passed,
					    uint64_t random)
{
	static const struct backoff_law law = { .base = 10 * NSEC_PER_MSEC,
						.cap = 500 * NSEC_PER_MSEC };

	if (status == -ETIMEDOUT) {
		t->lossy |= passed;
		t->timeouts += !passed;
		return 0;
	}
	return backoff_pause(&law, t->refusals++, random);
}

/* ---- what a connection knows of its chunks ---- */

struct bulk_pace {
	/* took: us that the slowest chunk took lately (0: none was moved).
	 * length: bytes of that chunk */
	uint32_t took;
	uint32_t length;
	/* s: when it was last certain that a try was lost: a chunk was moved in
	 * less than a quarter of the time that an earlier try of it had waited;
	 * 0: never */
	uint32_t lost;
};

/* s: after this time a loss does not count any more */
#define BULK_LOSS_FORGOTTEN 60u
/* ns that tries probably take while none has succeeded. The limit is four times
 * that: 1 s, as the one of TCP (RFC 6298), and 4 s for each MB. */
#define BULK_PACE_FIRST	     (250 * NSEC_PER_MSEC)
#define BULK_PACE_FIRST_BYTE 1000u
/* Each faster chunk reduces the time of the slowest one by this part of it. */
#define BULK_PACE_PART 16u

static inline uint32_t bulk_loss_clock(uint64_t now)
{
	return (uint32_t)(now / NSEC_PER_SEC) + 1;
}

/* Notes that a chunk of @length bytes was moved by a try that took @took ns. A
 * short chunk does not show that longer ones have become faster. */
static inline void bulk_pace_note(struct bulk_pace *b, uint64_t took,
				  uint32_t length)
{
	took = MIN(took / NSEC_PER_USEC + 1, UINT32_MAX);
	if (took >= b->took) {
		b->took = (uint32_t)took;
		b->length = length;
	} else if (length >= b->length) {
		b->took -= b->took / BULK_PACE_PART;
	}
}

/* Notes that at @now a try has moved in @took ns the chunk that an earlier try
 * had waited for in vain for @waited ns. */
static inline void bulk_pace_note_loss(struct bulk_pace *b, uint64_t waited,
				       uint64_t took, uint64_t now)
{
	if (waited / 4 > took)
		b->lost = bulk_loss_clock(now);
}

/* Has the connection lost messages lately? */
static inline bool bulk_pace_is_lossy(const struct bulk_pace *b, uint64_t now)
{
	return unlikely(b->lost) &&
	       bulk_loss_clock(now) - b->lost <= BULK_LOSS_FORGOTTEN;
}

/* Returns the ns that a chunk of @length bytes probably takes if it is not
 * lost. @slowest: ns that the slowest chunk of the request took; 0: none was
 * moved. @lossy: the network is known to lose messages. */
static inline uint64_t bulk_pace_usual(const struct bulk_pace *b,
				       uint32_t length, uint64_t slowest,
				       bool lossy)
{
	uint64_t usual = b->took * NSEC_PER_USEC;

	if (unlikely(length > b->length))
		usual *= length / MAX(b->length, 1);
	if (likely(slowest))
		return MAX(usual, slowest);
	if (!usual)
		return BULK_PACE_FIRST + length * BULK_PACE_FIRST_BYTE;
	return lossy ? usual : MAX(usual, BULK_PACE_FIRST);
}

/* ---- the loss of a connection ---- */

/* An LND's connection to a NID of the peer has ended, or is silent: messages
 * that were under way over it may be lost. After a random pause, the peer is
 * asked about them, or they are repeated. */
struct conn_loss {
	uint64_t at; /* ns: the last loss */
	/* the NID of the peer to which connections were lost; ANY: several NIDs
	 */
	struct ulnet_nid rail;
};

/* Notes the loss of the connection to @rail at @now, ns. @pending: the pause
 * after an earlier loss is not over. If that loss was of another rail, the note
 * is for all rails from now on. */
static inline void conn_loss_note(struct conn_loss *s,
				  const struct ulnet_nid *rail, uint64_t now,
				  bool pending)
{
	s->at = now;
	if (!pending)
		s->rail = *rail;
	else if (!lnet_nid_eq(&s->rail, rail))
		s->rail = LNET_NID_ANY;
}

/* May the loss have cost a message that was sent at @sent, ns, to @nid (ANY:
 * not known)? */
static inline bool conn_loss_covers(const struct conn_loss *s, uint64_t sent,
				    const struct ulnet_nid *nid)
{
	return sent <= s->at &&
	       (lnet_nid_is_any(&s->rail) || lnet_nid_is_any(nid) ||
		lnet_nid_eq(&s->rail, nid));
}

/* Returns the pause, ns, after the @n-th loss in a row. The first pause is
 * about a round trip, @rtt ns (0: not known), or up to @jitter ns if that is
 * longer. Later pauses grow. @random: 64 bits. */
static inline uint64_t conn_loss_pause(uint64_t rtt, uint64_t jitter,
				       unsigned int n, uint64_t random)
{
	const uint64_t most = 10 * NSEC_PER_MSEC;
	uint64_t base = rtt ? MIN(MAX(rtt, NSEC_PER_MSEC), most) : most;
	const struct backoff_law law = {
		.base = MAX(base, jitter),
		.cap = MAX(100 * NSEC_PER_MSEC, jitter),
	};

	return backoff_pause(&law, n, random);
}

#endif
