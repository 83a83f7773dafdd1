/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw peers that send nonsense, or take all that they can get, against a whole
 * node. The node ends their connections, and a correct peer does not notice.
 */
#include "base/buf.h"
#include "base/env.h"
#include "tests/unit/o2iblnd/node_rig.h"

#define VICTIM 0
#define SANE   1
#define LAZY   6

static struct node_rig r;
static struct raw_peer *s;
static uint8_t source[MIB], memory[MIB], sink[MIB];
static struct seen put_seen, big_seen, get_seen, strange, received, got;

/* The correct peer exchanges all kinds of messages, within @ns. */
static void sane_goes_on(uint64_t ns, const char *what)
{
	put_seen.n = big_seen.n = get_seen.n = received.n = 0;
	memset(sink, 0, sizeof(sink));
	node_rig_put(&r, SANE, r.id[VICTIM], source, 100, 1, &put_seen);
	node_rig_put(&r, SANE, r.id[VICTIM], source, MIB, 2, &big_seen);
	node_rig_get(&r, SANE, r.id[VICTIM], sink, MIB, &get_seen);
	node_rig_run(&r, ns);
	cr_assert(put_seen.n && put_seen.ev[0].terminal, "%s", what);
	cr_assert_eq(put_seen.ev[0].status, 0, "%s: %d", what,
		     put_seen.ev[0].status);
	cr_assert(big_seen.n && big_seen.ev[0].terminal, "%s", what);
	cr_assert_eq(big_seen.ev[0].status, 0, "%s: %d", what,
		     big_seen.ev[0].status);
	cr_assert_eq(seen_last(&get_seen), LNET_EVENT_REPLY, "%s", what);
	cr_assert_eq(get_seen.ev[get_seen.n - 1].status, 0, "%s", what);
	cr_assert_eq(get_seen.ev[get_seen.n - 1].mlength, MIB, "%s", what);
	cr_assert_eq(lnet_sim_check(r.sim), 0, "%s", what);
}

static void set(const char *name, int64_t value)
{
	r.tunables[r.ntunables++] = (struct ulnet_tunable){ name, value };
}

