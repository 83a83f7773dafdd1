/* SPDX-License-Identifier: BSD-3-Clause */
/* Zero-copy: payload in registered memory is not copied, and the memory is not
 * accessed after its time. */
#include "lnd/o2iblnd/regcache.h"
#include "tests/unit/o2iblnd/node_rig.h"

#define SIZE (2 * MIB)

static struct node_rig r;
static struct seen seen[8], received;
static uint8_t *memory;	 /* SIZE bytes in one block, registered with node 0 */
static uint8_t *watched; /* a part of it */

static void open_more(unsigned int n, unsigned int cpts,
		      const struct ulnet_conf *conf)
{
	node_rig_open(&r, n, cpts, conf);
	watched = lnet_sim_buf(r.sim, IB_REG_BLOCK + SIZE);
	cr_assert(watched);
	memory = watched + IB_REG_BLOCK - (uintptr_t)watched % IB_REG_BLOCK;
	memset(memory, 'u', SIZE);
	cr_assert_eq(lnet_mem_register(r.node[0], memory, SIZE), 0);
}

static void set_tunable(const char *name, int64_t value)
{
	r.tunables[r.ntunables++] = (struct ulnet_tunable){ name, value };
}

static void open_one(void)
{
	open_more(1, 1, NULL);
}

static struct simqp_usage usage(void)
{
	struct simqp_usage u;

	simqp_usage(r.fabric, &r.id[0].nid, &u);
	return u;
}

static bool is_mine(uint64_t addr)
{
	return addr >= (uintptr_t)memory && addr < (uintptr_t)memory + SIZE;
}

static void is_all(const uint8_t *bytes, uint32_t length, uint8_t what)
{
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(bytes[i], what, "byte %u is %c", i, bytes[i]);
}

static struct ib_msg hears(struct raw_peer_conn *c, enum ib_msg_type type)
{
	struct ib_msg msg;

	cr_assert(raw_peer_hears(c, type, &msg));
	return msg;
}

/* The address of the only fragment of a descriptor. */
static uint64_t addr_of(const struct ib_msg *msg, uint32_t length)
{
	uint64_t addr;
	uint32_t nob;

	cr_assert_eq(msg->rdma.nfrags, 1);
	ib_rdma_frag(&msg->rdma, 0, &addr, &nob);
	cr_assert_eq(nob, length);
	return addr;
}

/* A GET of @umd from @s, with a second for its answer. */
static struct raw_peer_conn *get_umd(struct raw_peer *s, struct ulnet_md *umd)
{
	umd->threshold = 2;
	umd->timeout = 1000000;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(r.node[0], umd),
			     raw_peer_id(s), PORTAL, BITS, 0),
		     0);
	node_rig_run(&r, MSEC);
	return raw_peer_last(s);
}

static struct raw_peer_conn *get(struct raw_peer *s, void *bytes,
				 uint32_t length, unsigned int i)
{
	struct ulnet_md umd = md_of(bytes, length, 0, &seen[i]);

	return get_umd(s, &umd);
}

static void has_reply(const struct seen *s, uint32_t length)
{
	const struct ulnet_event *ev = &s->ev[s->n - 1];

	cr_assert_eq(seen_last(s), LNET_EVENT_REPLY);
	cr_assert_eq(ev->status, 0);
	cr_assert_eq(ev->mlength, length);
}

/* ---- where bytes go ---- */

/* The peer is told the address of the user's own memory. After a shorter answer
 * the rest of it is unchanged. */
static void get_in_place(unsigned int cpts, uint32_t length)
{
	struct raw_peer_conn *c;
	struct raw_peer *s;
	struct ib_msg msg;

	open_more(1, cpts, NULL);
	s = raw_peer_new(&r);
	c = get(s, memory + 100, MIB, 0);
	msg = hears(c, IB_MSG_GET_REQ);
	cr_assert_eq(addr_of(&msg, MIB), (uintptr_t)memory + 100);
	c->owed--;
	raw_peer_answer_get(c, &msg, length);
	node_rig_run(&r, MSEC);
	has_reply(&seen[0], length);
	is_all(memory, 100, 'u');
	is_all(memory + 100, length, 'g');
	is_all(memory + 100 + length, SIZE - 100 - length, 'u');
	node_rig_close(&r);
}

