/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network loses everything for a while, with open connections, and then
 * works again (requirement I5): new messages do not wait until TCP retransmits,
 * nothing is lost, and nothing arrives twice. The cut is a filter on a socket,
 * which drops all packets that arrive.
 */
#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lnd/socklnd/sock.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/netns.h"
#include "tests/lnd/pair.h"
#include "tests/lnd/raw_peer.h"

#define MAX_FD 1024

/* All messages use the connection for small messages, on which at most 64 KiB
 * are on their way. */
static const struct ulnet_tunable tunables[] = { { "conns_per_peer", 1 },
						 { "sock_timeout", 1000 },
						 { "max_reconnectms", 20 },
						 { "min_bulk", 2097152 },
						 { "tx_buffer_size", 65536 } };

static void cut(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &drop };

	BUG_ON(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)));
}

/* Removes the filter, if there is one. */
static void mend(int fd)
{
	int none = 0;

	BUG_ON(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none,
			  sizeof(none)) &&
	       errno != ENOENT);
}

/* ---- a peer that is the test's own ---- */

struct visit {
	struct fx fx;
	struct raw_peer s;
	struct box *src; /* source of small PUTs */
	uint32_t puts;
	int fd; /* the connection */
};

/* Accepts and answers the next connection. */
static int answer(struct visit *v)
{
	enum sock_type type = SOCK_NONE;
	int fd = raw_peer_answer(&v->s, &type);

	expect(&v->fx, fd >= 0 && type == SOCK_CONTROL);
	return fd;
}

/* Sends another small PUT, to process @pid. */
static void put_to_pid(struct visit *v, uint32_t pid)
{
	struct ulnet_id id = { v->s.nid, pid };

	box_put_id(v->src, id, false, PORTAL, 1, HDR(1, v->puts++));
}

static void put_small(struct visit *v)
{
	put_to_pid(v, LNET_PID_LUSTRE);
}

/* Fails unless PUT @i is the next message on @fd. */
static void hears(struct visit *v, int fd, uint32_t i)
{
	struct frame f = { 0 };

	expect(&v->fx, raw_peer_hear(&v->s, fd, &f) == 0);
	expect(&v->fx, f.hdr.type == SOCK_MSG_LNET);
	expect(&v->fx, HDR_I(f.lnet.hdr_data) == i);
}

static bool wait_suspended(struct visit *v, unsigned int n)
{
	return expect(&v->fx, census_wait(&v->fx, pair.node[0], &v->s.nid,
					  census_suspended_are, n));
}

static bool up(struct visit *v)
{
	memset(v, 0, sizeof(*v));
	if (!pair_up(&v->fx, tunables, ARRAY_SIZE(tunables)))
		return false;
	raw_peer_init(&v->s, &v->fx, "127.0.0.7@tcp");
	v->src = box_new(&v->fx, 100, CUT_NONE);
	box_fill(v->src, 1);
	return expect(&v->fx, box_bind(v->src, 0, LNET_MD_THRESH_INF,
				       1000 * UINT64_C(1000000))) &&
	       expect(&v->fx, raw_peer_listen(&v->s) == 0);
}

/* Opens the nodes, and one connection, over which the first PUT has arrived. */
static bool up_connected(struct visit *v)
{
	if (!up(v))
		return false;
	put_small(v);
	v->fd = answer(v);
	hears(v, v->fd, 0);
	return v->fd >= 0;
}

static int down(struct visit *v)
{
	box_unlink(v->src);
	expect(&v->fx, fx_wait(&v->fx, &v->src->unlinked, 1));
	expect(&v->fx, v->src->failed[LNET_EVENT_SEND] == 0);
	fx_close(&v->fx);
	raw_peer_fini(&v->s);
	return pair_down(&v->fx);
}

/* When the network works again, unsent messages use a new connection. TCP still
 * delivers over the old one what was sent there, and the peer ends it. */
static int goes_on(void)
{
	struct visit v;
	int fd;

	if (!up_connected(&v))
		return 1;
	cut(v.fd);
	cut(v.s.listener);
	put_small(&v);
	expect(&v.fx, fx_wait(&v.fx, &v.src->terminals, 2));
	wait_suspended(&v, 1);
	put_small(&v);
	mend(v.s.listener);
	fd = answer(&v);
	hears(&v, fd, 2);
	mend(v.fd);
	hears(&v, v.fd, 1);
	shutdown(v.fd, SHUT_WR);
	expect(&v.fx, hear_end(v.fd));
	wait_suspended(&v, 0);
	put_small(&v);
	hears(&v, fd, 3);
	/* the connection ended in an orderly way */
	expect(&v.fx, fx_stat(&v.fx, 0, "disconnects") == 0);
	close(v.fd);
	close(fd);
	return down(&v);
}

