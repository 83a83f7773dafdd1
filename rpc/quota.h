/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quotas: how much of a limited resource each NID has, so that no NID gets more
 * than the share of base/share.h. This file does not know what the resource is.
 *
 * The NID is that of the LND's connection by which a message came or goes,
 * never one that the message only claims.
 *
 * Thread: owner.
 */
#ifndef RPC_QUOTA_H
#define RPC_QUOTA_H

#include "base/hash.h"
#include "base/pool.h"
#include "ulnet/lnet.h"

/* What one NID has used. Exists as long as @used is not 0. */
struct quota {
	struct hash_node by_nid;
	struct ulnet_nid nid;
	uint32_t used;
	/* for the user of the quotas: false when this is made */
	bool throttled;
};

struct quotas {
	const char *what; /* name of the resource, for the log */
	uint32_t max;
	uint32_t used;	    /* what all NIDs together use */
	uint64_t logged_at; /* ns: when a refusal was logged last; 0: never */
	struct hash by_nid;
	struct pool pool;
	uint64_t seed;
};

/* @seed: random, so that nobody can choose NIDs that hash to one bucket. */
void quotas_init(struct quotas *qs, const char *what, uint32_t max,
		 uint64_t seed);
/* All that was taken must have been given back. */
void quotas_fini(struct quotas *qs);

/* Charges @n more (not 0) to @nid. Returns what quota_put() wants; NULL: @nid
 * has its share already, which is logged at most once a minute, or there is no
 * memory. @now: ns. */
struct quota *quota_take(struct quotas *qs, const struct ulnet_nid *nid,
			 uint32_t n, uint64_t now);
/* Returns how much is charged to @nid. */
uint32_t quota_used(const struct quotas *qs, const struct ulnet_nid *nid);
/* Gives back @n of what quota_take() has charged to @q. */
void quota_put(struct quotas *qs, struct quota *q, uint32_t n);

#endif
