/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attempts to connect over TCP: how often they are made, how many at once, and
 * that they do not hold up messages for other peers.
 */
#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lnd/socklnd/peer.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/netdev.h"
#include "tests/lnd/netns.h"
#include "tests/lnd/pair.h"
#include "tests/lnd/raw_peer.h"
#include "ulnet/loop.h"

/* Attempts to reach a silent peer last longer than any test. */
static const struct ulnet_tunable patient[] = { { "conns_per_peer", 1 },
						{ "sock_timeout", 1000 } };

/* ---- peers that say nothing ---- */

#define SILENT	 33 /* with 8 credits each, more than the 256 of an NI */
#define PER_PEER 12

/* Listens for SILENT peers: the system accepts their connections, and nobody
 * reads. */
static bool silent_begin(struct fx *fx, struct raw_peer *s)
{
	for (unsigned int i = 0; i < SILENT; i++) {
		char nid[LNET_NIDSTR_SIZE];

		snprintf(nid, sizeof(nid), "127.0.1.%u@tcp", i + 1);
		raw_peer_init(&s[i], fx, nid);
		if (!expect(fx, raw_peer_listen(&s[i]) == 0))
			return false;
	}
	return true;
}

static void silent_end(struct raw_peer *s)
{
	for (unsigned int i = 0; i < SILENT; i++)
		raw_peer_fini(&s[i]);
}

/* Sends messages that will not arrive. */
static struct box *wait_for(struct fx *fx, const struct raw_peer *s)
{
	struct box *b = box_new(fx, 100, CUT_NONE);

	if (box_bind(b, 0, LNET_MD_THRESH_INF, 1000 * UINT64_C(1000000)))
		for (unsigned int i = 0; i < PER_PEER; i++)
			box_put_to(b, &s->nid, false, PORTAL, 1, i);
	return b;
}

/* While messages to silent peers wait, a message to a connected peer is sent,
 * and one that waits can be canceled by its user. */
static int silent_peers(void)
{
	struct raw_peer s[SILENT];
	struct box *waits[SILENT];
	struct fx fx;

	if (!pair_up(&fx, patient, ARRAY_SIZE(patient)) ||
	    !silent_begin(&fx, s))
		return 1;
	still_works(&fx);
	for (unsigned int i = 0; i < SILENT; i++)
		waits[i] = wait_for(&fx, &s[i]);
	still_works(&fx);
	for (unsigned int i = 0; i < SILENT; i++)
		expect(&fx, fx_read(&fx, &waits[i]->terminals) == 0);
	for (unsigned int i = 0; i < SILENT; i++) {
		expect(&fx, box_unlink(waits[i]) == 0);
		expect(&fx, fx_wait(&fx, &waits[i]->unlinked, 1));
		expect(&fx, waits[i]->terminals == PER_PEER);
		expect(&fx, waits[i]->outcomes[LNET_OUTCOME_NOT_DELIVERED] ==
				    PER_PEER);
	}
	expect(&fx, fx_wait_idle(&fx));
	silent_end(s);
	return pair_down(&fx);
}

/* ---- how often, and how many at once ---- */

#define HOUR 3600000 /* ms */

static const struct ulnet_tunable turns[] = { { "conns_per_peer", 1 },
					      { "sock_timeout", 1000 },
					      { "max_reconnectms", 20 },
					      { "max_connecting", 4 } };
/* Once an attempt has failed, the next one comes after a long pause. */
static const struct ulnet_tunable pauses[] = { { "conns_per_peer", 1 },
					       { "sock_timeout", 1000 },
					       { "min_reconnectms", HOUR },
					       { "max_reconnectms", HOUR } };

/* When silent peers take all attempts that are allowed at once, a peer that
 * does answer still gets its turn. */
