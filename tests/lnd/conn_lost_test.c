/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Over TCP: watchers hear that connections of a peer have ended, once for all
 * that end together, and not of connections that this node ends because it
 * closes.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/pair.h"
#include "tests/lnd/raw_peer.h"
#include "ulnet/loop.h"

static const struct ulnet_tunable tunables[] = { { "conns_per_peer", 1 },
						 { "max_reconnectms", 20 } };

/* ---- who watches a node, which has one CPT ---- */

struct watcher {
	struct ulnet_peer_watch watch;
	struct fx *fx;
	struct lnet *node;
	_Atomic unsigned int n;
	struct ulnet_id peer; /* of the last event */
	/* a PUT to that peer, with match bits 2, to be sent from the event; or
	 * NULL */
	_Atomic(struct box *) answer;
};

static void on_disconnected(struct ulnet_peer_watch *watch,
			    const struct ulnet_id *peer)
{
	struct watcher *w = container_of(watch, struct watcher, watch);
	struct box *answer = atomic_load(&w->answer);

	expect(w->fx, lnet_cpt_owned(w->node, 0) && lnet_in_turn());
	w->peer = *peer;
	if (answer)
		box_put_id(answer, *peer, false, PORTAL, 2, HDR(2, 0));
	atomic_fetch_add(&w->n, 1);
}

static int watch_call(void *arg)
{
	struct watcher *w = arg;

	lnet_peer_watch_add(w->node, 0, &w->watch);
	return 0;
}

static int unwatch_call(void *arg)
{
	struct watcher *w = arg;

	lnet_peer_watch_del(w->node, 0, &w->watch);
	return 0;
}

static void watch(struct watcher *w, struct fx *fx, unsigned int side)
{
	*w = (struct watcher){ .watch.disconnected = on_disconnected,
			       .fx = fx,
			       .node = pair.node[side] };
	expect(fx, lnet_call(w->node, 0, watch_call, w) == 0);
}

static void unwatch(struct watcher *w)
{
	expect(w->fx, lnet_call(w->node, 0, unwatch_call, w) == 0);
}

static bool hears(struct watcher *w, unsigned int n)
{
	for (uint64_t us = 0; us < fx_patience(w->fx); us += 1000) {
		if (atomic_load(&w->n) >= n)
			return expect(w->fx, atomic_load(&w->n) == n);
		fx_run(w->fx, 1000);
	}
	return expect(w->fx, !"what happened is heard of");
}

/* ---- a peer that is the test's own, and is connected ---- */

struct visit {
	struct fx fx;
	struct watcher w;
	struct raw_peer s;
	struct box *src;
	int fd;
};

static bool answer(struct visit *v)
{
	enum sock_type type = SOCK_NONE;
	struct frame f = { 0 };

	v->fd = raw_peer_answer(&v->s, &type);
	return expect(&v->fx, v->fd >= 0 && type == SOCK_CONTROL) &&
	       expect(&v->fx, raw_peer_hear(&v->s, v->fd, &f) == 0);
}

static bool up(struct visit *v)
{
	memset(v, 0, sizeof(*v));
	if (!pair_up(&v->fx, tunables, ARRAY_SIZE(tunables)))
		return false;
	raw_peer_init(&v->s, &v->fx, "127.0.0.7@tcp");
	watch(&v->w, &v->fx, 0);
	v->src = box_new(&v->fx, 100, CUT_NONE);
	box_fill(v->src, 1);
	return expect(&v->fx, raw_peer_listen(&v->s) == 0) &&
	       box_bind(v->src, 0, LNET_MD_THRESH_INF, fx_patience(&v->fx)) &&
	       box_put_to(v->src, &v->s.nid, false, PORTAL, 1, HDR(1, 0)) &&
	       answer(v) &&
	       expect(&v->fx, fx_wait(&v->fx, &v->src->terminals, 1));
}

static int down(struct visit *v)
{
	box_end(v->src);
	fx_close(&v->fx);
	raw_peer_fini(&v->s);
	return pair_down(&v->fx);
}

/* Fails unless the event came once, for that peer. A message that the
 * connection had taken counts as sent, for all that LNet knows. */
static void hears_of_raw_peer(struct visit *v)
{
	if (!hears(&v->w, 1))
		return;
	expect(&v->fx, lnet_nid_eq(&v->w.peer.nid, &v->s.nid));
	expect(&v->fx, v->w.peer.pid == LNET_PID_LUSTRE);
	expect(&v->fx, v->src->failed[LNET_EVENT_SEND] == 0);
	expect(&v->fx, fx_stat(&v->fx, 0, "disconnects") == 1);
	/* and nothing else happened */
	still_works(&v->fx);
	expect(&v->fx, atomic_load(&v->w.n) == 1);
}

