/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers that wait for memory, are canceled, or outlive their connection. */
#include "tests/unit/o2iblnd/node_rig.h"

static struct node_rig r;
static struct seen seen[8], received;

/* Memory for two payloads of 1 MiB for requests, and as many for answers. A
 * peer may have all of it while it is alone. */
static void open_small(unsigned int n, unsigned int cpts)
{
	r.tunables[0] = (struct ulnet_tunable){ "bounce_max", 4 * MIB };
	r.ntunables = 1;
	node_rig_open(&r, n, cpts, NULL);
}

static uint8_t *buf(size_t size)
{
	uint8_t *b = lnet_sim_buf(r.sim, size);

	cr_assert(b);
	memset(b, 'u', size);
	return b;
}

/* Node @n accepts PUTs. */
static uint8_t *post(unsigned int n, uint32_t length, uint32_t op)
{
	uint8_t *b = buf(length);
	struct ulnet_md umd =
		md_of(b, length, op | LNET_MD_MANAGE_REMOTE, &received);

	post_md(r.node[n], PORTAL, BITS, &umd);
	return b;
}

/* The next PUT_REQ that @c receives must be this one. */
static struct ib_msg hears_put(struct raw_peer_conn *c, uint64_t hdr_data)
{
	struct lnet_hdr hdr;
	struct ib_msg msg;

	cr_assert(raw_peer_hears(c, IB_MSG_PUT_REQ, &msg), "%u",
		  (unsigned int)hdr_data);
	cr_assert_eq(hdr_decode(&hdr, msg.lnet_hdr, LNET_HDR_SIZE), 0);
	cr_assert_eq(hdr.hdr_data, hdr_data, "%u instead of %u",
		     (unsigned int)hdr.hdr_data, (unsigned int)hdr_data);
	return msg;
}

static void hears_nothing(struct raw_peer_conn *c)
{
	struct ib_msg msg;

	cr_assert_not(raw_peer_hears(c, IB_MSG_PUT_REQ, &msg));
}

static void not_wanted(struct raw_peer_conn *c, const struct ib_msg *put)
{
	raw_peer_done(c, IB_MSG_PUT_NAK, put->cookie, 0);
	node_rig_run(&r, MSEC);
}

static void is_sent(const struct seen *s)
{
	seen_end(s, LNET_EVENT_SEND, 0, LNET_OUTCOME_UNKNOWN, LNET_CAUSE_OK);
}

static void put(struct raw_peer *s, unsigned int i, uint32_t length)
{
	node_rig_put(&r, 0, raw_peer_id(s), buf(length), length, i, &seen[i]);
}

/* ---- waiting for memory ---- */

/* Two raw peers: of 2 MiB one has half a MiB, and the other one the rest, in
 * its payloads 0 and 1. The latter may not have another MiB. */
static struct raw_peer_conn *two_hold(void)
{
	struct raw_peer *s[2];

	s[0] = raw_peer_new(&r);
	s[1] = raw_peer_new(&r);
	put(s[0], 7, MIB / 2);
	put(s[1], 0, MIB / 2);
	put(s[1], 1, MIB / 4);
	node_rig_run(&r, MSEC);
	return raw_peer_last(s[1]);
}

/* Memory is given in the order of arrival: a smaller transfer does not overtake
 * a larger one. */
Test(o2ib_xfer, fed_in_order)
{
	struct raw_peer_conn *c;
	struct ib_msg msg[5];

	open_small(1, 1);
	c = two_hold();
	put(c->s, 2, MIB / 2);
	put(c->s, 3, MIB);
	put(c->s, 4, 8192);
	node_rig_run(&r, MSEC);
	for (unsigned int i = 0; i < 3; i++)
		msg[i] = hears_put(c, i);
	hears_nothing(c);
	/* There would be room for the small one. */
	not_wanted(c, &msg[2]);
	hears_nothing(c);
	not_wanted(c, &msg[0]);
	msg[3] = hears_put(c, 3);
	not_wanted(c, &msg[1]);
	not_wanted(c, &msg[3]);
	msg[4] = hears_put(c, 4);
	not_wanted(c, &msg[4]);
	for (unsigned int i = 0; i < 5; i++)
		is_sent(&seen[i]);
	node_rig_close(&r);
}

