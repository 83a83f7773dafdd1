/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds-checked readers and writers for what is on the wire. An access past
 * the end sets "bad" and yields 0 (or writes nothing), and so does every later
 * one: callers check once, at the end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <endian.h>
#include <string.h>
#include "base/util.h"

struct reader {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

struct writer {
	uint8_t *p;
	uint8_t *end;
	bool bad;
};

static inline struct reader reader_of(const void *buf, size_t len)
{
	const uint8_t *p = buf;

	return (struct reader){ .p = p, .end = p + len, .bad = false };
}

static inline struct writer writer_of(void *buf, size_t len)
{
	uint8_t *p = buf;

	return (struct writer){ .p = p, .end = p + len, .bad = false };
}

static inline size_t reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->p);
}

/* Skips @len bytes and returns where they begin, or NULL. */
static inline const uint8_t *read_skip(struct reader *r, size_t len)
{
	const uint8_t *p = r->p;

	if (unlikely(r->bad || reader_left(r) < len)) {
		r->bad = true;
		return NULL;
	}
	r->p += len;
	return p;
}

static inline void read_bytes(struct reader *r, void *out, size_t len)
{
	const uint8_t *p = read_skip(r, len);

	if (likely(p))
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}

static inline uint16_t read_le16(struct reader *r)
{
	uint16_t v;

	read_bytes(r, &v, sizeof(v));
	return le16toh(v);
}

static inline uint32_t read_le32(struct reader *r)
{
	uint32_t v;

	read_bytes(r, &v, sizeof(v));
	return le32toh(v);
}

static inline uint64_t read_le64(struct reader *r)
{
	uint64_t v;

	read_bytes(r, &v, sizeof(v));
	return le64toh(v);
}

/* These loads and stores check no bounds: the caller has done that by
 * read_skip() or write_skip(). */
static inline uint16_t load_le16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline uint32_t load_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t load_le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline void store_le32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store_le64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint8_t read_u8(struct reader *r)
{
	uint8_t v;

	read_bytes(r, &v, sizeof(v));
	return v;
}

/* Read a number that is in the sender's byte order. @swap: that is not this
 * machine's. */
static inline uint16_t read_u16(struct reader *r, bool swap)
{
	uint16_t v;

	read_bytes(r, &v, sizeof(v));
	return swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t read_u32(struct reader *r, bool swap)
{
	uint32_t v;

	read_bytes(r, &v, sizeof(v));
	return swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t read_u64(struct reader *r, bool swap)
{
	uint64_t v;

	read_bytes(r, &v, sizeof(v));
	return swap ? __builtin_bswap64(v) : v;
}

static inline uint8_t *write_skip(struct writer *w, size_t len)
{
	uint8_t *p = w->p;

	if (unlikely(w->bad || (size_t)(w->end - w->p) < len)) {
		w->bad = true;
		return NULL;
	}
	w->p += len;
	return p;
}

static inline void write_bytes(struct writer *w, const void *in, size_t len)
{
	uint8_t *p = write_skip(w, len);

	if (likely(p))
		memcpy(p, in, len);
}

static inline void write_u8(struct writer *w, uint8_t v)
{
	write_bytes(w, &v, sizeof(v));
}

static inline void write_le16(struct writer *w, uint16_t v)
{
	v = htole16(v);
	write_bytes(w, &v, sizeof(v));
}

static inline void write_le32(struct writer *w, uint32_t v)
{
	v = htole32(v);
	write_bytes(w, &v, sizeof(v));
}

static inline void write_le64(struct writer *w, uint64_t v)
{
	v = htole64(v);
	write_bytes(w, &v, sizeof(v));
}

#endif
