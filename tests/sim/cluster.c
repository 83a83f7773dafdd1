/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "sim/sim.h"
#include "sim/sim_priv.h"
#include "ulnet/keys.h"

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

static struct ulnet_nid nid_on(uint32_t net, unsigned int rail,
			       unsigned int index)
{
	return lnet_nid_make(net, 0x0a000001 + (rail << 16) + index);
}

void cluster_nids(struct ulnet_nid *nids, unsigned int n, unsigned int index)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t type = i < 2 ? LNET_TYPE_SOCK : LNET_TYPE_O2IB;

		nids[i] = nid_on(LNET_NET(type, 0), i, index);
	}
}

void cluster_nids_on(struct ulnet_nid *nids, unsigned int n, unsigned int index,
		     unsigned int nets)
{
	static const uint32_t all[] = { LNET_NET(LNET_TYPE_SOCK, 0),
					LNET_NET(LNET_TYPE_O2IB, 0),
					LNET_NET(LNET_TYPE_SOCK, 1) };

	for (unsigned int i = 0; i < n; i++)
		nids[i] = nid_on(all[i % nets], i, index);
}

int cluster_node_add(struct lnet_sim *sim, const struct ulnet_nid *nids,
		     unsigned int n, const struct ulnet_conf *conf,
		     lnet_sim_start_fn start, void *arg)
{
	char text[RAILS_MAX * LNET_NIDSTR_SIZE] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < n; i++) {
		char nid[LNET_NIDSTR_SIZE];

		lnet_nid_format(&nids[i], nid, sizeof(nid));
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s ", nid);
	}
	return lnet_sim_node_add(sim, text, conf, start, arg);
}

uint32_t link_hole(struct lnet_sim *sim, unsigned int percent)
{
	const uint64_t at[] = { lnet_sim_digest(sim), lnet_sim_now(sim) };
	uint64_t random = hash_bytes(at, sizeof(at), sim->seed);

	if (sim->seed % 5 != 3 || random % 100 >= percent)
		return 0;
	return 1 + (uint32_t)((random >> 32) % (random & 128 ? 20000 : 1500));
}

bool has_pauses(const struct lnet_sim *sim)
{
	return sim->seed % 5 == 4;
}

bool has_long(const struct lnet_sim *sim)
{
	return sim->seed % 4 == 3;
}

bool has_keys(const struct lnet_sim *sim)
{
	return sim->seed % 7 == 2;
}

bool spreads(const struct lnet_sim *sim)
{
	return sim->seed / 3 % 2;
}

bool is_narrow(const struct lnet_sim *sim)
{
	return sim->seed / 5 % 3 == 0;
}

unsigned int keys_seed(const struct lnet_sim *sim)
{
	return (unsigned int)(sim->seed / 7);
}

struct ulrpc_keys *cluster_keys(struct lnet_sim *sim)
{
	char path[] = "/tmp/ulnet-campaign-XXXXXX", why[256];
	const struct ulrpc_keys_conf files = { .cluster = path };
	struct ulrpc_keys *keys = NULL;
	int fd = mkstemp(path), rc;

	if (fd < 0 || dprintf(fd, "lab %064d\n", 7) < 0)
		abort();
	close(fd);
	rc = ulrpc_keys_load(&files, &keys, why, sizeof(why));
	unlink(path);
	if (rc && rc != -EOPNOTSUPP)
		lnet_sim_fail(sim, "no keys: %s", why);
	return rc ? NULL : keys;
}

void cluster_push(struct lnet_sim *sim)
{
	if (sim->seed % 4 == 3)
		sim_push(sim, sim->seed / 4 % 2 ? 500000 : 950000);
}

bool has_two_rails(const struct lnet_sim *sim)
{
	return sim->seed / 2 % 3 == 1;
}

void link_faults(struct lnet_sim *sim, bool harsh, struct ulnet_sim_link *l)
{
	uint32_t *const parts[] = { &l->loss,	&l->duplicate, &l->reorder,
				    &l->refuse, &l->error,     &l->stall,
				    &l->mute,	&l->cut };

	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (harsh || lnet_sim_random(sim, 100) < 40)
			*parts[i] = (uint32_t)lnet_sim_random(sim, 60000);
	l->hole = link_hole(sim, 25);
}

static bool links_know(const struct links *l, const struct ulnet_nid *src,
		       const struct ulnet_nid *dst)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (lnet_nid_eq(&l->pairs[i][0], src) &&
		    lnet_nid_eq(&l->pairs[i][1], dst))
			return true;
	return false;
}

void links_set(struct links *l, struct lnet_sim *sim, struct ulnet_nid src,
	       struct ulnet_nid dst, const struct ulnet_sim_link *link)
{
	if (!links_know(l, &src, &dst)) {
		if (l->n == LINKS_MAX)
			abort();
		l->pairs[l->n][0] = src;
		l->pairs[l->n++][1] = dst;
	}
	lnet_sim_link_set(sim, &src, &dst, link);
}

void links_set_all(struct links *l, struct lnet_sim *sim,
		   const struct ulnet_sim_link *link)
{
	for (unsigned int i = 0; i < l->n; i++)
		lnet_sim_link_set(sim, &l->pairs[i][0], &l->pairs[i][1], link);
}

void links_heal(struct links *l, struct lnet_sim *sim)
{
	const struct ulnet_sim_link perfect = { .latency = 10 * US };

	links_set_all(l, sim, &perfect);
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