static int take_turns(void)
{
	struct raw_peer s[SILENT];
	struct census c;
	struct box *b;
	struct fx fx;

	if (!pair_up(&fx, turns, ARRAY_SIZE(turns)) || !silent_begin(&fx, s))
		return 1;
	for (unsigned int i = 0; i < SILENT; i++)
		wait_for(&fx, &s[i]);
	b = box_new(&fx, 100, CUT_NONE);
	box_bind(b, 0, 1, fx_patience(&fx));
	box_put(b, 1, false, PORTAL, 1, 0);
	while (!fx_read(&fx, &b->terminals)) {
		census_take(pair.node[0], NULL, &c);
		if (!expect(&fx, c.attempts <= 4))
			break;
		fx_run(&fx, 1000);
	}
	expect(&fx, b->terminal.status == 0);
	fx_close(&fx);
	silent_end(s);
	return pair_down(&fx);
}

#define MADE_UP 200 /* pids */

/* However many pids are invented at a silent address, there is one attempt to
 * it at a time. */
static int many_pids(void)
{
	struct ulnet_id id = { .pid = 1000 };
	struct box *made_up, *b;
	struct raw_peer s;
	struct census c;
	struct fx fx;

	if (!pair_up(&fx, turns, ARRAY_SIZE(turns)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	id.nid = s.nid;
	expect(&fx, raw_peer_listen(&s) == 0);
	made_up = box_new(&fx, 100, CUT_NONE);
	box_bind(made_up, 0, LNET_MD_THRESH_INF, 1000 * UINT64_C(1000000));
	for (; id.pid < 1000 + MADE_UP; id.pid++)
		box_put_id(made_up, id, false, PORTAL, 1, 0);
	b = box_new(&fx, 100, CUT_NONE);
	box_bind(b, 0, 1, fx_patience(&fx));
	box_put(b, 1, false, PORTAL, 1, 0);
	do {
		census_take(pair.node[0], &s.nid, &c);
		if (!expect(&fx, c.attempts <= 1))
			break;
		fx_run(&fx, 1000);
	} while (!fx_read(&fx, &b->terminals));
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->terminal.status == 0);
	expect(&fx, c.peers == MADE_UP);
	expect(&fx, box_unlink(made_up) == 0);
	expect(&fx, fx_wait(&fx, &made_up->terminals, MADE_UP));
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

static bool is_seldom_looked_at(const struct census *c, unsigned int ms)
{
	return c->look_in > ms * NSEC_PER_MSEC;
}

/* Accepts a connection, and reads all that the node says on it. */
static int read_hello(struct fx *fx, struct raw_peer *s)
{
	int fd = raw_peer_accept(s);
	struct sock_hello hello;
	struct ulnet_nid target;

	expect(fx, fd >= 0 && hear_request(fd, &target) == 0 &&
			   hear_hello(fd, &hello) == 0);
	return fd;
}

/* A peer that is stopped: once its system has acknowledged the HELLO, the node
 * looks less and less often whether it answers. Returns the connection. */
static int stop_peer(struct fx *fx, struct raw_peer *s, struct box **b)
{
	int fd;

	raw_peer_init(s, fx, "127.0.0.7@tcp");
	expect(fx, raw_peer_listen(s) == 0);
	*b = box_new(fx, 100, CUT_NONE);
	box_bind(*b, 0, 1, 10 * fx_patience(fx));
	box_put_to(*b, &s->nid, false, PORTAL, 1, 0);
	fd = read_hello(fx, s);
	/* four times max_reconnectms */
	expect(fx,
	       census_wait(fx, pair.node[0], &s->nid, is_seldom_looked_at, 80));
	return fd;
}

/* When it goes on, its answer counts. */
static int stopped(void)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	struct raw_peer s;
	struct box *b;
	struct fx fx;
	int fd;

	if (!pair_up(&fx, turns, ARRAY_SIZE(turns)))
		return 1;
	fd = stop_peer(&fx, &s, &b);
	say(fd, buf, raw_peer_hello(&s, SOCK_CONTROL, buf));
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->terminal.status == 0);
	close(fd);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* Another process of its host gets its turn. */
static int stopped_yields(void)
{
	struct ulnet_id other = { .pid = 1000 };
	struct raw_peer s;
	struct box *b, *too;
	struct fx fx;
	int fd[2];

	if (!pair_up(&fx, turns, ARRAY_SIZE(turns)))
		return 1;
	fd[0] = stop_peer(&fx, &s, &b);
	other.nid = s.nid;
	too = box_new(&fx, 100, CUT_NONE);
	box_bind(too, 0, 1, 10 * fx_patience(&fx));
	box_put_id(too, other, false, PORTAL, 1, 0);
	fd[1] = read_hello(&fx, &s);
	expect(&fx, fx_read(&fx, &b->terminals) == 0);
	expect(&fx, box_unlink(b) == 0 && box_unlink(too) == 0);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, fx_wait(&fx, &too->terminals, 1));
	close_all(fd, 2);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

static struct box *put_one(struct fx *fx, const struct raw_peer *s)
{
	struct box *b = box_new(fx, 100, CUT_NONE);

	box_bind(b, 0, 1, 10 * fx_patience(fx));
	box_put_to(b, &s->nid, false, PORTAL, 1, 0);
	return b;
}

/* A message fails together with the attempt that it waits for. A message sent
 * after that waits for the next attempt. */
static struct box *fails_once(struct fx *fx, const struct raw_peer *s)
{
	struct box *first = put_one(fx, s), *next;

	expect(fx, fx_wait(fx, &first->terminals, 1));
	expect(fx, first->terminal.status == -ECONNREFUSED);
	expect(fx,
	       census_wait(fx, pair.node[0], &s->nid, census_failures_are, 1));
	next = put_one(fx, s);
	fx_run(fx, 100000);
	expect(fx, fx_read(fx, &next->terminals) == 0);
	return next;
}

/* Pauses begin short, and failures are remembered for a minute of silence: as
 * long as the longest pause. */
static const struct ulnet_tunable counted[] = { { "eager_bulk", 1 },
						{ "conns_per_peer", 1 },
						{ "sock_timeout", 60 },
						{ "min_reconnectms", 2 },
						{ "max_reconnectms", 60000 } };

/* Sends a PUT whose connection cannot be opened. */
static struct box *failing_put(struct fx *fx, const struct raw_peer *s)
{
	struct box *b = box_new(fx, 100, CUT_NONE);

	box_bind(b, 0, 1, fx_patience(fx));
	box_put_to(b, &s->nid, false, PORTAL, 1, 0);
	return b;
}

static void expect_failed(struct fx *fx, struct box *b)
{
	expect(fx, fx_wait(fx, &b->unlinked, 1));
	expect(fx, b->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
}

/* Does the node connect to the peer before the operation ends? */
static bool calls_for(struct fx *fx, struct raw_peer *s, struct box *b)
{
	while (!raw_peer_is_called(s) && !fx_read(fx, &b->terminals))
		fx_run(fx, 100);
	return raw_peer_is_called(s);
}

static void six_failures(struct fx *fx)
{
	struct lnet *node = fx->rig->node[0];
	enum sock_type type;
	struct raw_peer s;
	struct bystander bystander;
	struct box *b;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	expect(fx, raw_peer_listen(&s) == 0);
	for (unsigned int k = 1; k <= 6; k++) {
		struct box *too = box_new(fx, 100, CUT_NONE);

		b = failing_put(fx, &s);
		box_bind(too, 0, 1, fx_patience(fx));
		box_put_to(too, &s.nid, false, PORTAL, 1, 0);
		expect(fx, calls_for(fx, &s, b));
		close(raw_peer_accept(&s));
		expect_failed(fx, b);
		expect_failed(fx, too);
		expect(fx,
		       census_wait(fx, node, &s.nid, census_failures_are, k));
		expect(fx, !raw_peer_is_called(&s));
	}
	b = failing_put(fx, &s);
	for (int i = 0; i < 3; i++)
		fd[i] = raw_peer_answer(&s, &type);
	expect(fx, raw_peer_has_conns(fx, &s, 3));
	expect(fx, census_wait(fx, node, &s.nid, census_failures_are, 0));
	expect(fx, fx_wait(fx, &b->n[LNET_EVENT_SEND], 1));
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* A message waits for the next attempt, and shares its outcome. Failures are
 * counted while attempts fail, and a success resets the count. Attempts are
 * made only if there are messages. */
static int failures_are_counted(void)
{
	struct fx fx;

	if (!pair_up(&fx, counted, ARRAY_SIZE(counted)))
		return 1;
	six_failures(&fx);
	fx_close(&fx);
	return pair_down(&fx);
}

/* A connection that the peer opens during a pause serves the messages that
 * wait. */
static int hello_ends_a_pause(void)
{
	struct raw_peer s;
	struct box *b;
	struct fx fx;
	int fd;

	if (!pair_up(&fx, pauses, ARRAY_SIZE(pauses)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	b = fails_once(&fx, &s);
	fd = raw_peer_open(&s, SOCK_CONTROL);
	expect(&fx, fd >= 0);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->terminal.status == 0);
	close(fd);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* Both have connected at the same time, the peer's connection is the one that
 * counts, and the peer is slow to answer: its connection is not closed
 * meanwhile. */
static int crossing(void)
{
	struct ulnet_nid target;
	struct sock_hello hello;
	struct raw_peer s;
	struct box *b;
	struct fx fx;
	int fd[2];

	if (!pair_up(&fx, patient, ARRAY_SIZE(patient)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_listen(&s) == 0);
	b = put_one(&fx, &s);
	fd[0] = raw_peer_accept(&s);
	expect(&fx, hear_request(fd[0], &target) == 0 &&
			    hear_hello(fd[0], &hello) == 0);
	fd[1] = raw_peer_open(&s, SOCK_CONTROL);
	expect(&fx, fd[1] >= 0);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->terminal.status == 0);
	/* The connection is inspected several times meanwhile. */
	fx_run(&fx, 500000);
	expect(&fx, is_silent(fd[0]));
	close_all(fd, 2);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* ---- only one for bulk is left ---- */

static const struct ulnet_tunable eager[] = { { "eager_bulk", 1 },
					      { "conns_per_peer", 1 },
					      { "sock_timeout", 1000 },
					      { "min_reconnectms", 1 },
					      { "max_reconnectms", 20 } };

static bool has_no_conns(const struct census *c, unsigned int arg)
{
	(void)arg;
	return c->conns == 0;
}

/* Accepts a connection, whose HELLO is answered later. */
static int hear_out(struct fx *fx, struct raw_peer *s, struct sock_hello *hello)
{
	int fd = raw_peer_accept(s);
	struct ulnet_nid target;

	expect(fx, fd >= 0 && hear_request(fd, &target) == 0);
	expect(fx, hear_hello(fd, hello) == 0);
	return fd;
}

/* All connections are lost while one for bulk is opening. The next one is for
 * control, without anything being sent: by one for bulk alone the peer could
 * not answer, and a node that only calls would never be answered again. */
static int only_bulk_is_left(void)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	struct sock_hello hello = { 0 };
	enum sock_type type = SOCK_NONE;
	struct raw_peer s;
	struct frame f;
	struct box *b;
	int fd[4];
	struct fx fx;

	if (!pair_up(&fx, eager, ARRAY_SIZE(eager)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_listen(&s) == 0);
	b = box_new(&fx, 100, CUT_NONE);
	box_bind(b, 0, 1, fx_patience(&fx));
	box_put_to(b, &s.nid, false, PORTAL, 1, 1);
	fd[0] = raw_peer_answer(&s, &type);
	expect(&fx, fd[0] >= 0 && type == SOCK_CONTROL);
	fd[1] = raw_peer_answer(&s, &type);
	expect(&fx, fd[1] >= 0 && type == SOCK_BULK_OUT);
	fd[2] = hear_out(&fx, &s, &hello);
	expect(&fx, hello.type == SOCK_BULK_OUT);
	/* It is proven that the peer takes connections: else the attempt would
	 * be given up, too. It has sent something, and has kept the first
	 * connection for min_reconnectms. The node's message comes first. */
	expect(&fx, raw_peer_hear(&s, fd[0], &f) == 0);
	raw_peer_pings(&fx, &s, fd[0]);
	fx_run(&fx, 2000);
	close_all(fd, 2);
	expect(&fx, census_wait(&fx, pair.node[0], &s.nid, has_no_conns, 0));
	say(fd[2], buf, raw_peer_hello(&s, SOCK_BULK_IN, buf));
	fd[3] = raw_peer_answer(&s, &type);
	expect(&fx, fd[3] >= 0 && type == SOCK_CONTROL);
	close_all(fd + 2, 2);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

static const struct ulnet_tunable short_pauses[] = { { "conns_per_peer", 1 },
						     { "sock_timeout", 1000 },
						     { "min_reconnectms", 500 },
						     { "max_reconnectms",
						       500 } };

static bool has_no_peers(const struct census *c, unsigned int arg)
{
	(void)arg;
	return c->peers == 0;
}

/* The peer refuses a connection for bulk, sends a message, and is gone before
 * the next attempt: it leaves nothing behind, and other attempts can fail
 * later. */
static int gone_in_a_pause(void)
{
	struct census c = { .failures = 1 };
	enum sock_type type;
	struct raw_peer s;
	struct box *b;
	struct fx fx;
	int fd;

	if (!pair_up(&fx, short_pauses, ARRAY_SIZE(short_pauses)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_listen(&s) == 0);
	b = box_new(&fx, 20000, CUT_NONE);
	box_bind(b, 0, 2, fx_patience(&fx));
	box_put_to(b, &s.nid, false, PORTAL, 1, 0);
	fd = raw_peer_answer(&s, &type);
	expect(&fx, fd >= 0);
	close(s.listener);
	s.listener = -1;
	box_put_to(b, &s.nid, false, PORTAL, 1, 1);
	expect(&fx,
	       census_wait(&fx, pair.node[0], &s.nid, census_failures_are, 1));
	for (uint64_t us = 0; c.failures && us < fx_patience(&fx); us += 1000) {
		expect(&fx, raw_peer_ack(&s, fd, 0, SOCK_COOKIE_KEEPALIVE));
		fx_run(&fx, 1000);
		census_take(pair.node[0], &s.nid, &c);
	}
	expect(&fx, c.failures == 0);
	close(fd);
	expect(&fx, census_wait(&fx, pair.node[0], NULL, has_no_peers, 0));
	b = put_one(&fx, &s);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* Two processes of one NID are connected to in turn: a failure of the one does
 * not count against the other. */
static int two_pids(void)
{
	struct ulnet_id id[2] = { { .pid = LNET_PID_LUSTRE }, { .pid = 77 } };
	struct box *b[2];
	enum sock_type type;
	struct raw_peer s;
	struct fx fx;
	int fd = -1;

	if (!pair_up(&fx, patient, ARRAY_SIZE(patient)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_listen(&s) == 0);
	for (unsigned int i = 0; i < 2; i++) {
		id[i].nid = s.nid;
		b[i] = box_new(&fx, 100, CUT_NONE);
		box_bind(b[i], 0, 1, 10 * fx_patience(&fx));
		box_put_id(b[i], id[i], false, PORTAL, 1, 0);
		/* The attempt for the first process has reached the peer before
		 * the second one's message is sent. */
		if (i == 0)
			fd = raw_peer_accept(&s);
	}
	close(fd);
	expect(&fx, fx_wait(&fx, &b[0]->terminals, 1));
	expect(&fx, b[0]->terminal.status != 0);
	expect(&fx, fx_read(&fx, &b[1]->terminals) == 0);
	s.pid = 77;
	fd = raw_peer_answer(&s, &type);
	expect(&fx, fd >= 0);
	expect(&fx, fx_wait(&fx, &b[1]->terminals, 1));
	expect(&fx, b[1]->terminal.status == 0);
	close(fd);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* ---- a kernel node that has been restarted ---- */

struct pinged {
	struct fx *fx;
	unsigned int done;
	int status;
	unsigned int nnis;
};

static void on_pinged(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct pinged *p = arg;

	pthread_mutex_lock(&p->fx->lock);
	p->done++;
	p->status = status;
	p->nnis = info ? info->nnis : 0;
	pthread_mutex_unlock(&p->fx->lock);
}

/* Refuses the connection, as a peer that would accept another. */
static void refuse(struct fx *fx, struct raw_peer *s)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	int fd = raw_peer_accept(s);
	struct ulnet_nid target;
	struct sock_hello hello;

	expect(fx, fd >= 0);
	expect(fx, hear_request(fd, &target) == 0);
	expect(fx, hear_hello(fd, &hello) == 0);
	say(fd, buf, raw_peer_hello(s, SOCK_NONE, buf));
	close(fd);
}

/* Answers a ping as a node with one NI. */
static void answer_ping(struct fx *fx, struct raw_peer *s, int fd)
{
	struct frame get = { 0 }, reply = { .hdr.type = SOCK_MSG_LNET };
	uint8_t info[48] = "gnip";

	expect(fx, raw_peer_hear(s, fd, &get) == 0);
	expect(fx, get.lnet.type == LNET_MSG_GET &&
			   get.lnet.match_bits == PING_BITS);
	raw_peer_number(s, info + 4, 4, LNET_PING_NI_STATUS);
	raw_peer_number(s, info + 8, 4, s->pid);
	raw_peer_number(s, info + 12, 4, 2);
	raw_peer_number(s, info + 16, 8, lnet_nid_to_nid4(&LNET_NID_LO));
	raw_peer_number(s, info + 32, 8, lnet_nid_to_nid4(&s->nid));
	reply.lnet = raw_peer_put_hdr(s, 0, 0, 0, sizeof(info));
	reply.lnet.type = LNET_MSG_REPLY;
	reply.lnet.wmd = get.lnet.wmd;
	reply.payload = info;
	expect(fx, raw_peer_say(s, fd, &reply));
}

/* A kernel node refuses the first connection of a process whose incarnation is
 * not the one that it knows (spec section 3.8), and takes the next: a ping
 * succeeds all the same. */
static int refused_at_first(void)
{
	struct ulnet_id id = { .pid = LNET_PID_LUSTRE };
	struct pinged p = { 0 };
	enum sock_type type;
	struct raw_peer s;
	struct fx fx;
	int fd;

	if (!pair_up(&fx, patient, ARRAY_SIZE(patient)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_listen(&s) == 0);
	p.fx = &fx;
	id.nid = s.nid;
	expect(&fx, lnet_ping(pair.node[0], id, 10 * fx_patience(&fx),
			      on_pinged, &p) == 0);
	refuse(&fx, &s);
	fd = raw_peer_answer(&s, &type);
	expect(&fx, fd >= 0 && type == SOCK_CONTROL);
	answer_ping(&fx, &s, fd);
	expect(&fx, fx_wait(&fx, &p.done, 1));
	expect(&fx, p.status == 0 && p.nnis == 1);
	close(fd);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* Makes a network namespace with addresses of the test's own. Returns false if
 * this machine cannot. */
static bool own_network(void)
{
	struct in_addr any = { .s_addr = htonl(0x0a090807) };

	return netns_enter() == 0 && netns_add_addr(any) == 0;
}

static int address_ends_a_pause(void)
{
	struct in_addr more = { .s_addr = htonl(0x0a4d0001) };
	struct raw_peer s;
	struct fx fx;

	if (!own_network())
		return SKIPPED;
	if (!pair_up(&fx, pauses, ARRAY_SIZE(pauses)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	fails_once(&fx, &s);
	expect(&fx, raw_peer_listen(&s) == 0);
	expect(&fx, !raw_peer_is_called(&s));
	expect(&fx, netns_add_addr(more) == 0);
	close(raw_peer_accept(&s));
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* There is no way to the peer, whose address is on no interface. LNet sends the
 * message again over this path, the only one, until the address is there. */
static int way_is_lost(void)
{
	struct lnet *node;
	enum sock_type type;
	struct raw_peer s;
	struct box *b;
	struct fx fx;
	int fd;

	if (!own_network())
		return SKIPPED;
	if (!pair_up(&fx, patient, ARRAY_SIZE(patient)))
		return 1;
	node = pair.node[0];
	expect(&fx, lnet_setting_set(node, "retry_count", 50) == 0);
	raw_peer_init(&s, &fx, "172.30.0.1@tcp");
	expect(&fx, raw_peer_listen(&s) == 0);
	b = put_one(&fx, &s);
	fx_wait_stat(&fx, 0, "resend_count", 3);
	expect(&fx, fx_stat(&fx, 0, "resend_count") >= 3);
	expect(&fx, fx_read(&fx, &b->terminals) == 0);
	expect(&fx, netdev_add_addr("lo", "172.30.0.1") == 0);
	fd = raw_peer_answer(&s, &type);
	expect(&fx, fd >= 0 && type == SOCK_CONTROL);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->terminal.status == 0);
	expect(&fx, fx_wait_stat(&fx, 0, "successful_resends", 1));
	close(fd);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* Where the LND's pauses are longer than LNet's, the sender hears at once that
 * there is no way. */
static int no_way_and_long_pauses(void)
{
	struct raw_peer s;
	struct box *b;
	struct fx fx;

	if (!own_network())
		return SKIPPED;
	if (!pair_up(&fx, pauses, ARRAY_SIZE(pauses)))
		return 1;
	raw_peer_init(&s, &fx, "172.30.0.1@tcp");
	b = put_one(&fx, &s);
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->terminal.status == -ENETUNREACH);
	expect(&fx, fx_stat(&fx, 0, "resend_count") == 0);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* Returns how many connections the system has dropped because a queue was full.
 */
static unsigned long dropped(void)
{
	return netns_counter("ListenDrops");
}

/* Opens a connection that nobody accepts: the queue is full. */
static int fill(const struct raw_peer *s)
{
	union netif_addr a = netif_addr(&s->nid, s->port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, &a.any, sizeof(a)) ? -errno : fd;
}

/* The peer's system drops connection requests: attempts go on, though the
 * system alone would make the tenth one only after half an hour. Then there is
 * room. */
static int nothing_is_heard(void)
{
	struct raw_peer s;
	struct fx fx;
	int fd[2];

	if (!own_network())
		return SKIPPED;
	if (!pair_up(&fx, patient, ARRAY_SIZE(patient)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_listen(&s) == 0 && listen(s.listener, 0) == 0);
	fd[0] = fill(&s);
	put_one(&fx, &s);
	for (uint64_t us = 0; dropped() < 10 && us < fx_patience(&fx);
	     us += 1000)
		fx_run(&fx, 1000);
	expect(&fx, dropped() >= 10);
	/* fill()'s connection, which says nothing */
	fd[1] = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
	expect(&fx, fd[1] >= 0);
	close_all(fd, 2);
	expect(&fx, (fd[0] = raw_peer_accept(&s)) >= 0);
	close(fd[0]);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* ---- both sockets of an attempt reach the peer ---- */

/* Keeps the loop of node 0 from noticing anything. */
struct blocker {
	struct ulnet_work work;
	sem_t blocked, over;
};

static void block(struct ulnet_work *w)
{
	struct blocker *b = container_of(w, struct blocker, work);

	sem_post(&b->blocked);
	while (sem_wait(&b->over))
		continue;
}

static void block_begin(struct blocker *b)
{
	*b = (struct blocker){ .work.fn = block };
	sem_init(&b->blocked, 0, 0);
	sem_init(&b->over, 0, 0);
	lnet_post(pair.node[0], 0, &b->work);
	while (sem_wait(&b->blocked))
		continue;
}

static void block_end(struct blocker *b)
{
	sem_post(&b->over);
}

static bool has_second(const struct census *c, unsigned int n)
{
	return c->seconds == n;
}

/* Sends a PUT to a peer whose system drops the requests for connections, until
 * there are two sockets, and then, before the node notices, takes both. The
 * queue of the listener has room for one connection, which is fill()'s. */
static struct box *take_two(struct fx *fx, struct raw_peer *s, int fd[2])
{
	struct blocker blocker;
	struct box *b;
	int filler[2];

	expect(fx, listen(s->listener, 0) == 0);
	filler[0] = fill(s);
	b = put_one(fx, s);
	expect(fx, census_wait(fx, pair.node[0], &s->nid, has_second, 1));
	block_begin(&blocker);
	expect(fx, listen(s->listener, 100) == 0);
	filler[1] = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	for (int i = 0; i < 2; i++)
		fd[i] = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	block_end(&blocker);
	expect(fx, fd[0] >= 0 && fd[1] >= 0);
	close_all(filler, 2);
	return b;
}

/* A kernel node logs an error if a connection ends before its request has come:
 * the peer gets a request on both sockets, and refuses one of them. */
static int both_are_asked(unsigned int taken)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	struct ulnet_nid target;
	struct sock_hello hello;
	struct raw_peer s;
	struct box *b;
	struct fx fx;
	int fd[2];

	if (!own_network())
		return SKIPPED;
	if (!pair_up(&fx, turns, ARRAY_SIZE(turns)))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_listen(&s) == 0);
	b = take_two(&fx, &s, fd);
	for (int i = 0; i < 2; i++) {
		expect(&fx, hear_request(fd[i], &target) == 0);
		expect(&fx, hear_hello(fd[i], &hello) == 0);
		expect(&fx, hello.type == SOCK_CONTROL);
	}
	say(fd[!taken], buf, raw_peer_hello(&s, SOCK_NONE, buf));
	expect(&fx, hear_end(fd[!taken]));
	say(fd[taken], buf, raw_peer_hello(&s, SOCK_CONTROL, buf));
	expect(&fx, fx_wait(&fx, &b->terminals, 1));
	expect(&fx, b->terminal.status == 0);
	expect(&fx, raw_peer_has_conns(&fx, &s, 1));
	close_all(fd, 2);
	fx_close(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

static int first_is_taken(void)
{
	return both_are_asked(0);
}

static int second_is_taken(void)
{
	return both_are_asked(1);
}

/* The memory for failures of peers that do not exist is bounded. */
static int failures_are_forgotten(void)
{
	enum { N = CONNECT_FAILURES_MAX + 300 };
	struct box *b;
	struct census c;
	struct fx fx;

	if (!pair_up(&fx, pauses, ARRAY_SIZE(pauses)))
		return 1;
	b = box_new(&fx, 100, CUT_NONE);
	box_bind(b, 0, LNET_MD_THRESH_INF, fx_patience(&fx));
	for (unsigned int i = 0; i < N; i++) {
		char text[LNET_NIDSTR_SIZE];
		struct ulnet_nid nid;

		snprintf(text, sizeof(text), "127.2.%u.%u@tcp", i / 250,
			 1 + i % 250);
		expect(&fx, lnet_nid_parse(text, &nid) == 0);
		box_put_to(b, &nid, false, PORTAL, 1, i);
	}
	expect(&fx, fx_wait(&fx, &b->terminals, N));
	expect(&fx, b->outcomes[LNET_OUTCOME_NOT_DELIVERED] == N);
	expect(&fx, box_unlink(b) == 0);
	census_take(pair.node[0], NULL, &c);
	expect(&fx, c.peers <= CONNECT_FAILURES_MAX && c.peers > 0);
	return pair_down(&fx);
}

/* ---- */

static const struct apart_test tests[] = {
	{ "peers that say nothing hold up nobody", silent_peers },
	{ "peers that say nothing, and few attempts at once", take_turns },
	{ "many made-up pids of a silent address", many_pids },
	{ "a peer that is stopped", stopped },
	{ "a peer that is stopped, and another one", stopped_yields },
	{ "failures are counted until a success", failures_are_counted },
	{ "a peer that connects ends a pause", hello_ends_a_pause },
	{ "a peer that connects, and is slow to answer", crossing },
	{ "a connection for bulk is all that is left", only_bulk_is_left },
	{ "a peer that goes during a pause", gone_in_a_pause },
	{ "two processes of one NID", two_pids },
	{ "a peer that refuses at first", refused_at_first },
	{ "a new address ends a pause", address_ends_a_pause },
	{ "the way to the peer is lost for a while", way_is_lost },
	{ "no way to the peer, and long pauses", no_way_and_long_pauses },
	{ "attempts that hear nothing are repeated", nothing_is_heard },
	{ "both sockets reach the peer, which takes one", first_is_taken },
	{ "both sockets reach the peer, which takes the other one",
	  second_is_taken },
	{ "peers that do not exist are forgotten", failures_are_forgotten },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
