/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody on the way between a client and a server, whose bulk is sealed: he
 * sees it, changes it, exchanges it, and puts in what was moved before. */
#include "base/buf.h"
#include "base/crc32c.h"
#include "rpc/bulk/bulk.h"
#include "rpc/bulk/seal.h"
#include "rpc/flavour.h"
#include "sim/sim.h"
#include "tests/unit/rpc/proof_rig.h"

/* LNet's header. */
enum {
	HDR_TYPE = 24,
	HDR_LENGTH = 28,
	HDR_MATCH = 48,
	HDR_DATA = 56,
	HDR_PORTAL = 64,
	HDR_OFFSET = 68,
};

#define SEGMENT	 48u
#define LENGTH	 (2 * SEGMENT + 20) /* of each bulk: three segments */
#define SOURCES	 2
#define BULKS	 4  /* two sources, and two sinks */
#define CAUGHT	 16 /* messages of a call */
#define ANY_TIME UINT_MAX

/* ---- the service: gets the sources, and puts what it has to the sinks ---- */

struct exchange {
	struct proof_rig *g;
	uint8_t lent[BULKS][LENGTH], own[BULKS][LENGTH];
	struct ulrpc_request *r;
	unsigned int next; /* bulk */
	unsigned int runs;
	unsigned int served; /* runs in which all was moved */
	int status;	     /* of the transfers: the first error */
};

static void exchange_on(void *arg, int status, uint64_t moved)
{
	struct exchange *x = arg;
	struct iovec iov = { x->own[x->next], LENGTH };
	unsigned int i = x->next;

	(void)moved;
	if (status) {
		x->status = status;
		ulrpc_fail(x->r, status);
		return;
	}
	if (i == BULKS) {
		x->served++;
		ulrpc_reply(x->r, "done", 5);
		return;
	}
	x->next++;
	cr_assert_eq(
		i < SOURCES
			? ulrpc_bulk_get(x->r, i, 0, &iov, 1, exchange_on, x)
			: ulrpc_bulk_put(x->r, i, 0, &iov, 1, exchange_on, x),
		0);
}

static void exchange(void *arg, struct ulrpc_request *r, const void *body,
		     size_t length)
{
	struct exchange *x = arg;

	(void)body;
	(void)length;
	x->r = r;
	x->next = 0;
	x->runs++;
	exchange_on(x, 0, 0);
}

static struct exchange *exchange_new(unsigned int cpts,
				     enum ulrpc_flavour flavour)
{
	struct exchange *x = calloc(1, sizeof(*x));
	struct ulrpc_method_conf method = { .name = "who",
					    .handler = exchange,
					    .arg = x,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;
	struct ulrpc_client_conf client;
	struct ulnet_nid nid;

