/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message waits for the end of its turn; then its fate is drawn, it waits for
 * the link, and departs: its payload is copied into a packet. The packet waits
 * on the receiver's loop for its time of arrival, is parsed there, and stored.
 *
 * A link may have a window, under virtual time only: the number of packets that
 * have left and that the receiver's LNet has not answered. Further messages
 * wait at the sender.
 */
#include "lnd/simlnd/simlnd.h"

#include <errno.h>
#include <string.h>

#include "base/iov.h"
#include "lnd/simlnd/net.h"

/* A message at its sender. */
struct sim_tx {
	struct list link;
	struct sim_cpt *sc;
	struct lnd_msg *msg;
	struct sim_path *path;
	struct timer timer;
	uint64_t sent_at; /* ns: when the link has sent all of the message */
	bool departed;	  /* some of the message may have left */
	bool pushed;	  /* msg is a copy, and nobody awaits its end */
};

/* A packet: a message on the wire and at its receiver. */
struct sim_pkt {
	struct list link;  /* sim_cpt.arriving; sim_path.backlog; or in none */
	struct sim_ep *ep; /* the receiver */
	unsigned int cpt;
	struct sim_cpt *sc; /* set on the receiver's loop */
	/* the receiver's path to the source, once parsed */
	struct sim_path *path;
	/* the sender's path, in whose window it counts; NULL: none */
	struct sim_path *from;
	unsigned int generation;      /* ep->generation when it left */
	unsigned int from_generation; /* generation of the sender's NI */
	struct ulnet_id src;
	uint64_t left, at;   /* ns: when it left, and when it arrives */
	uint64_t store_time; /* ns that storing the payload takes */
	bool cut;	     /* only half of the payload will come */
	void *mark;
	uint32_t number;  /* what sim_net_watch.hold() has returned */
	struct work work; /* passes it to the receiver's loop */
	struct timer timer;
	struct lnd_msg *msg; /* takes the payload while that is stored */
	size_t hdr_len;
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	uint32_t length;
	uint8_t payload[];
};

static bool dice(struct sim_cpt *sc, uint32_t ppm)
{
	if (likely(!ppm))
		return false;
	if (loop_random(sc->loop) % LNET_SIM_ALWAYS >= ppm)
		return false;
	sc->ep->net->faults++;
	return true;
}

static uint64_t random_below(struct sim_cpt *sc, uint64_t n)
{
	return n ? loop_random(sc->loop) % n : 0;
}

static void trace(const struct sim_net *net, enum sim_fate fate,
		  const struct ulnet_nid *src, const struct ulnet_nid *dst,
		  const void *hdr, uint32_t length)
{
	if (net->watched)
		net->watch.trace(net->watch.arg, fate, src, dst, hdr, length);
}

static void trace_tx(const struct sim_tx *tx, enum sim_fate fate)
{
	trace(tx->sc->ep->net, fate, &tx->sc->ep->nid, &tx->path->dst, NULL,
	      tx->msg->length);
}

/* ---- packets ---- */

/* Small packets, of which there are many, come from a pool; but not with real
 * loops, where different threads make and free them. */
#define SMALL_PAYLOAD 256

static bool pkt_is_pooled(const struct sim_net *net, uint32_t length)
{
	return net->watched && length <= SMALL_PAYLOAD;
}

static struct sim_pkt *pkt_alloc(struct sim_net *net, uint32_t length)
{
	if (pkt_is_pooled(net, length))
		return pool_get(&net->packets);
	return malloc(sizeof(struct sim_pkt) + length);
}

/* Schedules sim_run() for a later turn. */
static void cpt_schedule(struct sim_cpt *sc)
{
	if (sc->scheduled)
		return;
	sc->scheduled = true;
	loop_post(sc->loop, &sc->work);
}

/* The packet leaves the window of its sender. */
static void pkt_leave_window(struct sim_pkt *pkt)
{
	struct sim_path *from = pkt->from;
	struct sim_cpt *sc;

	if (likely(!from))
		return;
	pkt->from = NULL;
	if (atomic_load(&net_ep(pkt->ep->net, &pkt->src.nid)->generation) !=
	    pkt->from_generation)
		return; /* the sender's NI, and so the path, has gone */
	from->unread--;
	sc = from->sc;
	if (!list_empty(&sc->blocked))
		cpt_schedule(sc);
}