/* Messages that wait behind a large one that stalls use another connection. */
static int overtakes(void)
{
	static uint8_t payload[LNET_MTU];
	struct box *large;
	struct frame f = { 0 };
	struct visit v;
	int fd;

	if (!up_connected(&v))
		return 1;
	large = box_new(&v.fx, LNET_MTU, CUT_NONE);
	box_fill(large, 2);
	memcpy(payload, large->iov[0].iov_base, LNET_MTU);
	box_bind(large, 0, 1, 1000 * UINT64_C(1000000));
	cut(v.fd);
	box_put_to(large, &v.s.nid, false, PORTAL, 1, HDR(2, 0));
	put_small(&v);
	put_small(&v);
	fd = answer(&v);
	hears(&v, fd, 1);
	hears(&v, fd, 2);
	expect(&v.fx, fx_read(&v.fx, &large->terminals) == 0);
	mend(v.fd);
	expect(&v.fx, raw_peer_hear(&v.s, v.fd, &f) == 0);
	expect(&v.fx, f.lnet.payload_length == LNET_MTU);
	expect(&v.fx, memcmp(f.payload, payload, LNET_MTU) == 0);
	expect(&v.fx, fx_wait(&v.fx, &large->terminals, 1));
	expect(&v.fx, large->terminal.status == 0);
	close(v.fd);
	close(fd);
	return down(&v);
}

/* LNet is told once of the silence of a connection, and once of an attempt to
 * connect that messages wait for. Neither ends because of that. */
static int told_of_silence(void)
{
	struct visit v;

	if (!up_connected(&v))
		return 1;
	expect(&v.fx, fx_stat(&v.fx, 0, "silences") == 0);
	cut(v.fd);
	cut(v.s.listener);
	put_small(&v);
	wait_suspended(&v, 1);
	expect(&v.fx, fx_wait_stat(&v.fx, 0, "silences", 1));
	put_small(&v);
	expect(&v.fx, fx_wait_stat(&v.fx, 0, "silences", 2));
	expect(&v.fx, fx_stat(&v.fx, 0, "disconnects") == 0);
	mend(v.fd);
	for (uint32_t i = 1; i < 3; i++)
		hears(&v, v.fd, i);
	wait_suspended(&v, 0);
	expect(&v.fx, fx_stat(&v.fx, 0, "silences") == 2);
	close(v.fd);
	return down(&v);
}

/* If TCP gets through before a new connection is open, the old one is used
 * again. */
static int tcp_is_first(void)
{
	struct visit v;

	if (!up_connected(&v))
		return 1;
	cut(v.fd);
	cut(v.s.listener);
	put_small(&v);
	wait_suspended(&v, 1);
	put_small(&v);
	mend(v.fd);
	for (uint32_t i = 1; i < 3; i++)
		hears(&v, v.fd, i);
	wait_suspended(&v, 0);
	expect(&v.fx, raw_peer_has_conns(&v.fx, &v.s, 1));
	close(v.fd);
	return down(&v);
}

/* As above, though a connection for bulk was opened meanwhile: that one does
 * not carry small messages. */
static int tcp_is_first_but_for_bulk(void)
{
	struct visit v;
	int bulk;

	if (!up_connected(&v))
		return 1;
	cut(v.fd);
	cut(v.s.listener);
	put_small(&v);
	wait_suspended(&v, 1);
	bulk = raw_peer_open(&v.s, SOCK_BULK_OUT);
	expect(&v.fx, bulk >= 0);
	put_small(&v);
	mend(v.fd);
	for (uint32_t i = 1; i < 3; i++)
		hears(&v, v.fd, i);
	wait_suspended(&v, 0);
	expect(&v.fx, raw_peer_has_conns(&v.fx, &v.s, 2));
	close(bulk);
	close(v.fd);
	return down(&v);
}

/* Refuses the connection as one too many, as a kernel node does that knows the
 * old one. */
