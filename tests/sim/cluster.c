/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/cluster.h"

#include <stdio.h>

static char pattern_byte(uint64_t pattern, uint32_t i)
{
	return (char)(pattern * 37 + (uint64_t)i * 7 + (i >> 8));
}

void pattern_fill(char *buf, uint32_t size, uint64_t pattern)
{
	for (uint32_t i = 0; i < size; i++)
		buf[i] = pattern_byte(pattern, i);
}

bool pattern_holds(const char *buf, uint32_t size, uint64_t pattern)
{
	for (uint32_t i = 0; i < size; i++)
		if (buf[i] != pattern_byte(pattern, i))
			return false;
	return true;
}

int cluster_node_add(struct lnet_sim *sim, unsigned int index,
		     unsigned int rails, struct ulnet_nid *nids,
		     const struct ulnet_conf *conf, lnet_sim_start_fn start,
		     void *arg)
{
	char text[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < rails; i++) {
		uint32_t addr = 0x0a000001 + (i << 16) + index;
		uint32_t net =
			LNET_NET(i == 2 ? LNET_TYPE_O2IB : LNET_TYPE_SOCK, 0);
		char nid[LNET_NIDSTR_SIZE];

		nids[i] = lnet_nid_make(net, addr);
		lnet_nid_format(&nids[i], nid, sizeof(nid));
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s ", nid);
	}
	return lnet_sim_node_add(sim, text, conf, start, arg);
}

void link_faults(struct lnet_sim *sim, bool harsh, struct ulnet_sim_link *l)
{
	uint32_t *const parts[] = { &l->loss,	&l->duplicate, &l->reorder,
				    &l->refuse, &l->error,     &l->stall,
				    &l->mute,	&l->cut };

	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (harsh || lnet_sim_random(sim, 100) < 40)
			*parts[i] = (uint32_t)lnet_sim_random(sim, 60000);
}

static void heal(void *arg)
{
	struct split *s = arg;

	lnet_sim_partition(s->sim, &s->a, &s->b, false);
}

void split(struct splits *s, struct lnet_sim *sim, struct ulnet_nid a,
	   struct ulnet_nid b, uint64_t ns)
{
	struct split *next = &s->split[s->n++ % SPLITS_MAX];

	if (next->sim)
		heal(next);
	*next = (struct split){ sim, a, b };
	lnet_sim_partition(sim, &a, &b, true);
	lnet_sim_at(sim, ns, heal, next);
}

void splits_heal(struct splits *s)
{
	for (unsigned int i = 0; i < SPLITS_MAX; i++)
		if (s->split[i].sim)
			heal(&s->split[i]);
}
