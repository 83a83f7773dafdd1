/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watched buffers: a retired buffer is filled with a pattern and kept for a
 * while. A later check finds out whether something was written to it.
 */
#include <inttypes.h>
#include <stdalign.h>
#include <string.h>

#include "base/misuse.h"
#include "sim/sim_priv.h"

#define RETIRED_MAX (size_t)(2 << 20)
#define PATTERN	    0xdb

struct buf {
	struct list link;
	size_t size;
	uint64_t retired; /* ns: when the buffer was retired */
	uint64_t magic;
	uint64_t pad; /* aligns bytes[] as malloc() does */
	uint8_t bytes[];
};
_Static_assert(offsetof(struct buf, bytes) % alignof(max_align_t) == 0,
	       "alignment of watched buffers");
#define BUF_MAGIC UINT64_C(0x62756620756c6e74)

void *lnet_sim_buf(struct lnet_sim *sim, size_t size)
{
	struct buf *b = malloc(sizeof(*b) + size);

	if (!b)
		return NULL;
	b->size = size;
	b->magic = BUF_MAGIC;
	list_add_tail(&sim->bufs, &b->link);
	return b->bytes;
}

static bool buf_is_intact(const struct buf *b)
{
	return b->size == 0 || (b->bytes[0] == PATTERN &&
				!memcmp(b->bytes, b->bytes + 1, b->size - 1));
}

static void buf_look(struct lnet_sim *sim, struct buf *b)
{
	if (buf_is_intact(b))
		return;
	for (size_t i = 0; i < b->size; i++) {
		if (b->bytes[i] == PATTERN)
			continue;
		lnet_sim_fail(sim,
			      "byte %zu of a buffer of %zu was written after "
			      "its final event at %" PRIu64 " ns",
			      i, b->size, b->retired);
		memset(b->bytes, PATTERN, b->size);
		return;
	}
}

static void buf_free(struct lnet_sim *sim, struct buf *b)
{
	buf_look(sim, b);
	sim->retired_bytes -= b->size;
	list_del(&b->link);
	free(b);
}

void lnet_sim_buf_retire(struct lnet_sim *sim, void *bytes)
{
	struct buf *b = container_of(bytes, struct buf, bytes);

	MISUSE_IF(b->magic != BUF_MAGIC,
		  "lnet_sim_buf_retire(): this is no buffer of "
		  "lnet_sim_buf(), or one that is retired already");
	memset(b->bytes, PATTERN, b->size);
	b->retired = lnet_sim_now(sim);
	b->magic = 0;
	list_del(&b->link);
	list_add_tail(&sim->retired, &b->link);
	sim->retired_bytes += b->size;
	while (sim->retired_bytes > RETIRED_MAX)
		buf_free(sim, list_first(&sim->retired, struct buf, link));
}

void bufs_check(struct lnet_sim *sim)
{
	struct buf *b;

	list_for_each_entry (b, &sim->retired, link)
		buf_look(sim, b);
}

void bufs_free(struct lnet_sim *sim)
{
	struct buf *b, *next;

	list_for_each_entry_safe (b, next, &sim->retired, link)
		buf_free(sim, b);
	list_for_each_entry_safe (b, next, &sim->bufs, link) {
		list_del(&b->link);
		free(b);
	}
}
