/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GET or PUT of LNet's own, to the ping or the push target of a peer: what
 * nodes ask each other, and tell each other. One at a time for each struct ask.
 * CPT thread. What users ask and tell that way (lnet_ping(), lnet_tell()) is
 * here, too.
 */
#ifndef LNET_ASK_H
#define LNET_ASK_H

#include "base/util.h"
#include "ulnet/lnet.h"

struct lnet_cpt;

struct ask {
	/* The user's, immutable: */
	struct lnet_cpt *cpt;
	/* Once for each that was begun, in a turn of its own; then the next one
	 * may be begun. */
	void (*done)(struct ask *a);

	uint8_t *buf; /* what is told, or was answered: @length bytes */
	size_t size;  /* of it */
	size_t length;
	int status;		   /* of the one that is done: 0 or -errno */
	struct ulnet_nid ni, lpni; /* the path it took, with status 0 */
	uint64_t md;		   /* 0: nothing is under way */
};

void ask_init(struct ask *a, struct lnet_cpt *cpt, void (*done)(struct ask *));
/* Nothing may be under way. */
void ask_fini(struct ask *a);

static inline bool ask_is_under_way(const struct ask *a)
{
	return a->md != 0;
}

/* Room for @size bytes in a->buf. -ENOMEM: it is as before. */
int ask_reserve(struct ask *a, size_t size) must_check;

/* Both begin from the local NI @self, or ANY; @flags: MSG_*; @timeout: ns. On
 * error nothing was begun. */

/* Asks for as many bytes as a->buf has room for. */
int ask_get(struct ask *a, const struct ulnet_nid *self,
	    const struct ulnet_id *target, uint8_t flags,
	    uint64_t timeout) must_check;
/* Tells what this node is (info.h), and waits for the ACK. */
int ask_tell(struct ask *a, const struct ulnet_nid *self,
	     const struct ulnet_id *target, uint8_t flags,
	     uint64_t timeout) must_check;

#endif
