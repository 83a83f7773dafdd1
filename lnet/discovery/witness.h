/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For whom does an NI speak that has told something? For its peer, if it has
 * said itself that it belongs to that peer (peer/word.h). If only others have
 * said so, it speaks for its peer only if it names an NI that has said so
 * itself; else it leaves the peer, and speaks for itself.
 */
#ifndef LNET_WITNESS_H
#define LNET_WITNESS_H

#include "base/util.h"

struct lnet_cpt;
struct lnet_peer;
struct told;

/* @told has come to @peer. *@of: whose it is; NULL: nobody's here. -ENOMEM:
 * nothing is changed. */
int witness_hear(struct lnet_cpt *cpt, struct lnet_peer *peer,
		 const struct told *told, struct lnet_peer **of) must_check;

#endif