static void open_nodes(unsigned int cpts)
{
	struct ulnet_md umd =
		md_of(memory, MIB,
		      LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_TRUNCATE |
			      LNET_MD_MANAGE_REMOTE,
		      NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	node_rig_open(&r, 2, cpts, NULL);
	post_md(r.node[VICTIM], PORTAL, BITS, &umd);
	post_md(r.node[SANE], PORTAL, BITS, &umd);
	s = raw_peer_new(&r);
	sane_goes_on(NSEC_PER_SEC, "nobody is strange");
}

/* Nothing of the node is held for a raw peer any more. */
static void nothing_is_left(const char *what)
{
	struct simqp_usage u;

	node_rig_run(&r, NSEC_PER_SEC);
	simqp_usage(r.fabric, &r.id[VICTIM].nid, &u);
	cr_assert_eq(u.qps, 1, "%s: %u, of which one is the sane one's", what,
		     u.qps);
}

/* ---- greetings ---- */

static struct {
	unsigned int at;
	uint8_t mask;
} turn;

static void turn_bits(uint8_t *bytes)
{
	bytes[turn.at] ^= turn.mask;
}

static const uint8_t masks[] = { 0x01, 0x80, 0xff };

/* A request with one byte changed is accepted or rejected. */
Test(o2ib_hostile, requests)
{
	char what[32];

	open_nodes(1);
	s->hello = turn_bits;
	for (turn.at = 0; turn.at < IB_CONN_SIZE; turn.at++)
		for (unsigned int m = 0; m < ARRAY_SIZE(masks); m++) {
			struct raw_peer_conn *c;

			turn.mask = masks[m];
			snprintf(what, sizeof(what), "%u ^ %u", turn.at,
				 turn.mask);
			c = raw_peer_ask(s, VICTIM);
			cr_assert_eq(c->established + c->rejected + c->failed,
				     1, "%s", what);
			/* magic to type; sender; receiver */
			if (turn.at < 7 || turn.at / 8 == 2 || turn.at / 8 == 4)
				cr_assert_eq(c->rejected, 1, "%s", what);
			raw_peer_hang_up(c);
		}
	s->hello = NULL;
	nothing_is_left("requests");
	raw_peer_hang_up(raw_peer_connect(s, VICTIM));
	sane_goes_on(NSEC_PER_SEC, "requests");
	node_rig_close(&r);
}

/* The same for an acceptance: the waiting message is sent, or ends. */
Test(o2ib_hostile, acceptances)
{
	char what[32];

	open_nodes(1);
	s->hello = turn_bits;
	for (turn.at = 0; turn.at < IB_CONN_SIZE; turn.at++)
		for (unsigned int m = 0; m < ARRAY_SIZE(masks); m++) {
			turn.mask = masks[m];
			snprintf(what, sizeof(what), "%u ^ %u", turn.at,
				 turn.mask);
			strange.n = 0;
			node_rig_put(&r, VICTIM, raw_peer_id(s), source, 100, 1,
				     &strange);
			node_rig_run(&r, 60 * NSEC_PER_SEC);
			cr_assert_eq(strange.n, 1, "%s", what);
			cr_assert(strange.ev[0].terminal, "%s", what);
			while (!list_empty(&s->conns))
				raw_peer_hang_up(raw_peer_last(s));
		}
	s->hello = NULL;
	nothing_is_left("acceptances");
	sane_goes_on(NSEC_PER_SEC, "acceptances");
	node_rig_close(&r);
}

/* A peer that does not answer requests does not keep others waiting. */
Test(o2ib_hostile, mute)
{
	open_nodes(1);
	s->answer = RAW_PEER_IS_MUTE;
	strange.n = 0;
	for (unsigned int i = 0; i < 20; i++)
		node_rig_put(&r, VICTIM, raw_peer_id(s), source, 100, 1,
			     &strange);
	node_rig_run(&r, NSEC_PER_SEC);
	sane_goes_on(NSEC_PER_SEC, "mute");
	node_rig_run(&r, 100 * NSEC_PER_SEC);
	cr_assert_eq(strange.n, 20);
	for (unsigned int i = 0; i < 20; i++)
		cr_assert_eq(strange.ev[i].outcome, LNET_OUTCOME_NOT_DELIVERED);
	node_rig_close(&r);
}

/* ---- messages ---- */

/* The message of a stage of a connection, before it is changed. */
struct stage {
	const char *name;
	/* Brings @c to the stage; returns the message and its length. */
	size_t (*begin)(struct raw_peer_conn *c, uint8_t *bytes);
};

static size_t begin_noop(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);

	return ib_noop_encode(&head, bytes);
}

static size_t begin_immediate(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct lnet_hdr hdr = raw_peer_put_hdr(c, 20, 1);

	hdr_encode(&hdr, bytes + IB_LNET_OFFSET, LNET_HDR_SIZE);
	return ib_immediate_encode(&head, 20, bytes);
}

static size_t begin_put(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct lnet_hdr hdr = raw_peer_put_hdr(c, MIB, 1);

	hdr_encode(&hdr, bytes + IB_LNET_OFFSET, LNET_HDR_SIZE);
	return ib_put_req_encode(&head, 4711, bytes);
}

static size_t begin_get(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct lnet_hdr hdr = raw_peer_get_hdr(c, MIB);
	struct ib_frag frags[2] = {
		{ (uintptr_t)c->s->memory, MIB / 2 },
		{ (uintptr_t)c->s->memory + MIB / 2, MIB / 2 },
	};
	struct ib_sink to = { c->s->mr->rkey, 2, frags };

	hdr_encode(&hdr, bytes + IB_LNET_OFFSET, LNET_HDR_SIZE);
	return ib_get_req_encode(&head, 4712, &to, bytes);
}

static struct ib_msg heard(struct raw_peer_conn *c, enum ib_msg_type type)
{
	struct ib_msg msg;

	node_rig_run(&r, MSEC);
	cr_assert(raw_peer_hears(c, type, &msg));
	return msg;
}

static size_t begin_ack(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct ib_frag frag = { (uintptr_t)c->s->memory, MIB };
	struct ib_sink to = { c->s->mr->rkey, 1, &frag };

	node_rig_put(&r, VICTIM, raw_peer_id(c->s), source, MIB, 1, &strange);
	return ib_put_ack_encode(&head, heard(c, IB_MSG_PUT_REQ).cookie, 4713,
				 &to, bytes);
}

static size_t begin_nak(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);

	node_rig_put(&r, VICTIM, raw_peer_id(c->s), source, MIB, 1, &strange);
	return ib_done_encode(&head, IB_MSG_PUT_NAK,
			      heard(c, IB_MSG_PUT_REQ).cookie, 0, bytes);
}

