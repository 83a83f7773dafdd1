/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/node/layer.h"

#include "lnet/node/node.h"
#include "ulnet/loop.h"

_Static_assert(sizeof(struct list) == sizeof((struct ulnet_layer){ 0 }.opaque),
	       "room for a link");

static struct list *layer_link(struct ulnet_layer *layer)
{
	return (void *)layer->opaque;
}

static struct ulnet_layer *layer_of(struct list *link)
{
	return container_of(link, struct ulnet_layer, opaque);
}

void lnet_layer_add(struct lnet *node, struct ulnet_layer *layer)
{
	BUG_ON(!layer->close);
	layer->mute = false;
	list_add(&whole_node(node)->layers, layer_link(layer));
}

struct ulnet_layer *lnet_layer_find(struct lnet *node,
				    void (*close)(struct ulnet_layer *layer))
{
	struct list *layers = &whole_node(node)->layers, *link;

	for (link = layers->next; link != layers; link = link->next)
		if (layer_of(link)->close == close)
			return layer_of(link);
	return NULL;
}

void lnet_layer_del(struct lnet *node, struct ulnet_layer *layer)
{
	(void)node;
	list_del(layer_link(layer));
}

void layers_close(struct lnet *node)
{
	struct list *layers = &whole_node(node)->layers;

	while (!list_empty(layers)) {
		struct list *link = layers->next;

		layer_of(link)->close(layer_of(link));
		/* A layer ends before the node that it lives on. */
		BUG_ON(layers->next == link);
	}
}

void layers_mute(struct lnet *node)
{
	struct list *layers = &whole_node(node)->layers, *link;

	for (link = layers->next; link != layers; link = link->next)
		layer_of(link)->mute = true;
}
