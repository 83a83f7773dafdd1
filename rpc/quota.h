/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quotas: how much of a limited resource each NID holds, so that none gets more
 * than the share of base/share.h. This file does not know what the resource is.
 *
 * The NID is the one that a message came from, or goes to, and that the LND's
 * connection confirms; never one that its sender only claims in the message.
 *
 * Thread: owner.
 */
#ifndef RPC_QUOTA_H
#define RPC_QUOTA_H

#include "base/hash.h"
#include "base/pool.h"
#include "ulnet/lnet.h"

/* Exists as long as it holds anything. */
struct quota {
	struct hash_node by_nid;
	struct ulnet_nid nid;
	uint32_t held;
};

struct quotas {
	const char *what; /* for the log */
	uint32_t max;
	uint32_t used; /* by all */
	uint64_t said; /* ns: when the log was told last; 0: never */
	struct hash by_nid;
	struct pool pool;
	uint64_t seed;
};

/* @seed: random, or strangers could choose NIDs that hash to one bucket. */
void quotas_init(struct quotas *ps, const char *what, uint32_t max,
		 uint64_t seed);
/* Everything has to have been given back. */
void quotas_fini(struct quotas *ps);

/* Charges @n more (not 0) to @nid. NULL: @nid has its share already, which is
 * logged, but not each time; or there is no memory. */
struct quota *quota_take(struct quotas *ps, const struct ulnet_nid *nid,
			 uint32_t n, uint64_t now);
/* Gives back @n of what quota_take() has charged to @p. */
void quota_put(struct quotas *ps, struct quota *p, uint32_t n);

#endif