Test(o2ib_direct, get)
{
	get_in_place(1, MIB);
}

Test(o2ib_direct, get_shorter_3_cpts)
{
	get_in_place(3, 77777);
}

static void post(struct lnet *node, void *bytes, uint32_t length)
{
	struct ulnet_md umd =
		md_of(bytes, length,
		      LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE,
		      &received);

	post_md(node, PORTAL, BITS, &umd);
}

static struct ib_msg put_req(struct raw_peer_conn *c, uint32_t length)
{
	struct lnet_hdr hdr = raw_peer_put_hdr(c, length, 1);

	raw_peer_put_req(c, &hdr, 1);
	node_rig_run(&r, MSEC);
	return hears(c, IB_MSG_PUT_ACK);
}

static int write_put(struct raw_peer_conn *c, const struct ib_msg *ack,
		     uint64_t addr, uint32_t length)
{
	struct ib_hdr head = raw_peer_hdr(c);
	uint8_t bytes[IB_MSG_SIZE_MAX];
	size_t n = ib_done_encode(&head, IB_MSG_PUT_DONE, ack->dst_cookie,
				  (int32_t)length, bytes);

	memset(c->s->memory, 'w', length);
	return raw_peer_write(c, addr, ack->rdma.key, length, bytes, n);
}

Test(o2ib_direct, put_to_it)
{
	struct raw_peer_conn *c;
	struct ib_msg ack;

	open_one();
	post(r.node[0], memory + 8, MIB);
	c = raw_peer_connect(raw_peer_new(&r), 0);
	ack = put_req(c, 300000);
	cr_assert_eq(addr_of(&ack, 300000), (uintptr_t)memory + 8);
	cr_assert_eq(write_put(c, &ack, (uintptr_t)memory + 8, 300000), 0);
	node_rig_run(&r, MSEC);
	seen_types(&received, LNET_EVENT_PUT, 0);
	cr_assert_eq(received.ev[0].status, 0);
	is_all(memory + 8, 300000, 'w');
	is_all(memory + 300008, SIZE - 300008, 'u');
	node_rig_close(&r);
}

/* In both directions: only the memory around the payload is locked, and no more
 * the second time. */
static void between_nodes(void (*move)(uint8_t *bytes, struct seen *seen))
{
	uint8_t *bytes;
	uint64_t before;

	open_more(2, 1, NULL);
	bytes = lnet_sim_buf(r.sim, SIZE);
	post(r.node[1], bytes, SIZE);
	node_rig_put(&r, 0, r.id[1], memory, 8, 0, &seen[7]);
	node_rig_run(&r, MSEC);
	before = usage().locked;
	for (unsigned int i = 0; i < 2; i++) {
		memset(memory, 'a' + (int)i, SIZE);
		memset(bytes, 'b' + (int)i, SIZE);
		move(bytes, &seen[i]);
		node_rig_run(&r, 100 * MSEC);
		cr_assert_eq(memcmp(memory, bytes, MIB), 0);
		cr_assert_eq(usage().locked, before + SIZE);
	}
	node_rig_close(&r);
}

static void move_out(uint8_t *bytes, struct seen *s)
{
	node_rig_put(&r, 0, r.id[1], memory, MIB, 0, s);
	node_rig_run(&r, 100 * MSEC);
	cr_assert_eq(bytes[0], memory[0]);
}

static void move_in(uint8_t *bytes, struct seen *s)
{
	(void)bytes;
	node_rig_get(&r, 0, r.id[1], memory, MIB, s);
}