static void pkt_free(struct sim_pkt *pkt)
{
	struct sim_net *net = pkt->ep->net;

	pkt_leave_window(pkt);
	if (pkt->mark)
		net->watch.drop(net->watch.arg, pkt->mark);
	list_del(&pkt->link);
	if (pkt_is_pooled(net, pkt->length))
		pool_put(&net->packets, pkt);
	else
		free(pkt);
}

size_t simlnd_packet_size(void)
{
	return sizeof(struct sim_pkt) + SMALL_PAYLOAD;
}

static void pkt_trace(const struct sim_pkt *pkt, enum sim_fate fate)
{
	trace(pkt->ep->net, fate, &pkt->src.nid, &pkt->ep->nid, pkt->hdr,
	      pkt->length);
}

/* Has the NI that the packet was sent to gone or failed? If not, ep->cpt is
 * valid. */
static bool pkt_is_late(const struct sim_pkt *pkt)
{
	const struct sim_ep *ep = pkt->ep;

	return atomic_load(&ep->generation) != pkt->generation ||
	       !ep->cpt[pkt->cpt].running || !atomic_load(&ep->up);
}

/* Gives the packet to LNet by the straight way. Does so with every other packet
 * only, so that whatever runs over a simulated network takes both ways. Returns
 * whether LNet has taken it. */
static bool pkt_taken(struct sim_pkt *pkt)
{
	struct sim_cpt *sc = pkt->sc;

	if (pkt->cut || pkt->store_time || ++sc->straight % 2)
		return false;
	return lnet_hdr_payload(pkt->hdr, pkt->hdr_len) == pkt->length &&
	       lnet_take(sc->ni, pkt->hdr, pkt->hdr_len, &pkt->src, pkt,
			 pkt->payload);
}

/* Gives the packet to LNet. Until LNet answers, by recv() or eager_recv(),
 * nothing more from the same source is parsed. */
static void pkt_parse(struct sim_pkt *pkt, struct sim_path *path)
{
	struct sim_cpt *sc = pkt->sc;

	if (pkt_taken(pkt)) {
		pkt_free(pkt);
		return;
	}
	pkt->path = path;
	path->unanswered = pkt;
	if (lnet_parse(sc->ni, pkt->hdr, pkt->hdr_len, &pkt->src, pkt)) {
		path->unanswered = NULL;
		pkt_free(pkt);
	}
}

static void path_resume(struct timer *t)
{
	struct sim_path *path = container_of(t, struct sim_path, resume_timer);
	struct sim_pkt *pkt;

	while (!path->unanswered &&
	       (pkt = list_pop(&path->backlog, struct sim_pkt, link))) {
		if (pkt_is_late(pkt))
			pkt_free(pkt);
		else
			pkt_parse(pkt, path);
	}
}

/* LNet has answered lnet_parse(): the next packet from the same source may be
 * parsed. */
static void pkt_answered(struct sim_pkt *pkt)
{
	struct sim_path *path = pkt->path;
	struct sim_cpt *sc = pkt->sc;

	pkt_leave_window(pkt);
	if (path->unanswered != pkt)
		return;
	path->unanswered = NULL;
	if (list_empty(&path->backlog) || !sc->running)
		return;
	path->resume_timer.fn = path_resume;
	loop_timer_arm(sc->loop, &path->resume_timer, loop_now(sc->loop));
}

/* Drops all packets that wait in backlogs: the NI goes down, or has failed. */
static void backlogs_drop(struct sim_cpt *sc)
{
	struct sim_path *p;

	hash_for_each (p, &sc->paths, hash) {
		if (timer_armed(&p->resume_timer))
			loop_timer_cancel(sc->loop, &p->resume_timer);
		while (!list_empty(&p->backlog))
			pkt_free(list_first(&p->backlog, struct sim_pkt, link));
	}
}

