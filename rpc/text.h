/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of errors, in UTF-8, which travel as the bodies of replies. */
#ifndef RPC_TEXT_H
#define RPC_TEXT_H

#include <stddef.h>
#include "ulnet/rpc.h"

/* Bytes of @text that have room in @max, without half of a character. */
size_t text_fit(const char *text, size_t max);
/* Fills @to with @length bytes that a stranger has sent, as far as they have
 * room; a control character, which terminals would obey, becomes a '?'. */
void text_take(char to[ULRPC_TEXT_MAX], const void *bytes, size_t length);

#endif