Test(o2ib_direct, put_to_node)
{
	between_nodes(move_out);
}

Test(o2ib_direct, get_from_node)
{
	between_nodes(move_in);
}

/* The node answers a GET, and receives a PUT, in its own memory. */
Test(o2ib_direct, answers_node)
{
	uint8_t *bytes;
	uint64_t before;

	open_more(2, 1, NULL);
	bytes = lnet_sim_buf(r.sim, SIZE);
	post(r.node[0], memory, MIB);
	node_rig_get(&r, 1, r.id[0], bytes, 8, &seen[7]);
	node_rig_run(&r, MSEC);
	before = usage().locked;
	memset(bytes, 'x', SIZE);
	node_rig_put(&r, 1, r.id[0], bytes, MIB, 0, &seen[0]);
	node_rig_run(&r, 100 * MSEC);
	is_all(memory, MIB, 'x');
	memset(memory, 'y', MIB);
	node_rig_get(&r, 1, r.id[0], bytes, MIB, &seen[1]);
	node_rig_run(&r, 100 * MSEC);
	is_all(bytes, MIB, 'y');
	cr_assert_eq(usage().locked, before + SIZE);
	node_rig_close(&r);
}

/* ---- pieces ---- */

static const size_t gaps[][2] = {
	{ 5000, 3000 }, { 8000, 1 }, { 100, 4000 }, { 0, 0 }, { 20000, 7000 }
};
#define GAPS	  (sizeof(gaps) / sizeof(gaps[0]))
#define GAP_BYTES 14001

static struct raw_peer_conn *get_pieces(struct raw_peer *s)
{
	struct iovec iov[GAPS];
	struct ulnet_md umd;

	for (unsigned int i = 0; i < GAPS; i++)
		iov[i] = (struct iovec){ memory + gaps[i][0], gaps[i][1] };
	umd = md_of(iov, GAPS, LNET_MD_IOVEC, &seen[0]);
	return get_umd(s, &umd);
}

/* One key for all parts; adjacent parts are joined, in whatever order the
 * others are. */
Test(o2ib_direct, pieces)
{
	static const size_t want[][2] = { { 5000, 3001 },
					  { 100, 4000 },
					  { 20000, 7000 } };
	struct raw_peer_conn *c;
	struct ib_msg msg;

	open_one();
	c = get_pieces(raw_peer_new(&r));
	msg = hears(c, IB_MSG_GET_REQ);
	cr_assert_eq(msg.rdma.nfrags, 3);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t addr;
		uint32_t nob;

		ib_rdma_frag(&msg.rdma, i, &addr, &nob);
		cr_expect_eq(addr, (uintptr_t)memory + want[i][0]);
		cr_expect_eq(nob, want[i][1]);
	}
	node_rig_close(&r);
}

/* ---- copied all the same ---- */

static void two_frags(uint8_t *bytes)
{
	bytes[IB_HDR_SIZE + 2] = 2;
	bytes[IB_HDR_SIZE + 3] = 0;
}

/* The connection carries fewer fragments. */
Test(o2ib_direct, too_many_pieces)
{
	struct raw_peer_conn *c;
	struct raw_peer *s;
	struct ib_msg msg;

	open_one();
	s = raw_peer_new(&r);
	s->hello = two_frags;
	c = get_pieces(s);
	msg = hears(c, IB_MSG_GET_REQ);
	cr_assert_not(is_mine(addr_of(&msg, GAP_BYTES)));
	c->owed--;
	raw_peer_answer_get(c, &msg, GAP_BYTES);
	node_rig_run(&r, MSEC);
	has_reply(&seen[0], GAP_BYTES);
	for (unsigned int i = 0; i < GAPS; i++)
		is_all(memory + gaps[i][0], (uint32_t)gaps[i][1], 'g');
	is_all(memory + 8001, 12000 - 1, 'u');
	node_rig_close(&r);
}

