/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What socklnd bounds: connections, acknowledgements and sends that a peer or a
 * user's handler causes without end. And messages that are given up half sent
 * or half received: those behind them must not suffer.
 */
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/pair.h"
#include "tests/lnd/raw_peer.h"

#define BACKOFF UINT64_C(200000)  /* us: longest pause after a first failure */
#define TIMEOUT UINT64_C(1000000) /* us: sock_timeout, where it is short */

static const struct ulnet_tunable slow[] = {
	{ "min_reconnectms", 200 }, { "max_reconnectms", 400 },
	{ "conns_per_peer", 1 },    { "eager_bulk", 1 },
	{ "keepalive", 0 },	    { "tx_buffer_size", 65536 },
	{ "sock_timeout", 100 },    { "path_silent_min", 60000 },
	{ "finish_max", 1 << 23 }
};
static const struct ulnet_tunable quick[] = {
	{ "min_reconnectms", 1 }, { "max_reconnectms", 20 },
	{ "conns_per_peer", 1 },  { "eager_bulk", 1 },
	{ "keepalive", 0 },	  { "sock_timeout", 1 },
	{ "path_silent_min", 0 }
};
/* Nothing ends for want of a processor. */
static const struct ulnet_tunable patient[] = {
	{ "conns_per_peer", 1 }, { "eager_bulk", 1 },	   { "keepalive", 0 },
	{ "sock_timeout", 100 }, { "path_silent_min", 0 },
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Lets time pass without waiting for anything. */
static void let_pass(struct fx *fx, uint64_t us)
{
	uint64_t end = now_us() + us;

	while (now_us() < end)
		fx_run(fx, 1000);
}

/* ---- a peer that takes connections and closes them ---- */

struct closer {
	struct raw_peer s;
	bool speaks; /* the peer greets before it closes */
	atomic_uint calls;
	pthread_t thread;
};

static void *answer_and_close(void *arg)
{
	struct closer *c = arg;
	enum sock_type type;
	int fd;

	/* until the listener is shut down */
	while ((fd = raw_peer_answer(&c->s, &type)) != -EINVAL) {
		atomic_fetch_add(&c->calls, 1);
		if (fd < 0)
			continue;
		if (c->speaks)
			raw_peer_ack(&c->s, fd, 0, SOCK_COOKIE_KEEPALIVE);
		close(fd);
	}
	return NULL;
}

/* Returns how many connections may come in @us: two for each attempt, and an
 * attempt after each pause. The mean of the pauses is soon BACKOFF; twice as
 * many attempts are allowed, which happens by chance once in many thousand
 * runs. */
static unsigned int calls_in(uint64_t us)
{
	return 2 * (unsigned int)(2 * us / BACKOFF + 2);
}

static struct box *put_in_vain(struct fx *fx, const struct raw_peer *s)
{
	struct box *b = box_new(fx, 100, CUT_NONE);

	if (box_bind(b, 0, 0, SHORT_TIMEOUT))
		box_put_to(b, &s->nid, true, PORTAL, 1, 0);
	expect(fx, fx_wait(fx, &b->terminals, 1));
	expect(fx, b->terminal.status != 0);
	box_end(b);
	expect(fx, b->outcomes[LNET_OUTCOME_DELIVERED] == 0);
	return b;
}

/* One message causes one attempt, of two connections; and another one if it is
 * queued again, which depends on who is faster. */
static void one_message(struct fx *fx, struct closer *c)
{
	unsigned int calls;

	put_in_vain(fx, &c->s);
	let_pass(fx, 3 * BACKOFF);
	calls = atomic_load(&c->calls);
	if (!expect(fx, calls >= 1 && calls <= 4))
		printf("%u calls\n", calls);
}

/* As long as messages are sent there are attempts, but no more often than the
 * growing pauses allow. */
static void many_messages(struct fx *fx, struct closer *c)
{
	unsigned int before = atomic_load(&c->calls), calls, not_delivered = 0;
	unsigned int most = 0;
	uint64_t start = now_us(), passed = 0;

	while (passed < 10 * BACKOFF ||
	       (most < 3 && passed < fx_patience(fx))) {
		struct box *b = put_in_vain(fx, &c->s);
		struct census now;

		not_delivered += b->outcomes[LNET_OUTCOME_NOT_DELIVERED];
		census_take(pair.node[0], &c->s.nid, &now);
		most = MAX(most, now.failures);
		let_pass(fx, 5000);
		passed = now_us() - start;
	}
	calls = atomic_load(&c->calls) - before;
	if (!expect(fx, calls > 0 && calls <= calls_in(now_us() - start)))
		printf("%u calls\n", calls);
	expect(fx, not_delivered > 0);
	expect(fx, most >= 3);
}

static int called_in_vain(bool speaks)
{
	struct closer c = { .speaks = speaks };
	struct bystander bystander;
	struct fx fx;

	if (!pair_up(&fx, slow, ARRAY_SIZE(slow)) ||
	    !visit_begin(&fx, &bystander, &c.s))
		return 1;
	if (!expect(&fx, raw_peer_listen(&c.s) == 0))
		return 1;
	pthread_create(&c.thread, NULL, answer_and_close, &c);
	one_message(&fx, &c);
	if (!speaks)
		many_messages(&fx, &c);
	bystander_goes_on(&fx, &bystander);
	shutdown(c.s.listener, SHUT_RDWR);
	pthread_join(c.thread, NULL);
	raw_peer_fini(&c.s);
	return pair_down(&fx);
}

static int closes_at_once(void)
{
	return called_in_vain(false);
}

static int speaks_and_closes(void)
{
	return called_in_vain(true);
}

/* ---- acknowledgements that nobody reads ---- */

#define BLOCK	  1000
#define BLOCKS	  400
#define ACKS_MOST 200000u

/* Makes PUTs to a portal without buffers, each of which asks for an
 * acknowledgement. No two of three consecutive cookies fit into one
 * acknowledgement. */
static uint8_t *ask_for_acks(const struct raw_peer *s, size_t *len)
{
	struct sock_hdr hdr = { .type = SOCK_MSG_LNET };
	struct lnet_hdr lnet = raw_peer_put_hdr(s, EMPTY, 1, 1, 0);
	uint8_t *buf = malloc((size_t)BLOCK * FRAME_HDR);
	size_t n = 0;

	BUG_ON(!buf);
	lnet.wmd = LNET_WIRE_NONE;
	for (unsigned int i = 0; i < BLOCK; i++) {
		hdr.cookie[0] = 10 + 2 * (BLOCK - i);
		n += raw_peer_hdr(s, &hdr, &lnet, buf + n);
	}
	*len = n;
	return buf;
}

static int acks_are_not_read(void)
{
	unsigned int blocks = 0;
	struct raw_peer s;
	struct bystander bystander;
	struct fx fx;
	uint8_t *buf;
	size_t len;
	int fd;

	if (!pair_up(&fx, slow, ARRAY_SIZE(slow)) ||
	    !visit_begin(&fx, &bystander, &s))
		return 1;
	buf = ask_for_acks(&s, &len);
	fd = raw_peer_open(&s, SOCK_BULK_OUT);
	if (!expect(&fx, fd >= 0))
		return 1;
	while (blocks < BLOCKS && say(fd, buf, len))
		blocks++;
	expect(&fx, blocks * BLOCK < ACKS_MOST);
	expect(&fx, hear_end(fd));
	close(fd);
	free(buf);
	visit_end(&fx, &bystander, &s);
	return pair_down(&fx);
}

/* ---- handlers that send on and on ---- */

#define SENDS	 200000u
#define AT_START 8
/* In a turn each of two connections is written twice, 128 KiB at a time. */
#define TURN_MOST 6000u

struct volley {
	struct lnet *node;
	struct wing {
		struct volley *v;
		struct wing *other;
		struct ulnet_id to;
		struct ulnet_md_handle md;
	} wing[2];
	unsigned int sent, failed;
};

static void send_one(struct wing *w)
{
	if (LNetPut(LNET_NID_ANY, w->md, LNET_NOACK_REQ, w->to, EMPTY, 1, 0, 0))
		w->v->failed++;
}

/* The end of each PUT to one peer begins a PUT to the other. */
static void on_sent(const struct ulnet_event *ev)
{
	struct wing *w = ev->user_ptr;
	struct volley *v = w->v;

	if (ev->type != LNET_EVENT_SEND)
		return;
	if (ev->status)
		v->failed++;
	else if (++v->sent < SENDS)
		send_one(w->other);
}

static bool wing_up(struct volley *v, unsigned int i)
{
	struct wing *w = &v->wing[i];
	struct ulnet_md md = { .start = w,
			       .length = 16,
			       .threshold = LNET_MD_THRESH_INF,
			       .user_ptr = w,
			       .handler = on_sent,
			       .eq = LNET_EQ_NONE };

	w->v = v;
	w->other = &v->wing[1 - i];
	w->to = (struct ulnet_id){ pair.nid[i], LNET_PID_LUSTRE };
	return LNetMDBind(v->node, &md, LNET_RETAIN, &w->md) == 0;
}

/* Opens a node that runs only when the test polls it. */
static bool volley_up(struct volley *v)
{
	struct ulnet_ni_conf ni = { .tunables = patient,
				    .ntunables = ARRAY_SIZE(patient) };
	struct ulnet_conf conf;

	*v = (struct volley){ .sent = 0 };
	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.run = LNET_RUN_POLL;
	conf.port = pair.port;
	return lnet_nid_parse("127.0.0.7@tcp", &ni.nid) == 0 &&
	       lnet_open(&conf, &v->node) == 0 &&
	       lnet_ni_add(v->node, &ni) == 0 && wing_up(v, 0) && wing_up(v, 1);
}

static int handlers_send(void)
{
	unsigned int most = 0;
	struct volley v;
	struct fx fx;

	if (!pair_up(&fx, patient, ARRAY_SIZE(patient)))
		return 1;
	if (!expect(&fx, volley_up(&v)))
		return pair_down(&fx);
	for (unsigned int i = 0; i < AT_START; i++)
		for (unsigned int k = 0; k < 2; k++)
			send_one(&v.wing[k]);
	while (v.sent < SENDS && !v.failed) {
		unsigned int before = v.sent;

		lnet_poll(v.node, 100000);
		most = MAX(most, v.sent - before);
	}
	expect(&fx, v.failed == 0);
	if (!expect(&fx, most <= TURN_MOST))
		printf("%u in one turn\n", most);
	lnet_close(v.node);
	return pair_down(&fx);
}

/* ---- silence after silence ---- */

/* Makes TCP at the peer's end receive nothing any more, so that it acknowledges
 * nothing. */
static bool turn_deaf(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = { 1, &nothing };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) == 0;
}

