/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/conn_priv.h"

#include <errno.h>

#include "lnd/o2iblnd/calc.h"

/* ns: the least time that a peer has to answer a connect request. */
#define ANSWER_MIN (5 * NSEC_PER_SEC)

#define CLOSES FSM_TO(IB_CONN_CLOSING)

const struct fsm_state ib_conn_states[IB_CONN_STATES] = {
	[IB_CONN_NEW] = { "new",
			  FSM_TO(IB_CONN_RESOLVING) | FSM_TO(IB_CONN_WAITING) },
	[IB_CONN_RESOLVING] = { "resolving",
				FSM_TO(IB_CONN_CONNECTING) | CLOSES },
	[IB_CONN_CONNECTING] = { "connecting", FSM_TO(IB_CONN_OPEN) | CLOSES },
	[IB_CONN_WAITING] = { "waiting", FSM_TO(IB_CONN_OPEN) | CLOSES },
	[IB_CONN_OPEN] = { "open", CLOSES },
	[IB_CONN_CLOSING] = { "closing", FSM_TO(IB_CONN_DRAINING) },
	[IB_CONN_DRAINING] = { "draining", FSM_TO(IB_CONN_DEAD) },
	[IB_CONN_DEAD] = { "dead", 0 },
};

static const struct ib_verbs *verbs_of(const struct ib_conn *conn)
{
	return conn->set->port->verbs;
}

static uint64_t now_of(const struct ib_conn *conn)
{
	return loop_now(conn->set->loop);
}

const char *ib_wc_status_name(enum ib_wc_status status)
{
	static const char *const names[IB_WC_STATUSES] = {
		[IB_WC_OK] = "OK",
		[IB_WC_FLUSHED] = "flushed",
		[IB_WC_SILENT] = "no acknowledgement",
		[IB_WC_NOT_READY] = "the peer has no receive posted",
		[IB_WC_REMOTE_ACCESS] = "the peer refuses access to memory",
		[IB_WC_REMOTE_ERROR] = "error at the peer",
		[IB_WC_LOCAL_ERROR] = "local error",
	};

	return (unsigned int)status < IB_WC_STATUSES ? names[status]
						     : "unknown";
}

/* ---- timer ---- */

/* Do messages wait for credits, while no work request is posted whose failure
 * would show that the peer is gone? After some time a NOOP, which costs no
 * credit, tests that. */
static bool lacks_credits(const struct ib_conn *conn)
{
	return !conn->ncalls && conn->queued;
}

static uint64_t probe_at(const struct ib_conn *conn)
{
	const struct ib_conn_set *set = conn->set;
	uint64_t min = set->conf->silence.min;

	return MAX(conn->sent_at, conn->heard_at) +
	       (min ? min : set->timeout / 4);
}

/* Returns when the timer must fire, ns. The earliest deadline of a transmit is
 * not known, since transmits are not sorted: all are looked at four times per
 * time-out. */
static uint64_t conn_next_look(const struct ib_conn *conn)
{
	const struct ib_conn_set *set = conn->set;
	uint64_t at = TIME_NEVER;

	switch (conn->fsm.state) {
	case IB_CONN_CONNECTING:
		return conn->sent_at + MAX(ANSWER_MIN, set->timeout / 4);
	case IB_CONN_WAITING:
		return conn->sent_at + set->timeout;
	case IB_CONN_OPEN:
		break;
	default:
		return TIME_NEVER;
	}
	if (!list_empty(&conn->all) || conn->keepalive)
		at = now_of(conn) + set->timeout / 4;
	if (set->conf->silence.min && conn->ncalls)
		at = MIN(at,
			 now_of(conn) + silence_period(&set->conf->silence));
	if (lacks_credits(conn) && !conn->keepalive)
		at = MIN(at, probe_at(conn));
	if (set->conf->keepalive && !conn->keepalive)
		at = MIN(at, conn->sent_at + set->conf->keepalive);
	return at;
}

void ib_conn_arm(struct ib_conn *conn)
{
	uint64_t at = conn_next_look(conn);

	if (at == TIME_NEVER ||
	    (timer_armed(&conn->timer) && conn->timer.at <= at))
		return;
	loop_timer_arm(conn->set->loop, &conn->timer, at);
}