/* The packet has arrived on the CPT that owns its source. */
static void pkt_here(struct sim_pkt *pkt)
{
	struct sim_cpt *sc = pkt->sc;
	struct sim_path *path = net_path(sc, &pkt->src.nid);

	if (path && pkt->left < path->cut) {
		pkt_trace(pkt, SIM_LOST);
		pkt_free(pkt);
		return;
	}
	pkt_trace(pkt, SIM_ARRIVES);
	sc->ep->net->messages++;
	list_del(&pkt->link);
	if (path)
		sim_conn_heard(path);
	if (!path)
		pkt_free(pkt); /* no memory: it is lost */
	else if (path->unanswered || !list_empty(&path->backlog))
		list_add_tail(&path->backlog, &pkt->link);
	else
		pkt_parse(pkt, path);
}

/* Runs on the receiver's loop: lets the packet wait for its time of arrival. */
static void pkt_wait(struct work *w)
{
	struct sim_pkt *pkt = container_of(w, struct sim_pkt, work);
	struct sim_cpt *sc;

	if (pkt_is_late(pkt)) {
		pkt_free(pkt);
		return;
	}
	sc = &pkt->ep->cpt[pkt->cpt];
	pkt->sc = sc;
	list_add_tail(&sc->arriving, &pkt->link);
	loop_timer_arm(sc->loop, &pkt->timer, pkt->at);
}

/* Passes the packet to the receiver's loop. @here: the caller's loop. */
static void pkt_go(struct sim_pkt *pkt, const struct loop *here)
{
	struct loop *loop = pkt->ep->cpt[pkt->cpt].loop;

	if (loop == here)
		pkt_wait(&pkt->work);
	else
		loop_post(loop, &pkt->work);
}

/* The time of arrival has come. The NI may have gone by now, or another CPT may
 * own the source. */
static void pkt_arrive(struct timer *t)
{
	struct sim_pkt *pkt = container_of(t, struct sim_pkt, timer);
	unsigned int owner;

	if (pkt_is_late(pkt)) {
		pkt_trace(pkt, SIM_NOBODY);
		pkt_free(pkt);
		return;
	}
	owner = lnet_ni_cpt_of(pkt->sc->ni, &pkt->src.nid);
	if (owner == pkt->cpt) {
		pkt_here(pkt);
		return;
	}
	list_del(&pkt->link);
	pkt->cpt = owner;
	pkt_go(pkt, pkt->sc->loop);
}

/* The time of arrival, ns: not before earlier messages, unless the dice say
 * that this message is overtaken. */
static uint64_t simlnd_arrival(struct sim_tx *tx)
{
	struct sim_path *p = tx->path;
	uint64_t at = loop_now(tx->sc->loop) + p->link.latency +
		      random_below(tx->sc, p->link.jitter);

	if (dice(tx->sc, p->link.reorder)) {
		trace_tx(tx, SIM_OVERTAKEN);
		return at + random_below(tx->sc, p->link.reorder_window);
	}
	p->last = MAX(p->last, at);
	return p->last;
}

static void pkt_send(struct sim_tx *tx)
{
	struct lnd_msg *msg = tx->msg;
	struct sim_cpt *from = tx->sc;
	struct sim_ep *ep = tx->path->ep;
	const struct ulnet_sim_link *link = &tx->path->link;
	struct sim_net *net = from->ep->net;
	struct sim_pkt *pkt = pkt_alloc(net, msg->length);

	if (!pkt)
		return; /* no memory: it is lost */
	list_init(&pkt->link);
	pkt->ep = ep;
	pkt->cpt = lnet_ni_cpt_of(ep->ni, &from->ep->nid);
	pkt->sc = NULL;
	pkt->path = NULL;
	pkt->from = NULL;
	pkt->generation = atomic_load(&ep->generation);
	pkt->src = (struct ulnet_id){ from->ep->nid, from->ni->conf->pid };
	pkt->left = loop_now(from->loop);
	pkt->at = simlnd_arrival(tx);
	pkt->store_time =
		link->bandwidth
			? (uint64_t)msg->length * NSEC_PER_SEC / link->bandwidth
			: 0;
	if (link->window && net->watched) {
		pkt->from = tx->path;
		pkt->from_generation = from->generation;
		tx->path->unread++;
	}
	pkt->cut = msg->length && dice(from, link->cut);
	pkt->mark = net->watched ? msg->mark : NULL;
	if (pkt->mark)
		pkt->number = net->watch.hold(net->watch.arg, msg);
	pkt->msg = NULL;
	timer_init(&pkt->timer, pkt_arrive);
	pkt->hdr_len = tx->pushed
			       ? sim_pushed_header(msg, pkt->hdr)
			       : sim_msg_header(msg, &pkt->src.nid, pkt->hdr);
	pkt->length = msg->length;
	iov_gather(pkt->payload, msg->iov, msg->niov, msg->offset, msg->length);
	if (unlikely(net->tap))
		net->tap(net->tap_arg, pkt->hdr, pkt->hdr_len, pkt->payload,
			 pkt->length);
	pkt->work.fn = pkt_wait;
	pkt_go(pkt, from->loop);
}