/* A peer that has used up its share does not hold up other peers. */
Test(o2ib_xfer, shares)
{
	struct raw_peer_conn *c[2];
	struct raw_peer *s[2];
	struct ib_msg msg;

	open_small(1, 1);
	s[0] = raw_peer_new(&r);
	s[1] = raw_peer_new(&r);
	for (unsigned int i = 0; i < 4; i++)
		put(s[0], i, MIB / 2);
	node_rig_run(&r, MSEC);
	c[0] = raw_peer_last(s[0]);
	for (unsigned int i = 0; i < 3; i++)
		hears_put(c[0], i);
	hears_nothing(c[0]);
	put(s[1], 4, MIB / 2);
	node_rig_run(&r, MSEC);
	c[1] = raw_peer_last(s[1]);
	msg = hears_put(c[1], 4);
	not_wanted(c[1], &msg);
	is_sent(&seen[4]);
	hears_nothing(c[0]);
	node_rig_close(&r);
}

static void lend_all(struct raw_peer *s)
{
	put(s, 0, MIB);
	put(s, 1, MIB);
	node_rig_run(&r, MSEC);
}

static void put_for(struct raw_peer *s, unsigned int i, uint32_t length,
		    uint64_t us)
{
	struct ulnet_md umd = md_of(buf(length), length, 0, &seen[i]);
	struct ulnet_id id = raw_peer_id(s);

	umd.threshold = 1;
	umd.timeout = us;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(r.node[0], &umd),
			     LNET_NOACK_REQ, id, PORTAL, BITS, 0, i),
		     0);
}

/* A transfer that waits is canceled: nothing of it was sent, and those behind
 * it do not wait any longer. */
Test(o2ib_xfer, waiting_canceled)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;

	open_small(1, 1);
	c = two_hold();
	put_for(c->s, 2, MIB, 1000000);
	put(c->s, 3, 4096);
	node_rig_run(&r, MSEC);
	hears_put(c, 0);
	hears_put(c, 1);
	hears_nothing(c);
	node_rig_run(&r, NSEC_PER_SEC);
	seen_end(&seen[2], LNET_EVENT_SEND, -ETIMEDOUT,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_LOCAL_TIMEOUT);
	msg = hears_put(c, 3);
	not_wanted(c, &msg);
	is_sent(&seen[3]);
	node_rig_close(&r);
}

Test(o2ib_xfer, waiting_when_port_goes_down)
{
	struct raw_peer *s;

	open_small(1, 1);
	s = raw_peer_new(&r);
	lend_all(s);
	put(s, 2, MIB);
	node_rig_run(&r, MSEC);
	simqp_port_set(r.fabric, &r.id[0].nid, false, "no link");
	node_rig_run(&r, MSEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ENETDOWN, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_LOCAL_ERROR);
	seen_end(&seen[2], LNET_EVENT_SEND, -ENETDOWN,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_LOCAL_NO_ROUTE);
	node_rig_close(&r);
}

Test(o2ib_xfer, waiting_at_shutdown)
{
	struct raw_peer *s;

	open_small(1, 1);
	s = raw_peer_new(&r);
	lend_all(s);
	put(s, 2, MIB);
	node_rig_run(&r, MSEC);
	cr_assert_eq(lnet_ni_del(r.node[0], &r.id[0].nid), 0);
	node_rig_run(&r, NSEC_PER_SEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ESHUTDOWN, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_SHUTDOWN);
	seen_end(&seen[2], LNET_EVENT_SEND, -ESHUTDOWN,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_LOCAL_ABORTED);
	node_rig_close(&r);
}

/* Transfers that wait for memory when their connection is lost use the next
 * connection, in order and ahead of later ones, */
Test(o2ib_xfer, waiting_go_anew)
{
	struct raw_peer_conn *c;
	struct raw_peer *s;

	open_small(1, 1);
	s = raw_peer_new(&r);
	lend_all(s);
	put(s, 2, MIB / 2);
	put(s, 3, MIB / 2);
	put(s, 4, MIB / 2);
	node_rig_run(&r, MSEC);
	c = raw_peer_last(s);
	raw_peer_hang_up(c);
	node_rig_run(&r, NSEC_PER_SEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ECONNRESET, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_REMOTE_ERROR);
	c = raw_peer_last(s);
	for (unsigned int i = 2; i < 5; i++)
		hears_put(c, i);
	node_rig_close(&r);
}