static bool is_overdue(const struct ib_conn *conn, uint64_t now)
{
	const struct ib_tx *tx;

	list_for_each_entry (tx, &conn->all, all)
		if (tx->fsm.state != IB_TX_DONE && tx->deadline <= now)
			return true;
	return false;
}

static void conn_look_for_silence(struct ib_conn *conn, uint64_t now)
{
	const struct ib_conn_set *set = conn->set;
	struct silence_law law = set->conf->silence;

	if (!law.max)
		law.max = set->timeout;
	conn->acks.in_flight = conn->ncalls;
	conn->acks.ack_age = now - conn->heard_at;
	if (!conn->ncalls) {
		conn->silence = (struct silence){ 0 };
		conn->told_silent = false;
	} else if (!silence_look(&conn->silence, &law, now, &conn->acks)) {
		conn->told_silent = false;
	} else if (!conn->told_silent) {
		conn->told_silent = true;
		set->user->silent(conn, conn->silence.quiet);
	}
}

static void look_open(struct ib_conn *conn, uint64_t now)
{
	uint64_t keepalive = conn->set->conf->keepalive;

	if (is_overdue(conn, now)) {
		ib_conn_fail(conn, -ETIMEDOUT, IB_BLAME_DEADLINE,
			     "a message was not done in time");
		return;
	}
	conn_look_for_silence(conn, now);
	if ((keepalive && now - conn->sent_at >= keepalive) ||
	    (lacks_credits(conn) && now >= probe_at(conn)))
		conn->keepalive = true;
	ib_conn_send(conn);
	ib_conn_arm(conn);
}

static void conn_on_timer(struct timer *t)
{
	struct ib_conn *conn = container_of(t, struct ib_conn, timer);
	uint64_t now = now_of(conn);

	if (conn->fsm.state == IB_CONN_OPEN)
		look_open(conn, now);
	else if (now >= conn_next_look(conn))
		ib_conn_fail(conn, conn->active ? -ENETDOWN : -ETIMEDOUT,
			     IB_BLAME_DEADLINE,
			     "it was not established in time");
	else
		ib_conn_arm(conn);
	ib_conn_settle(conn);
}

/* ---- ending ---- */

void ib_conn_defer(struct ib_conn *conn)
{
	if (conn->deferred)
		return;
	conn->deferred = true;
	loop_defer(conn->set->loop, &conn->work);
}

static void log_end(const struct ib_conn *conn, int status, const char *why)
{
	char nid[LNET_NIDSTR_SIZE];

	if (status == -ESHUTDOWN || !why)
		return;
	lnet_nid_format(&conn->terms.peer.nid, nid, sizeof(nid));
	if (conn->fsm.state == IB_CONN_OPEN && status)
		log_warn_limited(&conn->set->log_limit, now_of(conn), "o2iblnd",
				 "peer %s: connection ended: %s: %s", nid, why,
				 strerror(-status));
	else
		log_debug("o2iblnd", "peer %s: no connection: %s%s%s", nid, why,
			  status ? ": " : "", status ? strerror(-status) : "");
}

void ib_conn_fail(struct ib_conn *conn, int status, enum ib_blame blame,
		  const char *why)
{
	if (conn->fsm.state >= IB_CONN_CLOSING)
		return;
	log_end(conn, status, why);
	conn->status = status;
	conn->blame = blame;
	fsm_move(&conn->fsm, ib_conn_states, IB_CONN_CLOSING);
	loop_timer_cancel(conn->set->loop, &conn->timer);
	if (conn->created)
		verbs_of(conn)->disconnect(conn->qp);
	ib_conn_defer(conn);
}

void ib_conn_close(struct ib_conn *conn, int status)
{
	enum ib_blame blame = IB_BLAME_SELF;

	switch (status) {
	case -ESHUTDOWN:
		blame = IB_BLAME_SHUTDOWN;
		break;
	case -ENETDOWN:
	case -ENODEV:
		blame = IB_BLAME_LINK;
		break;
	case -ETIMEDOUT:
		blame = IB_BLAME_DEADLINE;
		break;
	case -EPROTO:
	case -ESTALE:
		blame = IB_BLAME_PEER;
		break;
	default:
		break;
	}
	ib_conn_fail(conn, status, blame, NULL);
}