	x->g = proof_rig_new(cpts, "a", ULRPC_FLAVOUR_AUTH);
	cr_assert_eq(ulrpc_service_stop(x->g->serve.service, 0), 0);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.flavour = flavour;
	serve_start(&x->g->serve, &conf);
	client = client_conf(&nid);
	proof_client(x->g, &client);
	return x;
}

static void exchange_free(struct exchange *x)
{
	ulrpc_client_close(x->g->serve.client);
	proof_rig_free(x->g);
	free(x);
}

/* Other bytes for each @n and bulk. All have a marker in their second segment.
 */
#define MARKER "a secret of the cluster's users"

static void fill(uint8_t bytes[LENGTH], unsigned int n, unsigned int bulk)
{
	for (unsigned int i = 0; i < LENGTH; i++)
		bytes[i] = (uint8_t)(i + 31 * bulk + 7 * n);
	memcpy(bytes + SEGMENT, MARKER, sizeof(MARKER));
}

/* A call that is under way. */
struct exchanged {
	struct ulrpc_bulk *bulks[BULKS];
	struct called c;
};

/* Calls with the @n-th filling; @deadline: us. */
static void exchange_begin(struct exchange *x, unsigned int n,
			   uint64_t deadline, struct exchanged *d)
{
	struct ulrpc_call_conf conf = { .deadline = deadline, .nbulks = BULKS };

	*d = (struct exchanged){ .c = { 0 } };
	for (unsigned int i = 0; i < BULKS; i++) {
		struct iovec iov[2] = { { x->lent[i], 30 },
					{ x->lent[i] + 30, LENGTH - 30 } };
		const struct ulrpc_bulk_conf b = {
			.iov = iov,
			.niov = 2,
			.access = i < SOURCES ? ULRPC_BULK_SOURCE
					      : ULRPC_BULK_SINK,
			.segment = SEGMENT,
		};
		bool source = i < SOURCES;

		fill(source ? x->lent[i] : x->own[i], n, i);
		memset(source ? x->own[i] : x->lent[i], 0, LENGTH);
		cr_assert_eq(ulrpc_bulk_new(x->g->serve.rpc[CALLER], &b,
					    &d->bulks[i]),
			     0);
	}
	conf.bulks = d->bulks;
	cr_assert_eq(ulrpc_call(x->g->serve.client, ulrpc_method("who"), "x", 1,
				&conf, on_called, &d->c, NULL),
		     0);
}

static void exchange_end(struct exchange *x, struct exchanged *d)
{
	while (!d->c.ended)
		lnet_sim_run(x->g->serve.sim, MSEC);
	for (unsigned int i = 0; i < BULKS; i++)
		ulrpc_bulk_close(d->bulks[i], NULL, NULL);
	lnet_sim_run(x->g->serve.sim, MSEC);
}

static struct called exchange_call(struct exchange *x, unsigned int n,
				   uint64_t deadline)
{
	struct exchanged d;

	exchange_begin(x, n, deadline, &d);
	exchange_end(x, &d);
	return d.c;
}

static bool is_moved(const struct exchange *x)
{
	return memcmp(x->lent, x->own, sizeof(x->lent)) == 0;
}

static void check_good(struct exchange *x, const struct called *c,
		       const char *why)
{
	cr_assert_eq(c->outcome.cause, ULRPC_CAUSE_OK, "%s: %s", why,
		     ulrpc_cause_name(c->outcome.cause));
	cr_assert(is_moved(x), "%s", why);
	cr_assert_eq(c->length, 5);
}

/* ---- who sits on the way ---- */

struct attacker {
	/* bulk that is put by the server, or that it gets */
	bool puts;
	/* changes the one that comes as number @turn of a call; ANY_TIME: each
	 * one */
	unsigned int turn, seen, changed;
	void (*change)(struct attacker *a, uint8_t *hdr, uint8_t *payload,
		       size_t length);
	size_t at; /* the byte that he changes */
	/* what has come in this call, and in the one before */
	struct caught {
		uint8_t bytes[SEGMENT];
		size_t length;
	} now[CAUGHT], before[CAUGHT];
	bool marker; /* was on the wire */
};

static bool is_bulk(const struct attacker *a, const uint8_t *hdr, size_t length)
{
	uint32_t type = load_le32(hdr + HDR_TYPE);

	if (!length || length > SEGMENT)
		return false;
	if (!a->puts)
		return type == LNET_MSG_REPLY;
	return type == LNET_MSG_PUT &&
	       load_le32(hdr + HDR_PORTAL) == ULRPC_PORTAL_BULK;
}

static void on_wire(void *arg, uint8_t *hdr, size_t hdr_len, uint8_t *payload,
		    size_t length)
{
	struct attacker *a = arg;
	unsigned int i = a->seen;

	if (hdr_len != LNET_HDR_SIZE)
		return;
	a->marker = a->marker || memmem(payload, length, MARKER, 20);
	if (!is_bulk(a, hdr, length))
		return;
	memcpy(a->now[i % CAUGHT].bytes, payload, length);
	a->now[i % CAUGHT].length = length;
	a->seen++;
	if (!a->change || (a->turn != ANY_TIME && a->turn != i))
		return;
	a->changed++;
	a->change(a, hdr, payload, length);
}

static void next_call(struct attacker *a)
{
	memcpy(a->before, a->now, sizeof(a->now));
	a->seen = a->changed = 0;
}

static void flip(struct attacker *a, uint8_t *hdr, uint8_t *payload,
		 size_t length)
{
	(void)hdr;
	payload[a->at % length] ^= 0x10;
}

/* What came before it in this call, instead. */
static void exchange_two(struct attacker *a, uint8_t *hdr, uint8_t *payload,
			 size_t length)
{
	(void)hdr;
	memcpy(payload, a->now[a->turn - 1].bytes, length);
}

/* What came at this place in the call before. */
static void replay(struct attacker *a, uint8_t *hdr, uint8_t *payload,
		   size_t length)
{
	(void)hdr;
	cr_assert_eq(a->before[a->turn].length, length);
	memcpy(payload, a->before[a->turn].bytes, length);
}

/* As for the segment behind it. */
static void move_on(struct attacker *a, uint8_t *hdr, uint8_t *payload,
		    size_t length)
{
	(void)a;
	(void)payload;
	(void)length;
	store_le64(hdr + HDR_MATCH, load_le64(hdr + HDR_MATCH) ^ 1);
}

static void cut_off(struct attacker *a, uint8_t *hdr, uint8_t *payload,
		    size_t length)
{
	(void)a;
	(void)payload;
	store_le32(hdr + HDR_LENGTH, (uint32_t)length - 1);
}

/* He knows how PUTs are checked when they come. */
static void mend_crc(uint8_t *hdr, const uint8_t *payload, size_t length)
{
	uint32_t crc =
		bulk_place_crc(load_le64(hdr + HDR_MATCH),
			       load_le32(hdr + HDR_OFFSET), (uint32_t)length);

	store_le64(hdr + HDR_DATA, bulk_proof(crc32c(crc, payload, length)));
}

static void flip_and_mend(struct attacker *a, uint8_t *hdr, uint8_t *payload,
			  size_t length)
{
	flip(a, hdr, payload, length);
	mend_crc(hdr, payload, length);
}

static void replay_and_mend(struct attacker *a, uint8_t *hdr, uint8_t *payload,
			    size_t length)
{
	replay(a, hdr, payload, length);
	mend_crc(hdr, payload, length);
}

/* The segment arrived changed, or not at all, and was moved again. */
static uint64_t damaged(const struct exchange *x)
{
	return counts(x->g->serve.rpc[SERVER], RPC_STAT_segments_damaged) +
	       counts(x->g->serve.rpc[CALLER], RPC_STAT_puts_damaged);
}

static const enum ulrpc_flavour flavours[] = {
	ULRPC_FLAVOUR_INTEGRITY,
	ULRPC_FLAVOUR_PRIVACY,
};

static unsigned int nflavours(void)
{
	return FLAVOUR_MAX - ULRPC_FLAVOUR_AUTH;
}

/* ---- tests ---- */

Test(bulk_forgery, what_the_service_meant)
{
	for (unsigned int f = 0; f < nflavours(); f++) {
		struct exchange *x = exchange_new(2, flavours[f]);

		for (unsigned int n = 0; n < 3; n++) {
			struct called c = exchange_call(x, n, 10000000);

			check_good(x, &c, "undisturbed");
		}
		cr_assert_eq(damaged(x), 0);
		cr_assert_eq(x->runs, 3);
		exchange_free(x);
	}
}

/* What can be read on the wire. Without privacy it is there to be found. */
static bool is_readable(enum ulrpc_flavour flavour)
{
	struct exchange *x = exchange_new(1, flavour);
	struct attacker a = { .change = NULL };
	struct called c;

	sim_tap(x->g->serve.sim, on_wire, &a);
	c = exchange_call(x, 0, 10000000);
	check_good(x, &c, "read");
	exchange_free(x);
	return a.marker;
}

Test(bulk_forgery, what_can_be_read)
{
	cr_assert(is_readable(ULRPC_FLAVOUR_AUTH));
	cr_assert(is_readable(ULRPC_FLAVOUR_INTEGRITY));
	if (nflavours() > 1)
		cr_assert_not(is_readable(ULRPC_FLAVOUR_PRIVACY));
}

static void each_byte(enum ulrpc_flavour flavour, bool puts)
{
	struct exchange *x = exchange_new(1, flavour);
	struct attacker a = { .puts = puts, .change = flip, .turn = 0 };

	sim_tap(x->g->serve.sim, on_wire, &a);
	for (a.at = 0; a.at < SEGMENT; a.at++) {
		uint64_t before = damaged(x);
		struct called c =
			exchange_call(x, (unsigned int)a.at, 60000000);

		check_good(x, &c, puts ? "a byte put" : "a byte got");
		cr_assert_eq(a.changed, 1);
		cr_assert_eq(damaged(x), before + 1, "byte %zu", a.at);
		next_call(&a);
	}
	cr_assert_eq(x->runs, SEGMENT);
	exchange_free(x);
}

Test(bulk_forgery, each_byte_that_is_got)
{
	for (unsigned int f = 0; f < nflavours(); f++)
		each_byte(flavours[f], false);
}

Test(bulk_forgery, each_byte_that_is_put)
{
	for (unsigned int f = 0; f < nflavours(); f++)
		each_byte(flavours[f], true);
}

/* Segments in places that they were not meant for, or of another call. */
static void one_change(bool puts, unsigned int turn, const char *why,
		       void (*change)(struct attacker *, uint8_t *, uint8_t *,
				      size_t))
{
	for (unsigned int f = 0; f < nflavours(); f++) {
		struct exchange *x = exchange_new(1, flavours[f]);
		struct attacker a = { .puts = puts, .turn = turn };
		struct called c;

		sim_tap(x->g->serve.sim, on_wire, &a);
		c = exchange_call(x, 1, 60000000);
		check_good(x, &c, why);
		next_call(&a);
		a.change = change;
		c = exchange_call(x, 2, 60000000);
		check_good(x, &c, why);
		cr_assert_eq(a.changed, 1, "%s", why);
		exchange_free(x);
	}
}

Test(bulk_forgery, exchanged_within_a_call)
{
	one_change(false, 1, "exchanged, got", exchange_two);
	one_change(true, 1, "exchanged, put", exchange_two);
	/* of two bulks */
	one_change(false, 3, "of another source", exchange_two);
	one_change(true, 3, "of another sink", exchange_two);
	one_change(true, 0, "put elsewhere", move_on);
}

Test(bulk_forgery, of_an_earlier_call)
{
	one_change(false, 1, "replayed, got", replay);
	one_change(true, 1, "replayed, put", replay);
}

Test(bulk_forgery, cut_off)
{
	one_change(false, 1, "cut off, got", cut_off);
	one_change(true, 1, "cut off, put", cut_off);
}

/* Whoever knows what PUTs are checked for, so that they are put again, can hide
 * from that, but not from the seal: the caller hears that nothing of what it
 * has got is genuine. */
static void hidden(void (*change)(struct attacker *, uint8_t *, uint8_t *,
				  size_t))
{
	for (unsigned int f = 0; f < nflavours(); f++) {
		for (unsigned int turn = 0; turn < 6; turn++) {
			struct exchange *x = exchange_new(1, flavours[f]);
			struct attacker a = { .puts = true, .turn = turn };
			struct called c;

			sim_tap(x->g->serve.sim, on_wire, &a);
			c = exchange_call(x, 1, 60000000);
			check_good(x, &c, "before");
			next_call(&a);
			a.change = change;
			c = exchange_call(x, 2, 60000000);
			cr_assert_eq(a.changed, 1);
			cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_CHECKSUM,
				     "%s", ulrpc_cause_name(c.outcome.cause));
			cr_assert_eq(c.outcome.execution, ULRPC_EXECUTED);
			cr_assert_eq(c.length, 0);
			exchange_free(x);
		}
	}
}