static void two_credits(uint8_t *bytes)
{
	bytes[IB_HDR_SIZE] = 2;
}

/* and behind those that had a transmit of which nothing was sent, */
Test(o2ib_xfer, waiting_go_behind)
{
	struct raw_peer_conn *c;
	struct raw_peer *s;
	struct ib_msg msg;

	open_small(1, 1);
	s = raw_peer_new(&r);
	s->hello = two_credits;
	for (unsigned int i = 0; i < 7; i++)
		put(s, i, i == 4 ? MIB : MIB / 4);
	node_rig_run(&r, MSEC);
	c = raw_peer_last(s);
	hears_put(c, 0);
	hears_put(c, 1);
	hears_nothing(c);
	raw_peer_hang_up(c);
	node_rig_run(&r, NSEC_PER_SEC);
	c = raw_peer_last(s);
	for (unsigned int i = 2; i < 7; i++) {
		msg = hears_put(c, i);
		not_wanted(c, &msg);
		is_sent(&seen[i]);
	}
	node_rig_close(&r);
}

/* but not a second time: then LNet is told that nothing was sent. */
Test(o2ib_xfer, waiting_lost_twice)
{
	struct raw_peer_conn *c;
	struct raw_peer *s;

	open_small(1, 1);
	s = raw_peer_new(&r);
	for (unsigned int i = 0; i < 5; i++)
		put(s, i, MIB);
	node_rig_run(&r, MSEC);
	raw_peer_hang_up(raw_peer_last(s));
	node_rig_run(&r, NSEC_PER_SEC);
	c = raw_peer_last(s);
	hears_put(c, 2);
	hears_put(c, 3);
	hears_nothing(c);
	raw_peer_hang_up(c);
	seen_end(&seen[3], LNET_EVENT_SEND, -ECONNRESET, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_REMOTE_ERROR);
	seen_end(&seen[4], LNET_EVENT_SEND, -ENOBUFS,
		 LNET_OUTCOME_NOT_DELIVERED, LNET_CAUSE_LOCAL_DROPPED);
	node_rig_close(&r);
}

/* ---- a peer's PUTs ---- */

static struct ib_msg begin_put(struct raw_peer_conn *c, uint64_t hdr_data)
{
	struct lnet_hdr hdr = raw_peer_put_hdr(c, MIB, hdr_data);
	struct ib_msg msg = { 0 };

	raw_peer_put_req(c, &hdr, hdr_data);
	node_rig_run(&r, MSEC);
	if (raw_peer_hears(c, IB_MSG_PUT_ACK, &msg))
		cr_assert_eq(msg.cookie, hdr_data);
	return msg;
}

/* A transfer that waits for memory ends together with its connection. */
Test(o2ib_xfer, sink_lost_with_its_connection)
{
	struct raw_peer_conn *c[2];

	open_small(1, 1);
	post(0, MIB, LNET_MD_OP_PUT);
	c[0] = raw_peer_connect(raw_peer_new(&r), 0);
	c[1] = raw_peer_connect(raw_peer_new(&r), 0);
	cr_assert_eq(begin_put(c[0], 1).type, IB_MSG_PUT_ACK);
	cr_assert_eq(begin_put(c[0], 2).type, IB_MSG_PUT_ACK);
	cr_assert_eq(begin_put(c[1], 3).type, 0, "it waits");
	cr_assert_eq(received.n, 0);
	raw_peer_hang_up(c[1]);
	seen_types(&received, LNET_EVENT_PUT, 0);
	cr_assert_eq(received.ev[0].hdr_data, 3);
	cr_assert_eq(received.ev[0].status, -ECONNRESET);
	cr_assert_eq(received.ev[0].cause, LNET_CAUSE_REMOTE_ERROR);
	node_rig_close(&r);
}