void sim_net_prefix(struct sim_net *net, unsigned int bits)
{
	net->prefix = bits;
}

void sim_net_push(struct sim_net *net, uint32_t ppm)
{
	net->push = ppm;
}

void sim_net_tap(struct sim_net *net, sim_net_tap_fn *fn, void *arg)
{
	net->tap = fn;
	net->tap_arg = arg;
}

/* ---- sending ---- */

static void tx_end(struct sim_tx *tx, int status, enum ulnet_cause cause)
{
	struct sim_cpt *sc = tx->sc;
	struct lnd_msg *msg = tx->msg;

	if (timer_armed(&tx->timer))
		loop_timer_cancel(sc->loop, &tx->timer);
	list_del(&tx->link);
	if (tx->pushed) {
		sim_pushed_free(sc, msg);
		pool_put(&sc->txs, tx);
		return;
	}
	pool_put(&sc->txs, tx);
	msg->priv = NULL;
	lnet_finalize(msg, status, cause);
}

static void tx_refused(struct timer *t)
{
	struct sim_tx *tx = container_of(t, struct sim_tx, timer);

	tx_end(tx, -EHOSTUNREACH, LNET_CAUSE_REMOTE_DROPPED);
}

/* The link has sent the whole message. */
static void tx_sent(struct timer *t)
{
	tx_end(container_of(t, struct sim_tx, timer), 0, LNET_CAUSE_OK);
}

/* Is the message too large for the link, so that it is lost? */
static bool tx_meets_hole(const struct sim_tx *tx, const struct sim_path *p)
{
	if (likely(!p->link.hole) || tx->msg->length <= p->link.hole)
		return false;
	tx->sc->ep->net->faults++;
	return true;
}

/* The link is free: the first byte leaves now, the last one at tx->sent_at. */
static void tx_depart(struct timer *t)
{
	struct sim_tx *tx = container_of(t, struct sim_tx, timer);
	struct sim_cpt *sc = tx->sc;
	struct sim_path *p = net_path_now(sc, tx->path);
	bool hole = tx_meets_hole(tx, p);
	bool lost = !atomic_load(&sc->ep->up) || p->partitioned ||
		    !ep_is_there(p->ep) || hole || dice(sc, p->link.loss);
	bool error = dice(sc, p->link.error);
	bool mute = dice(sc, p->link.mute);

	if (lost || (error && random_below(sc, 2)))
		trace_tx(tx, SIM_LOST);
	else
		pkt_send(tx);
	if (!lost && dice(sc, p->link.duplicate)) {
		trace_tx(tx, SIM_DUPLICATE);
		pkt_send(tx);
	}
	tx->departed = true;
	if (unlikely(p->link.connect && (hole || sim_conn_is_cut(p))))
		sim_conn_lost(p, hole);
	if (mute && !tx->pushed) {
		trace_tx(tx, SIM_MUTE);
		return;
	}
	if (error) {
		trace_tx(tx, SIM_ERROR);
		tx_end(tx, -EIO, LNET_CAUSE_LOCAL_ERROR);
		return;
	}
	if (tx->sent_at <= loop_now(sc->loop)) {
		tx_end(tx, 0, LNET_CAUSE_OK);
		return;
	}
	timer_init(&tx->timer, tx_sent);
	loop_timer_arm(sc->loop, &tx->timer, tx->sent_at);
}

