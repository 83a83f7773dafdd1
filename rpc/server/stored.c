/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/stored.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/crc32c.h"

#define FORMAT	  2u  /* version of all this */
#define HEAD	  24u /* of a value */
#define CHECKED	  8u  /* the checksum is of what follows */
#define SINK_HEAD 12u /* of each sink's checksums */
#define WORD	  4u

/* ---- writing ---- */

static size_t tables_size(const struct wire_moved *m)
{
	return (size_t)m->n * WORD * (m->length ? 2 : 1);
}

static uint8_t *put_words(uint8_t *p, const uint32_t *word, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, p += WORD)
		store_le32(p, word[i]);
	return p;
}

static uint8_t *put_moved(uint8_t *p, const struct wire_moved *m)
{
	const uint32_t head[] = { m->index, m->n, m->length != NULL };

	p = put_words(p, head, ARRAY_SIZE(head));
	p = put_words(p, m->checksum, m->n);
	return m->length ? put_words(p, m->length, m->n) : p;
}

static uint32_t sum_of(const uint8_t *value, size_t length)
{
	return crc32c(0, value + CHECKED, length - CHECKED);
}

void *stored_new(const struct stored *s, const struct wire_moved *moved,
		 unsigned int nmoved, size_t *length_p)
{
	size_t length = HEAD + s->length;
	uint8_t *value, *p;

	for (unsigned int i = 0; i < nmoved; i++)
		length += SINK_HEAD + tables_size(&moved[i]);
	value = malloc(length);
	if (!value)
		return NULL;
	store_le32(value, FORMAT);
	store_le32(value + 8, s->error);
	store_le64(value + 12, s->xid);
	store_le32(value + 20, nmoved);
	p = value + HEAD;
	for (unsigned int i = 0; i < nmoved; i++)
		p = put_moved(p, &moved[i]);
	if (s->length)
		memcpy(p, s->body, s->length);
	store_le32(value + 4, sum_of(value, length));
	*length_p = length;
	return value;
}

/* ---- reading ---- */

/* The next @n words, in this machine's byte order from now on. */
static const uint32_t *own_words(struct reader *in, uint8_t *value, uint32_t n)
{
	const uint8_t *from = read_skip(in, (size_t)n * WORD);
	uint8_t *p;

	if (!from)
		return NULL;
	p = value + (from - value);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t word = load_le32(p + i * WORD);

		memcpy(p + i * WORD, &word, WORD);
	}
	return (const uint32_t *)(const void *)from;
}

static bool own_sink(struct reader *in, uint8_t *value)
{
	const uint32_t *head = own_words(in, value, SINK_HEAD / WORD);

	if (!head || head[0] >= ULRPC_BULKS_MAX ||
	    head[1] > ULRPC_SEGMENTS_MAX || head[2] > 1)
		return false;
	return own_words(in, value, head[1] * (head[2] + 1)) != NULL;
}

int stored_read(void *value, size_t length, struct stored *out)
{
	struct reader in = reader_of(value, length);
	const uint32_t *sinks;

	if (length < HEAD || read_le32(&in) != FORMAT ||
	    read_le32(&in) != sum_of(value, length))
		return -EBADMSG;
	out->error = read_le32(&in);
	out->xid = read_le64(&in);
	sinks = own_words(&in, value, 1);
	if (!sinks || *sinks > ULRPC_BULKS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < *sinks; i++)
		if (!own_sink(&in, value))
			return -EBADMSG;
	out->body = in.p;
	out->length = reader_left(&in);
	return 0;
}

unsigned int stored_moved(const void *value, struct wire_moved *out)
{
	const uint32_t *word = value;
	unsigned int n = word[HEAD / WORD - 1];

	word += HEAD / WORD;
	for (unsigned int i = 0; i < n; i++) {
		out[i] = (struct wire_moved){
			.index = word[0],
			.n = word[1],
			.checksum = word + SINK_HEAD / WORD,
		};
		if (word[2])
			out[i].length = out[i].checksum + out[i].n;
		word = out[i].checksum + out[i].n * (word[2] + 1);
	}
	return n;
}