/* LNet's time-out is shorter than the LND's. */
static void open_hasty(void)
{
	const struct ulnet_conf conf = { .transaction_timeout = 5000000 };

	r.tunables[0] = (struct ulnet_tunable){ "bounce_max", 4 * MIB };
	r.tunables[1] = (struct ulnet_tunable){ "timeout", 60 };
	r.ntunables = 2;
	node_rig_open(&r, 1, 1, &conf);
}

/* LNet cancels a PUT that the peer still writes: the user's memory stays as it
 * is, and the connection goes on. */
Test(o2ib_xfer, sink_canceled)
{
	struct raw_peer_conn *c;
	uint8_t bytes[IB_MSG_SIZE_MAX], *b;
	struct ib_hdr head;
	struct ib_msg msg;
	uint64_t addr;
	uint32_t nob;
	size_t n;

	open_hasty();
	b = post(0, MIB, LNET_MD_OP_PUT);
	c = raw_peer_connect(raw_peer_new(&r), 0);
	msg = begin_put(c, 1);
	cr_assert_eq(msg.type, IB_MSG_PUT_ACK);
	node_rig_run(&r, 6 * NSEC_PER_SEC);
	seen_types(&received, LNET_EVENT_PUT, 0);
	cr_assert_eq(received.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(received.ev[0].cause, LNET_CAUSE_NETWORK_TIMEOUT);
	memset(c->s->memory, 'w', MIB);
	ib_rdma_frag(&msg.rdma, 0, &addr, &nob);
	cr_assert_eq(nob, MIB);
	head = raw_peer_hdr(c);
	n = ib_done_encode(&head, IB_MSG_PUT_DONE, msg.dst_cookie, MIB, bytes);
	cr_assert_eq(raw_peer_write(c, addr, msg.rdma.key, MIB, bytes, n), 0);
	node_rig_run(&r, MSEC);
	for (unsigned int i = 0; i < MIB; i++)
		cr_assert_eq(b[i], 'u');
	cr_assert_eq(received.n, 1);
	cr_assert_eq(c->disconnected, 0);
	msg = begin_put(c, 2);
	cr_assert_eq(msg.type, IB_MSG_PUT_ACK);
	node_rig_close(&r);
}

/* ---- PUTs of ours ---- */

/* A PUT is canceled after its PUT_REQ was sent: the PUT_DONE says that nothing
 * comes. */
Test(o2ib_xfer, put_canceled)
{
	struct raw_peer_conn *c;
	struct raw_peer *s;
	struct ib_msg msg;

	open_small(1, 1);
	s = raw_peer_new(&r);
	put_for(s, 0, MIB, 1000000);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_NETWORK_TIMEOUT);
	lnet_sim_buf_retire(r.sim, seen[0].ev[0].md_start);
	c = raw_peer_last(s);
	msg = hears_put(c, 0);
	raw_peer_ack(c, &msg, 99, MIB);
	node_rig_run(&r, MSEC);
	cr_assert(raw_peer_hears(c, IB_MSG_PUT_DONE, &msg));
	cr_assert_eq(msg.cookie, 99);
	cr_assert_eq(msg.status, -ECANCELED);
	for (unsigned int i = 0; i < MIB; i++)
		cr_assert_eq(s->memory[i], 0);
	cr_assert_eq(c->disconnected, 0);
	node_rig_close(&r);
}

/* The peer does not answer to the PUT_REQ. The first try of the message has a
 * third of its 60 s, and each of the two legs has half of that: ten seconds,
 * and not half of the LND's time-out. */
Test(o2ib_xfer, legs_share_the_time_of_the_message)
{
	struct raw_peer_conn *c;
	struct raw_peer *s;

	open_small(1, 1);
	s = raw_peer_new(&r);
	put_for(s, 0, MIB, 60000000);
	node_rig_run(&r, 100 * MSEC);
	c = raw_peer_last(s);
	hears_put(c, 0);
	node_rig_run(&r, 9800 * MSEC);
	cr_expect_eq(c->disconnected, 0);
	node_rig_run(&r, 5000 * MSEC);
	cr_expect_neq(c->disconnected, 0);
	seen_end(&seen[0], LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_REMOTE_TIMEOUT);
	node_rig_close(&r);
}

