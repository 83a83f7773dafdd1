/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer has told of itself, in a reply or by a push, kept as it came
 * until it is merged: and the merging, by a plan (merge.h), into what is known.
 */
#ifndef LNET_TOLD_H
#define LNET_TOLD_H

#include "lnet/discovery/merge.h"

struct lnet_cpt;
struct lnet_peer;

struct told {
	enum merge_source source;
	struct ulnet_nid from;
	uint32_t sequence; /* as it says */
	uint32_t pid;
	/* NIDs of it that other CPTs own: up to which they were claimed, and
	 * which of them their owners keep. */
	unsigned int claimed, kept;
	bool *keeps;
	size_t length; /* of @bytes: less than it says if it was cut */
	uint8_t bytes[];
};

/* Copies @length @bytes, which are a ping information or the beginning of one;
 * told_free(). *@told_p: NULL on error. -EPROTO, -E2BIG: they are not one that
 * a node would send; -ENOMEM. */
int told_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
	     struct told **told_p) must_check;
void told_free(struct told *told);

/* 1 and *@nid: to be claimed (peer/claim.h) before told_merge(), since @peer is
 * to have it and another CPT owns it; 0: there is none any more; -ENOMEM. */
int told_foreign(struct lnet_cpt *cpt, struct lnet_peer *peer,
		 struct told *told, struct ulnet_nid *nid) must_check;
/* The owner of the NID that told_foreign() has given keeps it. */
void told_kept(struct told *told);

/* What told_merge() has found. */
struct told_result {
	enum merge_verdict verdict;
	enum merge_why why;
	size_t ask; /* as merge_plan.ask */
};

/*
 * @peer, which is held, becomes what it says of itself, as far as the mode and
 * what was configured allow. What other peers lose, they lose; those who had
 * said that it is theirs are not merged any more: they are to be asked again.
 * @taken is called for each peer that has lost all of its NIDs, which it does
 * not outlive unless it is held. -ENOMEM, -ENOBUFS, -EXDEV: a part of it may be
 * done.
 */
int told_merge(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct told *told, void (*lost)(struct lnet_peer *from),
	       struct told_result *result) must_check;

#endif
