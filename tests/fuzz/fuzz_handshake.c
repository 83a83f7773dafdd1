/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What strangers send as a handshake. The first byte says to whom: a server or
 * a client, with certificates or with a cluster's key, of a stream or not; and
 * in pieces of how many bytes. Nobody who has not the keys gets through, and
 * whoever is refused is told why, once for all.
 */
#include "secure/stream.h"

#include <errno.h>

#include "tests/fuzz/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_stream(enum handshake_side side, struct keys *keys,
			const uint8_t *data, size_t size, size_t step)
{
	struct stream *s = stream_new(side, keys);
	uint8_t byte;
	size_t n;
	int rc = 0;

	BUG_ON(!s);
	for (size_t at = 0; at < size && !rc; at += n) {
		n = MIN(MIN(step, size - at), stream_room(s));
		BUG_ON(!n);
		rc = stream_take(s, data + at, n);
	}
	BUG_ON(stream_is_up(s));
	BUG_ON(rc && rc != -EPROTO && rc != -EACCES && rc != -EMSGSIZE);
	BUG_ON(!rc != !*stream_error(s));
	stream_end(s);
	BUG_ON(stream_read(s, &byte, 1) != (rc ? rc : -ECONNRESET));
	(void)stream_bytes(s, &n);
	BUG_ON(n > HANDSHAKE_MAX);
	stream_free(s);
}

static void fuzz_handshake(enum handshake_side side, struct keys *keys,
			   const uint8_t *data, size_t size, size_t step)
{
	struct handshake *h = handshake_new(side, keys, NULL);
	size_t n;
	int rc = 0;

	BUG_ON(!h);
	if (side == HANDSHAKE_CLIENT)
		BUG_ON(handshake_feed(h, NULL, 0) != 0);
	for (size_t at = 0; at < size && !rc; at += step)
		rc = handshake_feed(h, data + at, MIN(step, size - at));
	BUG_ON(handshake_is_done(h));
	BUG_ON(rc && rc != -EPROTO && rc != -EACCES && rc != -EMSGSIZE);
	BUG_ON(!rc != !*handshake_error(h));
	BUG_ON(handshake_feed(h, NULL, 0) != rc);
	(void)handshake_bytes(h, &n);
	BUG_ON(n > HANDSHAKE_MAX);
	handshake_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum handshake_side side;
	struct keys *keys;
	size_t step;

	if (!size)
		return 0;
	side = data[0] & 1 ? HANDSHAKE_SERVER : HANDSHAKE_CLIENT;
	keys = keys_of(data[0] & 2);
	step = (size_t)1 << (data[0] >> 2 & 15);
	if (data[0] & 64)
		fuzz_stream(side, keys, data + 1, size - 1, step);
	else
		fuzz_handshake(side, keys, data + 1, size - 1, step);
	return 0;
}