/* A peer that was idle for long gets as much time as any other. */
static int idle_before(void)
{
	struct raw_peer s;
	struct bystander bystander;
	struct box *b;
	struct fx fx;
	uint64_t sent;
	int fd[3];

	if (!pair_up(&fx, quick, ARRAY_SIZE(quick)) ||
	    !visit_begin(&fx, &bystander, &s))
		return 1;
	if (!raw_peer_open_all(&fx, &s, fd))
		return 1;
	raw_peer_pings(&fx, &s, fd[0]);
	let_pass(&fx, 3 * TIMEOUT / 2);
	for (int i = 0; i < 3; i++)
		expect(&fx, turn_deaf(fd[i]));
	b = box_new(&fx, 100, CUT_NONE);
	sent = now_us();
	if (box_bind(b, 0, 0, TIMEOUT))
		box_put_to(b, &s.nid, true, PORTAL, 1, 0);
	expect(&fx, raw_peer_has_conns(&fx, &s, 0));
	/* the node checks four times in each timeout */
	expect(&fx, now_us() - sent >= 3 * TIMEOUT / 4);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	box_end(b);
	close_all(fd, 3);
	visit_end(&fx, &bystander, &s);
	return pair_down(&fx);
}

/* ---- a message that is given up half sent ---- */

