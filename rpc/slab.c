/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/slab.h"

#include "rpc/rpc.h"

static void slab_drop(struct slab *slab, struct slab_class *c)
{
	struct slab_free *f;

	while ((f = c->free)) {
		c->free = f->next;
		free(f);
	}
	slab->kept -= c->kept;
	c->kept = 0;
}

/* Raises the limit to SLAB_KEEP_ALL. The timer lowers it again when
 * SLAB_KEEP_IDLE is enough. */
static void slab_age(struct slab *slab)
{
	struct shard *s = slab->shard;

	slab->limit = SLAB_KEEP_ALL;
	if (s)
		shard_arm(s, &slab->timer, shard_now(s) + SLAB_IDLE);
}

static void slab_on_timer(struct ulnet_timer *t)
{
	struct slab *slab = container_of(t, struct slab, timer);

	for (unsigned int i = 0; i < SLAB_CLASSES; i++) {
		struct slab_class *c = &slab->classes[i];

		if (!c->asked)
			slab_drop(slab, c);
		c->asked = false;
	}
	if (slab->kept > SLAB_KEEP_IDLE)
		slab_age(slab);
	else
		slab->limit = SLAB_KEEP_IDLE;
}

void slab_put_full(struct slab *slab, struct slab_class *c, void *obj)
{
	if (slab->limit < SLAB_KEEP_ALL)
		slab_age(slab);
	if (slab_is_full(slab, c))
		free(obj);
	else
		slab_keep(slab, c, obj);
}

void slab_init(struct slab *slab, struct shard *s)
{
	*slab = (struct slab){ .limit = SLAB_KEEP_IDLE, .shard = s };
	lnet_timer_init(&slab->timer, slab_on_timer);
	for (unsigned int i = 0; i < SLAB_CLASSES; i++) {
		struct slab_class *c = &slab->classes[i];

		c->size = (uint32_t)slab_class_size(i);
		c->full = SLAB_KEEP - c->size;
	}
}

void slab_stop(struct slab *slab)
{
	if (lnet_timer_armed(&slab->timer))
		shard_cancel(slab->shard, &slab->timer);
	slab->shard = NULL;
}

void slab_fini(struct slab *slab)
{
	BUG_ON(slab->used || lnet_timer_armed(&slab->timer));
	for (unsigned int i = 0; i < SLAB_CLASSES; i++)
		slab_drop(slab, &slab->classes[i]);
}

void *slab_get_new(struct slab *slab, size_t size)
{
	void *obj = malloc(size);

	if (obj) {
		slab->used++;
		slab->made++;
	}
	return obj;
}
