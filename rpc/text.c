/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"

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
	[ULRPC_CAUSE_LOST] = { "lost", -ETIMEDOUT },
	[ULRPC_CAUSE_FORGOTTEN] = { "forgotten", -ECONNRESET },
	[ULRPC_CAUSE_NAME] = { "name", -EADDRNOTAVAIL },
	[ULRPC_CAUSE_INTERCEPTED] = { "intercepted", -EACCES },
};

const char *ulrpc_flavour_name(enum ulrpc_flavour flavour)
{
	static const char *const names[] = {
		[ULRPC_FLAVOUR_DEFAULT] = "default",
		[ULRPC_FLAVOUR_NONE] = "none",
		[ULRPC_FLAVOUR_AUTH] = "auth",
		[ULRPC_FLAVOUR_INTEGRITY] = "integrity",
		[ULRPC_FLAVOUR_PRIVACY] = "privacy",
	};

	return (unsigned int)flavour < ARRAY_SIZE(names) ? names[flavour]
							 : "unknown";
}

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

static bool is_continuation(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Returns how many of the first @length bytes are whole characters. @bytes has
 * more than @length bytes. */
static size_t whole_characters(const uint8_t *bytes, size_t length)
{
	size_t i = length;

	while (i && length - i < 3 && is_continuation(bytes[i]))
		i--;
	/* Bytes that are not UTF-8 may be cut anywhere. */
	return is_continuation(bytes[i]) ? length : i;
}

size_t text_fit(const char *text, size_t max)
{
	size_t length = strnlen(text, max + 1);

	return length > max ? whole_characters((const uint8_t *)text, max)
			    : length;
}

void text_take(char to[ULRPC_TEXT_MAX], const void *bytes, size_t length)
{
	const uint8_t *from = bytes, *end = from + length;
	size_t n = 0;

	while (from < end) {
		size_t whole = *from ? text_character(from, end) : 0;
		size_t take = whole ? whole : 1;

		if (take > ULRPC_TEXT_MAX - 1 - n)
			break;
		if (whole)
			memcpy(to + n, from, whole);
		else
			to[n] = '?';
		n += take;
		from += take;
	}
	to[n] = '\0';
}

/* ---- traces ---- */

/* The offsets in bytes at which version, trace, parent and flags end. In the
 * text there is a dash between them. */
static const uint8_t part_ends[] = { 1, 17, 25, 26 };

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_zero(const uint8_t *bytes, unsigned int from, unsigned int to)
{
	while (from < to)
		if (bytes[from++])
			return false;
	return true;
}

bool trace_is_good(const uint8_t *bytes, uint32_t length)
{
	return length == TRACE_LENGTH && !bytes[0] &&
	       !is_zero(bytes, part_ends[0], part_ends[1]) &&
	       !is_zero(bytes, part_ends[1], part_ends[2]);
}

int trace_parse(const char *text, uint8_t bytes[TRACE_LENGTH])
{
	uint8_t read[TRACE_LENGTH];
	const uint8_t *end = part_ends;

	for (unsigned int i = 0; i < TRACE_LENGTH; i++, text += 2) {
		int high, low;

		if (i == *end) {
			if (*text++ != '-')
				return -EINVAL;
			end++;
		}
		high = digit(text[0]);
		low = high < 0 ? -1 : digit(text[1]);
		if (low < 0)
			return -EINVAL;
		read[i] = (uint8_t)(high << 4 | low);
	}
	if (*text || !trace_is_good(read, TRACE_LENGTH))
		return -EINVAL;
	memcpy(bytes, read, TRACE_LENGTH);
	return 0;
}

void trace_format(const uint8_t bytes[TRACE_LENGTH],
		  char text[ULRPC_TRACE_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *end = part_ends;

	for (unsigned int i = 0; i < TRACE_LENGTH; i++) {
		if (i == *end) {
			*text++ = '-';
			end++;
		}
		*text++ = digits[bytes[i] >> 4];
		*text++ = digits[bytes[i] & 15];
	}
	*text = '\0';
}

/* ---- configurations ---- */

int conf_refuse(struct conf_owner o, int rc, const char *fmt, ...)
{
	struct ulnet_conf_error err;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.what, sizeof(err.what), fmt, ap);
	va_end(ap);
	lnet_log(LNET_LOG_ERR, "rpc",
		 "%s%s%.64s: the configuration is refused: %s", o.kind,
		 o.name ? " " : "", o.name ? o.name : "", err.what);
	if (o.err)
		*o.err = err;
	return rc;
}
