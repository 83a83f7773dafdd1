/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/give_back.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/rpc.h"

/* Memory that waits; at its own beginning, which goes last. */
struct long_memory {
	struct list link; /* node in give_back.waiting */
	void *holder;
	size_t size; /* bytes that are left */
};

static void step_later(struct give_back *g)
{
	shard_hold(g->shard);
	shard_post(g->shard, &g->work);
}

/* Gives the pages from @from to @to back, which may be no whole ones. The range
 * stays the caller's. Where the kernel refuses, as with memory that is locked,
 * free() does it later. */
static void pages_drop(uint8_t *from, const uint8_t *to)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)from + page - 1) & ~(page - 1);
	uintptr_t end = (uintptr_t)to & ~(page - 1);

	if (begin < end)
		(void)madvise(from + (begin - (uintptr_t)from), end - begin,
			      MADV_DONTNEED);
}

static void give_step(struct ulnet_work *w)
{
	struct give_back *g = container_of(w, struct give_back, work);
	struct long_memory *m =
		list_first(&g->waiting, struct long_memory, link);
	struct shard *s = g->shard;
	void *holder = m->holder;
	size_t bytes = GIVE_BACK_STEP;

	if (m->size < GIVE_BACK_MIN) {
		bytes = m->size;
		list_del(&m->link);
		free(m);
	} else {
		uint8_t *end = (uint8_t *)m + m->size;

		m->size -= bytes;
		pages_drop((uint8_t *)m + m->size, end);
	}
	if (!list_empty(&g->waiting))
		step_later(g);
	g->gave(g, holder, bytes);
	/* @g may be gone */
	shard_release(s);
}

void give_back_init(struct give_back *g, struct shard *s,
		    void (*gave)(struct give_back *g, void *holder,
				 size_t bytes))
{
	g->shard = s;
	g->gave = gave;
	g->work.fn = give_step;
	list_init(&g->waiting);
}

void give_back(struct give_back *g, void *mem, size_t size, void *holder)
{
	struct long_memory *m = mem;
	bool idle = list_empty(&g->waiting);

	m->holder = holder;
	m->size = size;
	list_add_tail(&g->waiting, &m->link);
	if (idle)
		step_later(g);
}