static void refuse(struct visit *v)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	int fd = raw_peer_accept(&v->s);
	struct ulnet_nid target;
	struct sock_hello hello;

	if (expect(&v->fx, fd >= 0) && !hear_request(fd, &target) &&
	    !hear_hello(fd, &hello))
		say(fd, buf, raw_peer_hello(&v->s, SOCK_NONE, buf));
	close(fd);
}

/* A kernel node refuses a new connection as long as it knows the old one, and
 * counts as sent what the old one has in the system's buffers, in either
 * direction: so the old one is not ended, however often the peer refuses, and
 * everything arrives once TCP gets through. */
static int refused(void)
{
	struct census c = { .suspended = 1 };
	uint64_t us;
	struct visit v;

	if (!up_connected(&v))
		return 1;
	cut(v.fd);
	put_small(&v);
	wait_suspended(&v, 1);
	put_small(&v);
	for (unsigned int i = 0; i < 12; i++)
		refuse(&v);
	expect(&v.fx, is_silent(v.fd));
	wait_suspended(&v, 1);
	mend(v.fd);
	for (us = 0; c.suspended && us < fx_patience(&v.fx); us += 1000) {
		if (raw_peer_is_called(&v.s))
			refuse(&v);
		fx_run(&v.fx, 1000);
		census_take(pair.node[0], &v.s.nid, &c);
	}
	expect(&v.fx, c.suspended == 0);
	for (uint32_t i = 1; i < 3; i++)
		hears(&v, v.fd, i);
	expect(&v.fx, fx_stat(&v.fx, 0, "disconnects") == 0);
	close(v.fd);
	return down(&v);
}

/* Begins with our link back after it was down for longer than a path may be
 * silent. */
static bool up_link_was_away(struct visit *v)
{
	if (!up_connected(v))
		return false;
	census_set_link(pair.node[0], false);
	expect(&v->fx, fx_wait_stat(&v->fx, 0, "disconnects", 1));
	fx_run(&v->fx, 310000);
	census_set_link(pair.node[0], true);
	return true;
}

/* The peer may have messages for us that its TCP repeats much later: the node
 * opens another connection, for new messages in either direction, and ends the
 * old one. */
static int link_comes_back(void)
{
	struct visit v;
	int fd;

	if (!up_link_was_away(&v))
		return 1;
	put_small(&v);
	fd = answer(&v);
	hears(&v, fd, 1);
	shutdown(v.fd, SHUT_WR);
	expect(&v.fx, hear_end(v.fd));
	wait_suspended(&v, 0);
	close(v.fd);
	close(fd);
	return down(&v);
}

/* A peer that refuses the new connection keeps the old one. */
static int link_comes_back_refused(void)
{
	struct visit v;

	if (!up_link_was_away(&v))
		return 1;
	put_small(&v);
	refuse(&v);
	hears(&v, v.fd, 1);
	wait_suspended(&v, 0);
	close(v.fd);
	return down(&v);
}

/* Returns how many window probes the system has sent. */
static unsigned long probes(void)
{
	return netns_counter("TCPWinProbe");
}

/* A peer that reads nothing for a long time is not silent: its system answers
 * each probe, saying that there is no room. */
static int slow_reader(void)
{
	struct in_addr any = { .s_addr = htonl(0x0a090807) };
	struct box *large;
	struct census c;
	struct visit v;

	if (netns_enter() || netns_add_addr(any))
		return SKIPPED;
	if (!up_connected(&v))
		return 1;
	large = box_new(&v.fx, LNET_MTU, CUT_NONE);
	box_bind(large, 0, 16, 1000 * UINT64_C(1000000));
	for (uint32_t i = 0; i < 16; i++)
		box_put_to(large, &v.s.nid, false, PORTAL, 1, HDR(1, i));
	for (uint64_t us = 0; probes() < 4 && us < fx_patience(&v.fx);
	     us += 1000)
		fx_run(&v.fx, 1000);
	expect(&v.fx, probes() >= 4);
	census_take(pair.node[0], &v.s.nid, &c);
	expect(&v.fx, c.suspended == 0 && c.conns == 1);
	expect(&v.fx, fx_stat(&v.fx, 0, "silences") == 0);
	for (uint32_t i = 0; i < 16; i++)
		hears(&v, v.fd, i);
	close(v.fd);
	return down(&v);
}

/* ---- callers: peers that do not listen ---- */

/* When a node that does not listen opens another connection, unsent messages
 * move to that one, and the old one ends when the message in progress is
 * written. */
