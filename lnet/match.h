/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals and match entries.
 *
 * Each CPT has its part of each portal. An entry that names a NID lives in the
 * CPT of that NID, any other in the CPT that attached it; a message that finds
 * nothing in its own CPT is offered to the others by those above.
 *
 * Entries that ignore some bits stand in a list, the others in a hash table by
 * match bits (on unique portals by NID and pid as well); the list is searched
 * first. So a unique portal is as fast with 100,000 entries as with one.
 */
#ifndef LNET_MATCH_H
#define LNET_MATCH_H

#include <stdatomic.h>
#include "base/hash.h"
#include "base/list.h"
#include "lnet/stat.h"
#include "ulnet/lnet.h"

struct lnet_cpt;
struct lnet_md;
struct lnet_me;

/*
 * Who uses portals: operations and messages, of which nothing is known here.
 * Called on the CPT that owns the MD.
 */
struct portal_users {
	/* What has put @op into lnet_md.ops ends, but not before return: the
	 * MD was unlinked by its user. */
	void (*abandon)(struct list *op);
	/* An MD was attached to @me, on a portal where somebody waits. 0, or
	 * -ENOMEM, and the MD is taken away again. */
	int (*buffer_came)(const struct lnet_me *me);
};

enum portal_kind { PORTAL_UNDECIDED, PORTAL_UNIQUE, PORTAL_WILDCARD };

/* What the CPTs share of a portal. Atomic. */
struct portal_shared {
	_Atomic uint32_t cpts;	  /* a bit for each CPT that has entries */
	_Atomic uint32_t waiting; /* ... where somebody waits for a buffer */
	_Atomic uint8_t kind;	  /* enum portal_kind, decided once */
	atomic_bool lazy;
};

/* What LNetMEAttach() says. */
struct me_args {
	struct ulnet_id match_id;
	unsigned int portal;
	bool unlink; /* goes with its MD */
	uint64_t match_bits;
	uint64_t ignore_bits;
};

/* A CPT's part of a portal. Owner: CPT. */
struct lnet_portal {
	struct list masked; /* of lnet_me.link: ignore bits != 0 */
	struct hash exact;  /* of lnet_me.hash */
	uint32_t mes;
};

struct lnet_me {
	struct lnet_cpt *cpt;
	uint64_t cookie;
	struct me_args is;
	struct lnet_md *md;
	struct list link;
	struct hash_node hash;
};

/* What a message looks for. */
struct match_want {
	struct ulnet_id id; /* primary NID and pid of its initiator */
	uint64_t bits;
	unsigned int portal;
	unsigned int op; /* LNET_MD_OP_PUT or LNET_MD_OP_GET */
	uint32_t rlength;
	uint32_t roffset;
};

struct match_found {
	struct lnet_md *md; /* with a reference; taken (md_take) */
	uint32_t mlength;
	uint32_t offset;
};

/* Could an entry like @is be for the message? */
bool me_is_for(const struct me_args *is, const struct match_want *want);
/* Are two entries for the same messages? */
bool me_args_alike(const struct me_args *a, const struct me_args *b);

enum portal_kind portal_kind(const struct lnet_cpt *cpt, unsigned int portal);
/* By what exact entries, and messages for them, are hashed on @want's portal,
 * as long as its kind is the same. */
uint64_t match_hash(struct lnet_cpt *cpt, const struct match_want *want);

/* 0 and what was found; -ENOENT: nothing matches here; -EMSGSIZE: what matches
 * is too small; -ENOBUFS: its event queue is full. */
int match_find(struct lnet_cpt *cpt, const struct match_want *want,
	       struct match_found *found);
/* Would match_find() not return -ENOENT? */
bool match_exists(struct lnet_cpt *cpt, const struct match_want *want);

/* Attaches an entry in this very CPT, also to portal 0. As LNetMEAttach(3). */
int me_attach(struct lnet_cpt *cpt, const struct me_args *args,
	      enum ulnet_ins_pos pos, struct lnet_me **me_p);
/* Frees the entry; its MD, if any, is unlinked. */
void me_unlink(struct lnet_me *me);
/* Attaches an MD. Messages that are held for such a buffer come to it, soon. */
int me_attach_md(struct lnet_me *me, const struct ulnet_md *umd,
		 enum ulnet_unlink unlink, struct lnet_md **md_p);

void portals_init(struct lnet_cpt *cpt);
void portals_fini(struct lnet_cpt *cpt);

#endif