static void tx_start(struct sim_tx *tx)
{
	struct sim_cpt *sc = tx->sc;
	struct sim_path *p = net_path_now(sc, tx->path);
	uint64_t now = loop_now(sc->loop);
	uint64_t bytes = tx->msg->length + LNET_HDR_SIZE;
	uint64_t start = MAX(p->free_at, now);

	list_add_tail(&sc->sending, &tx->link);
	if (!p->ep || !ep_is_there(p->ep) ||
	    (!tx->pushed && dice(sc, p->link.refuse))) {
		/* The refusal comes back after a round trip. */
		trace_tx(tx, SIM_REFUSED);
		timer_init(&tx->timer, tx_refused);
		loop_timer_arm(sc->loop, &tx->timer, now + 2 * p->link.latency);
		return;
	}
	if (dice(sc, p->link.stall)) {
		trace_tx(tx, SIM_STALLED);
		if (tx->pushed)
			tx_end(tx, 0, LNET_CAUSE_OK);
		return;
	}
	tx->sent_at = start;
	if (p->link.bandwidth)
		tx->sent_at += bytes * NSEC_PER_SEC / p->link.bandwidth;
	p->free_at = tx->sent_at;
	if (start == now)
		tx_depart(&tx->timer);
	else
		loop_timer_arm(sc->loop, &tx->timer, start);
}

static bool sim_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg)
{
	const struct sim_tx *tx = msg->priv;

	(void)ni;
	return tx->departed;
}

/* Ends all messages of @txs: with cause @unsent if nothing of the message has
 * left, else with @sent. */
static void txs_abort(struct list *txs, int status, enum ulnet_cause unsent,
		      enum ulnet_cause sent)
{
	struct list batch;
	struct sim_tx *tx;

	/* Handlers may send, which adds to @txs: that stays. */
	list_init(&batch);
	list_splice_tail(&batch, txs);
	while ((tx = list_pop(&batch, struct sim_tx, link)))
		tx_end(tx, status, tx->departed ? sent : unsent);
}

static void cpt_abort(struct sim_cpt *sc, int status, enum ulnet_cause unsent,
		      enum ulnet_cause sent)
{
	txs_abort(&sc->blocked, status, unsent, sent);
	txs_abort(&sc->queue, status, unsent, sent);
	txs_abort(&sc->sending, status, unsent, sent);
}

/* Gives messages of @txs for @p back to LNet, the last one first, except those
 * given back before. True: there were some. */
static bool txs_give_back(struct list *txs, const struct sim_path *p)
{
	struct list batch;
	bool any = false;

	list_init(&batch);
	list_splice_tail(&batch, txs);
	while (!list_empty(&batch)) {
		struct sim_tx *tx =
			container_of(batch.prev, struct sim_tx, link);
		struct lnd_msg *msg = tx->msg;

		list_del(&tx->link);
		if (tx->path != p || tx->departed || msg->again) {
			list_add(txs, &tx->link);
			continue;
		}
		if (tx->pushed) {
			tx_end(tx, 0, LNET_CAUSE_OK);
			continue;
		}
		if (timer_armed(&tx->timer))
			loop_timer_cancel(p->sc->loop, &tx->timer);
		pool_put(&p->sc->txs, tx);
		msg->priv = NULL;
		any = true;
		lnet_send_again(msg);
	}
	return any;
}

bool simlnd_give_back(struct sim_path *p)
{
	struct sim_cpt *sc = p->sc;
	bool queued = txs_give_back(&sc->queue, p);
	bool blocked = txs_give_back(&sc->blocked, p);
	bool sending = txs_give_back(&sc->sending, p);

	return queued || blocked || sending;
}

static bool tx_goes(const struct list *txs, const struct sim_path *p)
{
	const struct sim_tx *tx;

	list_for_each_entry (tx, txs, link)
		if (tx->path == p)
			return true;
	return false;
}

bool simlnd_is_idle(const struct sim_path *p)
{
	const struct sim_cpt *sc = p->sc;
	const struct sim_pkt *pkt;

	if (tx_goes(&sc->queue, p) || tx_goes(&sc->blocked, p) ||
	    tx_goes(&sc->sending, p) || p->unread || p->unanswered)
		return false;
	list_for_each_entry (pkt, &sc->arriving, link)
		if (pkt->path == p)
			return false;
	return true;
}