static void get_is_copied(struct raw_peer *s, unsigned int i, bool copied)
{
	struct raw_peer_conn *c = get(s, memory, MIB, i);
	struct ib_msg msg = hears(c, IB_MSG_GET_REQ);

	cr_assert_eq(!is_mine(addr_of(&msg, MIB)), copied);
	c->owed--;
	raw_peer_answer_get(c, &msg, MIB);
	node_rig_run(&r, MSEC);
	has_reply(&seen[i], MIB);
	is_all(memory, MIB, 'g');
	memset(memory, 'u', MIB);
}

/* Half of the payload is outside of the registered range. */
Test(o2ib_direct, half_registered)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;
	struct raw_peer *s;

	open_one();
	cr_assert_eq(lnet_mem_unregister(r.node[0], memory, SIZE), 0);
	cr_assert_eq(lnet_mem_register(r.node[0], memory, MIB / 2), 0);
	cr_assert_eq(lnet_mem_register(r.node[0], memory + MIB / 2, MIB), 0);
	s = raw_peer_new(&r);
	c = get(s, memory, MIB, 0);
	msg = hears(c, IB_MSG_GET_REQ);
	cr_assert_not(is_mine(addr_of(&msg, MIB)));
	c = get(s, memory + MIB / 2, MIB, 1);
	msg = hears(c, IB_MSG_GET_REQ);
	cr_assert(is_mine(addr_of(&msg, MIB)));
	node_rig_close(&r);
}

/* If memory cannot be registered, payloads are copied, and registering is tried
 * again after a second. */
Test(o2ib_direct, cannot_be_registered)
{
	struct raw_peer *s;

	open_one();
	s = raw_peer_new(&r);
	get(s, memory, 8, 7);
	get_is_copied(s, 0, false);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	cr_assert_eq(lnet_mem_unregister(r.node[0], memory, SIZE), 0);
	cr_assert_eq(lnet_mem_register(r.node[0], memory, SIZE), 0);
	simqp_fail_call(r.fabric, &r.id[0].nid, SIMQP_CALL_REG, 0, -ENOMEM);
	get_is_copied(s, 1, true);
	get_is_copied(s, 2, true);
	node_rig_run(&r, NSEC_PER_SEC);
	get_is_copied(s, 3, false);
	node_rig_close(&r);
}

/* register_max is used up. */
Test(o2ib_direct, too_much)
{
	struct raw_peer_conn *c;
	struct ib_msg msg[2];
	struct raw_peer *s;

	set_tunable("register_max", MIB + MIB / 2);
	open_one();
	cr_assert_eq(lnet_mem_unregister(r.node[0], memory, SIZE), 0);
	cr_assert_eq(lnet_mem_register(r.node[0], memory, MIB), 0);
	cr_assert_eq(lnet_mem_register(r.node[0], memory + MIB, MIB), 0);
	s = raw_peer_new(&r);
	c = get(s, memory, MIB, 0);
	msg[0] = hears(c, IB_MSG_GET_REQ);
	cr_assert(is_mine(addr_of(&msg[0], MIB)));
	get(s, memory + MIB, MIB, 1);
	msg[1] = hears(c, IB_MSG_GET_REQ);
	cr_assert_not(is_mine(addr_of(&msg[1], MIB)));
	c->owed--;
	raw_peer_answer_get(c, &msg[0], MIB);
	node_rig_run(&r, MSEC);
	/* A registration not in use is evicted. */
	get(s, memory + MIB, MIB, 2);
	msg[0] = hears(c, IB_MSG_GET_REQ);
	cr_assert(is_mine(addr_of(&msg[0], MIB)));
	node_rig_close(&r);
}

Test(o2ib_direct, none_at_all)
{
	set_tunable("register_max", 0);
	open_one();
	get_is_copied(raw_peer_new(&r), 0, true);
	node_rig_close(&r);
}

