/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/o2iblnd/node_rig.h"

#include "lnd/o2iblnd/credit.h"
#include "sim/sim_priv.h"

/* as a correct peer of this depth has them */
#define RECEIVES   IB_RECEIVES(RAW_PEER_DEPTH)
#define SENDS_AT   ((size_t)RECEIVES * IB_MSG_SIZE_MAX)
#define CONN_BYTES (SENDS_AT + (size_t)RAW_PEER_SLOTS * IB_MSG_SIZE_MAX)

/* ---- nodes ---- */

static int node_start(void *arg, unsigned int index, struct lnet *node)
{
	struct node_rig *r = arg;
	struct ulnet_ni_conf conf = {
		.nid = r->id[index].nid,
		.tunables = r->tunables,
		.ntunables = r->ntunables,
	};

	return lnet_ni_add(node, &conf);
}

static struct ulnet_id id_at(unsigned int host)
{
	return (struct ulnet_id){
		lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 0), 0x0a000000 + host),
		LNET_PID_LUSTRE,
	};
}

void node_rig_open(struct node_rig *r, unsigned int n, unsigned int cpts,
		   const struct ulnet_conf *conf)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct simqp_link link = { .latency = 2000 };

	cr_assert_leq(n, RIG_NODES);
	cr_assert_eq(lnet_sim_new(1, cpts, &r->sim), 0);
	cr_assert_eq(sim_verbs(r->sim, NULL, &r->fabric), 0);
	simqp_link_set(r->fabric, &any, &any, &link);
	r->nnodes = n;
	for (unsigned int i = 0; i < n; i++) {
		r->id[i] = id_at(1 + i);
		cr_assert_eq(plain_node(r->sim, "", conf, node_start, r),
			     (int)i);
		r->node[i] = lnet_sim_node(r->sim, i);
	}
}

void node_rig_run(struct node_rig *r, uint64_t ns)
{
	lnet_sim_run(r->sim, ns);
}

void node_rig_put(struct node_rig *r, unsigned int from, struct ulnet_id to,
		  void *bytes, uint32_t length, uint64_t hdr_data,
		  struct seen *seen)
{
	struct ulnet_md umd = md_of(bytes, length, 0, seen);
	struct ulnet_md_handle md;

	umd.threshold = 1;
	md = bind_md(r->node[from], &umd);
	cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, to, PORTAL, BITS,
			     0, hdr_data),
		     0);
}

void node_rig_get(struct node_rig *r, unsigned int from, struct ulnet_id to,
		  void *bytes, uint32_t length, struct seen *seen)
{
	struct ulnet_md umd = md_of(bytes, length, 0, seen);
	struct ulnet_md_handle md;

	umd.threshold = 2; /* GET and REPLY */
	md = bind_md(r->node[from], &umd);
	cr_assert_eq(LNetGet(LNET_NID_ANY, md, to, PORTAL, BITS, 0), 0);
}

/* ---- a raw peer's queue pairs ---- */

static const struct ib_verbs *verbs(void)
{
	return simqp_verbs();
}

static struct raw_peer_conn *conn_new(struct raw_peer *s, struct ib_qp *qp)
{
	struct raw_peer_conn *c = calloc(1, sizeof(*c));

	cr_assert(c);
	c->s = s;
	c->qp = qp;
	c->memory = calloc(1, CONN_BYTES);
	cr_assert(c->memory);
	cr_assert_eq(
		verbs()->reg(s->port, c->memory, CONN_BYTES, false, &c->mr), 0);
	list_add_tail(&s->conns, &c->link);
	return c;
}

static int conn_listen(struct raw_peer_conn *c, unsigned int slot)
{
	struct ib_sge sge = { c->memory + (size_t)slot * IB_MSG_SIZE_MAX,
			      IB_MSG_SIZE_MAX, c->mr->lkey };
	int rc = verbs()->post_recv(c->qp, &sge, (void *)(uintptr_t)slot);

	c->receives += !rc;
	return rc;
}

void raw_peer_listen(struct raw_peer_conn *c, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(conn_listen(c, i), 0);
}