static int caller_comes_again(void)
{
	struct ulnet_id id;
	struct box *large;
	struct frame f = { 0 };
	struct visit v;
	int fd;

	if (!up(&v))
		return 1;
	v.s.pid = LNET_PID_USERFLAG | 3;
	v.fd = raw_peer_open(&v.s, SOCK_CONTROL);
	id = (struct ulnet_id){ v.s.nid, v.s.pid };
	large = box_new(&v.fx, LNET_MTU, CUT_NONE);
	box_fill(large, 2);
	box_bind(large, 0, 4, 1000 * UINT64_C(1000000));
	/* more than TCP's buffers take */
	for (uint32_t i = 0; i < 4; i++)
		box_put_id(large, id, false, PORTAL, 1, HDR(2, i));
	put_to_pid(&v, v.s.pid);
	put_to_pid(&v, v.s.pid);
	expect(&v.fx, fx_read(&v.fx, &v.src->terminals) == 0);
	fd = raw_peer_open(&v.s, SOCK_CONTROL);
	expect(&v.fx, fd >= 0);
	for (uint32_t i = 0; i < 2; i++) {
		do {
			expect(&v.fx, raw_peer_hear(&v.s, fd, &f) == 0);
		} while (f.lnet.payload_length == LNET_MTU);
		expect(&v.fx, HDR_I(f.lnet.hdr_data) == i);
	}
	while (raw_peer_hear(&v.s, v.fd, &f) == 0)
		expect(&v.fx, f.lnet.payload_length == LNET_MTU);
	expect(&v.fx, hear_end(v.fd));
	expect(&v.fx, fx_wait(&v.fx, &large->terminals, 4));
	expect(&v.fx, large->failed[LNET_EVENT_SEND] == 0);
	close(v.fd);
	wait_suspended(&v, 0);
	close(fd);
	return down(&v);
}

/* Begins with a silent caller. TCP has the second PUT; the third has not begun,
 * and waits for what the caller does. */
static bool up_silent_caller(struct visit *v)
{
	if (!up(v))
		return false;
	v->s.pid = LNET_PID_USERFLAG | 3;
	v->fd = raw_peer_open(&v->s, SOCK_CONTROL);
	put_to_pid(v, v->s.pid);
	hears(v, v->fd, 0);
	cut(v->fd);
	put_to_pid(v, v->s.pid);
	expect(&v->fx, fx_wait(&v->fx, &v->src->terminals, 2));
	wait_suspended(v, 1);
	expect(&v->fx, fx_wait_stat(&v->fx, 0, "silences", 1));
	put_to_pid(v, v->s.pid);
	return v->fd >= 0;
}

/* TCP gets through to the caller again. */
static int caller_is_heard_again(void)
{
	struct visit v;

	if (!up_silent_caller(&v))
		return 1;
	expect(&v.fx, fx_read(&v.fx, &v.src->terminals) == 2);
	mend(v.fd);
	for (uint32_t i = 1; i < 3; i++)
		hears(&v, v.fd, i);
	wait_suspended(&v, 0);
	put_to_pid(&v, v.s.pid);
	hears(&v, v.fd, 3);
	expect(&v.fx, fx_stat(&v.fx, 0, "disconnects") == 0);
	close(v.fd);
	return down(&v);
}

/* The caller opens another connection before TCP gets through on the old one.
 */
static int silent_caller_comes_again(void)
{
	struct visit v;
	int fd;

	if (!up_silent_caller(&v))
		return 1;
	fd = raw_peer_open(&v.s, SOCK_CONTROL);
	expect(&v.fx, fd >= 0);
	hears(&v, fd, 2);
	mend(v.fd);
	hears(&v, v.fd, 1);
	shutdown(v.fd, SHUT_WR);
	expect(&v.fx, hear_end(v.fd));
	wait_suspended(&v, 0);
	put_to_pid(&v, v.s.pid);
	hears(&v, fd, 3);
	expect(&v.fx, fx_stat(&v.fx, 0, "disconnects") == 0);
	close(v.fd);
	close(fd);
	return down(&v);
}

/* Makes close() reset the connection, as the system of a process that is killed
 * does. */
