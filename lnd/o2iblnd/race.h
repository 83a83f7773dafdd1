/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes that ask each other for a connection at the same time: whose
 * request goes on. The node that has asked, and is asked, rejects the request
 * of a peer that is "lower". Both have to order themselves alike, and
 * nodes of different versions do not: then both reject, or both accept. Pure.
 *
 * Thread: any.
 */
#ifndef LND_O2IBLND_RACE_H
#define LND_O2IBLND_RACE_H

#include "ulnet/nid.h"

enum ib_race_rule {
	IB_RACE_HASH, /* nodes since 2.16: by ib_race_hash() */
	IB_RACE_NID,  /* nodes up to 2.15: by the 64-bit NID */
	IB_RACE_RULES
};

/* After so many rejects of one peer its next request is accepted. */
#define IB_RACE_REJECTS_MAX 20

/* Of a NID that has a 64-bit form: net number XOR address, the latter as a
 * little-endian machine loads the bytes that are on the wire. */
uint32_t ib_race_hash(const struct ulnet_nid *nid);

/* Is @a lower than @b? */
bool ib_race_is_lower(enum ib_race_rule rule, const struct ulnet_nid *a,
		      const struct ulnet_nid *b);

#endif
