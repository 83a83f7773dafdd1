/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The annex of a body: metadata, and the details of a failure. A body with an
 * annex begins with the length of the annex, as a varint, and the annex, which
 * is a message Annex of wire.proto; what the user has given follows. So
 * everything that is done with bodies is done with annexes, too: they are
 * checked, sealed, held, fetched, kept for a second answer and stored with it,
 * and a body without one costs nothing.
 *
 * What is read points into the body: names and values have a 0 byte at their
 * end, so nothing has to be copied. Nothing is allocated for what a peer sends.
 *
 * Any thread; an annex that is being made belongs to its maker.
 */
#ifndef RPC_ANNEX_H
#define RPC_ANNEX_H

#include "base/buf.h"
#include "rpc/wire/wire.h"
#include "ulnet/context.h"

/* Bytes of an annex with all that may be in it: an error with its text, too. */
#define ANNEX_MAX (ULRPC_METADATA_MAX + ULRPC_TEXT_MAX + 16u)
/* Bytes of its length, at most. */
#define ANNEX_HEAD 2u

/* ---- making ---- */

/* Metadata and details, as they are sent. */
struct annex {
	uint8_t *bytes; /* from malloc(), or NULL */
	uint32_t length, size;
	uint32_t pairs;
	bool details;
};

void annex_init(struct annex *a);
void annex_fini(struct annex *a);
/* Makes @to, which is empty, a copy of @from. Returns 0 or -ENOMEM. */
int annex_copy(struct annex *to, const struct annex *from);
/* Return 0, or an error of ulrpc_context_add() or ulrpc_reply_details(). */
int annex_add(struct annex *a, const char *name, const void *value,
	      size_t length);
int annex_add_details(struct annex *a, const struct ulrpc_details *d);
/* Returns how many bytes annex_put() writes for @a alone. */
size_t annex_size(const struct annex *a);
uint8_t *annex_put(uint8_t *p, const struct annex *a);

/* What a failure has beside its details; error 0: it is none. */
struct annex_failure {
	uint32_t error;
	struct wire_view text;
};

/* Makes a body of @a, @failure, and @length bytes of @body, from malloc().
 * NULL: no memory. */
void *annex_body_new(const struct annex *a, const struct annex_failure *failure,
		     const void *body, size_t length, size_t *length_p);

/* ---- reading ---- */

/* Splits *@body into its annex, which is checked, and the rest, which *@body
 * is set to. False: it is not well-formed, or more than is allowed; nothing was
 * set. */
bool annex_split(struct wire_view *body, struct wire_view *annex);

/* For an annex that annex_split() has checked: */
struct annex_failure annex_failure(struct wire_view annex);
/* Return 0, or -ENOENT. */
int annex_pair(struct wire_view annex, unsigned int index,
	       struct ulrpc_metadata *pair);
int annex_find(struct wire_view annex, const char *name,
	       struct ulrpc_metadata *pair);
int annex_details(struct wire_view annex, struct ulrpc_details *details);

#endif