/* ---- GETs of ours ---- */

static struct ib_msg hears_get(struct raw_peer_conn *c)
{
	struct ib_msg msg;

	cr_assert(raw_peer_hears(c, IB_MSG_GET_REQ, &msg));
	return msg;
}

static uint8_t *get_for(struct raw_peer *s, uint64_t us)
{
	uint8_t *b = buf(MIB);
	struct ulnet_md umd = md_of(b, MIB, 0, &seen[0]);

	umd.threshold = 2;
	umd.timeout = us;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(r.node[0], &umd),
			     raw_peer_id(s), PORTAL, BITS, 0),
		     0);
	node_rig_run(&r, MSEC);
	return b;
}

/* The peer replies with fewer bytes than were asked for. */
static void get_shorter(unsigned int cpts, uint32_t length)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;
	struct raw_peer *s;
	uint8_t *b;

	open_small(1, cpts);
	s = raw_peer_new(&r);
	b = get_for(s, 0);
	c = raw_peer_last(s);
	msg = hears_get(c);
	c->owed--;
	raw_peer_answer_get(c, &msg, length);
	node_rig_run(&r, MSEC);
	cr_assert_eq(seen_last(&seen[0]), LNET_EVENT_REPLY);
	cr_assert_eq(seen[0].ev[seen[0].n - 1].status, 0);
	cr_assert_eq(seen[0].ev[seen[0].n - 1].mlength, length);
	for (unsigned int i = 0; i < MIB; i++)
		cr_assert_eq(b[i], i < length ? 'g' : 'u');
	node_rig_close(&r);
}

Test(o2ib_xfer, get_shorter)
{
	get_shorter(1, 5000);
}

Test(o2ib_xfer, get_one_byte_3_cpts)
{
	get_shorter(3, 1);
}

/* Nothing matches the GET: it counts as sent, and no REPLY comes. */
Test(o2ib_xfer, get_nothing)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;
	struct raw_peer *s;

	open_small(1, 1);
	s = raw_peer_new(&r);
	get_for(s, 1000000);
	c = raw_peer_last(s);
	msg = hears_get(c);
	raw_peer_done(c, IB_MSG_GET_DONE, msg.cookie, -ENODATA);
	node_rig_run(&r, MSEC);
	seen_types(&seen[0], LNET_EVENT_SEND, 0);
	cr_assert_eq(seen[0].ev[0].status, 0);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	seen_end(&seen[0], LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_RESPONSE_TIMEOUT);
	cr_assert_eq(c->disconnected, 0);
	node_rig_close(&r);
}

/* A GET is canceled that the peer still answers. */
Test(o2ib_xfer, get_canceled)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;
	struct raw_peer *s;
	uint8_t *b;

	open_small(1, 1);
	s = raw_peer_new(&r);
	b = get_for(s, 1000000);
	c = raw_peer_last(s);
	msg = hears_get(c);
	c->owed--;
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	cr_assert(seen[0].ev[seen[0].n - 1].terminal);
	cr_assert_eq(seen[0].ev[seen[0].n - 1].status, -ETIMEDOUT);
	lnet_sim_buf_retire(r.sim, b);
	raw_peer_answer_get(c, &msg, MIB);
	node_rig_run(&r, MSEC);
	cr_assert_eq(lnet_sim_check(r.sim), 0);
	cr_assert_eq(c->disconnected, 0);
	node_rig_close(&r);
}

/* ---- a peer's GETs ---- */

static void ask(struct raw_peer_conn *c, uint64_t cookie)
{
	struct lnet_hdr hdr = raw_peer_get_hdr(c, MIB);

	raw_peer_get_req(c, &hdr, cookie);
	node_rig_run(&r, MSEC);
}

