/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One server of a set, and how a call chooses among the servers.
 *
 *	USED <-> LEFT -> TRIED -> USED or LEFT
 *
 * A server is left, so that no calls go there, when it cannot be connected to,
 * when it says that it ends, or when it is an outlier: calls fail there one
 * after another, or it is far slower than the others. After a pause, which
 * doubles each time, one call tries it. If that call takes longer than the
 * pause, another one tries the server, too: a call may take an hour, and the
 * server would be out of use for so long.
 *
 * This file knows nothing of calls and clocks. Owner: the CPT of the set.
 */
#ifndef RPC_REPLICA_H
#define RPC_REPLICA_H

#include <stdatomic.h>

#include "base/fsm.h"
#include "base/list.h"
#include "ulnet/names.h"
#include "ulnet/replicas.h"

struct ulrpc_replicas;
struct ulrpc_streams;

/* A server is left after so many calls in a row have failed. */
#define REPLICA_FAILURES 5
/* A server is left if its relative time is this many times the median of the
 * others' relative times, and its mean time is at least REPLICA_SLOW_MIN (ns).
 * Both count if they are of at least REPLICA_SAMPLES answers. */
#define REPLICA_SLOW	 8u
/* What a server answers that is so many times slower does not tell how long a
 * method takes. */
#define REPLICA_SLOWER	 2u
#define REPLICA_SLOW_MIN NSEC_PER_MSEC
#define REPLICA_SAMPLES	 16u
#define RELATIVE_USUAL	 1024u
/* ns: pauses before a server that was left is tried: the shortest and the
 * longest */
#define REPLICA_PAUSE_MIN (500 * NSEC_PER_MSEC)
#define REPLICA_PAUSE_MAX (30 * NSEC_PER_SEC)

enum replica_state {
	REPLICA_USED,  /* calls go there */
	REPLICA_LEFT,  /* no call goes there until replica.until */
	REPLICA_TRIED, /* one call or more have gone there, to try it */
	REPLICA_STATES
};
extern const struct fsm_state replica_states[REPLICA_STATES];

struct replica {
	struct ulrpc_replicas *all;
	struct ulrpc_client *client;
	struct ulrpc_streams *streams; /* NULL: none was opened there */
	/* how many streams are open there, which count as calls under way when
	 * a server is chosen; NULL: none was opened there */
	const atomic_uint *open;
	struct ulnet_address address;
	uint64_t hash;	     /* replica_hash() of the NID */
	unsigned int number; /* number in a struct replica_set */
	/* node in ulrpc_replicas.gone, if the server is not in the set any more
	 */
	struct list gone;
	/* changed: the client has told something since the last look. down: it
	 * was last told that it is UP or DOWN, and that was DOWN. lost: it was
	 * GONE since the last look */
	bool changed, down, lost;

	struct fsm fsm; /* enum replica_state */
	/* valid in LEFT and TRIED: the server was left although it can be
	 * connected to */
	bool outlier;
	unsigned int left_times; /* how often in a row the server was left */
	/* ns: valid in LEFT and TRIED: when a call may try the server, and the
	 * pause until then */
	uint64_t until, pause;
	unsigned int failures; /* how many calls in a row have failed there */
	uint64_t answered;     /* ns: when it has answered last; 0: never */
	/* mean: mean time of the server's answers, in ns. relative: mean of
	 * what these times were in relation to the usual time of the method at
	 * all servers, which is RELATIVE_USUAL: methods that take long do not
	 * make a server look slow to which only their calls go. samples: how
	 * many answers there were, at most REPLICA_SAMPLES */
	uint64_t mean, relative;
	unsigned int samples;

	/* ns: until when it wants no further calls, as it has said when it had
	 * no room for one */
	uint64_t full_until;

	struct list attempts; /* of attempt.of_replica: calls under way */
	uint32_t under_way;   /* how many are in @attempts */
	uint64_t bytes;	      /* of the bodies of these */
	/* for ULRPC_CHOOSE_TURNS: the server with the highest number is next */
	int64_t turn;
};

/* A set of servers, by replica.number. */
struct replica_set {
	uint64_t bits[ULRPC_REPLICAS_MAX / 64];
};

static inline void replica_set_add(struct replica_set *set, unsigned int number)
{
	set->bits[number / 64] |= UINT64_C(1) << number % 64;
}

static inline void replica_set_del(struct replica_set *set, unsigned int number)
{
	set->bits[number / 64] &= ~(UINT64_C(1) << number % 64);
}

static inline bool replica_set_has(const struct replica_set *set,
				   unsigned int number)
{
	return set->bits[number / 64] >> number % 64 & 1;
}

/* What is free of the set's queue. A server that holds more than that holds
 * more than its share (base/share.h). */
struct room {
	uint32_t calls;
	uint64_t bytes;
};

/* Does @r hold no more than its share? */
static inline bool replica_has_room(const struct replica *r,
				    const struct room *room)
{
	return r->under_way <= room->calls && r->bytes <= room->bytes;
}

/* How one call chooses. */
struct choice {
	enum ulrpc_choice choice;
	bool keyed;
	/* what replica_key() returns; valid if @keyed */
	uint64_t key;
	const struct replica_set *tried; /* servers that are not chosen */
	/* Servers that hold more than their share are passed over, unless the
	 * call has a key or wants the first one. NULL: none holds so much. */
	const struct room *room;
	/* chooses among the servers that are left, instead of the others */
	bool left;
	uint64_t now;	 /* ns */
	uint64_t random; /* 64 bits */
};

/* Returns one of the @n servers; NULL: there is none to choose. */
struct replica *replica_choose(struct replica *const *all, unsigned int n,
			       const struct choice *c);
/* Return hashes, which are the same on all hosts and in all releases. */
uint64_t replica_hash(const struct ulnet_nid *nid);
uint64_t replica_key(const void *key, size_t length);

static inline bool replica_is_used(const struct replica *r)
{
	return r->fsm.state == REPLICA_USED;
}

/* Is it time to try @r again? */
static inline bool replica_is_due(const struct replica *r, uint64_t now)
{
	return !replica_is_used(r) && r->until <= now;
}

/* Called when a call goes to @r. */
void replica_try(struct replica *r, uint64_t now);
/* Makes no call go to @r for a while. @random: 64 bits. */
void replica_leave(struct replica *r, bool outlier, uint64_t now,
		   uint64_t random);
/* Called when @r can be connected to again. */
void replica_is_back(struct replica *r);
/* Called when @r has answered. @trial: a call that tries it. */
void replica_on_answer(struct replica *r, bool trial);
/* Called when @r has refused a call, as it has no room before @until (ns). */
void replica_on_full(struct replica *r, uint64_t until);
/* Called when a call has taken @ns at @r, or more. @usual: ns that calls of its
 * method usually take. */
void replica_on_time(struct replica *r, uint64_t ns, uint64_t usual);
/* Counts a call that has failed at @r. Returns true if @r is to be left for
 * that. */
bool replica_on_failure(struct replica *r);
/* Is @r far slower than the others of the @n servers? */
bool replica_is_slow(const struct replica *r, struct replica *const *all,
		     unsigned int n);
/* Is @r slower than the others, if not far? */
bool replica_is_slower(const struct replica *r, struct replica *const *all,
		       unsigned int n);
/* May one more of the @n servers be left as an outlier? At most half of them
 * are. */
bool replica_may_leave(struct replica *const *all, unsigned int n);

#endif