static size_t begin_put_done(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);
	size_t n = begin_put(c, bytes);

	cr_assert_eq(raw_peer_say(c, bytes, n), 0);
	return ib_done_encode(&head, IB_MSG_PUT_DONE,
			      heard(c, IB_MSG_PUT_ACK).dst_cookie, MIB, bytes);
}

static size_t begin_get_done(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);

	node_rig_get(&r, VICTIM, raw_peer_id(c->s), sink, MIB, &got);
	return ib_done_encode(&head, IB_MSG_GET_DONE,
			      heard(c, IB_MSG_GET_REQ).cookie, MIB, bytes);
}

static const struct stage stages[] = {
	{ "NOOP", begin_noop },		{ "IMMEDIATE", begin_immediate },
	{ "PUT_REQ", begin_put },	{ "GET_REQ", begin_get },
	{ "PUT_ACK", begin_ack },	{ "PUT_NAK", begin_nak },
	{ "PUT_DONE", begin_put_done }, { "GET_DONE", begin_get_done },
};

/* Whatever the stage has begun has ended. */
static void all_has_ended(const char *what)
{
	unsigned int ends = 0;

	for (unsigned int i = 0; i < strange.n; i++)
		ends += strange.ev[i].terminal;
	for (unsigned int i = 0; i < got.n; i++)
		ends += got.ev[i].terminal;
	cr_assert(ends == (strange.n || got.n), "%s", what);
	strange.n = got.n = 0;
}

static struct raw_peer_conn *at_stage(const struct stage *stage, uint8_t *bytes,
				      size_t *n)
{
	struct raw_peer_conn *c = raw_peer_connect(s, VICTIM);

	memset(bytes, 0, IB_MSG_SIZE_MAX);
	*n = stage->begin(c, bytes);
	return c;
}

/* Sends it and disconnects. Returns whether the node had ended the connection
 * before. */
static bool say(struct raw_peer_conn *c, uint8_t *bytes, size_t n,
		const char *what)
{
	bool ended;

	/* the test sets the credits itself */
	s->keeps_credits = true;
	cr_assert_eq(raw_peer_say(c, bytes, n), 0);
	s->keeps_credits = false;
	node_rig_run(&r, 10 * MSEC);
	ended = c->disconnected;
	raw_peer_hang_up(c);
	node_rig_run(&r, 10 * MSEC);
	all_has_ended(what);
	return ended;
}

/* magic, version, checksum, sender and receiver */
static bool must_be_right(unsigned int at)
{
	return at < 6 || (at >= 12 && at < IB_HDR_SIZE);
}

static void each_byte(const struct stage *stage)
{
	uint8_t bytes[IB_MSG_SIZE_MAX];
	char what[64];
	size_t n = 1;

	for (unsigned int at = 0; at < n; at++)
		for (unsigned int m = 0; m < ARRAY_SIZE(masks); m++) {
			struct raw_peer_conn *c = at_stage(stage, bytes, &n);

			snprintf(what, sizeof(what), "%s: %u ^ %u", stage->name,
				 at, masks[m]);
			bytes[at] ^= masks[m];
			cr_assert(say(c, bytes, n, what) || !must_be_right(at),
				  "%s", what);
		}
}

static void each_length(const struct stage *stage)
{
	uint8_t bytes[IB_MSG_SIZE_MAX];
	char what[64];
	size_t n = 2;

	for (unsigned int length = 1; length < n; length++)
		for (int honest = 0; honest < 2; honest++) {
			struct raw_peer_conn *c = at_stage(stage, bytes, &n);

			snprintf(what, sizeof(what), "%s: %u bytes",
				 stage->name, length);
			if (honest)
				store_le32(bytes + 8, length);
			say(c, bytes, length, what);
		}
}

/* A message with one byte changed ends the connection, or does not. */
static void every_stage(void (*each)(const struct stage *stage))
{
	open_nodes(1);
	for (unsigned int i = 0; i < ARRAY_SIZE(stages); i++) {
		each(&stages[i]);
		nothing_is_left(stages[i].name);
		sane_goes_on(NSEC_PER_SEC, stages[i].name);
	}
	node_rig_close(&r);
}

Test(o2ib_hostile, bytes)
{
	every_stage(each_byte);
}

Test(o2ib_hostile, lengths)
{
	every_stage(each_length);
}

