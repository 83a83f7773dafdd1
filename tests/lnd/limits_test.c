/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer, or a user's handler, must not be able to make of socklnd by
 * going on and on; and what must not hit those who have waited their turn.
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
#include "tests/lnd/stranger.h"

#define BACKOFF UINT64_C(200000)  /* us: longest pause after a first failure */
#define TIMEOUT UINT64_C(1000000) /* us: sock_timeout, where it is short */

static const struct ulnet_tunable slow[] = {
	{ "min_reconnectms", 200 }, { "max_reconnectms", 400 },
	{ "conns_per_peer", 1 },    { "eager_bulk", 1 },
	{ "keepalive", 0 },	    { "tx_buffer_size", 65536 },
	{ "sock_timeout", 100 }
};
static const struct ulnet_tunable quick[] = {
	{ "min_reconnectms", 1 }, { "max_reconnectms", 20 },
	{ "conns_per_peer", 1 },  { "eager_bulk", 1 },
	{ "keepalive", 0 },	  { "sock_timeout", 1 }
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Time passes, in which nothing is waited for. */
static void let_pass(struct fx *fx, uint64_t us)
{
	uint64_t end = now_us() + us;

	while (now_us() < end)
		fx_run(fx, 1000);
}

/* ---- a peer that takes connections and closes them ---- */

struct closer {
	struct stranger s;
	bool speaks; /* before it closes */
	atomic_uint calls;
	pthread_t thread;
};

static void *answer_and_close(void *arg)
{
	struct closer *c = arg;
	enum sock_type type;
	int fd;

	/* The listener is shut down in the end. */
	while ((fd = stranger_answer(&c->s, &type)) != -EINVAL) {
		atomic_fetch_add(&c->calls, 1);
		if (fd < 0)
			continue;
		if (c->speaks)
			stranger_ack(&c->s, fd, 0, SOCK_COOKIE_KEEPALIVE);
		close(fd);
	}
	return NULL;
}

/* One attempt after each pause, whose mean is BACKOFF before long; and a second
 * connection may have been begun. That so many pauses are half as long happens
 * once in many thousand times. */
static unsigned int calls_in(uint64_t us)
{
	return 2 * (unsigned int)(2 * us / BACKOFF + 2);
}

static struct box *put_in_vain(struct fx *fx, const struct stranger *s)
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

/* For one message there is one attempt, of two connections; when it was queued
 * for a peer that seemed to be good, one more. */
static void one_message(struct fx *fx, struct closer *c)
{
	unsigned int calls;

	put_in_vain(fx, &c->s);
	let_pass(fx, 3 * BACKOFF);
	calls = atomic_load(&c->calls);
	if (!expect(fx, calls >= 1 && calls <= 4))
		printf("%u calls\n", calls);
}

/* As long as there are messages: no more often than the pauses allow, which
 * become longer. */
static void many_messages(struct fx *fx, struct closer *c)
{
	unsigned int before = atomic_load(&c->calls), calls, not_delivered = 0;
	unsigned int most = 0;
	uint64_t start = now_us();

	while (now_us() - start < 10 * BACKOFF) {
		struct box *b = put_in_vain(fx, &c->s);
		struct census now;

		not_delivered += b->outcomes[LNET_OUTCOME_NOT_DELIVERED];
		census_take(pair.node[0], &c->s.nid, &now);
		most = MAX(most, now.failures);
		let_pass(fx, 5000);
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
	struct calm calm;
	struct fx fx;

	if (!pair_up(&fx, slow, ARRAY_SIZE(slow)) ||
	    !visit_begin(&fx, &calm, &c.s))
		return 1;
	if (!expect(&fx, stranger_listen(&c.s) == 0))
		return 1;
	pthread_create(&c.thread, NULL, answer_and_close, &c);
	one_message(&fx, &c);
	if (!speaks)
		many_messages(&fx, &c);
	calm_goes_on(&fx, &calm);
	shutdown(c.s.listener, SHUT_RDWR);
	pthread_join(c.thread, NULL);
	stranger_fini(&c.s);
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

/* PUTs to nowhere, each to be acknowledged. No two of three cookies that follow
 * each other fit into one acknowledgement. */
static uint8_t *ask_for_acks(const struct stranger *s, size_t *len)
{
	struct sock_hdr hdr = { .type = SOCK_MSG_LNET };
	struct lnet_hdr lnet = stranger_put_hdr(s, EMPTY, 1, 1, 0);
	uint8_t *buf = malloc((size_t)BLOCK * FRAME_HDR);
	size_t n = 0;

	BUG_ON(!buf);
	lnet.wmd = LNET_WIRE_NONE;
	for (unsigned int i = 0; i < BLOCK; i++) {
		hdr.cookie[0] = 10 + 2 * (BLOCK - i);
		n += stranger_hdr(s, &hdr, &lnet, buf + n);
	}
	*len = n;
	return buf;
}

static int acks_are_not_read(void)
{
	unsigned int blocks = 0;
	struct stranger s;
	struct calm calm;
	struct fx fx;
	uint8_t *buf;
	size_t len;
	int fd;

	if (!pair_up(&fx, slow, ARRAY_SIZE(slow)) ||
	    !visit_begin(&fx, &calm, &s))
		return 1;
	buf = ask_for_acks(&s, &len);
	fd = stranger_open(&s, SOCK_BULK_OUT);
	if (!expect(&fx, fd >= 0))
		return 1;
	while (blocks < BLOCKS && say(fd, buf, len))
		blocks++;
	expect(&fx, blocks * BLOCK < ACKS_MOST);
	expect(&fx, hear_end(fd));
	close(fd);
	free(buf);
	visit_end(&fx, &calm, &s);
	return pair_down(&fx);
}

/* ---- handlers that send on and on ---- */

#define SENDS	 200000u
#define AT_START 8
/* A turn writes each of two connections twice, each time a buffer of 128 KiB.
 */
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

/* What is sent to one peer makes us send to the other. */
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

/* A node whose turns the test makes. */
static bool volley_up(struct volley *v)
{
	struct ulnet_ni_conf ni = { .tunables = quick,
				    .ntunables = ARRAY_SIZE(quick) };
	struct ulnet_conf conf;

	*v = (struct volley){ .sent = 0 };
	lnet_conf_init(&conf);
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

	if (!pair_up(&fx, quick, ARRAY_SIZE(quick)))
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

/* TCP at the stranger's end hears nothing any more, and so says nothing. */
static bool turn_deaf(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = { 1, &nothing };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) == 0;
}

/* A peer with which nothing was to do for long has as much time as others. */
static int idle_before(void)
{
	struct stranger s;
	struct calm calm;
	struct box *b;
	struct fx fx;
	uint64_t sent;
	int fd[3];

	if (!pair_up(&fx, quick, ARRAY_SIZE(quick)) ||
	    !visit_begin(&fx, &calm, &s))
		return 1;
	if (!stranger_open_all(&fx, &s, fd))
		return 1;
	stranger_pings(&fx, &s, fd[0]);
	let_pass(&fx, 3 * TIMEOUT / 2);
	for (int i = 0; i < 3; i++)
		expect(&fx, turn_deaf(fd[i]));
	b = box_new(&fx, 100, CUT_NONE);
	sent = now_us();
	if (box_bind(b, 0, 0, TIMEOUT))
		box_put_to(b, &s.nid, true, PORTAL, 1, 0);
	expect(&fx, stranger_has_conns(&fx, &s, 0));
	/* It looks four times in each timeout. */
	expect(&fx, now_us() - sent >= 3 * TIMEOUT / 4);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	box_end(b);
	close_all(fd, 3);
	visit_end(&fx, &calm, &s);
	return pair_down(&fx);
}

/* ---- a message that is given up half sent ---- */

#define OTHERS 5

static bool is_called_back(struct fx *fx, struct stranger *s, int fd[3])
{
	enum sock_type type;

	for (int i = 0; i < 3; i++) {
		fd[i] = stranger_answer(s, &type);
		if (!expect(fx, fd[i] >= 0))
			return false;
	}
	return true;
}

/* The next message on any of them. */
static bool take_one(struct fx *fx, struct stranger *s, const int fd[3],
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
		return expect(fx, stranger_hear(s, fd[i], f) == 0) &&
		       expect(fx, f->hdr.type == SOCK_MSG_LNET);
	}
	return false;
}

static bool is_writing(const struct census *c, unsigned int n)
{
	return c->writing == n;
}

static struct box *put_big(struct fx *fx, struct stranger *s, uint64_t bits,
			   uint64_t timeout)
{
	struct box *b = box_new(fx, LNET_MTU, CUT_NONE);

	box_fill(b, (uint32_t)bits);
	if (box_bind(b, 0, 1, timeout))
		box_put_to(b, &s->nid, false, PORTAL, bits, 0);
	return b;
}

/* Those behind it come whole, on other connections, each once. */
static void expect_others(struct fx *fx, struct stranger *s, const int fd[3],
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

static int cancelled_half_sent(void)
{
	int fd[3], back[3] = { -1, -1, -1 };
	struct box *first, *b[OTHERS];
	struct stranger s;
	struct calm calm;
	struct fx fx;

	if (!pair_up(&fx, slow, ARRAY_SIZE(slow)) ||
	    !visit_begin(&fx, &calm, &s))
		return 1;
	if (!expect(&fx, stranger_listen(&s) == 0) ||
	    !stranger_open_all(&fx, &s, fd))
		return 1;
	first = put_big(&fx, &s, 99, 5 * SHORT_TIMEOUT);
	expect(&fx, census_wait(&fx, pair.node[0], &s.nid, is_writing, 1));
	for (unsigned int i = 0; i < OTHERS; i++)
		b[i] = put_big(&fx, &s, i, fx_patience(&fx));
	expect(&fx, fx_wait(&fx, &first->unlinked, 1));
	expect(&fx, first->terminal.status == -ETIMEDOUT);
	expect(&fx, first->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	if (is_called_back(&fx, &s, back))
		expect_others(&fx, &s, back, b);
	expect(&fx, hear_ends(fd, 3));
	close_all(fd, 3);
	close_all(back, 3);
	visit_end(&fx, &calm, &s);
	return pair_down(&fx);
}

/* ---- */

static const struct apart_test tests[] = {
	{ "a peer takes connections and closes them", closes_at_once },
	{ "a peer takes them, says a word, and closes them",
	  speaks_and_closes },
	{ "a peer does not read acknowledgements", acks_are_not_read },
	{ "handlers send on and on", handlers_send },
	{ "a peer is silent, and was idle before", idle_before },
	{ "a message is given up half sent", cancelled_half_sent },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
