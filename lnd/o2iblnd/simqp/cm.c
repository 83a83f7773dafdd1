/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/qp.h"

#include <errno.h>

static const struct fsm_state cm_states[SIMQP_STATES] = {
	[SIMQP_RESOLVING] = { "resolving",
			      FSM_TO(SIMQP_READY) | FSM_TO(SIMQP_ENDED) },
	[SIMQP_READY] = { "ready",
			  FSM_TO(SIMQP_CONNECTING) | FSM_TO(SIMQP_ENDED) },
	[SIMQP_CONNECTING] = { "connecting",
			       FSM_TO(SIMQP_OPEN) | FSM_TO(SIMQP_ENDED) },
	[SIMQP_PENDING] = { "pending", FSM_TO(SIMQP_REQUESTED) },
	[SIMQP_REQUESTED] = { "requested",
			      FSM_TO(SIMQP_ACCEPTED) | FSM_TO(SIMQP_ENDED) },
	[SIMQP_ACCEPTED] = { "accepted",
			     FSM_TO(SIMQP_OPEN) | FSM_TO(SIMQP_ENDED) },
	[SIMQP_OPEN] = { "open", FSM_TO(SIMQP_LEFT) | FSM_TO(SIMQP_ENDED) },
	[SIMQP_LEFT] = { "left", FSM_TO(SIMQP_ENDED) },
	[SIMQP_ENDED] = { "ended", 0 },
};

static void on_cm_timer(struct timer *t);

static void cm_move(struct simqp_qp *qp, enum simqp_state to)
{
	fsm_move(&qp->cm, cm_states, to);
}

void simqp_cm_init(struct simqp_qp *qp, enum simqp_state state)
{
	qp->cm.state = (uint8_t)state;
	timer_init(&qp->cm_timer, on_cm_timer);
}

static const struct ib_events *events_of(const struct simqp_qp *qp)
{
	return qp->port->ib.events;
}

/* ---- messages ---- */

static bool way_loses(struct simqp_way *w)
{
	struct simqp_fabric *f = w->fabric;

	if (!simqp_way_is_silent(w) &&
	    !simqp_dice(f, simqp_way_link(w)->cm_loss))
		return false;
	f->stats.lost++;
	return true;
}

/* Takes @it, and sends it over @w to the queue pair @id. */
static void cm_answer(struct simqp_way *w, uint64_t id, struct simqp_item *it,
		      uint64_t at)
{
	struct simqp_qp *to = simqp_qp_find(w->fabric, id);

	if (to && !way_loses(w)) {
		it->way = w;
		simqp_inbox_put(&to->inbox, it, at);
	} else {
		simqp_item_free(it);
	}
}

/* Returns when a message that is sent now arrives, ns. Messages keep their
 * order. */
static uint64_t cm_arrival(struct simqp_qp *qp, enum simqp_kind kind)
{
	const struct simqp_link *link = simqp_way_link(qp->out);
	uint64_t at = simqp_now(qp->fabric) + simqp_way_latency(qp->out) +
		      link->cm_latency;

	if (kind == SIMQP_RTU)
		at += link->rtu_delay;
	qp->cm_at = MAX(qp->cm_at, at);
	return qp->cm_at;
}

static struct simqp_item *message_new(const struct simqp_qp *qp,
				      enum simqp_kind kind, const void *private,
				      size_t length)
{
	struct simqp_item *it = simqp_item_new(kind);

	it->from = qp->id;
	if (length)
		memcpy(it->private, private, length);
	return it;
}

static void tell_peer(struct simqp_qp *qp, enum simqp_kind kind)
{
	cm_answer(qp->out, qp->peer, message_new(qp, kind, NULL, 0),
		  cm_arrival(qp, kind));
}

/* Sends a rejection over @w to the queue pair @id. */
static void tell_rejected(struct simqp_way *w, uint64_t id, int reason)
{
	struct simqp_item *it = simqp_item_new(SIMQP_REJ);

	it->status = reason;
	cm_answer(w, id, it,
		  simqp_now(w->fabric) + simqp_way_latency(w) +
			  simqp_way_link(w)->cm_latency);
}