static void conn_create(struct raw_peer_conn *c)
{
	const struct ib_qp_conf conf = { 4 * RAW_PEER_SLOTS, RECEIVES, 2, 0 };

	cr_assert_eq(verbs()->create(c->qp, &conf), 0);
	c->created = true;
	raw_peer_listen(c, RECEIVES);
}

static size_t conn_hello(struct raw_peer_conn *c, enum ib_msg_type type,
			 uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct ib_conn_params params = { RAW_PEER_DEPTH, 256, IB_MSG_SIZE_MAX };
	size_t n = ib_conn_encode(&head, type, &params, bytes);

	if (c->s->hello)
		c->s->hello(bytes);
	return n;
}

static unsigned int on_request_cpt(struct ib_port *port, const void *private,
				   size_t length)
{
	(void)port;
	(void)private;
	(void)length;
	return 0;
}

static void on_request(struct ib_port *port, struct ib_qp *qp,
		       const struct ib_source *from, const void *private,
		       size_t length)
{
	struct raw_peer *s = port->user;
	struct raw_peer_conn *c;
	uint8_t bytes[IB_CONN_SIZE];
	struct ib_msg msg;
	const char *why;

	(void)from;
	cr_assert_eq(ib_msg_decode(private, length, &msg, &why), 0);
	if (s->answer == RAW_PEER_REJECTS) {
		verbs()->reject(qp, NULL, 0);
		verbs()->destroy(qp);
		return;
	}
	c = conn_new(s, qp);
	qp->user = c;
	c->peer = ib_msg_env(&msg).src;
	if (s->answer == RAW_PEER_IS_MUTE)
		return;
	conn_create(c);
	(void)verbs()->accept(qp, bytes, conn_hello(c, IB_MSG_CONNACK, bytes));
}

static void on_resolved(struct ib_qp *qp)
{
	struct raw_peer_conn *c = qp->user;
	uint8_t bytes[IB_CONN_SIZE];

	conn_create(c);
	(void)verbs()->connect(qp, bytes, conn_hello(c, IB_MSG_CONNREQ, bytes));
}

static void on_established(struct ib_qp *qp, const void *private, size_t length)
{
	struct raw_peer_conn *c = qp->user;
	struct ib_msg msg;
	const char *why;

	c->established++;
	if (!private)
		return;
	cr_assert_eq(ib_msg_decode(private, length, &msg, &why), 0);
	c->peer = ib_msg_env(&msg).src;
}

static void on_rejected(struct ib_qp *qp, int reason, const void *private,
			size_t length)
{
	struct raw_peer_conn *c = qp->user;
	const char *why;

	(void)reason;
	c->rejected++;
	c->said = !ib_reject_decode(private, length, &c->reject, &why);
}

static void on_failed(struct ib_qp *qp, int status)
{
	(void)status;
	((struct raw_peer_conn *)qp->user)->failed++;
}

static void on_disconnected(struct ib_qp *qp)
{
	((struct raw_peer_conn *)qp->user)->disconnected++;
}

/* a message that the test answers with a PUT_ACK needs less */
static bool is_owed_for(uint8_t type)
{
	return type == IB_MSG_IMMEDIATE || type == IB_MSG_GET_REQ ||
	       type == IB_MSG_PUT_DONE;
}

static void on_received(struct ib_qp *qp, void *cookie, uint32_t length,
			enum ib_wc_status status)
{
	struct raw_peer_conn *c = qp->user;
	unsigned int slot = (unsigned int)(uintptr_t)cookie;
	struct raw_peer_said *said = &c->heard[c->nheard % RAW_PEER_HEARD];
	struct ib_msg msg;
	const char *why;

	c->receives--;
	if (status != IB_WC_OK)
		return;
	memcpy(said->bytes, c->memory + (size_t)slot * IB_MSG_SIZE_MAX, length);
	said->length = length;
	c->nheard++;
	cr_assert_eq(ib_msg_decode(said->bytes, length, &msg, &why), 0, "%s",
		     why);
	c->owed += is_owed_for(msg.type);
	if (!c->s->is_deaf)
		(void)conn_listen(c, slot);
}