/* an unchanged message is valid */
Test(o2ib_hostile, stages_work)
{
	uint8_t bytes[IB_MSG_SIZE_MAX];

	open_nodes(1);
	for (unsigned int i = 0; i < ARRAY_SIZE(stages); i++) {
		size_t n;
		struct raw_peer_conn *c = at_stage(&stages[i], bytes, &n);

		cr_assert_eq(raw_peer_say(c, bytes, n), 0);
		node_rig_run(&r, 10 * MSEC);
		cr_assert_eq(c->disconnected, 0, "%s", stages[i].name);
		for (unsigned int k = 0; k < strange.n; k++)
			cr_assert_eq(strange.ev[k].status, 0);
		for (unsigned int k = 0; k < got.n; k++)
			cr_assert_eq(got.ev[k].status, 0);
		raw_peer_hang_up(c);
		strange.n = got.n = 0;
	}
	node_rig_close(&r);
}

/* ---- LNet headers ---- */

struct field {
	const char *name;
	unsigned int at, size;
};

static const struct field fields[] = {
	{ "destination", 0, 8 }, { "source", 8, 8 },  { "to pid", 16, 4 },
	{ "from pid", 20, 4 },	 { "type", 24, 4 },   { "payload", 28, 4 },
	{ "handle", 32, 8 },	 { "handle", 40, 8 }, { "bits", 48, 8 },
	{ "", 56, 8 },		 { "", 64, 4 },	      { "", 68, 4 },
};

static const uint64_t values[] = {
	0,
	1,
	2,
	3,
	4,
	4096,
	MIB,
	MIB + 1,
	UINT32_MAX / 2,
	UINT32_MAX / 2 + 1,
	UINT32_MAX,
	UINT64_MAX / 2,
	UINT64_MAX,
};

static void patch(uint8_t *hdr, const struct field *f, uint64_t value)
{
	if (f->size == 8)
		store_le64(hdr + f->at, value);
	else
		store_le32(hdr + f->at, (uint32_t)value);
}

/* Each field, and each type of LNet's messages in each message. */
static void each_header(const struct stage *stage)
{
	uint8_t bytes[IB_MSG_SIZE_MAX];
	char what[64];
	size_t n;

	for (unsigned int f = 0; f < ARRAY_SIZE(fields); f++)
		for (unsigned int v = 0; v < ARRAY_SIZE(values); v++)
			for (uint32_t type = 0; type < 4; type++) {
				struct raw_peer_conn *c =
					at_stage(stage, bytes, &n);
				uint8_t *hdr = bytes + IB_LNET_OFFSET;

				snprintf(what, sizeof(what), "%s: %s %llx",
					 stage->name, fields[f].name,
					 (unsigned long long)values[v]);
				patch(hdr, &fields[4], type);
				patch(hdr, &fields[f], values[v]);
				say(c, bytes, n, what);
			}
}

Test(o2ib_hostile, headers)
{
	open_nodes(1);
	for (unsigned int i = 1; i <= 3; i++) {
		each_header(&stages[i]);
		nothing_is_left(stages[i].name);
		sane_goes_on(NSEC_PER_SEC, stages[i].name);
	}
	node_rig_close(&r);
}

/* ---- shares ---- */

/* More messages than there are credits for. */
Test(o2ib_hostile, credits)
{
	struct raw_peer_conn *c;
	struct lnet_hdr hdr;

	open_nodes(1);
	c = raw_peer_connect(s, VICTIM);
	cr_assert_eq(LNetSetLazyPortal(r.node[VICTIM], LAZY), 0);
	hdr = raw_peer_get_hdr(c, 10);
	hdr.portal = LAZY;
	for (unsigned int i = 0; i < RAW_PEER_DEPTH; i++)
		raw_peer_get_req(c, &hdr, i);
	node_rig_run(&r, MSEC);
	cr_assert_eq(c->disconnected, 0);
	for (unsigned int i = 0; i <= RAW_PEER_DEPTH && !c->disconnected; i++) {
		raw_peer_get_req(c, &hdr, i);
		node_rig_run(&r, MSEC);
	}
	sane_goes_on(NSEC_PER_SEC, "credits");
	cr_assert_eq(LNetClearLazyPortal(r.node[VICTIM], LAZY), 0);
	node_rig_close(&r);
}