/* Tells the user that the connection has ended. */
static void tell_closed(struct ib_conn *conn)
{
	const struct ib_conn_user *user = conn->set->user;

	fsm_move(&conn->fsm, ib_conn_states, IB_CONN_DRAINING);
	ib_conn_drop_held(conn);
	if (conn->established)
		user->closed(conn, conn->status);
	else
		user->refused(conn, conn->status, &conn->refusal);
	ib_conn_end_txs(conn);
}

void ib_conn_free(struct ib_conn *conn)
{
	struct ib_rx *rx;

	while ((rx = list_pop(&conn->extras, struct ib_rx, extra)))
		free(rx);
	free(conn->rx_bufs);
	free(conn->rxs);
	free(conn->calls);
	free(conn);
}

static out_of_line void conn_destroy(struct ib_conn *conn)
{
	struct ib_conn_set *set = conn->set;

	fsm_move(&conn->fsm, ib_conn_states, IB_CONN_DEAD);
	verbs_of(conn)->destroy(conn->qp);
	conn->qp = NULL;
	ib_conn_free_receives(conn);
	ib_conn_free_buffers(conn);
	set->conns--;
	/* gone() may answer the last message that was shown to the user, which
	 * frees @conn; the raised count keeps it until gone() returns. */
	conn->shown++;
	set->user->gone(conn);
	ib_conn_unshow(conn);
}

void ib_conn_tell(struct ib_conn *conn)
{
	struct ib_tx *tx;

	while ((tx = list_pop(&conn->finished, struct ib_tx, link))) {
		list_del(&tx->all);
		if (!tx->own)
			conn->set->user->done(tx);
		ib_tx_put(tx);
	}
}

void ib_conn_settle_closed(struct ib_conn *conn)
{
	/* closed() or refused() is called before any done(), and is still to
	 * come. */
	if (conn->fsm.state == IB_CONN_CLOSING)
		return;
	ib_conn_tell(conn);
	if (conn->fsm.state == IB_CONN_DRAINING && !conn->deferred &&
	    !conn->receives && !conn->ncalls) {
		BUG_ON(!list_empty(&conn->all));
		conn_destroy(conn);
	}
}

static void on_work(struct work *w)
{
	struct ib_conn *conn = container_of(w, struct ib_conn, work);

	conn->deferred = false;
	if (conn->fsm.state == IB_CONN_CLOSING)
		tell_closed(conn);
	else if (conn->fsm.state == IB_CONN_OPEN)
		ib_conn_show_blocked(conn);
	ib_conn_settle(conn);
}

/* ---- connecting and accepting ---- */

static struct ib_conn *conn_new(struct ib_conn_set *set,
				const struct ib_request *terms, void *user)
{
	struct ib_conn *conn = calloc(1, sizeof(*conn));

	BUG_ON(!terms->depth || terms->depth > IB_DEPTH_MAX || !terms->frags);
	if (!conn)
		return NULL;
	conn->calls_max = MAX(set->conf->concurrent_sends, 1u);
	conn->calls = calloc(conn->calls_max, sizeof(*conn->calls));
	if (!conn->calls) {
		free(conn);
		return NULL;
	}
	conn->set = set;
	conn->terms = *terms;
	conn->user = user;
	conn->work.fn = on_work;
	timer_init(&conn->timer, conn_on_timer);
	for (unsigned int i = 0; i < IB_QUEUES; i++)
		list_init(&conn->queues[i]);
	list_init(&conn->waiting);
	list_init(&conn->all);
	list_init(&conn->finished);
	list_init(&conn->early);
	list_init(&conn->blocked);
	list_init(&conn->spares);
	list_init(&conn->extras);
	return conn;
}

static void qp_conf(const struct ib_conn *conn, unsigned int depth, bool small,
		    struct ib_qp_conf *conf)
{
	uint32_t max = conn->set->port->limits.max_qp_wr;

	*conf = (struct ib_qp_conf){
		.max_send_wr = MAX(depth * (1 + CALC_USER_WRITES),
				   small ? 0 : CALC_USER_WRS_MIN),
		.max_recv_wr = IB_RECEIVES(depth),
		.max_send_sge = conn->send_sge,
		.max_inline = conn->set->conf->max_inline,
	};
	if (max)
		conf->max_send_wr = MIN(conf->max_send_wr, max);
}