Test(o2ib_xfer, peer_gets)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;

	open_small(1, 1);
	post(0, 10000, LNET_MD_OP_GET | LNET_MD_TRUNCATE);
	c = raw_peer_connect(raw_peer_new(&r), 0);
	ask(c, 5);
	cr_assert(raw_peer_hears(c, IB_MSG_GET_DONE, &msg));
	cr_assert_eq(msg.cookie, 5);
	cr_assert_eq(msg.status, 10000);
	for (unsigned int i = 0; i < 20000; i++)
		cr_assert_eq(c->s->memory[i], i < 10000 ? 'u' : 0);
	seen_types(&received, LNET_EVENT_GET, 0);
	cr_assert_eq(received.ev[0].status, 0);
	node_rig_close(&r);
}

Test(o2ib_xfer, peer_gets_nothing)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;

	open_small(1, 1);
	c = raw_peer_connect(raw_peer_new(&r), 0);
	ask(c, 5);
	cr_assert(raw_peer_hears(c, IB_MSG_GET_DONE, &msg));
	cr_assert_eq(msg.status, -ENODATA);
	cr_assert_eq(c->disconnected, 0);
	node_rig_close(&r);
}

/* An answer that waits for memory, which PUTs of another peer hold. */
static struct raw_peer_conn *waiting_answer(struct raw_peer_conn **other)
{
	struct raw_peer_conn *c;

	post(0, MIB, LNET_MD_OP_PUT | LNET_MD_OP_GET);
	*other = raw_peer_connect(raw_peer_new(&r), 0);
	c = raw_peer_connect(raw_peer_new(&r), 0);
	cr_assert_eq(begin_put(*other, 1).type, IB_MSG_PUT_ACK);
	cr_assert_eq(begin_put(*other, 2).type, IB_MSG_PUT_ACK);
	ask(c, 5);
	cr_assert_eq(received.n, 0);
	return c;
}

static void answered_in_vain(int status, enum ulnet_cause cause)
{
	cr_assert_eq(received.n, 1);
	cr_assert_eq(received.ev[0].type, LNET_EVENT_GET);
	cr_assert_eq(received.ev[0].status, status);
	cr_assert_eq(received.ev[0].cause, cause, "%s",
		     lnet_cause_name(received.ev[0].cause));
}

Test(o2ib_xfer, waiting_answer_is_served)
{
	struct raw_peer_conn *c, *other;
	struct ib_msg msg;

	open_small(1, 1);
	c = waiting_answer(&other);
	raw_peer_hang_up(other);
	cr_assert(raw_peer_hears(c, IB_MSG_GET_DONE, &msg));
	cr_assert_eq(msg.status, MIB);
	cr_assert_eq(c->s->memory[MIB - 1], 'u');
	node_rig_close(&r);
}

Test(o2ib_xfer, waiting_answer_lost)
{
	struct raw_peer_conn *c, *other;

	open_small(1, 1);
	c = waiting_answer(&other);
	raw_peer_hang_up(c);
	answered_in_vain(-ECONNRESET, LNET_CAUSE_REMOTE_DROPPED);
	node_rig_close(&r);
}

/* The older PUTs are canceled first. Their peer may still write, so their
 * memory is not free yet. */
Test(o2ib_xfer, waiting_answer_canceled)
{
	struct raw_peer_conn *c, *other;
	struct ib_msg msg;

	open_hasty();
	c = waiting_answer(&other);
	node_rig_run(&r, 6 * NSEC_PER_SEC);
	cr_assert_eq(received.n, 3);
	cr_assert_eq(received.ev[2].type, LNET_EVENT_GET);
	cr_assert_eq(received.ev[2].status, -ETIMEDOUT);
	cr_assert_eq(received.ev[2].cause, LNET_CAUSE_LOCAL_TIMEOUT);
	cr_assert(raw_peer_hears(c, IB_MSG_GET_DONE, &msg));
	cr_assert_eq(msg.status, -ETIMEDOUT);
	cr_assert_eq(c->disconnected + other->disconnected, 0);
	node_rig_close(&r);
}

Test(o2ib_xfer, waiting_answer_when_port_goes_down)
{
	struct raw_peer_conn *c, *other;

	open_small(1, 1);
	c = waiting_answer(&other);
	simqp_port_set(r.fabric, &r.id[0].nid, false, "no link");
	node_rig_run(&r, MSEC);
	(void)c;
	cr_assert_eq(received.n, 3);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(received.ev[i].status, -ENETDOWN);
	node_rig_close(&r);
}
