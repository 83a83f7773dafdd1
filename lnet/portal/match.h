/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Match entries.
 *
 * Each CPT has its part of each portal. An entry that names a NID lives in the
 * CPT of that NID, any other in the CPT that attached it; a message that finds
 * nothing in its own CPT is offered to the others by those above.
 *
 * Entries that ignore some bits stand in a list, the others in a hash table by
 * match bits (on unique portals by NID and pid as well); the list is searched
 * first. So a unique portal is as fast with 100,000 entries as with one.
 *
 * An entry that names a NID is for the peer that has the NID, from whichever of
 * its NIDs a message comes. Entries are hashed by the NID that they name, and
 * never hashed again, although the NIDs of a peer may change at any time. So if
 * a message comes from a peer with several NIDs, and there is no entry for the
 * NID that it came from, all entries with its match bits are looked at.
 */
#ifndef LNET_MATCH_H
#define LNET_MATCH_H

#include "base/hash.h"
#include "base/list.h"
#include "lnet/portal/portal.h"
#include "ulnet/lnet.h"

struct lnet_cpt;
struct lnet_md;

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
	struct hash_node by_bits; /* unique portals */
};

/* What a message looks for. */
struct match_want {
	struct directory *peers; /* knows whose NIDs are whose */
	struct ulnet_id id;	 /* a NID of its initiator, and the pid */
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

/* Could the message be for an entry that match_hash() does not lead to? */
bool match_has_alias(const struct lnet_cpt *cpt, const struct match_want *want);
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

#endif