static void send_req(struct simqp_qp *qp)
{
	struct simqp_item *it;

	if (way_loses(qp->out))
		return;
	if (!qp->out->dst->port) {
		/* a host without a listener rejects the request */
		tell_rejected(qp->in, qp->id, IB_CM_REJECT_NO_LISTENER);
		return;
	}
	it = message_new(qp, SIMQP_REQ, qp->private, IB_PRIVATE_REQUEST_SIZE);
	it->way = qp->out;
	it->src_port = qp->src_port;
	it->service = qp->port->conf.service;
	simqp_inbox_put(&qp->out->dst->port->inbox, it,
			cm_arrival(qp, SIMQP_REQ));
}

static void send_rep(struct simqp_qp *qp)
{
	cm_answer(
		qp->out, qp->peer,
		message_new(qp, SIMQP_REP, qp->private, IB_PRIVATE_ACCEPT_SIZE),
		cm_arrival(qp, SIMQP_REP));
}

static void arm_cm(struct simqp_qp *qp)
{
	simqp_arm(qp->loop, &qp->cm_timer,
		  simqp_now(qp->fabric) + qp->fabric->conf.cm_ns);
}

/* ---- ends ---- */

static void end(struct simqp_qp *qp)
{
	simqp_disarm(qp->loop, &qp->cm_timer);
	cm_move(qp, SIMQP_ENDED);
	simqp_qp_fail(qp, IB_WC_FLUSHED);
}

static void end_failed(struct simqp_qp *qp, int status)
{
	end(qp);
	events_of(qp)->failed(&qp->ib, status);
}

void simqp_cm_fail(struct simqp_qp *qp, int status)
{
	struct simqp_item *it = simqp_item_new(SIMQP_FAIL);

	it->status = status;
	simqp_inbox_put(&qp->inbox, it, simqp_now(qp->fabric));
}

/* Returns the passive queue pair for the request of the active queue pair @id,
 * which learns the id of the passive one only by the acceptance. */
static struct simqp_qp *find_asked(const struct simqp_port *port, uint64_t id)
{
	struct simqp_qp *qp;

	list_for_each_entry (qp, &port->qps, link)
		if (!qp->active && qp->peer == id)
			return qp;
	return NULL;
}

static void give_up_request(struct simqp_qp *qp)
{
	const struct simqp_port *port = qp->out->dst->port;
	const struct simqp_qp *asked = port ? find_asked(port, qp->id) : NULL;

	if (!asked)
		return;
	qp->peer = asked->id;
	tell_peer(qp, SIMQP_GONE);
}

void simqp_cm_leave(struct simqp_qp *qp)
{
	switch ((enum simqp_state)qp->cm.state) {
	case SIMQP_CONNECTING:
		give_up_request(qp);
		break;
	case SIMQP_REQUESTED:
		tell_rejected(qp->out, qp->peer, IB_CM_REJECT_CONSUMER);
		break;
	case SIMQP_ACCEPTED:
	case SIMQP_OPEN:
		tell_peer(qp, SIMQP_DREQ);
		break;
	case SIMQP_ENDED:
		return;
	default:
		break;
	}
	simqp_disarm(qp->loop, &qp->cm_timer);
	cm_move(qp, SIMQP_ENDED);
}

static void on_cm_timer(struct timer *t)
{
	struct simqp_qp *qp = container_of(t, struct simqp_qp, cm_timer);

	if (++qp->cm_tries >= qp->fabric->conf.cm_tries) {
		if (qp->cm.state == SIMQP_CONNECTING)
			give_up_request(qp);
		end_failed(qp, -ENETDOWN);
		return;
	}
	arm_cm(qp);
	if (qp->cm.state == SIMQP_CONNECTING)
		send_req(qp);
	else
		send_rep(qp);
}

/* ---- the active side ---- */

int simqp_resolve(struct ib_port *ib, unsigned int cpt,
		  const struct ulnet_nid *dst, void *user, struct ib_qp **qp_p)
{
	struct simqp_port *port = simqp_port(ib);
	struct simqp_item *it;
	struct simqp_qp *qp;
	uint16_t src_port;
	uint64_t ns = 1;
	int rc;

	BUG_ON(cpt >= ib->ni->cpts);
	loop_assert_owner(ib->ni->loops[cpt]);
	if (port->removed)
		return -ENODEV;
	rc = simqp_addr_fails(port->addr, SIMQP_CALL_RESOLVE);
	if (rc)
		return rc;
	src_port = simqp_src_port_get(port);
	if (!src_port)
		return -EADDRINUSE;
	qp = simqp_qp_new(port, cpt, SIMQP_RESOLVING);
	qp->ib.user = user;
	qp->active = true;
	qp->dst_nid = *dst;
	qp->src_port = src_port;
	port->usage.qps++;
	it = simqp_item_new(SIMQP_RESOLVED);
	it->status = port->addr->unresolve;
	port->addr->unresolve = 0;
	if (it->status == -ETIMEDOUT)
		ns = 2 * port->conf.resolve_ms * NSEC_PER_MSEC;
	simqp_inbox_put(&qp->inbox, it, simqp_now(port->fabric) + ns);
	*qp_p = &qp->ib;
	return 0;
}

