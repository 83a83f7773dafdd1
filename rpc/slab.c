/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/slab.h"

void slab_init(struct slab *slab)
{
	*slab = (struct slab){ .used = 0 };
	for (unsigned int i = 0; i < SLAB_CLASSES; i++) {
		struct slab_class *c = &slab->classes[i];

		c->size = (uint32_t)slab_class_size(i);
		c->full = SLAB_KEEP - c->size;
	}
}

void slab_fini(struct slab *slab)
{
	BUG_ON(slab->used);
	for (unsigned int i = 0; i < SLAB_CLASSES; i++) {
		struct slab_free *f;

		while ((f = slab->classes[i].free)) {
			slab->classes[i].free = f->next;
			free(f);
		}
	}
}

void *slab_get_new(struct slab *slab, size_t size)
{
	void *obj = malloc(size);

	if (obj)
		slab->used++;
	return obj;
}
