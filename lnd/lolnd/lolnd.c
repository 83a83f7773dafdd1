/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loopback LND, 0@lo: messages of this node to itself, on the same CPT. A
 * message waits for the end of the turn, so that no handler runs inside
 * LNetPut(), and is then copied straight from the sender's memory to the
 * receiver's.
 */
#include <errno.h>

#include "base/iov.h"
#include "base/pool.h"
#include "lnd/lnd.h"

/* A message between lnet_parse() and recv(). */
struct lo_rx {
	struct lo_cpt *lo;
	struct list link;   /* lo_cpt.rxs */
	struct lnd_msg *tx; /* NULL: the sender's message has ended */
	char *bounce;	    /* bounce buffer with the payload, or NULL */
	uint32_t length;
};

struct lo_cpt {
	struct lnd_ni *ni;
	unsigned int index;
	struct list queue; /* lnd_msg.link; not parsed yet */
	struct list rxs;   /* lo_rx.link */
	struct pool pool;  /* of lo_rx */
	struct work work;
	bool scheduled;
	bool stopping;
};

static struct lo_cpt *lo_cpt(struct lnd_ni *ni, unsigned int cpt)
{
	return &((struct lo_cpt *)ni->priv)[cpt];
}

static void lo_run(struct work *w);

static int lo_startup(struct lnd_ni *ni)
{
	struct lo_cpt *cpts = calloc(ni->cpts, sizeof(*cpts));

	if (!cpts)
		return -ENOMEM;
	for (unsigned int i = 0; i < ni->cpts; i++) {
		cpts[i].ni = ni;
		cpts[i].index = i;
		cpts[i].work.fn = lo_run;
		list_init(&cpts[i].queue);
		list_init(&cpts[i].rxs);
		pool_init(&cpts[i].pool, sizeof(struct lo_rx), 0);
	}
	ni->priv = cpts;
	return 0;
}

static void lo_free(struct lnd_ni *ni)
{
	for (unsigned int i = 0; i < ni->cpts; i++)
		pool_fini(&lo_cpt(ni, i)->pool);
	free(ni->priv);
}

static int lo_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct lo_cpt *lo = lo_cpt(ni, msg->cpt);

	msg->priv = NULL;
	list_add_tail(&lo->queue, &msg->link);
	if (!lo->scheduled) {
		lo->scheduled = true;
		loop_defer(ni->loops[msg->cpt], &lo->work);
	}
	return 0;
}

/* Ends the message for the sender, whose memory is not read afterwards. */
static void lo_sent(struct lo_rx *rx, int status, enum ulnet_cause cause)
{
	struct lnd_msg *tx = rx->tx;

	rx->tx = NULL;
	tx->priv = NULL;
	lnet_finalize(tx, status, cause);
}

static void lo_rx_free(struct lo_rx *rx)
{
	list_del(&rx->link);
	free(rx->bounce);
	pool_put(&rx->lo->pool, rx);
}

static void lo_parse(struct lo_cpt *lo, struct lnd_msg *tx)
{
	struct ulnet_id me = { lo->ni->nid, lo->ni->conf->pid };
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	struct lo_rx *rx = pool_get(&lo->pool);

	if (!rx) {
		lnet_finalize(tx, -ENOMEM, LNET_CAUSE_LOCAL_DROPPED);
		return;
	}
	rx->lo = lo;
	rx->tx = tx;
	rx->bounce = NULL;
	rx->length = tx->length;
	list_add_tail(&lo->rxs, &rx->link);
	tx->priv = rx;
	lnet_msg_header(tx, hdr, sizeof(hdr));
	if (!lnet_parse(lo->ni, hdr, sizeof(hdr), &me, rx))
		return;
	lo_sent(rx, -EPROTO, LNET_CAUSE_LOCAL_ERROR);
	lo_rx_free(rx);
}

/* Parses what is queued, at the end of a turn. Messages that handlers send
 * meanwhile are left for the next turn. */
static void lo_run(struct work *w)
{
	struct lo_cpt *lo = container_of(w, struct lo_cpt, work);
	struct list batch;
	struct lnd_msg *tx;

	lo->scheduled = false;
	if (lo->stopping) {
		lnet_ni_stopped(lo->ni, lo->index);
		return;
	}
	list_init(&batch);
	list_splice_tail(&batch, &lo->queue);
	while ((tx = list_pop(&batch, struct lnd_msg, link)))
		lo_parse(lo, tx);
}

static void lo_store(const struct lo_rx *rx, const struct lnd_msg *msg)
{
	const struct lnd_msg *tx = rx->tx;

	BUG_ON(!rx->bounce && !tx);
	if (rx->bounce)
		iov_scatter(msg->iov, msg->niov, msg->offset, rx->bounce,
			    msg->length);
	else
		iov_copy(msg->iov, msg->niov, msg->offset, tx->iov, tx->niov,
			 tx->offset, msg->length);
}

static void lo_recv(struct lnd_ni *ni, void *priv, struct lnd_msg *msg,
		    uint32_t rlength)
{
	struct lo_rx *rx = priv;
	/* Has the sender given up, so that its memory cannot be read? */
	bool gone = !rx->tx && !rx->bounce && rlength;

	(void)ni;
	if (msg && !gone && msg->length)
		lo_store(rx, msg);
	if (rx->tx)
		lo_sent(rx, 0, LNET_CAUSE_OK);
	lo_rx_free(rx);
	if (msg)
		lnet_finalize(msg, gone ? -ECANCELED : 0,
			      gone ? LNET_CAUSE_LOCAL_ABORTED : LNET_CAUSE_OK);
}

static int lo_eager_recv(struct lnd_ni *ni, void *priv)
{
	struct lo_rx *rx = priv;
	struct lnd_msg *tx = rx->tx;

	(void)ni;
	/* The sender has given up: there is nothing to copy. */
	if (!tx)
		return -ECANCELED;
	if (rx->length) {
		rx->bounce = malloc(rx->length);
		if (!rx->bounce)
			return -ENOMEM;
		iov_gather(rx->bounce, tx->iov, tx->niov, tx->offset,
			   rx->length);
	}
	lo_sent(rx, 0, LNET_CAUSE_OK);
	return 0;
}

static void lo_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	struct lo_rx *rx = msg->priv;

	(void)ni;
	if (rx) {
		lo_sent(rx, status, LNET_CAUSE_NETWORK_TIMEOUT);
		return;
	}
	list_del(&msg->link);
	lnet_finalize(msg, status, LNET_CAUSE_LOCAL_TIMEOUT);
}

static void lo_shutdown(struct lnd_ni *ni, unsigned int cpt)
{
	struct lo_cpt *lo = lo_cpt(ni, cpt);
	struct lo_rx *rx;
	struct lnd_msg *tx;

	lo->stopping = true;
	while ((tx = list_pop(&lo->queue, struct lnd_msg, link)))
		lnet_finalize(tx, -ESHUTDOWN, LNET_CAUSE_LOCAL_ABORTED);
	list_for_each_entry (rx, &lo->rxs, link)
		if (rx->tx)
			lo_sent(rx, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
	if (!lo->scheduled)
		lnet_ni_stopped(ni, cpt);
}

const struct lnd lolnd = {
	.name = "lo",
	.type = LNET_TYPE_LO,
	.startup = lo_startup,
	.shutdown = lo_shutdown,
	.free = lo_free,
	.send = lo_send,
	.recv = lo_recv,
	.eager_recv = lo_eager_recv,
	.cancel = lo_cancel,
};