static void pkt_abort(struct sim_pkt *pkt, int status, enum ulnet_cause cause);

/* Ends messages that are being stored. */
static void stores_abort(struct sim_cpt *sc)
{
	struct sim_pkt *pkt, *next;
	struct list batch;

	list_init(&batch);
	list_for_each_entry_safe (pkt, next, &sc->arriving, link) {
		if (!pkt->msg)
			continue;
		list_del(&pkt->link);
		list_add_tail(&batch, &pkt->link);
	}
	while (!list_empty(&batch))
		pkt_abort(list_first(&batch, struct sim_pkt, link), -ENETDOWN,
			  LNET_CAUSE_LOCAL_ERROR);
}

/* The NI has failed hard (it may be back by now): ends what this CPT has under
 * way. */
static void cpt_fail(struct sim_cpt *sc)
{
	sc->failed = false;
	sim_conns_fail(sc);
	backlogs_drop(sc);
	cpt_abort(sc, -ENETDOWN, LNET_CAUSE_LOCAL_NO_ROUTE,
		  LNET_CAUSE_LOCAL_ERROR);
	stores_abort(sc);
}

void simlnd_failed(struct sim_cpt *sc)
{
	sc->failed = true;
	cpt_schedule(sc);
}

static bool window_is_full(struct sim_cpt *sc, struct sim_path *path)
{
	const struct sim_path *p = net_path_now(sc, path);

	return p->link.window && p->unread >= p->link.window;
}

void simlnd_stopped(struct sim_cpt *sc)
{
	if (!sc->running && !sc->scheduled && !sc->moving)
		lnet_ni_stopped(sc->ni, sc->index);
}

static void sim_run(struct work *w)
{
	struct sim_cpt *sc = container_of(w, struct sim_cpt, work);
	struct list batch;
	struct sim_tx *tx;

	sc->scheduled = false;
	if (!sc->running) {
		simlnd_stopped(sc);
		return;
	}
	if (unlikely(sc->failed))
		cpt_fail(sc);
	sim_conns_tell(sc);
	list_init(&batch);
	list_splice_tail(&batch, &sc->blocked);
	list_splice_tail(&batch, &sc->queue);
	while ((tx = list_pop(&batch, struct sim_tx, link))) {
		if (unlikely(window_is_full(sc, tx->path)))
			list_add_tail(&sc->blocked, &tx->link);
		else
			tx_start(tx);
	}
}

static uint64_t sim_down_since(const struct sim_ep *ep)
{
	return atomic_load(&ep->up) ? TIME_NEVER : ep->changed;
}

static struct sim_tx *tx_new(struct sim_path *path, struct lnd_msg *msg)
{
	struct sim_tx *tx = pool_get(&path->sc->txs);

	if (!tx)
		return NULL;
	tx->sc = path->sc;
	tx->msg = msg;
	tx->path = path;
	tx->departed = false;
	tx->pushed = false;
	timer_init(&tx->timer, tx_depart);
	return tx;
}

/* Lets @tx wait for the end of the turn. */
static void tx_enqueue(struct sim_tx *tx)
{
	struct sim_cpt *sc = tx->sc;

	list_add_tail(&sc->queue, &tx->link);
	if (sc->scheduled)
		return;
	sc->scheduled = true;
	loop_defer(sc->loop, &sc->work);
}

static int sim_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct sim_cpt *sc = simlnd_cpt(ni, msg->cpt);
	struct sim_net *net = sc->ep->net;
	struct sim_path *path;
	struct sim_tx *tx;
	int rc;

	if (net->watched)
		net->watch.send(net->watch.arg, msg, sim_down_since(sc->ep));
	if (unlikely(!atomic_load(&sc->ep->up)))
		return -ENETDOWN;
	path = net_path(sc, &msg->next_hop);
	if (!path)
		return -ENOMEM;
	rc = sim_conn_ready(path);
	if (unlikely(rc))
		return rc;
	tx = tx_new(path, msg);
	if (!tx)
		return -ENOMEM;
	msg->priv = tx;
	tx_enqueue(tx);
	return 0;
}