#define OTHERS 5
#define FIRST  99 /* match bits of the message that is given up */

/* without memory for copies of what is left to send */
static const struct ulnet_tunable no_copies[] = {
	{ "min_reconnectms", 200 }, { "max_reconnectms", 400 },
	{ "conns_per_peer", 1 },    { "eager_bulk", 1 },
	{ "keepalive", 0 },	    { "tx_buffer_size", 65536 },
	{ "sock_timeout", 100 },    { "path_silent_min", 60000 },
	{ "finish_max", 0 }
};

static bool is_called_back(struct fx *fx, struct raw_peer *s, int fd[3])
{
	enum sock_type type;

	for (int i = 0; i < 3; i++) {
		fd[i] = raw_peer_answer(s, &type);
		if (!expect(fx, fd[i] >= 0))
			return false;
	}
	return true;
}

/* Reads the next message on any of the connections. */
static bool take_one(struct fx *fx, struct raw_peer *s, const int fd[3],
		     struct frame *f)
{
	struct pollfd p[3] = { { fd[0], POLLIN, 0 },
			       { fd[1], POLLIN, 0 },
			       { fd[2], POLLIN, 0 } };

	if (!expect(fx, poll(p, 3, (int)(fx_patience(fx) / 1000)) > 0))
		return false;
	for (int i = 0; i < 3; i++) {
		if (!p[i].revents)
			continue;
		return expect(fx, raw_peer_hear(s, fd[i], f) == 0) &&
		       expect(fx, f->hdr.type == SOCK_MSG_LNET);
	}
	return false;
}

