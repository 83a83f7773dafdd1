/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/census.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lnd/socklnd/listener.h"
#include "lnd/socklnd/peer.h"
#include "lnet/ni.h"
#include "lnet/node.h"
#include "tests/lnd/behaviour.h"

/* What strangers may leave in pools and tables, bytes. */
#define TRACES (4u << 20)

static struct sock_ni *sni_of(const struct lnet_cpt *cpt)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++) {
		struct lnd_ni *ni = &cpt->config->ni[i]->lnd;

		if (ni->lnd->type == LNET_TYPE_SOCK)
			return ni->priv;
	}
	return NULL;
}

static uint32_t key_of(const struct sock_conn *conn)
{
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);

	getsockname(conn->io.fd, (struct sockaddr *)&a, &len);
	return (uint32_t)sock_port_of(&a) << 16 | sock_port_of(&conn->remote);
}

static void count_peer(struct census *c, const struct sock_peer *peer)
{
	const struct sock_conn *conn;

	c->peers++;
	c->wanted += peer->wanted;
	c->attempts += peer->fsm.state == PEER_CONNECTING;
	c->failures = MAX(c->failures, peer->failures);
	list_for_each_entry (conn, &peer->conns, link) {
		c->conns++;
		c->writing += conn->tx != NULL;
		c->reading += conn->rx != NULL;
		if (conn->behind)
			c->behind = MAX(c->behind, conn->behind_len);
		if (c->keys < CENSUS_PORTS)
			c->key[c->keys++] = key_of(conn);
	}
	list_for_each_entry (conn, &peer->aside, link)
		c->aside++;
}

struct counting {
	struct lnet_cpt *cpt;
	const struct ulnet_nid *peer;
	struct census *c;
};

static int count(void *arg)
{
	struct counting *k = arg;
	struct sock_ni *sni = sni_of(k->cpt);
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	if (!sni)
		return 0;
	if (k->cpt->index == 0 && sni->listener)
		k->c->handshakes += sni->listener->nhandshakes;
	while ((n = hash_walk(&sni->cpts[k->cpt->index].peers, &bucket, n))) {
		struct sock_peer *peer =
			container_of(n, struct sock_peer, hash);

		if (!k->peer || lnet_nid_eq(&peer->id.nid, k->peer))
			count_peer(k->c, peer);
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void census_take(struct lnet *node, const struct ulnet_nid *peer,
		 struct census *c)
{
	memset(c, 0, sizeof(*c));
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct counting k = { &node->cpt[i], peer, c };

		BUG_ON(lnet_call(node, i, count, &k));
	}
	qsort(c->key, c->keys, sizeof(c->key[0]), by_number);
}

bool census_wait(struct fx *fx, struct lnet *node, const struct ulnet_nid *peer,
		 bool (*cond)(const struct census *c, unsigned int arg),
		 unsigned int arg)
{
	struct census c;

	for (uint64_t waited = 0; waited < fx_patience(fx); waited += 1000) {
		census_take(node, peer, &c);
		if (cond(&c, arg))
			return true;
		fx_run(fx, 1000);
	}
	return false;
}

bool census_conns_are(const struct census *c, unsigned int n)
{
	return c->conns == n && c->attempts == 0 && c->handshakes == 0;
}

bool census_aside_are(const struct census *c, unsigned int n)
{
	return c->aside == n;
}

bool census_failures_are(const struct census *c, unsigned int n)
{
	return c->failures == n;
}

unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	BUG_ON(!d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

bool calm_begin(struct fx *fx, struct calm *calm)
{
	struct lnet *node = fx->rig->node[0];

	still_works(fx);
	if (!expect(fx, fx_settle(fx)) ||
	    !expect(fx, census_wait(fx, node, NULL, census_conns_are, 3)))
		return false;
	census_take(node, &fx->rig->nid[1], &calm->with_peer);
	calm->files = open_files();
	calm->memory = mallinfo2().uordblks;
	return expect(fx, calm->with_peer.keys == 3);
}

bool calm_goes_on(struct fx *fx, const struct calm *calm)
{
	unsigned int before = fx->failures;
	struct census c;

	still_works(fx);
	census_take(fx->rig->node[0], &fx->rig->nid[1], &c);
	expect(fx, c.keys == calm->with_peer.keys);
	expect(fx, memcmp(c.key, calm->with_peer.key, sizeof(c.key)) == 0);
	return fx->failures == before;
}

bool calm_check(struct fx *fx, const struct calm *calm)
{
	uint64_t waited = 0;

	if (!calm_goes_on(fx, calm) || !expect(fx, fx_settle(fx)) ||
	    !expect(fx, census_wait(fx, fx->rig->node[0], NULL,
				    census_conns_are, 3)))
		return false;
	/* Closed at the end of a turn, some time after they are counted. */
	while (open_files() != calm->files && waited < fx_patience(fx)) {
		fx_run(fx, 1000);
		waited += 1000;
	}
	return expect(fx, open_files() == calm->files) &&
	       expect(fx, mallinfo2().uordblks <= calm->memory + TRACES);
}