/* A transfer that waits for memory is not overtaken. */
Test(o2ib_direct, in_order)
{
	struct raw_peer_conn *c;
	struct ib_msg msg[2], none;
	struct raw_peer *s;

	set_tunable("bounce_max", 4 * MIB);
	open_one();
	s = raw_peer_new(&r);
	for (unsigned int i = 0; i < 4; i++)
		node_rig_put(&r, 0, raw_peer_id(s),
			     i < 3 ? lnet_sim_buf(r.sim, MIB) : memory, MIB, i,
			     &seen[i]);
	node_rig_run(&r, MSEC);
	c = raw_peer_last(s);
	msg[0] = hears(c, IB_MSG_PUT_REQ);
	msg[1] = hears(c, IB_MSG_PUT_REQ);
	cr_assert_not(raw_peer_hears(c, IB_MSG_PUT_REQ, &none));
	for (unsigned int i = 0; i < 2; i++)
		raw_peer_done(c, IB_MSG_PUT_NAK, msg[i].cookie, 0);
	node_rig_run(&r, MSEC);
	for (unsigned int i = 2; i < 4; i++) {
		struct lnet_hdr hdr;

		msg[0] = hears(c, IB_MSG_PUT_REQ);
		cr_assert_eq(hdr_decode(&hdr, msg[0].lnet_hdr, LNET_HDR_SIZE),
			     0);
		cr_assert_eq(hdr.hdr_data, i);
	}
	node_rig_close(&r);
}

/* ---- given up ---- */

/* The memory is the user's again at once: what the peer writes later does not
 * arrive, and the connection has ended. */
Test(o2ib_direct, get_canceled)
{
	struct raw_peer_conn *c;

	open_one();
	c = get(raw_peer_new(&r), memory, MIB, 0);
	hears(c, IB_MSG_GET_REQ);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_NETWORK_TIMEOUT);
	lnet_sim_buf_retire(r.sim, watched);
	cr_assert_eq(c->disconnected, 1);
	node_rig_close(&r);
}

/* The time-out comes while the peer's WRITE is under way. */
Test(o2ib_direct, get_canceled_while_written)
{
	const struct simqp_link slow = { .latency = 600 * MSEC };
	struct raw_peer_conn *c;
	struct raw_peer *s;
	struct ib_msg msg;

	open_one();
	s = raw_peer_new(&r);
	c = get(s, memory, MIB, 0);
	msg = hears(c, IB_MSG_GET_REQ);
	node_rig_run(&r, 500 * MSEC);
	simqp_link_set(r.fabric, &s->self.nid, &r.id[0].nid, &slow);
	c->owed--;
	raw_peer_answer_get(c, &msg, MIB);
	node_rig_run(&r, 520 * MSEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_NETWORK_TIMEOUT);
	is_all(memory, SIZE, 'u');
	lnet_sim_buf_retire(r.sim, watched);
	node_rig_run(&r, 5 * NSEC_PER_SEC);
	node_rig_close(&r);
}

/* LNet's time-out is shorter than the LND's. */
static void open_hasty(void)
{
	const struct ulnet_conf conf = { .transaction_timeout = 5000000 };

	set_tunable("timeout", 60);
	open_more(1, 1, &conf);
}

Test(o2ib_direct, sink_canceled)
{
	struct raw_peer_conn *c;
	struct ib_msg ack;

	open_hasty();
	post(r.node[0], memory, MIB);
	c = raw_peer_connect(raw_peer_new(&r), 0);
	ack = put_req(c, MIB);
	cr_assert(is_mine(addr_of(&ack, MIB)));
	node_rig_run(&r, 6 * NSEC_PER_SEC);
	seen_types(&received, LNET_EVENT_PUT, 0);
	cr_assert_eq(received.ev[0].status, -ETIMEDOUT);
	cr_assert_eq(received.ev[0].cause, LNET_CAUSE_NETWORK_TIMEOUT);
	cr_assert_eq(c->disconnected, 1);
	(void)write_put(c, &ack, (uintptr_t)memory, MIB);
	node_rig_run(&r, MSEC);
	is_all(memory, SIZE, 'u');
	node_rig_close(&r);
}