/* The copy goes the way of all messages. There is no place for it behind those
 * that wait for a window. */
static bool simlnd_push(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct sim_cpt *sc = simlnd_cpt(ni, msg->cpt);
	struct sim_path *path = sim_push_path(sc, msg);
	struct sim_tx *tx;

	if (likely(!path) || tx_goes(&sc->blocked, path) ||
	    dice(sc, path->link.refuse))
		return false;
	tx = tx_new(path, msg);
	if (!tx)
		return false;
	tx->msg = sim_pushed_new(sc, msg);
	if (!tx->msg) {
		pool_put(&sc->txs, tx);
		return false;
	}
	tx->pushed = true;
	trace_tx(tx, SIM_PUSHED);
	tx_enqueue(tx);
	return true;
}

/* ---- receiving ---- */

static void pkt_store(struct sim_pkt *pkt, uint32_t from, uint32_t to)
{
	struct lnd_msg *msg = pkt->msg;

	to = MIN(to, msg->length);
	if (from < to)
		iov_scatter(msg->iov, msg->niov, msg->offset + from,
			    pkt->payload + from, to - from);
}

static void pkt_stored(struct timer *t)
{
	struct sim_pkt *pkt = container_of(t, struct sim_pkt, timer);
	struct lnd_msg *msg = pkt->msg;
	bool cut = pkt->cut;

	if (cut)
		pkt_trace(pkt, SIM_CUT);
	else
		pkt_store(pkt, pkt->length / 2, pkt->length);
	pkt_free(pkt);
	msg->priv = NULL;
	lnet_finalize(msg, cut ? -EIO : 0,
		      cut ? LNET_CAUSE_REMOTE_ERROR : LNET_CAUSE_OK);
}

static void sim_recv(struct lnd_ni *ni, void *rx, struct lnd_msg *msg,
		     uint32_t rlength)
{
	struct sim_pkt *pkt = rx;
	struct sim_cpt *sc = pkt->sc;

	(void)ni;
	(void)rlength;
	pkt_answered(pkt);
	if (!msg) {
		pkt_free(pkt);
		return;
	}
	if (!sc->running) {
		pkt_free(pkt);
		lnet_finalize(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
		return;
	}
	/* A header may announce more than has come. */
	if (msg->length > pkt->length) {
		pkt_free(pkt);
		lnet_finalize(msg, -EPROTO, LNET_CAUSE_REMOTE_ERROR);
		return;
	}
	pkt->msg = msg;
	msg->priv = pkt;
	pkt_store(pkt, 0, pkt->length / 2);
	timer_init(&pkt->timer, pkt_stored);
	if (!pkt->store_time) {
		pkt_stored(&pkt->timer);
		return;
	}
	list_add_tail(&sc->arriving, &pkt->link);
	loop_timer_arm(sc->loop, &pkt->timer,
		       loop_now(sc->loop) + pkt->store_time);
}

/* The packet serves as the bounce buffer. */
static int sim_eager_recv(struct lnd_ni *ni, void *rx)
{
	(void)ni;
	pkt_answered(rx);
	return 0;
}

/* ---- giving up, going down ---- */

static void pkt_abort(struct sim_pkt *pkt, int status, enum ulnet_cause cause)
{
	struct lnd_msg *msg = pkt->msg;

	loop_timer_cancel(pkt->sc->loop, &pkt->timer);
	pkt_free(pkt);
	if (!msg)
		return;
	msg->priv = NULL;
	lnet_finalize(msg, status, cause);
}

static void sim_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	struct sim_tx *tx = msg->priv;

	(void)ni;
	if (msg->incoming)
		pkt_abort(msg->priv, status, LNET_CAUSE_NETWORK_TIMEOUT);
	else
		tx_end(tx, status,
		       tx->departed ? LNET_CAUSE_NETWORK_TIMEOUT
				    : LNET_CAUSE_LOCAL_TIMEOUT);
}