static void reset_on_close(int fd)
{
	struct linger none = { .l_onoff = 1 };

	BUG_ON(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
}

/* The caller's process has gone: nothing waits any longer. The filter stays, as
 * it does not stop the reset: without it TCP might get through before that, and
 * the message that waits would be in the queue of a connection again. */
static int silent_caller_goes(void)
{
	struct visit v;

	if (!up_silent_caller(&v))
		return 1;
	reset_on_close(v.fd);
	close(v.fd);
	expect(&v.fx, fx_wait(&v.fx, &v.src->terminals, 3));
	expect(&v.fx, v.src->terminal.status == -EHOSTUNREACH);
	expect(&v.fx, v.src->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	wait_suspended(&v, 0);
	v.src->failed[LNET_EVENT_SEND]--;
	return down(&v);
}

/* ---- two nodes ---- */

/* Calls @fn for the sockets of all open connections of both nodes. */
static void each_conn(void (*fn)(int fd))
{
	for (int fd = 0; fd < MAX_FD; fd++) {
		struct sockaddr_in a = { 0 };
		socklen_t len = sizeof(a);

		if (getpeername(fd, (struct sockaddr *)&a, &len) == 0 &&
		    a.sin_family == AF_INET)
			fn(fd);
	}
}

static bool is_tidy(const struct census *c, unsigned int n)
{
	return c->conns == n && c->suspended == 0 && c->attempts == 0;
}

/* Messages in both directions, before and after the stall is noticed: each
 * arrives once, and the old connections end when TCP has delivered what they
 * had. */
static int both_ways(void)
{
	enum { N = 20 };
	struct box *src[2], *dst[2];
	struct fx fx;

	if (!pair_up(&fx, tunables, ARRAY_SIZE(tunables)))
		return 1;
	still_works(&fx);
	for (unsigned int i = 0; i < 2; i++) {
		src[i] = box_new(&fx, 100, CUT_NONE);
		dst[i] = box_new(&fx, 200 * N, CUT_NONE);
		box_fill(src[i], 1);
		box_post(dst[i], &(struct post){ .side = 1 - i,
						 .portal = PORTAL,
						 .bits = 1,
						 .options = LNET_MD_OP_PUT,
						 .threshold = 2 * N });
		box_bind(src[i], i, 4 * N, 1000 * UINT64_C(1000000));
	}
	each_conn(cut);
	for (uint32_t n = 0; n < N; n++)
		for (unsigned int i = 0; i < 2; i++)
			box_put(src[i], 1 - i, true, PORTAL, 1, HDR(1, n));
	for (unsigned int i = 0; i < 2; i++)
		expect(&fx, census_wait(&fx, pair.node[i], NULL,
					census_suspended_are, 1));
	for (uint32_t n = N; n < 2 * N; n++)
		for (unsigned int i = 0; i < 2; i++)
			box_put(src[i], 1 - i, true, PORTAL, 1, HDR(1, n));
	for (unsigned int i = 0; i < 2; i++)
		expect(&fx, fx_wait(&fx, &dst[i]->n[LNET_EVENT_PUT], N));
	each_conn(mend);
	for (unsigned int i = 0; i < 2; i++) {
		expect(&fx, fx_wait(&fx, &dst[i]->unlinked, 1));
		expect(&fx, fx_wait(&fx, &src[i]->unlinked, 1));
		expect(&fx, src[i]->outcomes[LNET_OUTCOME_DELIVERED] == 2 * N);
		expect(&fx, dst[i]->n[LNET_EVENT_PUT] == 2 * N);
		expect(&fx, census_wait(&fx, pair.node[i], NULL, is_tidy, 1));
	}
	still_works(&fx);
	return pair_down(&fx);
}

/* ---- */

static const struct apart_test tests[] = {
	{ "new messages take a new connection", goes_on },
	{ "they overtake a large one that is stuck", overtakes },
	{ "LNet is told of silence", told_of_silence },
	{ "TCP gets through first", tcp_is_first },
	{ "TCP gets through first, but for bulk", tcp_is_first_but_for_bulk },
	{ "the peer refuses a new connection", refused },
	{ "our link comes back", link_comes_back },
	{ "our link comes back, and the peer refuses",
	  link_comes_back_refused },
	{ "a peer that does not read has not stalled", slow_reader },
	{ "a caller connects again", caller_comes_again },
	{ "a silent caller is heard again", caller_is_heard_again },
	{ "a silent caller connects again", silent_caller_comes_again },
	{ "a silent caller goes", silent_caller_goes },
	{ "two nodes, both ways", both_ways },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