static void on_sent(struct ib_qp *qp, void *cookie, enum ib_wc_status status)
{
	(void)cookie;
	(void)status;
	((struct raw_peer_conn *)qp->user)->sends--;
}

static void on_port_changed(struct ib_port *port, bool up, bool removed,
			    const char *why)
{
	(void)port;
	(void)up;
	(void)removed;
	(void)why;
}

static const struct ib_events events = {
	.request_cpt = on_request_cpt,
	.request = on_request,
	.resolved = on_resolved,
	.established = on_established,
	.rejected = on_rejected,
	.failed = on_failed,
	.disconnected = on_disconnected,
	.received = on_received,
	.sent = on_sent,
	.port_changed = on_port_changed,
};

/* ---- raw peers ---- */

struct raw_peer *raw_peer_new(struct node_rig *r)
{
	const struct ib_port_conf conf = { .service = 987,
					   .listen = true,
					   .privileged = true,
					   .tos = -1,
					   .retry_count = 5,
					   .rnr_retry_count = 6,
					   .resolve_ms = 1000 };
	struct raw_peer *s = &r->raw_peers[r->nraw_peers];
	struct env *env;

	cr_assert_lt(r->nraw_peers, RAW_PEERS);
	*s = (struct raw_peer){ .rig = r };
	s->self = (struct ib_end){ id_at(1000 + r->nraw_peers).nid,
				   77 + r->nraw_peers };
	r->nraw_peers++;
	list_init(&s->conns);
	cr_assert_eq(env_sim_env(r->sim->env, &env), 0);
	cr_assert_eq(loop_new(env, &s->loops[0]), 0);
	s->ni.nid = s->self.nid;
	s->ni.cpts = 1;
	s->ni.loops = s->loops;
	s->ni.fabric = r->fabric;
	cr_assert_eq(verbs()->open(&s->ni, &conf, &events, s, &s->port, NULL),
		     0);
	s->memory = calloc(1, RAW_PEER_MEMORY);
	cr_assert(s->memory);
	cr_assert_eq(
		verbs()->reg(s->port, s->memory, RAW_PEER_MEMORY, true, &s->mr),
		0);
	return s;
}

struct ulnet_id raw_peer_id(const struct raw_peer *s)
{
	return (struct ulnet_id){ s->self.nid, LNET_PID_LUSTRE };
}

struct raw_peer_conn *raw_peer_ask(struct raw_peer *s, unsigned int n)
{
	struct raw_peer_conn *c = conn_new(s, NULL);

	c->peer.nid = s->rig->id[n].nid;
	cr_assert_eq(verbs()->resolve(s->port, 0, &c->peer.nid, c, &c->qp), 0);
	node_rig_run(s->rig, NSEC_PER_SEC);
	return c;
}

struct raw_peer_conn *raw_peer_connect(struct raw_peer *s, unsigned int n)
{
	struct raw_peer_conn *c = raw_peer_ask(s, n);

	cr_assert_eq(c->established, 1);
	return c;
}

struct raw_peer_conn *raw_peer_last(struct raw_peer *s)
{
	cr_assert(!list_empty(&s->conns));
	return list_entry(s->conns.prev, struct raw_peer_conn, link);
}

static void conn_disconnect(struct raw_peer_conn *c)
{
	if (c->created)
		verbs()->disconnect(c->qp);
}

static void conn_free(struct raw_peer_conn *c)
{
	cr_assert_eq(c->receives, 0);
	cr_assert_eq(c->sends, 0);
	verbs()->destroy(c->qp);
	verbs()->dereg(c->s->port, c->mr);
	list_del(&c->link);
	free(c->memory);
	free(c);
}

void raw_peer_hang_up(struct raw_peer_conn *c)
{
	conn_disconnect(c);
	node_rig_run(c->s->rig, 10 * MSEC);
	conn_free(c);
}

