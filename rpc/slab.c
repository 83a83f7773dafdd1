/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/slab.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_IS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_IS_MALLOC 1
#endif
#endif
#ifndef SLAB_IS_MALLOC
#define SLAB_IS_MALLOC 0
#endif

struct slab_free {
	struct slab_free *next;
};

void slab_init(struct slab *slab)
{
	*slab = (struct slab){ .used = 0 };
	for (unsigned int i = 0; i < SLAB_CLASSES; i++)
		slab->classes[i].size = (uint32_t)slab_class_size(i);
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

void *slab_get(struct slab *slab, size_t size)
{
	unsigned int i = slab_class_of(size);
	struct slab_class *c;
	struct slab_free *f;
	void *obj;

	if (!SLAB_IS_MALLOC && likely(i < SLAB_CLASSES)) {
		c = &slab->classes[i];
		f = c->free;
		if (likely(f)) {
			c->free = f->next;
			c->kept--;
			slab->kept -= c->size;
			slab->used++;
			return f;
		}
		size = c->size;
	}
	obj = malloc(size);
	if (obj)
		slab->used++;
	return obj;
}

void slab_put(struct slab *slab, void *obj, size_t size)
{
	unsigned int i = slab_class_of(size);
	struct slab_free *f = obj;
	struct slab_class *c;

	slab->used--;
	if (SLAB_IS_MALLOC || i >= SLAB_CLASSES) {
		free(obj);
		return;
	}
	c = &slab->classes[i];
	if (unlikely((c->kept + 1) * c->size > SLAB_KEEP ||
		     slab->kept + c->size > SLAB_KEEP_ALL)) {
		free(obj);
		return;
	}
	f->next = c->free;
	c->free = f;
	c->kept++;
	slab->kept += c->size;
}
