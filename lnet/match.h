/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals and match entries.
 *
 * Each CPT has its part of each portal. An entry that names a NID lives in the
 * CPT of that NID, any other in the CPT that attached it; a message that finds
 * nothing in its own CPT is offered to the others (parse.c).
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

enum portal_kind { PORTAL_UNDECIDED, PORTAL_UNIQUE, PORTAL_WILDCARD };

/* What the CPTs share of a portal. Atomic. */
struct portal_shared {
	_Atomic uint32_t cpts;	   /* a bit for each CPT that has entries */
	_Atomic uint32_t attached; /* counts the buffers that came */
	_Atomic uint8_t kind;	   /* enum portal_kind, decided once */
	atomic_bool lazy;
};

/* A CPT's part of a portal. Owner: CPT. */
struct lnet_portal {
	struct list masked; /* of lnet_me.link: ignore bits != 0 */
	struct hash exact;  /* of lnet_me.hash */
	struct list held;   /* of lnet_msg.link: kept until a buffer comes */
	uint32_t mes;
	bool retry; /* a buffer was attached for what is held: a retry is posted */
};

/* What LNetMEAttach() says. */
struct me_args {
	struct ulnet_id match_id;
	unsigned int portal;
	bool unlink; /* goes with its MD */
	uint64_t match_bits;
	uint64_t ignore_bits;
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

/* 0 and what was found; -ENOENT: nothing matches here; -EMSGSIZE: what matches
 * is too small; -ENOBUFS: its event queue is full. */
int match_find(struct lnet_cpt *cpt, const struct match_want *want,
	       struct match_found *found);

/* Attaches an entry in this very CPT, also to portal 0. As LNetMEAttach(3). */
int me_attach(struct lnet_cpt *cpt, const struct me_args *args,
	      enum ulnet_ins_pos pos, struct lnet_me **me_p);
/* Frees the entry; its MD, if any, is unlinked. */
void me_unlink(struct lnet_me *me);
int me_attach_md(struct lnet_me *me, const struct ulnet_md *umd,
		 enum ulnet_unlink unlink, struct lnet_md **md_p);

void portals_init(struct lnet_cpt *cpt);
void portals_fini(struct lnet_cpt *cpt);

#endif
