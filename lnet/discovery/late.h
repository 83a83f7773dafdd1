/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims that came while their NID was not to be asked (peer/word.h): it is
 * asked when that time is over, since nobody may ever name it again, nor use
 * it. At most one for each peer NI. Owner: the CPT.
 */
#ifndef LNET_LATE_H
#define LNET_LATE_H

#include "base/list.h"

struct lnet_cpt;
struct lnet_peer_ni;

/* Of a CPT. */
struct late_claims {
	struct list all; /* of late_claim.link */
};

void late_init(struct lnet_cpt *cpt);
void late_stop(struct lnet_cpt *cpt);

/* @lpni was claimed, before its claims_after. Without memory the next claim
 * tries. */
void late_claim(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

#endif
