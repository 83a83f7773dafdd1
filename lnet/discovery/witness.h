/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For whom does an NI speak that has told something? For its peer, if it is
 * known to be one of that peer's by its own word. If not (peer/word.h), for its
 * peer only if it names another NI that is; else it is split off, and speaks
 * for itself.
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