static void raw_peers_go(struct node_rig *r)
{
	struct raw_peer_conn *c;

	for (unsigned int i = 0; i < r->nraw_peers; i++) {
		r->raw_peers[i].answer = RAW_PEER_REJECTS;
		list_for_each_entry (c, &r->raw_peers[i].conns, link)
			conn_disconnect(c);
	}
	node_rig_run(r, NSEC_PER_SEC);
	for (unsigned int i = 0; i < r->nraw_peers; i++) {
		struct raw_peer *s = &r->raw_peers[i];

		while (!list_empty(&s->conns))
			conn_free(list_first(&s->conns, struct raw_peer_conn,
					     link));
		verbs()->dereg(s->port, s->mr);
		verbs()->close(s->port);
		free(s->memory);
	}
}

void node_rig_close(struct node_rig *r)
{
	raw_peers_go(r);
	node_rig_run(r, 300 * NSEC_PER_SEC);
	cr_assert_eq(lnet_sim_check(r->sim), 0);
	for (unsigned int i = 0; i < r->nraw_peers; i++)
		loop_free(r->raw_peers[i].loops[0]);
	cr_assert_eq(lnet_sim_free(r->sim), 0);
}

/* ---- what it says and hears ---- */

struct ib_hdr raw_peer_hdr(const struct raw_peer_conn *c)
{
	struct ib_envelope env = { IB_VERSION_2, c->s->self, c->peer };

	return ib_hdr_of(&env);
}

static struct ib_sge next_slot(struct raw_peer_conn *c, void *bytes,
			       size_t length)
{
	uint8_t *at = c->memory + SENDS_AT +
		      (size_t)(c->slot++ % RAW_PEER_SLOTS) * IB_MSG_SIZE_MAX;

	cr_assert_leq(length, IB_MSG_SIZE_MAX);
	cr_assert_lt(c->sends, RAW_PEER_SLOTS);
	if (!c->s->keeps_credits && c->owed) {
		ib_msg_set_credits(bytes, c->owed);
		c->owed = 0;
	}
	memcpy(at, bytes, length);
	return (struct ib_sge){ at, (uint32_t)length, c->mr->lkey };
}

int raw_peer_say(struct raw_peer_conn *c, void *bytes, size_t length)
{
	struct ib_sge sge = next_slot(c, bytes, length);
	struct ib_wr wr = { .type = IB_WR_SEND, .sge = &sge, .nsge = 1 };
	int rc = verbs()->post_send(c->qp, &wr, 1);

	c->sends += !rc;
	return rc;
}

int raw_peer_write(struct raw_peer_conn *c, uint64_t addr, uint32_t key,
		   uint32_t length, void *bytes, size_t n)
{
	struct ib_sge from = { c->s->memory, length, c->s->mr->lkey };
	struct ib_sge sge = next_slot(c, bytes, n);
	struct ib_wr wrs[] = {
		{ .type = IB_WR_WRITE,
		  .sge = &from,
		  .nsge = 1,
		  .remote_addr = addr,
		  .rkey = key },
		{ .type = IB_WR_SEND, .sge = &sge, .nsge = 1 },
	};
	int rc = verbs()->post_send(c->qp, wrs, 2);

	c->sends += !rc;
	return rc;
}

bool raw_peer_hears(struct raw_peer_conn *c, enum ib_msg_type type,
		    struct ib_msg *msg)
{
	const char *why;

	while (c->next < c->nheard) {
		struct raw_peer_said *said =
			&c->heard[c->next++ % RAW_PEER_HEARD];

		cr_assert_leq(c->nheard - c->next, RAW_PEER_HEARD);
		cr_assert_eq(
			ib_msg_decode(said->bytes, said->length, msg, &why), 0);
		if (msg->type == type)
			return true;
	}
	return false;
}

static struct lnet_hdr hdr_to(const struct raw_peer_conn *c)
{
	return (struct lnet_hdr){
		.dest_nid = c->peer.nid,
		.src_nid = c->s->self.nid,
		.dest_pid = LNET_PID_LUSTRE,
		.src_pid = LNET_PID_LUSTRE,
		.wmd = LNET_WIRE_NONE,
		.match_bits = BITS,
		.portal = PORTAL,
	};
}

