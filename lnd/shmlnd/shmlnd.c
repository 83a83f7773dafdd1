/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/shmlnd.h"

#include <errno.h>

#include "lnd/shmlnd/peer.h"

static void shm_on_stopped(struct work *w)
{
	struct shm_cpt *cpt = container_of(w, struct shm_cpt, stopped);

	BUG_ON(cpt->peers.count || cpt->nleft);
	lnet_ni_stopped(cpt->sni->ni, cpt->index);
}

/* Schedules lnet_ni_stopped() after everything else that this turn does. */
static void stop_soon(struct shm_cpt *cpt)
{
	loop_defer_last(cpt->loop, &cpt->stopped);
}

static void shm_on_arrived(struct work *w)
{
	stop_soon(&container_of(w, struct shm_ni, passage.closed)->cpts[0]);
}

static void shm_cpt_init(struct shm_ni *sni, unsigned int i)
{
	struct shm_cpt *cpt = &sni->cpts[i];

	cpt->sni = sni;
	cpt->index = i;
	cpt->loop = sni->ni->loops[i];
	cpt->flush_work.fn = shm_tx_flush;
	cpt->stopped.fn = shm_on_stopped;
	list_init(&cpt->flush);
	list_init(&cpt->left);
	pool_init(&cpt->rxs, sizeof(struct shm_rx), 0);
	shm_peers_init(cpt);
}

static void shm_free(struct lnd_ni *ni)
{
	struct shm_ni *sni = shm_ni_of(ni);

	for (unsigned int i = 0; i < ni->cpts; i++) {
		hash_fini(&sni->cpts[i].peers);
		pool_fini(&sni->cpts[i].rxs);
	}
	shm_token_free(&sni->token);
	free(sni->cpts);
	free(sni);
}

static int shm_join(void *arg)
{
	struct shm_ni *sni = arg;

	sni->seed = loop_random(sni->ni->loops[0]);
	return shm_gate_open(sni);
}

/* Without a host, messages over other nets do not tell of the NI. */
static void shm_find_host(struct lnd_ni *ni)
{
	int rc = shm_host(shm_ni_of(ni)->world, &ni->host);

	if (rc)
		log_warn("shmlnd",
			 "this host cannot be told from others, so it is not "
			 "found by itself: %s",
			 strerror(-rc));
}

static int shm_startup(struct lnd_ni *ni)
{
	struct shm_ni *sni = calloc(1, sizeof(*sni));
	int rc;

	if (!sni)
		return -ENOMEM;
	sni->ni = ni;
	sni->tunables = ni->tunables;
	sni->world = ni->loops[0]->env->world;
	sni->ring_size =
		shm_ring_size((uint64_t)ni->tunables[SHM_ring_size]);
	ni->tunables[SHM_ring_size] = sni->ring_size;
	sni->gate.io.fd = -1;
	sni->cpts = calloc(ni->cpts, sizeof(*sni->cpts));
	if (!sni->cpts) {
		free(sni);
		return -ENOMEM;
	}
	passage_init(&sni->passage, ni->loops[0], shm_on_arrived);
	for (unsigned int i = 0; i < ni->cpts; i++)
		shm_cpt_init(sni, i);
	ni->priv = sni;
	shm_find_host(ni);
	if (sni->tunables[SHM_copy_min])
		shm_token_make(&sni->token);
	rc = loop_call(ni->loops[0], shm_join, sni);
	if (rc == -EADDRINUSE)
		ni->why = "another node of this host has this NID";
	if (rc)
		shm_free(ni);
	return rc;
}

static void shm_shutdown(struct lnd_ni *ni, unsigned int index)
{
	struct shm_ni *sni = shm_ni_of(ni);
	struct shm_cpt *cpt = &sni->cpts[index];

	cpt->stopping = true;
	if (index == 0)
		shm_gate_close(sni);
	shm_peers_stop(cpt);
	if (index)
		stop_soon(cpt);
	else
		passage_close(&sni->passage);
}

static const struct lnd_tunable shm_tunables[SHM_TUNABLES] = {
#define TUNABLE(name, ...) [SHM_##name] = LND_TUNABLE(name, __VA_ARGS__),
#include "lnd/shmlnd/tunable.def"
#undef TUNABLE
};

const struct lnd shmlnd = {
	.name = "shm",
	.type = LNET_TYPE_SHM,
	.tunables = shm_tunables,
	.ntunables = SHM_TUNABLES,
	.resolve = shm_resolve,
	.source = shm_source,
	.startup = shm_startup,
	.shutdown = shm_shutdown,
	.free = shm_free,
	.send = shm_tx_send,
	.recv = shm_rx_recv,
	.eager_recv = shm_rx_eager_recv,
	.cancel = shm_cancel,
	.has_begun = shm_tx_has_begun,
	.is_connected = shm_is_connected,
	.paused_until = shm_paused_until,
};