static void on_resolved(struct simqp_qp *qp, int status)
{
	struct simqp_addr *src = qp->port->addr;
	struct simqp_addr *dst = simqp_addr_find(qp->fabric, &qp->dst_nid);

	if (!status && (!dst || dst->gone || src->down))
		status = -EHOSTUNREACH;
	if (status) {
		end_failed(qp, status);
		return;
	}
	qp->out = simqp_way_get(qp->fabric, src, dst);
	qp->in = simqp_way_get(qp->fabric, dst, src);
	cm_move(qp, SIMQP_READY);
	events_of(qp)->resolved(&qp->ib);
}

/* What connect() and accept() have in common: checks that the state is @from,
 * and keeps @private for the message. Returns 0 or -errno. */
static int begin_call(struct simqp_qp *qp, enum simqp_state from,
		      enum simqp_call call, const void *private, size_t length,
		      size_t max)
{
	int rc;

	loop_assert_owner(qp->loop);
	BUG_ON(!qp->created);
	if (qp->port->removed)
		return -ENODEV;
	if (qp->cm.state == SIMQP_ENDED)
		return -ENOTCONN;
	BUG_ON(qp->cm.state != from);
	if (length > max)
		return -EINVAL;
	rc = simqp_addr_fails(qp->port->addr, call);
	if (rc)
		return rc;
	if (length)
		memcpy(qp->private, private, length);
	return 0;
}

int simqp_connect(struct ib_qp *ib, const void *private, size_t length)
{
	struct simqp_qp *qp = simqp_qp(ib);
	int rc = begin_call(qp, SIMQP_READY, SIMQP_CALL_CONNECT, private,
			    length, IB_PRIVATE_REQUEST_SIZE);

	if (rc)
		return rc;
	cm_move(qp, SIMQP_CONNECTING);
	arm_cm(qp);
	send_req(qp);
	return 0;
}

static void on_rep(struct simqp_qp *qp, const struct simqp_item *it)
{
	if (qp->cm.state == SIMQP_OPEN)
		/* The last confirmation was lost: sends another one. */
		tell_peer(qp, SIMQP_RTU);
	if (qp->cm.state != SIMQP_CONNECTING)
		return;
	simqp_disarm(qp->loop, &qp->cm_timer);
	qp->peer = it->from;
	qp->fabric->stats.connected++;
	cm_move(qp, SIMQP_OPEN);
	tell_peer(qp, SIMQP_RTU);
	events_of(qp)->established(&qp->ib, it->private,
				   IB_PRIVATE_ACCEPT_SIZE);
}

static void on_rej(struct simqp_qp *qp, const struct simqp_item *it)
{
	if (qp->cm.state != SIMQP_CONNECTING)
		return;
	end(qp);
	events_of(qp)->rejected(&qp->ib, it->status, it->private,
				IB_PRIVATE_REJECT_SIZE);
}

/* ---- the passive side ---- */

void simqp_cm_on_req(struct simqp_port *port, struct simqp_item *it)
{
	struct simqp_way *back =
		simqp_way_get(port->fabric, it->way->dst, it->way->src);
	const struct ib_events *events = port->ib.events;
	struct simqp_item *request;
	struct simqp_qp *qp;
	int reason = port->addr->reject;

	if (find_asked(port, it->from))
		return; /* a repeated request */
	if (!port->listening || it->service != port->conf.service)
		reason = IB_CM_REJECT_NO_LISTENER;
	else
		port->addr->reject = 0;
	if (reason) {
		tell_rejected(back, it->from, reason);
		return;
	}
	qp = simqp_qp_new(port,
			  events->request_cpt(&port->ib, it->private,
					      IB_PRIVATE_REQUEST_SIZE),
			  SIMQP_PENDING);
	qp->dst_nid = back->dst->nid;
	qp->peer = it->from;
	qp->out = back;
	qp->in = it->way;
	request = message_new(qp, SIMQP_REQUEST, it->private,
			      IB_PRIVATE_REQUEST_SIZE);
	request->src_port = it->src_port;
	simqp_inbox_put(&qp->inbox, request, simqp_now(port->fabric));
}

