/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The context of a trace, as W3C has it ("traceparent"), of version 00: text
 * for users, TRACE_LENGTH bytes on the wire: version, trace, parent, flags.
 * Both sides keep and pass on what they are given, and understand no more of
 * it.
 */
#ifndef RPC_TRACE_H
#define RPC_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include "ulnet/rpc.h"

#define TRACE_LENGTH 26u

/* -EINVAL: not "00-<32 hex>-<16 hex>-<2 hex>", in small letters, or trace or
 * parent is 0. */
int trace_parse(const char *text, uint8_t bytes[TRACE_LENGTH]);
/* What a peer has sent: is it one? */
bool trace_is_good(const uint8_t *bytes, uint32_t length);
void trace_format(const uint8_t bytes[TRACE_LENGTH],
		  char text[ULRPC_TRACE_SIZE]);

#endif