/* The memory of a PUT that was only announced was not accessed: its connection
 * goes on. */
Test(o2ib_direct, put_canceled)
{
	struct ulnet_md umd;
	struct raw_peer_conn *c;
	struct raw_peer *s;
	struct ib_msg msg;

	open_one();
	s = raw_peer_new(&r);
	umd = md_of(memory, MIB, 0, &seen[0]);
	umd.threshold = 1;
	umd.timeout = 1000000;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(r.node[0], &umd),
			     LNET_NOACK_REQ, raw_peer_id(s), PORTAL, BITS, 0,
			     0),
		     0);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_NETWORK_TIMEOUT);
	c = raw_peer_last(s);
	msg = hears(c, IB_MSG_PUT_REQ);
	raw_peer_ack(c, &msg, 99, MIB);
	node_rig_run(&r, MSEC);
	msg = hears(c, IB_MSG_PUT_DONE);
	cr_assert_eq(msg.status, -ECANCELED);
	is_all(s->memory, MIB, 0);
	cr_assert_eq(c->disconnected, 0);
	node_rig_close(&r);
}

/* ---- taken back ---- */

/* Memory cannot be taken back while an MD is in it. Afterwards no device has
 * it, and a peer that still writes to it loses its connection. */
Test(o2ib_direct, unregistered)
{
	struct raw_peer_conn *c;
	struct simqp_stats stats;
	uint64_t before;
	struct ib_msg msg;
	struct raw_peer *s;

	open_more(1, 3, NULL);
	s = raw_peer_new(&r);
	get(s, memory, 8, 7);
	before = usage().locked;
	c = get(s, memory, MIB, 0);
	cr_assert_eq(lnet_mem_unregister(r.node[0], memory, SIZE), -EBUSY);
	msg = hears(c, IB_MSG_GET_REQ);
	c->owed--;
	raw_peer_answer_get(c, &msg, MIB);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	cr_assert_eq(usage().locked, before + SIZE);
	cr_assert_eq(lnet_mem_unregister(r.node[0], memory, SIZE), 0);
	cr_assert_eq(usage().locked, before);
	memset(memory, 'u', SIZE);
	raw_peer_answer_get(c, &msg, MIB);
	node_rig_run(&r, MSEC);
	simqp_stats(r.fabric, &stats);
	cr_assert_eq(stats.refused, 1);
	is_all(memory, SIZE, 'u');
	get_is_copied(s, 1, true);
	node_rig_close(&r);
}

static struct raw_peer_conn *put_announced(struct raw_peer *s)
{
	struct ulnet_md umd = md_of(memory, MIB, 0, &seen[1]);

	umd.threshold = 1;
	umd.timeout = 1000000;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(r.node[0], &umd),
			     LNET_NOACK_REQ, raw_peer_id(s), PORTAL, BITS, 0,
			     0),
		     0);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	cr_assert_eq(seen[1].ev[0].status, -ETIMEDOUT);
	return raw_peer_last(s);
}