/* A peer that closes may not have read everything. */
static int closed(void)
{
	struct visit v;

	if (!up(&v))
		return 1;
	close(v.fd);
	hears_of_raw_peer(&v);
	return down(&v);
}

static int reset(void)
{
	struct linger none = { .l_onoff = 1 };
	struct visit v;

	if (!up(&v))
		return 1;
	expect(&v.fx, setsockopt(v.fd, SOL_SOCKET, SO_LINGER, &none,
				 sizeof(none)) == 0);
	close(v.fd);
	hears_of_raw_peer(&v);
	return down(&v);
}

static int nonsense(void)
{
	uint8_t bytes[SOCK_HDR_SIZE];
	struct visit v;

	if (!up(&v))
		return 1;
	memset(bytes, 0xff, sizeof(bytes));
	expect(&v.fx, say(v.fd, bytes, sizeof(bytes)));
	hears_of_raw_peer(&v);
	close(v.fd);
	return down(&v);
}

/* Connections for bulk end together with the one for small messages. */
static int several(void)
{
	struct visit v;
	int bulk[2];

	if (!up(&v))
		return 1;
	bulk[0] = raw_peer_open(&v.s, SOCK_BULK_IN);
	bulk[1] = raw_peer_open(&v.s, SOCK_BULK_OUT);
	expect(&v.fx, raw_peer_has_conns(&v.fx, &v.s, 3));
	close(bulk[0]);
	expect(&v.fx, hear_end(v.fd) && hear_end(bulk[1]));
	hears_of_raw_peer(&v);
	close(bulk[1]);
	close(v.fd);
	return down(&v);
}

/* A message that is sent from within the event uses a new connection. */
static int sends_at_once(void)
{
	struct visit v;

	if (!up(&v))
		return 1;
	atomic_store(&v.w.answer, v.src);
	close(v.fd);
	if (answer(&v)) {
		hears_of_raw_peer(&v);
		atomic_store(&v.w.answer, NULL);
		expect(&v.fx, is_silent(v.fd));
	}
	close(v.fd);
	expect(&v.fx, hears(&v.w, 2));
	return down(&v);
}

static int not_any_more(void)
{
	struct visit v;

	if (!up(&v))
		return 1;
	unwatch(&v.w);
	close(v.fd);
	expect(&v.fx, raw_peer_has_conns(&v.fx, &v.s, 0));
	still_works(&v.fx);
	expect(&v.fx, atomic_load(&v.w.n) == 0);
	return down(&v);
}

/* ---- nodes that end ---- */

/* A node that closes hears nothing; its peer does. */
static int node_closes(void)
{
	struct watcher w[2];
	struct fx fx;

	if (!pair_up(&fx, tunables, ARRAY_SIZE(tunables)))
		return 1;
	watch(&w[0], &fx, 0);
	watch(&w[1], &fx, 1);
	still_works(&fx);
	expect(&fx, fx_wait_idle(&fx));
	expect(&fx, fx_kill(&fx) == 0);
	if (hears(&w[0], 1))
		expect(&fx, lnet_nid_eq(&w[0].peer.nid, &pair.nid[1]));
	expect(&fx, atomic_load(&w[1].n) == 0);
	return pair_down(&fx);
}

/* A node that deletes an interface is told, too: messages under way on it may
 * be lost. */
static int interface_goes(void)
{
	struct watcher w[2];
	struct fx fx;

	if (!pair_up(&fx, tunables, ARRAY_SIZE(tunables)))
		return 1;
	watch(&w[0], &fx, 0);
	watch(&w[1], &fx, 1);
	still_works(&fx);
	expect(&fx, fx_wait_idle(&fx));
	expect(&fx, lnet_ni_del(pair.node[1], &pair.nid[1]) == 0);
	hears(&w[0], 1);
	hears(&w[1], 1);
	return pair_down(&fx);
}

static const struct apart_test tests[] = {
	{ "connection lost: closed by the peer", closed },
	{ "connection lost: reset", reset },
	{ "connection lost: by us, for nonsense", nonsense },
	{ "connection lost: several connections, told once", several },
	{ "connection lost: who is told sends", sends_at_once },
	{ "connection lost: who does not watch any more is not told",
	  not_any_more },
	{ "connection lost: a node closes", node_closes },
	{ "connection lost: an interface goes", interface_goes },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
