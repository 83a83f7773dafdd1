/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts that users see: errors, in UTF-8, which travel as the bodies of
 * replies; causes of outcomes; traces; and why a configuration is refused.
 */
#ifndef RPC_TEXT_H
#define RPC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ulnet/rpc.h"

/* Returns how many bytes of @text fit in @max bytes, without cutting a
 * character. */
size_t text_fit(const char *text, size_t max);
/* Copies as many characters as fit in @to of the @length bytes that a peer has
 * sent. What is not UTF-8, and each 0, becomes a '?'. Control characters stay:
 * who prints the text calls lnet_text_clean(). */
void text_take(char to[ULRPC_TEXT_MAX], const void *bytes, size_t length);

/* ---- the causes of outcomes ---- */

struct cause {
	const char *name;
	/* the status of calls that end for this cause: 0 or a negative errno */
	int status;
};
extern const struct cause causes[ULRPC_CAUSE_COUNT];

static inline int cause_status(enum ulrpc_cause cause)
{
	return cause == ULRPC_CAUSE_OK ? 0 : causes[cause].status;
}

/* ---- traces ---- */

/*
 * The context of a trace, as of W3C's "traceparent", version 00. Users see it
 * as text; on the wire it is TRACE_LENGTH bytes: version, trace, parent, flags.
 * RPC passes it on; with spans, ids of their own are put in
 * (rpc/stats/spans.h).
 */
#define TRACE_LENGTH 26u

/* Converts @text to @bytes. Returns 0; or -EINVAL: @text is not "00-<32
 * hex>-<16 hex>-<2 hex>" in small letters, or trace or parent is 0. */
int trace_parse(const char *text, uint8_t bytes[TRACE_LENGTH]);
/* Are the @length bytes, which a peer has sent, a valid context of a trace? */
bool trace_is_good(const uint8_t *bytes, uint32_t length);
void trace_format(const uint8_t bytes[TRACE_LENGTH],
		  char text[ULRPC_TRACE_SIZE]);

/* ---- configurations ---- */

/* Whose configuration is read: its kind and name, such as "service" and "echo".
 */
struct conf_owner {
	const char *kind;
	const char *name; /* NULL: it has no name */
	/* where conf_refuse() stores what it logs; NULL: it is only logged */
	struct ulnet_conf_error *err;
};

/* Logs why a configuration is refused, and stores that in o.err: a line that
 * begins with the name of the field. Returns @rc. */
int conf_refuse(struct conf_owner o, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