static bool is_writing(const struct census *c, unsigned int n)
{
	return c->writing == n;
}

static struct box *put_big(struct fx *fx, struct raw_peer *s, uint64_t bits,
			   uint64_t timeout)
{
	struct box *b = box_new(fx, LNET_MTU, CUT_NONE);

	box_fill(b, (uint32_t)bits);
	if (box_bind(b, 0, 1, timeout))
		box_put_to(b, &s->nid, false, PORTAL, bits, 0);
	return b;
}

/* Fails unless the messages behind the one that was given up arrive complete,
 * on any of @fd, each once. */
static void expect_others(struct fx *fx, struct raw_peer *s, const int fd[3],
			  struct box *const *b)
{
	unsigned int seen = 0;
	struct frame f;

	for (unsigned int i = 0; i < OTHERS; i++) {
		if (!take_one(fx, s, fd, &f))
			return;
		expect(fx, f.lnet.payload_length == LNET_MTU);
		expect(fx, f.lnet.match_bits < OTHERS);
		seen |= 1u << f.lnet.match_bits;
	}
	expect(fx, seen == (1u << OTHERS) - 1);
	for (unsigned int i = 0; i < OTHERS; i++) {
		expect(fx, fx_wait(fx, &b[i]->unlinked, 1));
		expect(fx, b[i]->n[LNET_EVENT_SEND] == 1);
		expect(fx, b[i]->terminal.status == 0);
	}
}

struct half_sent {
	struct fx fx;
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];
	uint8_t was[LNET_MTU]; /* the payload of the message that is given up */
	struct box *first, *b[OTHERS];
};

/* Fails unless the whole message that was given up arrives unchanged, though
 * its sender has its memory back, which the box has overwritten. */
static void expect_first(struct half_sent *h)
{
	struct frame f;

	if (!take_one(&h->fx, &h->s, h->fd, &f))
		return;
	expect(&h->fx, f.lnet.match_bits == FIRST);
	expect(&h->fx, f.lnet.payload_length == LNET_MTU);
	expect(&h->fx, memcmp(f.payload, h->was, LNET_MTU) == 0);
}

/* Begins with one message half sent, and @others that wait behind it. */
static bool half_sent_begin(struct half_sent *h, const struct ulnet_tunable *t,
			    unsigned int others)
{
	struct fx *fx = &h->fx;

	if (!pair_up(fx, t, ARRAY_SIZE(slow)) ||
	    !visit_begin(fx, &h->bystander, &h->s))
		return false;
	if (!expect(fx, raw_peer_listen(&h->s) == 0) ||
	    !raw_peer_open_all(fx, &h->s, h->fd))
		return false;
	h->first = put_big(fx, &h->s, FIRST, fx_patience(fx));
	memcpy(h->was, h->first->iov[0].iov_base, LNET_MTU);
	expect(fx, census_wait(fx, pair.node[0], &h->s.nid, is_writing, 1));
	for (unsigned int i = 0; i < others; i++)
		h->b[i] = put_big(fx, &h->s, i, fx_patience(fx));
	return true;
}

