/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/census.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lnd/socklnd/handshake.h"
#include "lnd/socklnd/message.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "tests/lnd/behaviour.h"

/* bytes that raw peers may leave in pools and tables */
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
	union netif_addr a = { 0 };
	socklen_t len = sizeof(a);

	getsockname(conn->io.fd, &a.any, &len);
	return (uint32_t)sock_port_of(&a) << 16 | sock_port_of(&conn->remote);
}

static uint64_t look_in(const struct sock_peer *peer)
{
	uint64_t now = loop_now(peer->cpt->loop);

	return peer->connect.next > now ? peer->connect.next - now : 0;
}

static void count_peer(struct census *c, const struct sock_peer *peer)
{
	const struct sock_conn *conn;

	c->peers++;
	c->wanted += peer->connect.wanted;
	c->attempts += peer->connect.fsm.state == CONNECT_CONNECTING;
	c->seconds += peer->second != NULL;
	if (peer->connect.fsm.state == CONNECT_CONNECTING)
		c->look_in = MAX(c->look_in, look_in(peer));
	c->failures = MAX(c->failures, peer->connect.failures);
	list_for_each_entry (conn, &peer->conns, link) {
		c->conns++;
		c->writing += conn->tx != NULL;
		c->reading += conn->rx != NULL;
		c->copied += conn->copied;
		if (conn->readahead)
			c->readahead = MAX(c->readahead, conn->readahead_len);
		if (c->keys < CENSUS_PORTS)
			c->key[c->keys++] = key_of(conn);
	}
	list_for_each_entry (conn, &peer->suspended, link)
		c->suspended++;
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
		k->c->handshakes += sni->listener->callers.n;
	while ((n = hash_walk(&sni->cpts[k->cpt->index].peers, &bucket, n))) {
		struct sock_peer *peer =
			container_of(n, struct sock_peer, hash);

		if (!k->peer || lnet_nid_eq(&peer->id.nid, k->peer))
			count_peer(k->c, peer);
	}
	return 0;
}

struct canceling {
	struct lnet_cpt *cpt;
	const struct ulnet_nid *peer;
	int status;
};

/* Returns the first message that is being written or read, or NULL. */
static struct lnd_msg *under_way(const struct sock_peer *peer)
{
	const struct sock_conn *conn;

	list_for_each_entry (conn, &peer->conns, link) {
		if (conn->tx)
			return conn->tx->msg;
		if (conn->rx && conn->rx->msg)
			return conn->rx->msg;
	}
	return NULL;
}

static int cancel(void *arg)
{
	struct canceling *k = arg;
	struct sock_ni *sni = sni_of(k->cpt);
	const struct ulnet_id id = { *k->peer, LNET_PID_LUSTRE };
	struct sock_cpt *cpt = &sni->cpts[k->cpt->index];
	struct sock_peer *peer = sock_peer_lookup(cpt, &id);
	struct lnd_msg *msg = peer ? under_way(peer) : NULL;

	if (msg)
		sni->ni->lnd->cancel(sni->ni, msg, k->status);
	return 0;
}

void census_cancel(struct lnet *node, const struct ulnet_nid *peer, int status)
{
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct canceling k = { node->cpt[i], peer, status };

		BUG_ON(lnet_call(node, i, cancel, &k));
	}
}

struct link_setting {
	struct lnet_cpt *cpt;
	bool up;
};

static int set_link(void *arg)
{
	struct link_setting *k = arg;
	struct sock_ni *sni = sni_of(k->cpt);
	struct sock_cpt *cpt = &sni->cpts[k->cpt->index];

	atomic_store(&sni->up, k->up);
	if (k->up)
		sock_peers_link_up(cpt);
	else
		sock_peers_link_down(cpt);
	return 0;
}

void census_set_link(struct lnet *node, bool up)
{
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct link_setting k = { node->cpt[i], up };

		BUG_ON(lnet_call(node, i, set_link, &k));
	}
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
		struct counting k = { node->cpt[i], peer, c };

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

bool census_suspended_are(const struct census *c, unsigned int n)
{
	return c->suspended == n;
}

bool census_failures_are(const struct census *c, unsigned int n)
{
	return c->failures == n;
}

/* Are things as in the beginning: 3 connections between the two nodes, and
 * nothing else? A socket is closed some time after it has left every list, and
 * node 1 may still have some that node 0 has closed: so the test waits for the
 * number of files. */
static bool is_quiet(struct fx *fx)
{
	unsigned int files = fx->files + 2 * 3;

	if (!expect(fx, fx_settle(fx)) ||
	    !expect(fx, census_wait(fx, fx->rig->node[0], NULL,
				    census_conns_are, 3)))
		return false;
	for (uint64_t us = 0; open_files() != files && us < fx_patience(fx);
	     us += 1000)
		fx_run(fx, 1000);
	return expect(fx, open_files() == files);
}

bool bystander_begin(struct fx *fx, struct bystander *bystander)
{
	still_works(fx);
	if (!is_quiet(fx))
		return false;
	census_take(fx->rig->node[0], &fx->rig->nid[1], &bystander->with_peer);
	bystander->memory = mallinfo2().uordblks;
	return expect(fx, bystander->with_peer.keys == 3);
}

bool bystander_goes_on(struct fx *fx, const struct bystander *bystander)
{
	unsigned int before = fx->failures;
	struct census c;

	still_works(fx);
	census_take(fx->rig->node[0], &fx->rig->nid[1], &c);
	expect(fx, c.keys == bystander->with_peer.keys);
	expect(fx, memcmp(c.key, bystander->with_peer.key, sizeof(c.key)) == 0);
	return fx->failures == before;
}

bool bystander_check(struct fx *fx, const struct bystander *bystander)
{
	return bystander_goes_on(fx, bystander) && is_quiet(fx) &&
	       expect(fx, mallinfo2().uordblks <= bystander->memory + TRACES);
}

struct door_setting {
	struct lnet_cpt *cpt;
	uint64_t paid;
};

static int set_door(void *arg)
{
	struct door_setting *k = arg;
	struct door *d = &sni_of(k->cpt)->listener->callers.door;

	for (unsigned int i = 0; i < DOOR_CLASSES; i++)
		d->paid[i] = k->paid;
	return 0;
}

void census_set_door(struct lnet *node, bool open)
{
	struct door_setting k = { node->cpt[0], open ? 0 : TIME_NEVER / 2 };

	BUG_ON(lnet_call(node, 0, set_door, &k));
}