/* The same, if an abandoned transfer is not over yet. */
Test(o2ib_direct, unregistered_in_use)
{
	struct raw_peer_conn *c;
	struct simqp_stats stats;
	uint64_t before;
	struct ib_msg msg, put;
	struct raw_peer *s;

	open_one();
	s = raw_peer_new(&r);
	get(s, memory, 8, 7);
	before = usage().locked;
	c = get(s, memory, MIB, 0);
	msg = hears(c, IB_MSG_GET_REQ);
	c->owed--;
	raw_peer_answer_get(c, &msg, MIB);
	c = put_announced(s);
	put = hears(c, IB_MSG_PUT_REQ);
	cr_assert_eq(lnet_mem_unregister(r.node[0], memory, SIZE), 0);
	cr_assert_eq(usage().locked, before);
	memset(memory, 'u', SIZE);
	raw_peer_ack(c, &put, 99, MIB);
	node_rig_run(&r, MSEC);
	put = hears(c, IB_MSG_PUT_DONE);
	cr_assert_eq(put.status, -ECANCELED);
	raw_peer_answer_get(c, &msg, MIB);
	node_rig_run(&r, MSEC);
	simqp_stats(r.fabric, &stats);
	cr_assert_eq(stats.refused, 1);
	is_all(memory, SIZE, 'u');
	node_rig_close(&r);
}

/* The same, if the NI was deleted, and its connections still exist. */
Test(o2ib_direct, unregistered_after_ni)
{
	uint64_t before;

	open_one();
	get(raw_peer_new(&r), memory, 8, 7);
	before = usage().locked;
	get_is_copied(&r.raw_peers[0], 0, false);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	cr_assert_eq(lnet_ni_del(r.node[0], &r.id[0].nid), 0);
	cr_assert_eq(usage().locked, before + SIZE);
	cr_assert_eq(lnet_mem_unregister(r.node[0], memory, SIZE), 0);
	cr_assert_eq(usage().locked, before);
	node_rig_close(&r);
}

/* Registrations not in use do not keep other memory from being locked. */
Test(o2ib_direct, gives_way)
{
	const struct simqp_device device = { .locked_max = 24 * MIB };
	const size_t size = 5 * IB_REG_BLOCK;
	struct raw_peer *s;
	struct ib_msg msg;
	uint8_t *pool;

	open_one();
	cr_assert_eq(lnet_ni_del(r.node[0], &r.id[0].nid), 0);
	node_rig_run(&r, MSEC);
	simqp_device_set(r.fabric, &r.id[0].nid, &device);
	cr_assert_eq(lnet_ni_add(r.node[0],
				 &(struct ulnet_ni_conf){ .nid = r.id[0].nid }),
		     0);
	pool = lnet_sim_buf(r.sim, size);
	cr_assert_eq(lnet_mem_register(r.node[0], pool, size), 0);
	s = raw_peer_new(&r);
	for (unsigned int i = 0; i < 5; i++) {
		struct raw_peer_conn *c =
			get(s, pool + i * IB_REG_BLOCK, MIB, i);

		msg = hears(c, IB_MSG_GET_REQ);
		c->owed--;
		raw_peer_answer_get(c, &msg, MIB);
		node_rig_run(&r, MSEC);
		has_reply(&seen[i], MIB);
	}
	cr_assert_gt(usage().locked, 20 * MIB, "no room for 4 MiB");
	node_rig_put(&r, 0, raw_peer_id(s), lnet_sim_buf(r.sim, MIB), MIB, 0,
		     &seen[5]);
	node_rig_run(&r, MSEC);
	hears(raw_peer_last(s), IB_MSG_PUT_REQ);
	node_rig_close(&r);
}

/* The device is removed, and returns. */
Test(o2ib_direct, device_back)
{
	struct raw_peer_conn *c;
	struct ib_msg msg;
	struct raw_peer *s;

	open_one();
	s = raw_peer_new(&r);
	c = get(s, memory, MIB, 0);
	msg = hears(c, IB_MSG_GET_REQ);
	cr_assert(is_mine(addr_of(&msg, MIB)));
	simqp_remove(r.fabric, &r.id[0].nid);
	node_rig_run(&r, MSEC);
	seen_end(&seen[0], LNET_EVENT_SEND, -ENETDOWN, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_LOCAL_ERROR);
	cr_assert_eq(usage().mrs, 0);
	simqp_insert(r.fabric, &r.id[0].nid);
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	get_is_copied(s, 1, false);
	node_rig_close(&r);
}
