/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/net/config.h"

#include <stdlib.h>
#include <string.h>

/* With room for @nnis, and a net for each of them. */
static struct lnet_config *config_alloc(unsigned int nnis)
{
	struct lnet_config *c = malloc(sizeof(*c) + nnis * sizeof(c->ni[0]) +
				       nnis * sizeof(c->net[0]));

	if (!c)
		return NULL;
	c->nnis = nnis;
	c->net = (struct lnet_net *)(c->ni + nnis);
	return c;
}

/* The interfaces are in their places. */
static void config_find_nets(struct lnet_config *c)
{
	struct lnet_net *net = NULL;

	c->nnets = 0;
	for (unsigned int i = 0; i < c->nnis; i++) {
		if (!net || net->segment != ni_segment(c->ni[i])) {
			net = &c->net[c->nnets++];
			*net = (struct lnet_net){ .segment =
							  ni_segment(c->ni[i]),
						  .ni = &c->ni[i] };
		}
		net->nnis++;
	}
}

/* Behind those of the segment; else behind those of the net; else the last. */
static unsigned int place_for(const struct lnet_config *c, uint32_t segment)
{
	const struct lnet_net *after = config_net(c, segment);

	for (unsigned int i = 0; !after && i < c->nnets; i++)
		if (segment_net(c->net[i].segment) == segment_net(segment))
			after = &c->net[i];
	return after ? (unsigned int)(after->ni - c->ni) + after->nnis
		     : c->nnis;
}

struct lnet_config *config_with(const struct lnet_config *old,
				struct lnet_ni *ni)
{
	unsigned int n = old ? old->nnis : 0;
	unsigned int at = n ? place_for(old, ni_segment(ni)) : 0;
	struct lnet_config *new = config_alloc(n + 1);

	if (!new)
		return NULL;
	new->sequence = old ? old->sequence + 1 : 1;
	if (n) {
		memcpy(new->ni, old->ni, at * sizeof(new->ni[0]));
		memcpy(new->ni + at + 1, old->ni + at,
		       (n - at) * sizeof(new->ni[0]));
	}
	new->ni[at] = ni;
	config_find_nets(new);
	return new;
}

struct lnet_config *config_without(const struct lnet_config *old,
				   const struct lnet_ni *ni)
{
	struct lnet_config *new = config_alloc(old->nnis);

	if (!new)
		return NULL;
	new->sequence = old->sequence + 1;
	new->nnis = 0;
	for (unsigned int i = 0; i < old->nnis; i++)
		if (old->ni[i] != ni)
			new->ni[new->nnis++] = old->ni[i];
	config_find_nets(new);
	return new;
}

const struct lnet_net *config_net(const struct lnet_config *c, uint32_t segment)
{
	for (unsigned int i = 0; i < c->nnets; i++)
		if (c->net[i].segment == segment)
			return &c->net[i];
	return NULL;
}

bool config_has_net(const struct lnet_config *c, uint32_t id)
{
	for (unsigned int i = 0; i < c->nnets; i++)
		if (segment_net(c->net[i].segment) == id)
			return true;
	return false;
}
