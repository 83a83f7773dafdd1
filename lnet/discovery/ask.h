/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends GETs and PUTs of LNet's own to the ping and push targets of peers, one
 * at a time for each struct ask, on its CPT. Also implements lnet_ping() and
 * lnet_tell().
 */
#ifndef LNET_ASK_H
#define LNET_ASK_H

#include "base/util.h"
#include "ulnet/lnet.h"

struct lnet_cpt;

struct ask {
	/* The caller's, immutable: */
	struct lnet_cpt *cpt;
	/* Called once for each ask_get() or ask_tell() that returned 0, in a
	 * later turn; then the next one may begin. */
	void (*done)(struct ask *a);

	uint8_t *buf;		   /* what is sent, or has been received, */
	size_t size;		   /* ... its size */
	size_t length;		   /* ... and how much of it is used, bytes */
	int status;		   /* result: 0 or -errno */
	struct ulnet_nid ni, lpni; /* with status 0: the path it took */
	uint64_t md;		   /* 0: nothing is under way */
};

void ask_init(struct ask *a, struct lnet_cpt *cpt, void (*done)(struct ask *));
/* Nothing may be under way. */
void ask_fini(struct ask *a);

static inline bool ask_is_under_way(const struct ask *a)
{
	return a->md != 0;
}

/* Enlarges a->buf to @size bytes. -ENOMEM: it is unchanged. */
int ask_reserve(struct ask *a, size_t size) must_check;

/* Both send from the local NI @self (ANY: any). @flags: MSG_*; @timeout: ns. On
 * error done() is not called. */

/* Asks @target for its ping information, up to the size of a->buf. */
int ask_get(struct ask *a, const struct ulnet_nid *self,
	    const struct ulnet_id *target, uint8_t flags,
	    uint64_t timeout) must_check;
/* Pushes this node's ping information (info.h), and waits for the ACK. */
int ask_tell(struct ask *a, const struct ulnet_nid *self,
	     const struct ulnet_id *target, uint8_t flags,
	     uint64_t timeout) must_check;

#endif