static void sim_shutdown(struct lnd_ni *ni, unsigned int cpt)
{
	struct sim_cpt *sc = simlnd_cpt(ni, cpt);
	unsigned int there = sc->generation;

	/* The first CPT that stops takes the NI out of the network. For the
	 * others the generation has changed: the NI has gone, and another one
	 * may have the NID. */
	if (atomic_compare_exchange_strong(&sc->ep->generation, &there,
					   there + 1))
		net_left(sc->ep);
	sc->running = false;
	sim_conns_stop(sc);
	backlogs_drop(sc);
	cpt_abort(sc, -ESHUTDOWN, LNET_CAUSE_LOCAL_ABORTED,
		  LNET_CAUSE_SHUTDOWN);
	while (!list_empty(&sc->arriving))
		pkt_abort(list_first(&sc->arriving, struct sim_pkt, link),
			  -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
	simlnd_stopped(sc);
}

static void simlnd_sim_free(struct lnd_ni *ni)
{
	for (unsigned int i = 0; i < ni->cpts; i++) {
		net_paths_free(simlnd_cpt(ni, i));
		pool_fini(&simlnd_cpt(ni, i)->txs);
	}
	free(ni->priv);
}

/* lnd_ni.host. Of shared memory, 256 numbers in a row are a host's. */
static uint64_t sim_host(const struct ulnet_nid *nid)
{
	return nid->type == LNET_TYPE_SHM
		       ? 1 + ((uint32_t)lnet_nid_to_nid4(nid) >> 8)
		       : 0;
}

static int sim_startup(struct lnd_ni *ni)
{
	struct sim_cpt *cpts = calloc(ni->cpts, sizeof(*cpts));
	int rc;

	if (!cpts)
		return -ENOMEM;
	for (unsigned int i = 0; i < ni->cpts; i++) {
		struct sim_cpt *sc = &cpts[i];

		*sc = (struct sim_cpt){ .ni = ni,
					.index = i,
					.loop = ni->loops[i],
					.running = true,
					.work.fn = sim_run };
		list_init(&sc->blocked);
		list_init(&sc->queue);
		list_init(&sc->sending);
		list_init(&sc->arriving);
		list_init(&sc->lost_conns);
		hash_init(&sc->paths);
		pool_init(&sc->txs, sizeof(struct sim_tx), 0);
	}
	ni->priv = cpts;
	ni->prefix = ((const struct sim_net *)ni->net)->prefix;
	ni->host = sim_host(&ni->nid);
	rc = net_join(ni->net, ni, cpts);
	if (rc)
		simlnd_sim_free(ni);
	return rc;
}

static bool sim_is_connecting(struct lnd_ni *ni, const struct ulnet_nid *nid)
{
	struct sim_cpt *sc = simlnd_cpt(ni, lnet_ni_cpt_of(ni, nid));
	const struct sim_path *path = net_path_find(sc, nid);

	return path && path->wanted;
}

static bool sim_is_connected(struct lnd_ni *ni, unsigned int cpt,
			     const struct ulnet_nid *nid)
{
	const struct sim_path *path = net_path_find(simlnd_cpt(ni, cpt), nid);

	return path && path->conn.state != SIM_CONN_NONE;
}

static uint64_t sim_paused_until(struct lnd_ni *ni, unsigned int cpt,
				 const struct ulnet_id *id)
{
	const struct sim_path *path =
		net_path_find(simlnd_cpt(ni, cpt), &id->nid);

	return path && path->conn.state == SIM_CONN_PAUSED ? path->timer.at : 0;
}

void *sim_net_rx_mark(const void *rx)
{
	return ((const struct sim_pkt *)rx)->mark;
}

uint32_t sim_net_rx_number(const void *rx)
{
	return ((const struct sim_pkt *)rx)->number;
}

const struct lnd simlnd = {
	.name = "sim",
	.type = -1,
	.startup = sim_startup,
	.shutdown = sim_shutdown,
	.free = simlnd_sim_free,
	.send = sim_send,
	.push = simlnd_push,
	.recv = sim_recv,
	.eager_recv = sim_eager_recv,
	.cancel = sim_cancel,
	.has_begun = sim_has_begun,
	.is_connected = sim_is_connected,
	.paused_until = sim_paused_until,
	.can_move = sim_can_move,
	.move = sim_move,
	.is_connecting = sim_is_connecting,
};