Test(bulk_forgery, changed_with_its_checksum)
{
	hidden(flip_and_mend);
}

Test(bulk_forgery, replayed_with_its_checksum)
{
	hidden(replay_and_mend);
}

/* All of it is changed, each time: the handler gets nothing, and the caller
 * nothing as if it were good. */
Test(bulk_forgery, no_end_of_it)
{
	for (unsigned int f = 0; f < nflavours(); f++) {
		for (unsigned int puts = 0; puts < 2; puts++) {
			struct exchange *x = exchange_new(1, flavours[f]);
			struct attacker a = { .puts = puts,
					      .turn = ANY_TIME,
					      .change = flip };
			struct called c;

			sim_tap(x->g->serve.sim, on_wire, &a);
			c = exchange_call(x, 1, 5000000);
			cr_assert_neq(c.outcome.cause, ULRPC_CAUSE_OK);
			if (!puts)
				cr_assert_eq(x->status, -EBADMSG);
			sim_tap(x->g->serve.sim, NULL, NULL);
			lnet_sim_run(x->g->serve.sim, 60 * SEC);
			exchange_free(x);
		}
	}
}

/* ---- by another NID ---- */

/* Withholds all requests, and delivers the first one by his own NID. */
struct thief {
	struct lnet *node;
	struct ulnet_id server;
	bool awake, delivered, passed;
	/* the message */
	uint32_t portal;
	uint64_t match, hdr_data;
	uint8_t bytes[4096], lies[LENGTH];
	uint32_t length;
};