/* One peer that opens connections without end. */
Test(o2ib_hostile, many_connections)
{
	unsigned int have = 0;

	set("accept_peer_max", 10);
	open_nodes(2);
	for (unsigned int i = 0; i < 50; i++)
		have += raw_peer_ask(s, VICTIM)->established;
	cr_assert_eq(have, 10);
	sane_goes_on(NSEC_PER_SEC, "many connections");
	node_rig_close(&r);
}

/* Many such peers: this side can still open its own connections. */
Test(o2ib_hostile, many_raw_peers)
{
	struct raw_peer_conn *c;
	unsigned int have = 0;

	set("accept_max", 20);
	open_nodes(1);
	for (unsigned int i = 0; i < RAW_PEERS - 2; i++) {
		struct raw_peer *other = raw_peer_new(&r);

		for (unsigned int k = 0; k < 3; k++)
			have += raw_peer_ask(other, VICTIM)->established;
	}
	cr_assert_leq(have, 20);
	sane_goes_on(NSEC_PER_SEC, "many raw peers");
	s = raw_peer_new(&r);
	strange.n = 0;
	node_rig_put(&r, VICTIM, raw_peer_id(s), source, MIB, 1, &strange);
	node_rig_run(&r, NSEC_PER_SEC);
	c = raw_peer_last(s);
	raw_peer_done(c, IB_MSG_PUT_NAK, heard(c, IB_MSG_PUT_REQ).cookie, 0);
	node_rig_run(&r, NSEC_PER_SEC);
	cr_assert_eq(strange.n, 1);
	cr_assert_eq(strange.ev[0].status, 0);
	node_rig_close(&r);
}

/* A peer that claims the NIDs of others, also of the correct one, from its own
 * address, gains nothing and ends nothing. */
Test(o2ib_hostile, many_names)
{
	struct ulnet_nid own;

	open_nodes(2);
	own = s->self.nid;
	for (unsigned int i = 0; i < 50; i++) {
		const struct raw_peer_conn *c;

		s->self.nid = r.id[SANE].nid;
		s->self.nid.addr[2] = (uint8_t)i;
		c = raw_peer_ask(s, VICTIM);
		cr_assert_eq(c->rejected, 1, "%u", i);
		cr_assert(c->said);
		cr_assert_eq(c->reject.reason, IB_REJECT_FATAL);
	}
	nothing_is_left("many names");
	s->self.nid = own;
	raw_peer_hang_up(raw_peer_connect(s, VICTIM));
	sane_goes_on(NSEC_PER_SEC, "many names");
	node_rig_close(&r);
}

/* A peer that requests PUTs and never answers: its own messages wait, those of
 * others do not. */
Test(o2ib_hostile, answers_no_puts)
{
	set("bounce_max", 4 * MIB);
	open_nodes(1);
	strange.n = 0;
	for (unsigned int i = 0; i < 30; i++)
		node_rig_put(&r, VICTIM, raw_peer_id(s), source, MIB / 2, i,
			     &strange);
	node_rig_run(&r, MSEC);
	for (unsigned int i = 0; i < 100; i++)
		sane_goes_on(NSEC_PER_SEC, "no answers");
	cr_assert_eq(strange.n, 30);
	node_rig_close(&r);
}

/* Announces as many PUTs of @length bytes as it may, and finishes none. */
static void hold_memory(struct raw_peer_conn *c, uint32_t length)
{
	struct lnet_hdr hdr = raw_peer_put_hdr(c, length, 1);

	for (unsigned int i = 0; i < RAW_PEER_DEPTH; i++)
		raw_peer_put_req(c, &hdr, i);
}

/* @raw_peers hold memory over @conns connections each. */
static void finish_no_puts(unsigned int raw_peers, unsigned int conns,
			   uint32_t length)
{
	open_nodes(1);
	for (unsigned int i = 0; i < raw_peers; i++) {
		struct raw_peer *other = i ? raw_peer_new(&r) : s;

		for (unsigned int k = 0; k < conns; k++)
			hold_memory(raw_peer_connect(other, VICTIM), length);
	}
	node_rig_run(&r, MSEC);
}

/* One peer that takes all it can leaves as much for others. */
Test(o2ib_hostile, finishes_no_puts)
{
	set("bounce_max", 8 * MIB);
	finish_no_puts(1, 3, MIB / 8);
	sane_goes_on(NSEC_PER_SEC, "no ends");
	node_rig_close(&r);
}

