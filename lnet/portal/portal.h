/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals, and what CPTs and nodes keep for match entries, MDs and event
 * queues. */
#ifndef LNET_PORTAL_H
#define LNET_PORTAL_H

#include "base/hash.h"
#include "base/list.h"
#include "lnet/core/cpt.h"
#include "lnet/portal/event.h"
#include "lnet/portal/mem.h"

struct lnet_me;

/* Functions that the layer above (lnet/message/) provides. They are called on
 * the CPT that owns the MD. */
struct portal_users {
	/* The user has unlinked an MD, and @op is in its lnet_md.ops: ends that
	 * operation as soon as possible, but not before this function returns.
	 */
	void (*abandon)(struct list *op);
	/* An MD was attached to @me, on a portal where messages wait for
	 * buffers. Returns 0; or -ENOMEM, and then the MD is removed again. */
	int (*buffer_came)(const struct lnet_me *me);
};

enum portal_kind { PORTAL_UNDECIDED, PORTAL_UNIQUE, PORTAL_WILDCARD };

/* The part of a portal that all CPTs share; all fields are atomic. */
struct portal_shared {
	/* a bit for each CPT that has entries on the portal */
	_Atomic uint32_t cpts;
	/* a bit for each CPT on which messages wait for a buffer */
	_Atomic uint32_t waiting;
	/* enum portal_kind, which is decided only once */
	_Atomic uint8_t kind;
	atomic_bool lazy;
};

/* A CPT's own part of a portal. */
struct lnet_portal {
	/* match entries with ignore bits, by lnet_me.link */
	struct list masked;
	/* match entries without ignore bits, by lnet_me.hash */
	struct hash exact;
	/* on unique portals: the entries of .exact a second time, by match bits
	 * alone; on others: empty */
	struct hash by_bits;
	/* the entry of .exact that was found last, if nothing in .exact comes
	 * before it that could match what it matches; or NULL */
	struct lnet_me *recent;
	uint32_t mes; /* number of entries */
};

struct portal_cpt {
	struct lnet_cpt cpt;
	struct lnet_portal portals[LNET_PORTALS];
	struct id_table mds, mes;
	struct pool md_pool, me_pool;
	struct list mds_unlinked; /* unlinked MDs, by lnet_md.link */
	/* registered memory, of which each CPT has a copy */
	struct mems mems;
	uint64_t sequence; /* number of the last event */
	/* lnet_withhold_ack() was called by the handler of this event */
	bool ack_withheld;
};

static inline struct portal_cpt *portal_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct portal_cpt, cpt);
}

struct portal_node {
	struct lnet node;
	_Alignas(CACHE_LINE) struct portal_shared portals[LNET_PORTALS];
	const struct portal_users *portal_users;
	/* the function of lnet_poll() */
	int (*poll)(struct lnet *node, uint64_t timeout);
	struct eqs eqs;
};

static inline struct portal_node *portal_node(const struct lnet *node)
{
	return container_of(node, struct portal_node, node);
}

void portals_init(struct lnet_cpt *cpt);
void portals_fini(struct lnet_cpt *cpt);

/* Unlinks all entries and MDs. Their last events are delivered after return;
 * when portals_idle() is true, all have been delivered. */
void portals_unlink(struct lnet_cpt *cpt);
bool portals_idle(const struct lnet_cpt *cpt);

#endif
