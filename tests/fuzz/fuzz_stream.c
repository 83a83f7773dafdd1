/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two who prove each other, exchange a stream of TLS, and somebody on the way
 * who changes, drops, repeats and inserts bytes as the input says: what is read
 * is what was written, up to where it was changed. The first byte says with
 * which keys; then there is one for each transfer from one side to the other.
 */
#include "secure/stream.h"

#include <errno.h>
#include <string.h>

#include "tests/fuzz/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS  24 /* transfers each way */
#define CARRY  (3 * STREAM_ROOM)
#define WRITES 700

struct input {
	const uint8_t *at, *end;
};

/* After the end: 0, by which nothing is changed. */
static unsigned int next(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

struct side {
	struct stream *s;
	size_t wrote, read; /* bytes; each is known from its position */
	bool failed;
};

static uint8_t byte_at(size_t position)
{
	return (uint8_t)(position * 7 + position / 256);
}

static void write_some(struct side *from)
{
	uint8_t buf[WRITES];
	ssize_t n;

	if (from->failed || !stream_is_up(from->s))
		return;
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = byte_at(from->wrote + i);
	n = stream_write(from->s, buf, sizeof(buf));
	if (n > 0)
		from->wrote += (size_t)n;
}

static void read_all(struct side *to, const struct side *from)
{
	uint8_t buf[256];
	ssize_t n;

	while ((n = stream_read(to->s, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			BUG_ON(buf[i] != byte_at(to->read++));
		BUG_ON(to->read > from->wrote);
	}
	if (n != -EAGAIN)
		to->failed = true;
}

enum { PASSES, FLIPS, DROPS, CUTS, REPEATS, INSERTS, DOES };

/* What becomes of @n bytes on the way. Returns how many there are then. */
static size_t carry(uint8_t *bytes, size_t n, struct input *in, bool *changed)
{
	unsigned int does = next(in) % DOES, at;

	if (does == PASSES || !n)
		return n;
	*changed = true;
	at = next(in) << 8;
	at = (at | next(in)) % n;
	switch (does) {
	case FLIPS:
		bytes[at] ^= (uint8_t)(1u << next(in) % 8);
		return n;
	case DROPS:
		return 0;
	case CUTS:
		return at;
	case REPEATS:
		memcpy(bytes + n, bytes, n);
		return 2 * n;
	default:
		memmove(bytes + at + 1, bytes + at, n - at);
		bytes[at] = (uint8_t)next(in);
		return n + 1;
	}
}

static void transfer(struct side *from, struct side *to, struct input *in,
		     bool *changed)
{
	static uint8_t way[2 * CARRY + 1];
	size_t n, at, step;
	const uint8_t *bytes = stream_bytes(from->s, &n);

	BUG_ON(n > CARRY);
	if (n)
		memcpy(way, bytes, n);
	stream_sent(from->s, n);
	n = carry(way, n, in, changed);
	for (at = 0; at < n && !to->failed; at += step) {
		step = MIN(n - at, stream_room(to->s));
		if (!step || stream_take(to->s, way + at, step))
			to->failed = true;
		else
			read_all(to, from);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct side c = { 0 }, s = { 0 };
	struct input in = { data, data + size };
	struct keys *keys = keys_of(next(&in) & 1);
	bool changed = false;

	c.s = stream_new(HANDSHAKE_CLIENT, keys);
	s.s = stream_new(HANDSHAKE_SERVER, keys);
	BUG_ON(!c.s || !s.s);
	for (unsigned int i = 0; i < STEPS; i++) {
		transfer(&c, &s, &in, &changed);
		transfer(&s, &c, &in, &changed);
		write_some(&c);
		write_some(&s);
	}
	if (!changed) {
		transfer(&c, &s, &in, &changed);
		transfer(&s, &c, &in, &changed);
		BUG_ON(c.failed || s.failed || !c.wrote || !s.wrote);
		BUG_ON(s.read != c.wrote || c.read != s.wrote);
	}
	stream_free(c.s);
	stream_free(s.s);
	return 0;
}