/* Ten peers leave almost 1.5 MiB here for an eleventh. */
Test(o2ib_hostile, ten_finish_no_puts)
{
	set("bounce_max", 32 * MIB);
	finish_no_puts(10, 4, 65536);
	sane_goes_on(NSEC_PER_SEC, "no ends");
	node_rig_close(&r);
}

/* So many peers leave too little, but only for a while: a connection ends with
 * its first PUT that is not finished in time, and those that get memory then
 * have their time, too. */
Test(o2ib_hostile, many_finish_no_puts)
{
	set("bounce_max", 4 * MIB);
	set("timeout", 20);
	finish_no_puts(30, 1, 65536);
	node_rig_run(&r, 2 * (20 + 5) * NSEC_PER_SEC);
	sane_goes_on(NSEC_PER_SEC, "no ends");
	node_rig_close(&r);
}

/* A peer that posts no receives: messages to it wait until their deadline. */
Test(o2ib_hostile, deaf)
{
	struct raw_peer_conn *c;
	struct lnet_hdr hdr;

	open_nodes(1);
	s->is_deaf = true;
	c = raw_peer_connect(s, VICTIM);
	hdr = raw_peer_get_hdr(c, 100);
	for (unsigned int i = 0; i < RAW_PEER_DEPTH; i++) {
		raw_peer_immediate(c, &hdr);
		raw_peer_get_req(c, &hdr, i);
		node_rig_run(&r, MSEC);
	}
	sane_goes_on(NSEC_PER_SEC, "deaf");
	node_rig_run(&r, 100 * NSEC_PER_SEC);
	sane_goes_on(NSEC_PER_SEC, "deaf");
	node_rig_close(&r);
}

/* ---- chance ---- */

static struct rng rng;

static uint64_t below(uint64_t n)
{
	return rng_below(&rng, n);
}

/* The next message that @c has received, if any. */
static bool recall(struct raw_peer_conn *c, struct ib_msg *msg)
{
	unsigned int n = MIN(c->nheard, (unsigned int)RAW_PEER_HEARD);
	const struct raw_peer_said *said;
	const char *why;

	if (!n)
		return false;
	said = &c->heard[(c->nheard - 1 - (unsigned int)below(MIN(n, 4u))) %
			 RAW_PEER_HEARD];
	return !ib_msg_decode(said->bytes, said->length, msg, &why);
}

static uint64_t some_cookie(struct raw_peer_conn *c)
{
	struct ib_msg msg;

	if (!recall(c, &msg) || !below(8))
		return below(10);
	return msg.dst_cookie && below(2) ? msg.dst_cookie : msg.cookie;
}

static uint32_t some_length(void)
{
	static const uint32_t lengths[] = { 0,
					    1,
					    100,
					    3976,
					    65536,
					    MIB / 2,
					    MIB,
					    MIB,
					    MIB,
					    MIB + 1,
					    UINT32_C(1) << 31 };

	return lengths[below(ARRAY_SIZE(lengths))];
}

static void some_header(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct lnet_hdr hdr = below(2) ? raw_peer_put_hdr(c, some_length(), 1)
				       : raw_peer_get_hdr(c, some_length());

	if (!below(4))
		hdr.portal = LAZY;
	if (!below(8))
		hdr.type = (uint32_t)below(5);
	if (!below(4))
		hdr.wmd = (struct lnet_wire_handle){ 1, 2 };
	hdr_encode(&hdr, bytes + IB_LNET_OFFSET, LNET_HDR_SIZE);
	if (!below(8))
		patch(bytes + IB_LNET_OFFSET,
		      &fields[below(ARRAY_SIZE(fields))],
		      values[below(ARRAY_SIZE(values))]);
}

static size_t some_bytes(struct raw_peer_conn *c, uint8_t *bytes)
{
	struct ib_hdr head = raw_peer_hdr(c);
	struct ib_frag frags[3];
	struct ib_sink to = { c->s->mr->rkey, 1 + (unsigned int)below(3),
			      frags };

	for (unsigned int i = 0; i < 3; i++)
		frags[i] = (struct ib_frag){ (uintptr_t)c->s->memory +
						     below(3) * MIB / 3,
					     some_length() / (1 + (i > 0)) };
	if (!below(10))
		to.key++;
	some_header(c, bytes);
	switch (below(8)) {
	case 0:
		return ib_noop_encode(&head, bytes);
	case 1:
		return ib_immediate_encode(&head, below(IB_IMMEDIATE_MAX + 1),
					   bytes);
	case 2:
		return ib_put_req_encode(&head, below(10), bytes);
	case 3:
		return ib_get_req_encode(&head, below(10), &to, bytes);
	case 4:
		return ib_put_ack_encode(&head, some_cookie(c), below(10), &to,
					 bytes);
	case 5:
		return ib_done_encode(&head, IB_MSG_PUT_NAK, some_cookie(c),
				      (int32_t)below(3) - 1, bytes);
	case 6:
		return ib_done_encode(&head, IB_MSG_PUT_DONE, some_cookie(c),
				      (int32_t)some_length(), bytes);
	default:
		return ib_done_encode(&head, IB_MSG_GET_DONE, some_cookie(c),
				      (int32_t)some_length(), bytes);
	}
}