static void cm_on_request(struct simqp_qp *qp, const struct simqp_item *it)
{
	struct ib_source from = { .nid = qp->port->addr->nid,
				  .port = it->src_port };

	/* a CM knows addresses, but no nets */
	memcpy(from.nid.addr, qp->dst_nid.addr, sizeof(from.nid.addr));
	cm_move(qp, SIMQP_REQUESTED);
	qp->port->usage.qps++;
	events_of(qp)->request(&qp->port->ib, &qp->ib, &from, it->private,
			       IB_PRIVATE_REQUEST_SIZE);
}

void simqp_cm_reject_pending(struct simqp_port *port)
{
	struct simqp_qp *qp, *next;

	list_for_each_entry_safe (qp, next, &port->qps, link) {
		if (qp->cm.state != SIMQP_PENDING)
			continue;
		tell_rejected(qp->out, qp->peer, IB_CM_REJECT_NO_LISTENER);
		simqp_qp_free(qp);
	}
}

int simqp_accept(struct ib_qp *ib, const void *private, size_t length)
{
	struct simqp_qp *qp = simqp_qp(ib);
	int rc = begin_call(qp, SIMQP_REQUESTED, SIMQP_CALL_ACCEPT, private,
			    length, IB_PRIVATE_ACCEPT_SIZE);

	if (rc)
		return rc;
	cm_move(qp, SIMQP_ACCEPTED);
	arm_cm(qp);
	send_rep(qp);
	return 0;
}

void simqp_reject(struct ib_qp *ib, const void *private, size_t length)
{
	struct simqp_qp *qp = simqp_qp(ib);
	struct simqp_item *it;

	loop_assert_owner(qp->loop);
	BUG_ON(qp->active || length > IB_PRIVATE_REJECT_SIZE);
	if (qp->cm.state == SIMQP_ENDED)
		return;
	BUG_ON(qp->cm.state != SIMQP_REQUESTED);
	it = message_new(qp, SIMQP_REJ, private, length);
	it->status = IB_CM_REJECT_CONSUMER;
	cm_answer(qp->out, qp->peer, it, cm_arrival(qp, SIMQP_REJ));
	end(qp);
}

static void on_rtu(struct simqp_qp *qp)
{
	if (qp->cm.state != SIMQP_ACCEPTED)
		return;
	simqp_disarm(qp->loop, &qp->cm_timer);
	cm_move(qp, SIMQP_OPEN);
	events_of(qp)->established(&qp->ib, NULL, 0);
}

/* ---- both sides ---- */

static void cm_on_gone(struct simqp_qp *qp)
{
	if (qp->cm.state == SIMQP_PENDING)
		simqp_qp_free(qp);
	else if (qp->cm.state == SIMQP_REQUESTED ||
		 qp->cm.state == SIMQP_ACCEPTED)
		end_failed(qp, -ECONNRESET);
}

static void on_dreq(struct simqp_qp *qp)
{
	if (qp->cm.state == SIMQP_OPEN) {
		cm_move(qp, SIMQP_LEFT);
		events_of(qp)->disconnected(&qp->ib);
	} else if (qp->cm.state == SIMQP_CONNECTING ||
		   qp->cm.state == SIMQP_ACCEPTED) {
		end_failed(qp, -ECONNRESET);
	}
}

void simqp_cm_on_item(struct simqp_qp *qp, struct simqp_item *it)
{
	if (qp->cm.state == SIMQP_ENDED)
		return;
	switch (it->kind) {
	case SIMQP_RESOLVED:
		on_resolved(qp, it->status);
		break;
	case SIMQP_REQUEST:
		cm_on_request(qp, it);
		break;
	case SIMQP_REP:
		on_rep(qp, it);
		break;
	case SIMQP_RTU:
		on_rtu(qp);
		break;
	case SIMQP_REJ:
		on_rej(qp, it);
		break;
	case SIMQP_DREQ:
		on_dreq(qp);
		break;
	case SIMQP_GONE:
		cm_on_gone(qp);
		break;
	default:
		end_failed(qp, it->status);
		break;
	}
}
