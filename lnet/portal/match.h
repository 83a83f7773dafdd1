/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Match entries.
 *
 * Each CPT has its own part of each portal. An entry that names a NID is on the
 * CPT that owns the NID; any other entry is on the CPT that attached it. A
 * message that matches nothing on its own CPT is offered to the other CPTs by
 * the room above.
 *
 * Entries with ignore bits are in a list, which is searched first. Other
 * entries are in a hash table, by match bits, and on unique portals by NID and
 * pid as well. So a unique portal is as fast with 100,000 entries as with one.
 *
 * An entry that names a NID matches messages from all NIDs of the peer that has
 * it. The entry is hashed by the NID that it names, and keeps its place when
 * the NIDs of the peer change. So if a message from a peer with several NIDs
 * finds no entry for the NID from which it came, all entries with its match
 * bits are searched.
 */
#ifndef LNET_MATCH_H
#define LNET_MATCH_H

#include "base/hash.h"
#include "base/list.h"
#include "lnet/portal/portal.h"
#include "ulnet/lnet.h"

struct lnet_cpt;
struct lnet_md;

/* The arguments of LNetMEAttach(). */
struct me_args {
	struct ulnet_id match_id;
	unsigned int portal;
	bool unlink; /* the entry is unlinked together with its MD */
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
	/* in lnet_portal.by_bits, on unique portals */
	struct hash_node by_bits;
};

/* What a message looks for. */
struct match_want {
	struct directory *peers; /* tells which NIDs are of one peer */
	struct ulnet_id id;	 /* a NID of the initiator, and its pid */
	uint64_t bits;
	unsigned int portal;
	unsigned int op; /* LNET_MD_OP_PUT or LNET_MD_OP_GET */
	uint32_t rlength;
	uint32_t roffset;
};

struct match_found {
	struct lnet_md *md; /* a reference; md_take() has been called */
	uint32_t mlength;
	uint32_t offset;
};

/* May an entry match that is not in the place given by match_hash()? */
bool match_has_alias(const struct lnet_cpt *cpt, const struct match_want *want);
/* Would an entry that is made with @is match the message? */
bool me_is_for(const struct me_args *is, const struct match_want *want);
/* Would entries that are made with @a and with @b match the same messages? */
bool me_args_alike(const struct me_args *a, const struct me_args *b);

enum portal_kind portal_kind(const struct lnet_cpt *cpt, unsigned int portal);
/* Returns the hash of messages that look for @want, and of entries without
 * ignore bits for them. It stays the same as long as the kind of the portal
 * does. */
uint64_t match_hash(struct lnet_cpt *cpt, const struct match_want *want);

/* Finds an entry. Returns 0 and what was found; -ENOENT: nothing matches on
 * this CPT; -EMSGSIZE: what matches is too small; -ENOBUFS: the event queue of
 * what matches is full. */
int match_find(struct lnet_cpt *cpt, const struct match_want *want,
	       struct match_found *found);
/* Is there an entry that match_find() would find? */
bool match_exists(struct lnet_cpt *cpt, const struct match_want *want);

/* As LNetMEAttach(3), but always on this CPT, and allowed on portal 0 as well.
 */
int me_attach(struct lnet_cpt *cpt, const struct me_args *args,
	      enum ulnet_ins_pos pos, struct lnet_me **me_p);
/* Frees the entry, and unlinks its MD, if it has one. */
void me_unlink(struct lnet_me *me);
/* Attaches an MD. Messages that wait for such a buffer are put into it soon. */
int me_attach_md(struct lnet_me *me, const struct ulnet_md *umd,
		 enum ulnet_unlink unlink, struct lnet_md **md_p);

#endif
