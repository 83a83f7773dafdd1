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
/* Takes @length bytes, which are @pairs pairs, out of @a, at the byte @at. */
void annex_cut(struct annex *a, uint32_t at, uint32_t length, uint32_t pairs);
/* Does anybody who reads names of metadata understand @name, of @length bytes?
 */
bool annex_name_is_good(const char *name, size_t length);
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

/*
 * A request may bring its metadata under a number, or a number instead of its
 * metadata (rpc/client/naming.h). Then the annex begins with that number: this
 * takes the place of the first @skip bytes of the body.
 */
#define ANNEX_NAME_MAX 8u
struct annex_name {
	uint32_t number;
	bool refers; /* the metadata are those that the server knows by it */
	uint8_t length;
	uint8_t bytes[ANNEX_NAME_MAX];
	uint32_t skip;
};

/* Returns the pairs at the beginning of @body, of @length bytes, where
 * annex_put() has written them. */
struct wire_view annex_pairs(const uint8_t *body, size_t length);
/* Fills in @to for a body that begins with @pairs. */
void annex_name_make(struct annex_name *to, uint32_t number, bool refers,
		     const uint8_t *body, struct wire_view pairs);

/* ---- reading ---- */

/* What is said of a number at the beginning of an annex. */
struct annex_named {
	uint32_t number; /* 0: nothing */
	bool refers;
	/* the rest of the annex: what the number is to stand for */
	struct wire_view pairs;
};

/* Reads the number in the annex of @body, from anybody, whose rest is not
 * checked. False: it is not well-formed. */
bool annex_named_read(struct wire_view body, struct annex_named *to);

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