/* Cancels the message that is half sent. */
static void half_sent_cancel(struct half_sent *h)
{
	struct fx *fx = &h->fx;

	census_cancel(pair.node[0], &h->s.nid, -ETIMEDOUT);
	expect(fx, fx_wait(fx, &h->first->unlinked, 1));
	expect(fx, h->first->terminal.status == -ETIMEDOUT);
	expect(fx, h->first->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
}

static int half_sent_end(struct half_sent *h)
{
	close_all(h->fd, 3);
	visit_end(&h->fx, &h->bystander, &h->s);
	return pair_down(&h->fx);
}

static bool copies_are(const struct census *c, unsigned int n)
{
	return c->copied == n;
}

/* A peer that was only slow receives all messages, on the same connections. */
static int given_up_half_sent(void)
{
	struct half_sent h;
	struct fx *fx = &h.fx;

	if (!half_sent_begin(&h, slow, OTHERS))
		return 1;
	half_sent_cancel(&h);
	expect_first(&h);
	expect_others(fx, &h.s, h.fd, h.b);
	expect(fx, census_wait(fx, pair.node[0], NULL, copies_are, 0));
	expect(fx, !raw_peer_is_called(&h.s));
	expect(fx, fx_stat(fx, 0, "disconnects") == 0);
	return half_sent_end(&h);
}

/* A message is unlinked by its user, who may need the memory for another
 * attempt over another rail. The peer receives all messages, on the same
 * connections. */
static int unlinked_half_sent(void)
{
	struct half_sent h;
	struct fx *fx = &h.fx;

	if (!half_sent_begin(&h, slow, OTHERS))
		return 1;
	expect(fx, box_unlink(h.first) == 0);
	expect(fx, fx_wait(fx, &h.first->unlinked, 1));
	expect(fx, h.first->terminal.status == -ECANCELED);
	expect(fx, h.first->terminal.cause == LNET_CAUSE_CANCELED);
	expect(fx, h.first->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	expect_first(&h);
	expect_others(fx, &h.s, h.fd, h.b);
	expect(fx, !raw_peer_is_called(&h.s));
	expect(fx, fx_stat(fx, 0, "disconnects") == 0);
	return half_sent_end(&h);
}

/* The peer never reads the copy, which is freed with the connection. */
static int given_up_unread(void)
{
	struct half_sent h;
	struct fx *fx = &h.fx;
	struct census c;

	if (!half_sent_begin(&h, slow, 0))
		return 1;
	half_sent_cancel(&h);
	census_take(pair.node[0], &h.s.nid, &c);
	expect(fx, c.copied > 0 && c.copied <= LNET_MTU);
	close_all(h.fd, 3);
	expect(fx, census_wait(fx, pair.node[0], NULL, copies_are, 0));
	return half_sent_end(&h);
}

/* Without memory for a copy of the rest, the connections are closed, and the
 * messages behind the one that was given up take new ones. */
static int given_up_without_memory(void)
{
	int back[3] = { -1, -1, -1 };
	struct half_sent h;
	struct fx *fx = &h.fx;

	if (!half_sent_begin(&h, no_copies, OTHERS))
		return 1;
	half_sent_cancel(&h);
	if (is_called_back(fx, &h.s, back))
		expect_others(fx, &h.s, back, h.b);
	expect(fx, hear_ends(h.fd, 3));
	close_all(back, 3);
	return half_sent_end(&h);
}

/* The link goes down: all messages end at once, as not delivered, and the one
 * that is half sent as unknown. That one still arrives when the link is back,
 * on the same connection, which goes on. */
static int link_goes(void)
{
	struct half_sent h;
	struct fx *fx = &h.fx;
	struct frame f;
	struct box *b;

	if (!half_sent_begin(&h, slow, OTHERS))
		return 1;
	census_set_link(pair.node[0], false);
	expect(fx, fx_wait(fx, &h.first->unlinked, 1));
	expect(fx, h.first->terminal.status == -ENETDOWN);
	expect(fx, h.first->terminal.cause == LNET_CAUSE_LOCAL_ERROR);
	expect(fx, h.first->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	for (unsigned int i = 0; i < OTHERS; i++) {
		expect(fx, fx_wait(fx, &h.b[i]->unlinked, 1));
		expect(fx, h.b[i]->terminal.status == -ENETDOWN);
		expect(fx, h.b[i]->terminal.cause == LNET_CAUSE_LOCAL_NO_ROUTE);
		expect(fx, h.b[i]->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	}
	/* the raw peer's, and node 1's */
	expect(fx, fx_wait_stat(fx, 0, "disconnects", 2));
	b = put_big(fx, &h.s, OTHERS, fx_patience(fx));
	expect(fx, fx_wait(fx, &b->unlinked, 1));
	expect(fx, b->terminal.status == -ENETDOWN);
	census_set_link(pair.node[0], true);
	expect_first(&h);
	b = put_big(fx, &h.s, OTHERS, fx_patience(fx));
	if (take_one(fx, &h.s, h.fd, &f))
		expect(fx, f.lnet.match_bits == OTHERS);
	expect(fx, fx_wait(fx, &b->unlinked, 1));
	expect(fx, b->terminal.status == 0);
	expect(fx, !raw_peer_is_called(&h.s));
	return half_sent_end(&h);
}

static bool is_reading(const struct census *c, unsigned int n)
{
	return c->reading == n;
}

/* Half of an answer has arrived. */
struct half_received {
	struct fx fx;
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];
	struct box *b;
};

static uint8_t answer[LNET_MTU];

static bool half_received_begin(struct half_received *h)
{
	struct frame get, f = { .hdr.type = SOCK_MSG_LNET };
	struct fx *fx = &h->fx;

	if (!pair_up(fx, slow, ARRAY_SIZE(slow)) ||
	    !visit_begin(fx, &h->bystander, &h->s) ||
	    !raw_peer_open_all(fx, &h->s, h->fd))
		return false;
	h->b = box_new(fx, LNET_MTU, CUT_NONE);
	if (!box_bind(h->b, 0, 2, fx_patience(fx)) ||
	    !box_get_to(h->b, &h->s.nid, PORTAL, 9) ||
	    !expect(fx, raw_peer_hear(&h->s, h->fd[0], &get) == 0))
		return false;
	f.lnet = raw_peer_put_hdr(&h->s, 0, 0, 0, LNET_MTU);
	f.lnet.type = LNET_MSG_REPLY;
	f.lnet.wmd = get.lnet.wmd;
	expect(fx, raw_peer_say(&h->s, h->fd[0], &f));
	expect(fx, say(h->fd[0], answer, LNET_MTU / 2));
	expect(fx, census_wait(fx, pair.node[0], &h->s.nid, is_reading, 1));
	return true;
}

/* Fails unless the operation ends with @status, the other half of the answer is
 * dropped, and the connection goes on. */
static int half_received_end(struct half_received *h, int status)
{
	struct fx *fx = &h->fx;

	expect(fx, fx_wait(fx, &h->b->n[LNET_EVENT_SEND], 1));
	expect(fx, fx_wait(fx, &h->b->unlinked, 1));
	expect(fx, h->b->terminal.status == status);
	expect(fx, h->b->outcomes[LNET_OUTCOME_DELIVERED] == 1);
	expect(fx, say(h->fd[0], answer, LNET_MTU / 2));
	raw_peer_pings(fx, &h->s, h->fd[0]);
	expect(fx, fx_stat(fx, 0, "disconnects") == 0);
	close_all(h->fd, 3);
	visit_end(fx, &h->bystander, &h->s);
	return pair_down(fx);
}

static int given_up_half_received(void)
{
	struct half_received h;

	if (!half_received_begin(&h))
		return 1;
	census_cancel(pair.node[0], &h.s.nid, -ETIMEDOUT);
	expect(&h.fx, fx_wait(&h.fx, &h.b->terminals, 1));
	box_end(h.b);
	return half_received_end(&h, -ETIMEDOUT);
}

static int unlinked_half_received(void)
{
	struct half_received h;

	if (!half_received_begin(&h))
		return 1;
	expect(&h.fx, box_unlink(h.b) == 0);
	return half_received_end(&h, -ECANCELED);
}

/* ---- */

static const struct apart_test tests[] = {
	{ "a peer takes connections and closes them", closes_at_once },
	{ "a peer takes them, says a word, and closes them",
	  speaks_and_closes },
	{ "a peer does not read acknowledgements", acks_are_not_read },
	{ "handlers send on and on", handlers_send },
	{ "a peer is silent, and was idle before", idle_before },
	{ "a message is given up half sent", given_up_half_sent },
	{ "an MD is unlinked half sent", unlinked_half_sent },
	{ "... to a peer that never reads the rest", given_up_unread },
	{ "... without memory for the rest", given_up_without_memory },
	{ "a message is given up half received", given_up_half_received },
	{ "an MD is unlinked half received", unlinked_half_received },
	{ "the link goes with a message half sent", link_goes },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
