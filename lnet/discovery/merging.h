/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer has told becomes what is known of it, by a plan (merge.h).
 *
 * Shares. NIDs that nobody knew before are hearsay (peer/word.h), until they
 * speak for themselves. A peer may name as many as its share of peers_max
 * allows (base/share.h); and where there is no room, those that are hearsay go
 * first.
 */
#ifndef LNET_MERGING_H
#define LNET_MERGING_H

#include "lnet/discovery/told.h"

struct lnet_peer;

/* What told_merge() has found. */
struct told_result {
	enum merge_verdict verdict;
	enum merge_why why;
	size_t ask; /* as merge_plan.ask */
};

/*
 * @peer, which is held, becomes what it says of itself, as far as the mode and
 * what was configured allow. NIDs that others have, which have not named this
 * peer, stay theirs: these are asked (word.h). @lost is called for each peer
 * that has lost NIDs, which is not merged any more; it does not outlive that
 * unless it has others, or is held.
 *
 * -ENOMEM, -ENOBUFS, -EXDEV: some NIDs have come, or gone, and others have not;
 * each of them is in one peer, as the directory says. Such a peer can be used:
 * what it has, it has named itself. But it is not merged: it is asked again,
 * and what it tells then is compared with what it has, so that the rest of it
 * is done. (All or nothing would have to hold on to room for all NIDs of a peer
 * that another peer could use meanwhile.)
 */
int told_merge(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct told *told, void (*lost)(struct lnet_peer *from),
	       struct told_result *result) must_check;

#endif
