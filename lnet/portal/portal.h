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

/* Functions of the room above (message/), called on the CPT that owns the
 * MD. */
struct portal_users {
	/* The user has unlinked an MD that has @op in its lnet_md.ops: ends
	 * that operation as soon as possible, but not before return. */
	void (*abandon)(struct list *op);
	/* An MD was attached to @me, on a portal where messages wait for
	 * buffers. Returns 0, or -ENOMEM: the MD is removed again. */
	int (*buffer_came)(const struct lnet_me *me);
};

enum portal_kind { PORTAL_UNDECIDED, PORTAL_UNIQUE, PORTAL_WILDCARD };

/* The part of a portal that all CPTs share. Atomic. */
struct portal_shared {
	_Atomic uint32_t cpts;	  /* a bit for each CPT that has entries */
	_Atomic uint32_t waiting; /* ... where messages wait for a buffer */
	_Atomic uint8_t kind;	  /* enum portal_kind, decided once */
	atomic_bool lazy;
};

/* A CPT's own part of a portal. */
struct lnet_portal {
	struct list masked;  /* entries with ignore bits (lnet_me.link) */
	struct hash exact;   /* the others (lnet_me.hash) */
	struct hash by_bits; /* unique portals: those in .exact again */
	uint32_t mes;	     /* how many entries there are */
};

struct portal_cpt {
	struct lnet_cpt cpt;
	struct lnet_portal portals[LNET_PORTALS];
	struct id_table mds, mes;
	struct pool md_pool, me_pool;
	struct list mds_unlinked; /* lnet_md.link */
	struct mems mems;	  /* the same on each CPT */
	uint64_t sequence;	  /* of events */
};

static inline struct portal_cpt *portal_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct portal_cpt, cpt);
}

struct portal_node {
	struct lnet node;
	struct portal_shared portals[LNET_PORTALS];
	const struct portal_users *portal_users;
	int (*poll)(struct lnet *node, uint64_t timeout); /* lnet_poll() */
	struct eqs eqs;
};

static inline struct portal_node *portal_node(const struct lnet *node)
{
	return container_of(node, struct portal_node, node);
}

void portals_init(struct lnet_cpt *cpt);
void portals_fini(struct lnet_cpt *cpt);

/* Unlinks all entries and MDs. Their last events come after return; all have
 * come when portals_idle() is true. */
void portals_unlink(struct lnet_cpt *cpt);
bool portals_idle(const struct lnet_cpt *cpt);

#endif