static bool is_request(const uint8_t *hdr)
{
	uint32_t portal = load_le32(hdr + HDR_PORTAL);

	return load_le32(hdr + HDR_TYPE) == LNET_MSG_PUT &&
	       portal != ULRPC_PORTAL_CONTROL && portal != ULRPC_PORTAL_REPLY &&
	       portal != ULRPC_PORTAL_BULK &&
	       wire_is_sealed(load_le64(hdr + HDR_DATA));
}

static void thief_done(const struct ulnet_event *ev)
{
	(void)ev;
}

static void thief_deliver(struct thief *t)
{
	struct ulnet_md md = { .start = t->bytes,
			       .length = t->length,
			       .threshold = 1,
			       .handler = thief_done };
	struct ulnet_md_handle mdh;

	t->delivered = true;
	cr_assert_eq(LNetMDBind(t->node, &md, LNET_UNLINK, &mdh), 0);
	cr_assert_eq(LNetPut(LNET_NID_ANY, mdh, LNET_NOACK_REQ, t->server,
			     t->portal, t->match, 0, t->hdr_data),
		     0);
}

/* To a portal that nobody has: it is gone. */
#define PORTAL_NONE 63

static void thief_on_wire(void *arg, uint8_t *hdr, size_t hdr_len,
			  uint8_t *payload, size_t length)
{
	struct thief *t = arg;

	if (!t->awake || hdr_len != LNET_HDR_SIZE || !is_request(hdr))
		return;
	if (t->delivered && !t->passed) {
		t->passed = true; /* this is his own message */
		return;
	}
	if (!t->length) {
		cr_assert_leq(length, sizeof(t->bytes));
		memcpy(t->bytes, payload, length);
		t->length = (uint32_t)length;
		t->portal = load_le32(hdr + HDR_PORTAL);
		t->match = load_le64(hdr + HDR_MATCH);
		t->hdr_data = load_le64(hdr + HDR_DATA);
	}
	store_le32(hdr + HDR_PORTAL, PORTAL_NONE);
}

