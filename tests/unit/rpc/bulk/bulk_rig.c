/* SPDX-License-Identifier: BSD-3-Clause */
/* Two simulated nodes and memory between guards: see the header. */
#include "tests/unit/rpc/bulk/bulk_rig.h"

#include "rpc/run.h"
#include "rpc/stats/stats.h"

uint64_t rig_random(struct rig *g, uint64_t below)
{
	g->random ^= g->random << 13;
	g->random ^= g->random >> 7;
	g->random ^= g->random << 17;
	return below ? g->random % below : 0;
}

void rig_init(struct rig *g, uint64_t seed)
{
	*g = (struct rig){ .seed = seed, .random = seed * 2654435761u + 1 };
	cr_assert_eq(lnet_sim_new(seed, 1, &g->sim), 0);
	for (unsigned int i = 0; i < 2; i++) {
		char text[LNET_NIDSTR_SIZE];
		struct ulnet_id id = nth_id(i);

		lnet_nid_format(&id.nid, text, sizeof(text));
		cr_assert_eq(plain_node(g->sim, text, NULL, NULL, NULL),
			     (int)i);
		g->rpc[i] = (struct ulrpc){ .node = lnet_sim_node(g->sim, i),
					    .ncpts = 1,
					    .shards = &g->shard[i] };
		g->shard[i] = (struct shard){ .rpc = &g->rpc[i],
					      .node = g->rpc[i].node,
					      .match = seed << 20 };
		cr_assert_eq(rpc_part_open(&run_part, &g->shard[i]), 0);
		cr_assert_eq(rpc_part_open(&stat_part, &g->shard[i]), 0);
	}
}

void rig_end(struct rig *g)
{
	cr_assert_eq(lnet_sim_free(g->sim), 0, "seed %llu",
		     (unsigned long long)g->seed);
	for (unsigned int i = 0; i < 2; i++) {
		rpc_part_close(&stat_part, &g->shard[i]);
		rpc_part_close(&run_part, &g->shard[i]);
	}
}

void rig_fini(struct rig *g)
{
	lnet_sim_run_all(g->sim);
	cr_assert_eq(g->shard[0].holds, 0);
	cr_assert_eq(g->shard[1].holds, 0);
	rig_end(g);
}

/* ---- memory ---- */

uint8_t nth_byte(uint64_t tag, size_t i)
{
	uint64_t x = (tag + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;

	return (uint8_t)((x ^ x >> 8 ^ x >> 16) * 167);
}

struct memory memory_new(struct rig *g, size_t length, size_t longest)
{
	struct memory m = { .length = length };
	size_t max = longest ? length + 1 : 1, done = 0, at = GUARD_BYTES;

	m.iov = calloc(2 * max + 1, sizeof(*m.iov));
	while (done < length) {
		size_t n = longest ? 1 + rig_random(g, longest) : length;

		n = MIN(n, length - done);
		if (longest && rig_random(g, 8) == 0)
			m.iov[m.niov++].iov_len = 0;
		m.iov[m.niov++].iov_len = n;
		done += n;
	}
	m.size = length + (m.niov + 1) * GUARD_BYTES;
	m.buf = lnet_sim_buf(g->sim, m.size);
	memset(m.buf, GUARD, m.size);
	for (unsigned int i = 0; i < m.niov; i++) {
		m.iov[i].iov_base = m.buf + at;
		at += m.iov[i].iov_len + GUARD_BYTES;
	}
	return m;
}

void memory_retire(struct rig *g, struct memory *m)
{
	m->copy = malloc(m->size);
	memcpy(m->copy, m->buf, m->size);
	for (unsigned int i = 0; i < m->niov; i++)
		m->iov[i].iov_base =
			m->copy + ((uint8_t *)m->iov[i].iov_base - m->buf);
	lnet_sim_buf_retire(g->sim, m->buf);
	m->buf = m->copy;
}

void memory_free(struct rig *g, struct memory *m)
{
	if (m->copy)
		free(m->copy);
	else
		lnet_sim_buf_retire(g->sim, m->buf);
	free(m->iov);
}

/* Sets *@length to the number of bytes, @most at most, that the fragment of
 * byte @at has from there on. Returns where they are. */
static uint8_t *memory_at(const struct memory *m, struct walk *w, size_t at,
			  size_t most, size_t *length)
{
	const struct iovec *iov;
	size_t in;

	while (at - w->begin >= m->iov[w->fragment].iov_len)
		w->begin += m->iov[w->fragment++].iov_len;
	iov = &m->iov[w->fragment];
	in = at - w->begin;
	*length = iov->iov_len - in < most ? iov->iov_len - in : most;
	return (uint8_t *)iov->iov_base + in;
}

void memory_fill(struct memory *m, uint64_t tag)
{
	struct walk w = { 0 };
	size_t n;

	for (size_t at = 0; at < m->length; at += n) {
		uint8_t *p = memory_at(m, &w, at, m->length - at, &n);

		for (size_t i = 0; i < n; i++)
			p[i] = nth_byte(tag, at + i);
	}
}

bool memory_is(const struct memory *m, size_t offset, size_t length,
	       uint64_t tag, size_t from)
{
	struct walk w = { 0 };
	unsigned int wrong = 0;
	size_t n;

	for (size_t at = 0; at < length; at += n) {
		const uint8_t *p =
			memory_at(m, &w, offset + at, length - at, &n);

		for (size_t i = 0; i < n; i++)
			wrong |= p[i] ^ nth_byte(tag, from + at + i);
	}
	return !wrong;
}

bool memory_guarded(const struct memory *m)
{
	const uint8_t *p = m->buf, *end = m->buf + m->size;

	for (unsigned int i = 0; i <= m->niov; i++) {
		for (unsigned int k = 0; k < GUARD_BYTES; k++)
			if (p == end || *p++ != GUARD)
				return false;
		if (i < m->niov)
			p += m->iov[i].iov_len;
	}
	return p == end;
}
