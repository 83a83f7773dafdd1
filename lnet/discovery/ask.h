/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends LNet's own GETs and PUTs to the ping and push targets of peers. Each
 * struct ask has one GET or PUT under way at a time, on its CPT. Also
 * implements lnet_ping() and lnet_tell().
 */
#ifndef LNET_ASK_H
#define LNET_ASK_H

#include "base/util.h"
#include "ulnet/lnet.h"

struct lnet_cpt;

struct ask {
	/* Set by the caller, then immutable: */
	struct lnet_cpt *cpt;
	/* Called once, in a later turn, for each ask_get() or ask_tell() that
	 * returned 0. After that the next one may begin. */
	void (*done)(struct ask *a);

	/* the bytes that are sent, or that have been received */
	uint8_t *buf;
	size_t size;   /* size of @buf, bytes */
	size_t length; /* bytes of @buf that are used */
	int status;    /* result: 0 or a negative errno */
	enum ulnet_cause cause; /* the cause of @status, if it is not 0 */
	/* result, if @status is 0: the NIDs of the path that was used */
	struct ulnet_nid ni, lpni;
	/* cookie of the MD in use; 0: nothing is under way */
	uint64_t md;
};

void ask_init(struct ask *a, struct lnet_cpt *cpt, void (*done)(struct ask *));
/* Frees what @a has. Nothing may be under way. */
void ask_fini(struct ask *a);

static inline bool ask_is_under_way(const struct ask *a)
{
	return a->md != 0;
}

/* Enlarges a->buf to @size bytes. Returns 0; -ENOMEM: a->buf is unchanged. */
int ask_reserve(struct ask *a, size_t size) must_check;

/* Both functions send from the local NI @self (LNET_NID_ANY: any). @flags:
 * MSG_*. @timeout: ns. If they return an error, done() is not called. */

/* Asks @target for its ping information; receives at most the size of a->buf.
 */
int ask_get(struct ask *a, const struct ulnet_nid *self,
	    const struct ulnet_id *target, uint8_t flags,
	    uint64_t timeout) must_check;
/* Pushes the ping information of this node (info.h), and waits for the ACK. */
int ask_tell(struct ask *a, const struct ulnet_nid *self,
	     const struct ulnet_id *target, uint8_t flags,
	     uint64_t timeout) must_check;
/* Pushes to this very NID and pid, once. Whether the push arrives is only
 * counted; if it does not, no NI loses health. 0 or a negative errno. */
int ask_tell_once(struct lnet_cpt *cpt, const struct ulnet_id *target);

#endif