/* Whatever is got of him, he has something. */
static void thief_lies(struct thief *t)
{
	struct ulnet_md md = { .start = t->lies,
			       .length = sizeof(t->lies),
			       .threshold = LNET_MD_THRESH_INF,
			       .options = LNET_MD_OP_GET | LNET_MD_TRUNCATE,
			       .handler = thief_done };
	struct ulnet_md_handle mdh;
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(t->node, ULRPC_PORTAL_BULK, ANY_ID, 0,
				  ~UINT64_C(0), LNET_UNLINK, LNET_INS_AFTER,
				  &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &md, LNET_RETAIN, &mdh), 0);
}

/* The server knows two NIDs of the thief's node if it has @rails. */
static struct thief *thief_new(struct exchange *x, unsigned int rails,
			       bool lies)
{
	const struct ulnet_nid nids[2] = { id_of("10.9.0.1@tcp").nid,
					   id_of("10.9.0.2@tcp").nid };
	struct serve_rig *s = &x->g->serve;
	struct thief *t = calloc(1, sizeof(*t));
	int node = plain_node(s->sim,
			      rails > 1 ? "10.9.0.1@tcp 10.9.0.2@tcp"
					: "10.9.0.1@tcp",
			      NULL, NULL, NULL);

	cr_assert(t);
	t->node = lnet_sim_node(s->sim, (unsigned int)node);
	t->server = nth_id(SERVER);
	if (rails > 1)
		cr_assert_eq(lnet_peer_add(s->node[SERVER], nids, 2, true), 0);
	if (lies)
		thief_lies(t);
	sim_tap(s->sim, thief_on_wire, t);
	return t;
}

/* Tries that may go to the thief: those of the first bulk, before another way
 * is found; LNet may choose his other NID for the first one. */
#define TRIES_MAX (3 * (LENGTH + SEGMENT - 1) / SEGMENT)

/* The client hears nothing of its call, so the server has to find out by itself
 * that the NID which the request has come from is not the client's. */
static void by_another(unsigned int rails, bool lies)
{
	struct exchange *x = exchange_new(1, ULRPC_FLAVOUR_PRIVACY);
	const struct ulrpc *server = x->g->serve.rpc[SERVER];
	struct lnet_sim *sim = x->g->serve.sim;
	struct called c = exchange_call(x, 0, 10000000);
	struct exchanged d;
	struct thief *t;
	uint64_t until;

	check_good(x, &c, "before");
	t = thief_new(x, rails, lies);
	exchange_begin(x, 1, 60000000, &d);
	t->awake = true;
	until = lnet_sim_now(sim) + 10 * SEC;
	while (x->served < 2 && lnet_sim_now(sim) < until) {
		lnet_sim_run(sim, MSEC);
		if (t->length && !t->delivered)
			thief_deliver(t);
	}
	cr_assert_eq(x->served, 2, "%u NIDs", rails);
	cr_assert_leq(counts(server, RPC_STAT_segments_retried), TRIES_MAX);
	cr_assert_eq(counts(server, RPC_STAT_segments_damaged) > 0, lies);
	t->awake = false;
	exchange_end(x, &d);
	check_good(x, &d.c, "after");
	cr_assert_eq(x->runs, 2);
	exchange_free(x);
	free(t);
}

Test(bulk_forgery, of_a_request_by_another)
{
	by_another(1, false);
	by_another(2, false);
	by_another(1, true);
	by_another(2, true);
}
