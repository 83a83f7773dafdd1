/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One server of a set, and which of them a call goes to.
 *
 *	USED <-> LEFT -> TRIED -> USED or LEFT
 *
 * A server is left when it cannot be connected to, or says that it goes, or if
 * it is an outlier: calls fail there one after another, or it is far slower
 * than the others. After a pause, which doubles each time, one call tries it.
 *
 * Knows nothing of calls and clocks. Owner: the CPT of the set.
 */
#ifndef RPC_REPLICA_H
#define RPC_REPLICA_H

#include "base/fsm.h"
#include "base/list.h"
#include "ulnet/names.h"
#include "ulnet/replicas.h"

struct ulrpc_replicas;

/* Calls that have failed in a row, after which a server is left. */
#define REPLICA_FAILURES 5
/* A server is left if it takes this many times as long as the median of the
 * others, by a mean of at least REPLICA_SAMPLES answers. */
#define REPLICA_SLOW	8u
#define REPLICA_SAMPLES 16u
/* Pauses, ns, before a server is tried: from, and to. */
#define REPLICA_PAUSE_MIN (500 * NSEC_PER_MSEC)
#define REPLICA_PAUSE_MAX (30 * NSEC_PER_SEC)

enum replica_state {
	REPLICA_USED,  /* calls go there */
	REPLICA_LEFT,  /* none goes there until replica.until */
	REPLICA_TRIED, /* one has gone there */
	REPLICA_STATES
};
extern const struct fsm_state replica_states[REPLICA_STATES];

struct replica {
	struct ulrpc_replicas *all;
	struct ulrpc_client *client;
	struct ulnet_address address;
	uint64_t hash;	     /* of the NID: replica_hash() */
	unsigned int number; /* in a struct replica_set */
	struct list gone;    /* replicas.gone: it is not in the set any more */
	/* enum client_news: what is known since the last look */
	bool changed, down;

	struct fsm fsm; /* enum replica_state */
	bool outlier;	/* LEFT, TRIED: although it can be connected to */
	unsigned int left_times; /* in a row */
	uint64_t until;		 /* LEFT: ns */
	unsigned int failures;	 /* in a row */
	/* of its answers: mean time, ns, and how many there were, at most
	 * REPLICA_SAMPLES */
	uint64_t mean;
	unsigned int samples;

	struct list attempts; /* attempt.of_replica: calls under way */
	uint32_t under_way;   /* how many these are */
	int64_t turn;	      /* ULRPC_CHOOSE_TURNS: the highest is next */
};

/* Which servers, by replica.number. */
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

/* How one call chooses. */
struct choice {
	enum ulrpc_choice choice;
	bool keyed;
	uint64_t key;			 /* replica_key() */
	const struct replica_set *tried; /* these are not chosen */
	/* of those that are left, instead of the others */
	bool left;
	uint64_t now;	 /* ns */
	uint64_t random; /* 64 bits */
};

/* Returns one of the @n servers, or NULL: there is none. */
struct replica *replica_choose(struct replica *const *all, unsigned int n,
			       const struct choice *c);
/* Hashes, which are the same on all hosts and in all releases. */
uint64_t replica_hash(const struct ulnet_nid *nid);
uint64_t replica_key(const void *key, size_t length);

static inline bool replica_is_used(const struct replica *r)
{
	return r->fsm.state == REPLICA_USED;
}

/* May it be tried? */
static inline bool replica_is_due(const struct replica *r, uint64_t now)
{
	return r->fsm.state == REPLICA_LEFT && r->until <= now;
}

/* A call goes there. */
void replica_try(struct replica *r, uint64_t now);
/* No call goes there for a while. @random: 64 bits. */
void replica_leave(struct replica *r, bool outlier, uint64_t now,
		   uint64_t random);
/* It can be connected to again. */
void replica_is_back(struct replica *r);
/* It has answered. */
void replica_on_answer(struct replica *r);
/* A call has taken @ns there, or more. */
void replica_on_time(struct replica *r, uint64_t ns);
/* Counts a call that has failed there. Returns whether that is one too many. */
bool replica_on_failure(struct replica *r);
/* Is it far slower than the others of @all? */
bool replica_is_slow(const struct replica *r, struct replica *const *all,
		     unsigned int n);
/* May one more be left as an outlier? At most half of them are. */
bool replica_may_leave(struct replica *const *all, unsigned int n);

#endif