/* Makes the queues and receives. If memory is short, tries smaller depths. */
static int conn_create(struct ib_conn *conn)
{
	const struct ib_limits *limits = &conn->set->port->limits;
	unsigned int depth = conn->terms.depth;
	struct ib_qp_conf conf;
	int rc;

	conn->send_sge = MIN(MAX(conn->set->conf->send_sge, 1u),
			     (unsigned int)IB_WRITE_SGES);
	if (limits->max_sge)
		conn->send_sge = MIN(conn->send_sge, limits->max_sge);
	if (limits->max_qp_wr && IB_RECEIVES(depth) > limits->max_qp_wr)
		depth = MAX((limits->max_qp_wr - IB_NOOPS_MAX) / 2, 1u);
	qp_conf(conn, depth, false, &conf);
	rc = verbs_of(conn)->create(conn->qp, &conf);
	/* One registration of users' memory is larger than a queue pair, so
	 * evicting one may be enough. */
	if (rc == -ENOMEM && ib_regcache_evict(conn->set->regcache))
		rc = verbs_of(conn)->create(conn->qp, &conf);
	for (; rc == -ENOMEM && depth; depth--) {
		qp_conf(conn, depth, true, &conf);
		rc = verbs_of(conn)->create(conn->qp, &conf);
		if (!rc)
			break;
	}
	if (rc)
		return rc;
	conn->terms.depth = (uint16_t)depth;
	conn->created = true;
	conn->slots = conn->max_slots = conf.max_send_wr;
	return ib_conn_make_receives(conn);
}

/* Encodes the private data of a request or of its acceptance. */
static size_t encode_params(const struct ib_conn *conn, enum ib_msg_type type,
			    void *buf)
{
	struct ib_envelope env = { IB_VERSION_2, conn->set->self,
				   conn->terms.peer };
	struct ib_conn_params params = { conn->terms.depth, conn->terms.frags,
					 IB_MSG_SIZE_MAX };
	struct ib_hdr hdr = ib_hdr_of(&env);
	size_t n = ib_conn_encode(&hdr, type, &params, buf);

	if (conn->set->conf->cksum)
		ib_msg_set_cksum(buf);
	return n;
}

int ib_conn_connect(struct ib_conn_set *set, const struct ib_request *request,
		    void *user, struct ib_conn **conn_p)
{
	struct ib_conn *conn = conn_new(set, request, user);
	int rc;

	if (!conn)
		return -ENOMEM;
	fsm_move(&conn->fsm, ib_conn_states, IB_CONN_RESOLVING);
	conn->active = true;
	rc = set->port->verbs->resolve(set->port, set->cpt, &request->peer.nid,
				       conn, &conn->qp);
	if (rc) {
		ib_conn_free(conn);
		return rc;
	}
	set->conns++;
	*conn_p = conn;
	return 0;
}

/* Posts the receives, then requests or accepts the connection. Returns 0 or
 * -errno; after an error, some receives may be posted. */
static int conn_start(struct ib_conn *conn)
{
	uint8_t buf[IB_CONN_SIZE];
	int rc = ib_conn_post_receives(conn);

	if (rc)
		return rc;
	if (conn->active)
		return verbs_of(conn)->connect(
			conn->qp, buf,
			encode_params(conn, IB_MSG_CONNREQ, buf));
	return verbs_of(conn)->accept(conn->qp, buf,
				      encode_params(conn, IB_MSG_CONNACK, buf));
}

int ib_conn_accept(struct ib_conn_set *set, struct ib_qp *qp,
		   const struct ib_request *request, void *user,
		   struct ib_conn **conn_p)
{
	struct ib_conn *conn = conn_new(set, request, user);
	int rc;

	if (!conn)
		return -ENOMEM;
	fsm_move(&conn->fsm, ib_conn_states, IB_CONN_WAITING);
	conn->qp = qp;
	conn->sent_at = now_of(conn);
	rc = conn_create(conn);
	if (rc) {
		ib_conn_free(conn);
		return rc;
	}
	qp->user = conn;
	set->conns++;
	*conn_p = conn;
	rc = conn_start(conn);
	if (rc)
		ib_conn_fail(conn, rc, IB_BLAME_SELF, "it cannot be accepted");
	else
		ib_conn_arm(conn);
	return 0;
}