struct lnet_hdr raw_peer_put_hdr(const struct raw_peer_conn *c, uint32_t length,
				 uint64_t hdr_data)
{
	struct lnet_hdr hdr = hdr_to(c);

	hdr.type = LNET_MSG_PUT;
	hdr.payload_length = length;
	hdr.hdr_data = hdr_data;
	return hdr;
}

struct lnet_hdr raw_peer_get_hdr(const struct raw_peer_conn *c, uint32_t length)
{
	struct lnet_hdr hdr = hdr_to(c);

	hdr.type = LNET_MSG_GET;
	hdr.wmd = (struct lnet_wire_handle){ 1, 2 };
	hdr.length = length;
	return hdr;
}

void raw_peer_immediate(struct raw_peer_conn *c, const struct lnet_hdr *hdr)
{
	struct ib_hdr head = raw_peer_hdr(c);
	uint8_t bytes[IB_MSG_SIZE_MAX] = { 0 };
	size_t n = ib_immediate_encode(&head, hdr->payload_length, bytes);

	hdr_encode(hdr, bytes + IB_LNET_OFFSET, LNET_HDR_SIZE);
	memset(bytes + IB_PAYLOAD_OFFSET, 'i', hdr->payload_length);
	cr_assert_eq(raw_peer_say(c, bytes, n), 0);
}

void raw_peer_put_req(struct raw_peer_conn *c, const struct lnet_hdr *hdr,
		      uint64_t cookie)
{
	struct ib_hdr head = raw_peer_hdr(c);
	uint8_t bytes[IB_MSG_SIZE_MAX];
	size_t n = ib_put_req_encode(&head, cookie, bytes);

	hdr_encode(hdr, bytes + IB_LNET_OFFSET, LNET_HDR_SIZE);
	cr_assert_eq(raw_peer_say(c, bytes, n), 0);
}

void raw_peer_get_req(struct raw_peer_conn *c, const struct lnet_hdr *hdr,
		      uint64_t cookie)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct ib_frag frag = { (uintptr_t)c->s->memory, hdr->length };
	struct ib_sink sink = { c->s->mr->rkey, 1, &frag };
	uint8_t bytes[IB_MSG_SIZE_MAX];
	size_t n = ib_get_req_encode(&head, cookie, &sink, bytes);

	hdr_encode(hdr, bytes + IB_LNET_OFFSET, LNET_HDR_SIZE);
	cr_assert_eq(raw_peer_say(c, bytes, n), 0);
}

void raw_peer_ack(struct raw_peer_conn *c, const struct ib_msg *msg,
		  uint64_t cookie, uint32_t length)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct ib_frag frag = { (uintptr_t)c->s->memory, length };
	struct ib_sink sink = { c->s->mr->rkey, 1, &frag };
	uint8_t bytes[IB_MSG_SIZE_MAX];
	size_t n = ib_put_ack_encode(&head, msg->cookie, cookie, &sink, bytes);

	cr_assert_eq(raw_peer_say(c, bytes, n), 0);
}

void raw_peer_done(struct raw_peer_conn *c, enum ib_msg_type type,
		   uint64_t cookie, int32_t status)
{
	struct ib_hdr head = raw_peer_hdr(c);
	uint8_t bytes[IB_MSG_SIZE_MAX];
	size_t n = ib_done_encode(&head, type, cookie, status, bytes);

	/* the receive of the PUT_REQ is posted again */
	c->owed += type == IB_MSG_PUT_NAK;
	cr_assert_eq(raw_peer_say(c, bytes, n), 0);
}

void raw_peer_answer_get(struct raw_peer_conn *c, const struct ib_msg *get,
			 uint32_t length)
{
	struct ib_hdr head = raw_peer_hdr(c);
	uint8_t bytes[IB_MSG_SIZE_MAX];
	size_t n = ib_done_encode(&head, IB_MSG_GET_DONE, get->cookie,
				  (int32_t)length, bytes);
	uint64_t addr;
	uint32_t nob;

	memset(c->s->memory, 'g', length);
	ib_rdma_frag(&get->rdma, 0, &addr, &nob);
	c->owed++;
	cr_assert_eq(raw_peer_write(c, addr, get->rdma.key, length, bytes, n),
		     0);
}
