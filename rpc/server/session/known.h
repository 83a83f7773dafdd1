/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of metadata that a client has named by numbers, so that its later calls
 * need not bring them (rpc/context/annex.h). They belong to one epoch of its
 * connection, and to nobody else.
 *
 * A client numbers its sets upwards, and never gives a number twice in the life
 * of its connection; there are KNOWN_SETS places, and number n has the place n
 * modulo KNOWN_SETS, where only a set with a higher number replaces it. So a
 * number means one set or none, in whatever order messages come. What a client
 * has no room for, or what was replaced, it has to send again.
 *
 * Sets are bytes of exports.sets, of which each host has its share. A client
 * that names none costs a pointer. Thread: owner.
 */
#ifndef RPC_KNOWN_H
#define RPC_KNOWN_H

#include "rpc/wire/wire.h"

struct export;
struct exports;

/* How many sets of a client are known at a time: wire_connected.sets. */
#define KNOWN_SETS 16u
/* Bytes of all sets on a CPT. */
#define KNOWN_MAX (UINT32_C(16) << 20)

/* Remembers @pairs, which are well-formed, as the set @number of @e, unless the
 * host of @e has used up its share, or a later set is in that place. */
void known_add(struct exports *x, struct export *e, uint32_t number,
	       struct wire_view pairs);
/* Sets *@pairs to the set @number of @e: borrowed within this turn. False: it
 * is not known. */
bool known_find(const struct export *e, uint32_t number,
		struct wire_view *pairs);
/* Forgets all sets of @e. */
void known_drop(struct exports *x, struct export *e);

#endif