void ib_conn_on_resolved(struct ib_qp *qp)
{
	struct ib_conn *conn = qp->user;
	int rc;

	if (conn->fsm.state != IB_CONN_RESOLVING)
		return;
	rc = conn_create(conn);
	if (!rc) {
		fsm_move(&conn->fsm, ib_conn_states, IB_CONN_CONNECTING);
		conn->sent_at = now_of(conn);
		rc = conn_start(conn);
	}
	if (rc)
		ib_conn_fail(conn, rc, IB_BLAME_SELF,
			     "no queue pair can be made");
	else
		ib_conn_arm(conn);
	ib_conn_settle(conn);
}

/* Takes over what the peer has agreed to in its answer. Returns false if the
 * answer is not valid, and the connection was ended. */
static bool read_answer(struct ib_conn *conn, const void *private,
			size_t length)
{
	const struct ulnet_nid peer = conn->terms.peer.nid;
	const struct ib_request asked = conn->terms;
	const char *why;
	int rc = ib_admit_answer(&conn->set->self, &peer, &asked, private,
				 length, &conn->terms, &why);

	if (rc)
		ib_conn_fail(conn, rc, IB_BLAME_PEER, why);
	return !rc;
}

/* Prepares the headers of messages in both directions. */
static void write_hdrs(struct ib_conn *conn)
{
	struct ib_envelope env = { IB_VERSION_2, conn->set->self,
				   conn->terms.peer };

	conn->out = ib_hdr_of(&env);
	env.src = conn->terms.peer;
	env.dst = conn->set->self;
	conn->in = ib_hdr_of(&env);
}

static void conn_open(struct ib_conn *conn)
{
	const struct ib_conn_conf *conf = conn->set->conf;
	unsigned int depth = conn->terms.depth;

	ib_credit_init(&conn->credit, depth,
		       ib_credit_hiw(depth, conf->peer_credits,
				     conf->peer_credits_hiw));
	fsm_move(&conn->fsm, ib_conn_states, IB_CONN_OPEN);
	loop_timer_cancel(conn->set->loop, &conn->timer);
	write_hdrs(conn);
	conn->established = true;
	conn->sent_at = conn->heard_at = now_of(conn);
	conn->set->user->established(conn);
	ib_conn_take_early(conn);
	ib_conn_pump(conn);
	ib_conn_arm(conn);
}

void ib_conn_on_established(struct ib_qp *qp, const void *private,
			    size_t length)
{
	struct ib_conn *conn = qp->user;

	if (conn->fsm.state == IB_CONN_WAITING ||
	    (conn->fsm.state == IB_CONN_CONNECTING &&
	     read_answer(conn, private, length)))
		conn_open(conn);
	ib_conn_settle(conn);
}

void ib_conn_on_rejected(struct ib_qp *qp, int reason, const void *private,
			 size_t length)
{
	struct ib_conn *conn = qp->user;
	struct ib_refusal *r = &conn->refusal;
	int status = -ECONNRESET;
	const char *why = "rejected";

	if (conn->fsm.state >= IB_CONN_OPEN) {
		ib_conn_fail(conn, -ECONNRESET, IB_BLAME_PEER, why);
		ib_conn_settle(conn);
		return;
	}
	r->cm_reason = reason;
	if (reason == IB_CM_REJECT_NO_LISTENER)
		status = -ECONNREFUSED;
	else if (reason == IB_CM_REJECT_CONSUMER &&
		 !ib_reject_decode(private, length, &r->reject, &why))
		r->has_reject = true;
	if (r->has_reject)
		why = ib_reject_name(r->reject.reason);
	ib_conn_fail(conn, conn->active ? status : -ECONNRESET, IB_BLAME_PEER,
		     why);
	ib_conn_settle(conn);
}

void ib_conn_on_failed(struct ib_qp *qp, int status)
{
	struct ib_conn *conn = qp->user;
	enum ib_blame blame = IB_BLAME_PEER;

	if (status == -ENODEV)
		blame = IB_BLAME_LINK;
	else if (status == -EIO)
		blame = IB_BLAME_SELF;
	ib_conn_fail(conn, status, blame, "the queue pair has failed");
	ib_conn_settle(conn);
}

void ib_conn_on_disconnected(struct ib_qp *qp)
{
	struct ib_conn *conn = qp->user;

	ib_conn_fail(conn, conn->fsm.state == IB_CONN_OPEN ? 0 : -ECONNRESET,
		     IB_BLAME_PEER, "the peer has disconnected");
	ib_conn_settle(conn);
}
