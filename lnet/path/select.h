/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice of the path of a message: a pure function over candidates, by an
 * ordered list of criteria, the first difference deciding (requirement C3).
 * Hard-failed interfaces are no candidates.
 */
#ifndef LNET_SELECT_H
#define LNET_SELECT_H

#include "ulnet/lnet.h"

struct lnet_cpt;
struct lnet_ni;

struct select_want {
	const struct ulnet_nid *src;	   /* local NI asked for, or ANY */
	const struct ulnet_nid *dst;	   /* peer NI to be reached directly */
	const struct ulnet_nid *preferred; /* local NI it has seen, or ANY */
};

/* 0 and the local NI; -EINVAL: src is not one of ours, or on another net than
 * dst;
 * -EHOSTUNREACH: no net of ours reaches dst; -ENETDOWN: all NIs that would are
 * down. */
int select_ni(struct lnet_cpt *cpt, const struct select_want *want,
	      struct lnet_ni **ni_p);

#endif
