/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What errors are called: texts in UTF-8, which travel as the bodies of
 * replies, and the causes of outcomes.
 */
#ifndef RPC_TEXT_H
#define RPC_TEXT_H

#include <stddef.h>
#include "ulnet/rpc.h"

/* Bytes of @text that have room in @max, without half of a character. */
size_t text_fit(const char *text, size_t max);
/* Fills @to with @length bytes that a stranger has sent, as far as they have
 * room; a control character, which terminals would obey, becomes a '?'. */
void text_take(char to[ULRPC_TEXT_MAX], const void *bytes, size_t length);

/* ---- the causes of outcomes ---- */

/* Their names, and what status each stands for. */
struct cause {
	const char *name;
	int status; /* 0 or a negative errno */
};
extern const struct cause causes[ULRPC_CAUSE_COUNT];

static inline int cause_status(enum ulrpc_cause cause)
{
	return cause == ULRPC_CAUSE_OK ? 0 : causes[cause].status;
}

#endif
