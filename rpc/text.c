/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- causes ---- */

const struct cause causes[ULRPC_CAUSE_COUNT] = {
	[ULRPC_CAUSE_OK] = { "ok", 0 },
	[ULRPC_CAUSE_HANDLER] = { "handler", -EIO },
	[ULRPC_CAUSE_DEADLINE] = { "deadline", -ETIMEDOUT },
	[ULRPC_CAUSE_EXPIRED] = { "expired", -ETIMEDOUT },
	[ULRPC_CAUSE_CANCELED] = { "canceled", -ECANCELED },
	[ULRPC_CAUSE_OVERLOADED] = { "overloaded", -EBUSY },
	[ULRPC_CAUSE_NO_SERVICE] = { "no service", -ENOENT },
	[ULRPC_CAUSE_NO_METHOD] = { "no method", -ENOSYS },
	[ULRPC_CAUSE_BAD_REQUEST] = { "bad request", -EINVAL },
	[ULRPC_CAUSE_BAD_REPLY] = { "bad reply", -EPROTO },
	[ULRPC_CAUSE_TOO_LONG] = { "too long", -EMSGSIZE },
	[ULRPC_CAUSE_BULK] = { "bulk", -EIO },
	[ULRPC_CAUSE_CHECKSUM] = { "checksum", -EBADMSG },
	[ULRPC_CAUSE_UNREACHABLE] = { "unreachable", -EHOSTUNREACH },
	[ULRPC_CAUSE_REFUSED] = { "refused", -ECONNREFUSED },
	[ULRPC_CAUSE_RESTARTED] = { "restarted", -ECONNRESET },
	[ULRPC_CAUSE_SHUTDOWN] = { "shutdown", -ESHUTDOWN },
	[ULRPC_CAUSE_NO_MEMORY] = { "no memory", -ENOMEM },
	[ULRPC_CAUSE_STALLED] = { "stalled", -ETIMEDOUT },
};

const char *ulrpc_cause_name(enum ulrpc_cause cause)
{
	return (unsigned int)cause < ULRPC_CAUSE_COUNT ? causes[cause].name
						       : "unknown";
}

const char *ulrpc_execution_name(enum ulrpc_execution execution)
{
	switch (execution) {
	case ULRPC_EXECUTED:
		return "executed";
	case ULRPC_NOT_EXECUTED:
		return "not executed";
	default:
		return "unknown";
	}
}

/* ---- texts of errors ---- */

/* Not the first byte of a character. */
static bool continues(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The most of @length bytes, which do not end at a character's beginning, that
 * does. */
static size_t whole(const uint8_t *bytes, size_t length)
{
	size_t i = length;

	while (i && length - i < 3 && continues(bytes[i]))
		i--;
	/* What is no UTF-8 is cut anywhere. */
	return continues(bytes[i]) ? length : i;
}

size_t text_fit(const char *text, size_t max)
{
	size_t length = strnlen(text, max + 1);

	return length > max ? whole((const uint8_t *)text, max) : length;
}

/* How many bytes of the control character there are at @bytes; 0: it is none.
 * Those of ISO 6429 above 127 take two. */
static size_t control(const uint8_t *bytes, size_t length)
{
	if (bytes[0] < 0x20 || bytes[0] == 0x7f)
		return 1;
	return length > 1 && bytes[0] == 0xc2 && bytes[1] < 0xa0 ? 2 : 0;
}

void text_take(char to[ULRPC_TEXT_MAX], const void *bytes, size_t length)
{
	const uint8_t *from = bytes;
	size_t n = 0;

	if (length > ULRPC_TEXT_MAX - 1)
		length = whole(from, ULRPC_TEXT_MAX - 1);
	while (length) {
		size_t skip = control(from, length);

		to[n++] = skip ? '?' : (char)*from;
		skip += !skip;
		from += skip;
		length -= skip;
	}
	to[n] = '\0';
}