static void say_something(struct raw_peer_conn *c)
{
	uint8_t bytes[IB_MSG_SIZE_MAX] = { 0 };
	size_t n = some_bytes(c, bytes);
	struct ib_msg msg;
	uint64_t addr;
	uint32_t nob;

	if (!below(20))
		bytes[below(n)] ^= (uint8_t)(1 << below(8));
	c->s->keeps_credits = !below(10);
	if (c->established && recall(c, &msg) && msg.rdma.nfrags && below(2)) {
		ib_rdma_frag(&msg.rdma, 0, &addr, &nob);
		(void)raw_peer_write(
			c, addr + (below(20) ? 0 : 4096), msg.rdma.key,
			MIN(nob, (uint32_t)RAW_PEER_MEMORY), bytes, n);
	} else {
		(void)raw_peer_say(c, bytes, n);
	}
}

static void node_asks(struct seen *seen)
{
	bool get = below(2);
	struct ulnet_md umd =
		md_of(get ? sink : source, MIB >> below(9), 0, seen);
	struct ulnet_md_handle md;

	umd.threshold = 1 + get;
	if (below(2))
		umd.timeout = 1 + below(3000000);
	md = bind_md(r.node[VICTIM], &umd);
	if (get)
		cr_assert_eq(LNetGet(LNET_NID_ANY, md, raw_peer_id(s), PORTAL,
				     BITS, 0),
			     0);
	else
		cr_assert_eq(LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ,
				     raw_peer_id(s), PORTAL, BITS, 0, 0),
			     0);
}

/* One of its connections, or a new one. */
static struct raw_peer_conn *some_conn(void)
{
	struct raw_peer_conn *c;

	if (list_empty(&s->conns) || !below(10))
		return raw_peer_ask(s, VICTIM);
	c = below(2) ? raw_peer_last(s)
		     : list_first(&s->conns, struct raw_peer_conn, link);
	if (c->established && !c->disconnected && !c->failed &&
	    c->sends < RAW_PEER_SLOTS && below(30))
		return c;
	raw_peer_hang_up(c);
	return NULL;
}

static void talk(uint64_t seed)
{
	unsigned int asked = 0, ends = 0;

	rng_seed(&rng, seed);
	r.ntunables = r.nraw_peers = 0;
	strange.n = 0;
	set("bounce_max", 4 * MIB);
	open_nodes(1 + (unsigned int)below(2));
	cr_assert_eq(LNetSetLazyPortal(r.node[VICTIM], LAZY), 0);
	for (unsigned int i = 0; i < 200; i++) {
		struct raw_peer_conn *c;

		if (!below(5)) {
			node_asks(&strange);
			asked++;
		}
		c = some_conn();
		for (uint64_t k = below(10); c && k; k--)
			if (c->established && c->sends < RAW_PEER_SLOTS)
				say_something(c);
		node_rig_run(&r, below(4) * below(1000000));
	}
	while (!list_empty(&s->conns))
		raw_peer_hang_up(raw_peer_last(s));
	cr_assert_eq(LNetClearLazyPortal(r.node[VICTIM], LAZY), 0);
	s->answer = RAW_PEER_REJECTS;
	node_rig_run(&r, 100 * NSEC_PER_SEC);
	for (unsigned int i = 0; i < strange.n; i++)
		ends += strange.ev[i].terminal;
	cr_assert_eq(ends, asked, "seed %u", (unsigned int)seed);
	nothing_is_left("chance");
	sane_goes_on(NSEC_PER_SEC, "chance");
	node_rig_close(&r);
}

/* Random messages at random times. */
Test(o2ib_hostile, chance)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		talk(seed);
}
