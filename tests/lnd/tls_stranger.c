/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is not known yet at a net with tls: required: slow ones, many, and what
 * they may cost. */
#include "tests/lnd/tls_rig.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Who begins with TLS, and then says nothing, is dropped. */
static int slow(void)
{
	static const uint8_t start[] = { SOCK_TLS_FIRST, 3, 1, 2, 0, 1, 0, 1 };
	struct raw_peer s;
	struct fx fx;
	int fd;

	tls_accept_timeout = 300000;
	if (!up(&fx))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	fd = raw_peer_connect(&s);
	expect(&fx, say(fd, start, sizeof(start)));
	expect(&fx, hear_end(fd));
	close(fd);
	raw_peer_fini(&s);
	still_works(&fx);
	return pair_down(&fx);
}

#define MAX_HANDSHAKES 16
#define STRANGERS      (4 * MAX_HANDSHAKES)

static bool up_patiently(struct fx *fx)
{
	tls_accept_timeout = 60 * UINT64_C(1000000);
	tls_accept_max = MAX_HANDSHAKES;
	return up(fx);
}

/* One address begins more handshakes than there may be, and says no more: a
 * peer at another one, that came first and is slow, is let in. */
static int crowd(void)
{
	static const uint8_t start[] = { SOCK_TLS_FIRST, 3, 1, 2, 0, 1, 0, 1 };
	int fd[STRANGERS];
	struct tls_peer *p;
	struct raw_peer s;
	struct fx fx;
	size_t n;

	if (!up_patiently(&fx))
		return 1;
	p = tls_peer_connect(&fx, "127.0.0.8@tcp", proofs_node("site", ALL, 0));
	expect(&fx, say(p->fd, stream_bytes(p->tls, &n), 3));
	stream_sent(p->tls, 3);
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	for (unsigned int i = 0; i < STRANGERS; i++) {
		fd[i] = raw_peer_connect(&s);
		expect(&fx, fd[i] >= 0 && say(fd[i], start, sizeof(start)));
	}
	expect(&fx,
	       comes_to(&fx, "handshakes_dropped", STRANGERS - MAX_HANDSHAKES));
	tls_peer_shake(&fx, p);
	expect(&fx, stream_is_up(p->tls));
	expect(&fx, tls_greet(p, "127.0.0.8@tcp"));
	tls_peer_end(p);
	for (unsigned int i = 0; i < STRANGERS; i++)
		close(fd[i]);
	raw_peer_fini(&s);
	still_works(&fx);
	return pair_down(&fx);
}

/* Waits until there is something to read. */
static bool hears(int fd)
{
	uint8_t c;

	return recv(fd, &c, 1, MSG_PEEK) == 1;
}

/* While handshakes have used up the processor time that they may, all wait;
 * then they go on, also those that had begun. */
static int no_time(void)
{
	enum { N = 6 };
	struct tls_peer *p[N];
	struct fx fx;

	if (!up_patiently(&fx))
		return 1;
	for (unsigned int i = 0; i < N; i++) {
		char nid[LNET_NIDSTR_SIZE];

		snprintf(nid, sizeof(nid), "127.0.0.%u@tcp", 7 + i % 3);
		p[i] = tls_peer_connect(&fx, nid, proofs_node("site", ALL, 0));
		/* The first half hears the node's answer before. */
		if (i == N / 2)
			census_set_door(fx.rig->node[0], false);
		expect(&fx, tls_flush(p[i]));
		if (i < N / 2)
			expect(&fx, hears(p[i]->fd));
	}
	for (unsigned int i = 0; i < N / 2; i++)
		tls_peer_shake(&fx, p[i]);
	expect(&fx, comes_to(&fx, "handshakes_deferred", N));
	/* One of those who wait gives up. */
	tls_peer_end(p[N - 1]);
	census_set_door(fx.rig->node[0], true);
	for (unsigned int i = 0; i < N - 1; i++) {
		tls_peer_shake(&fx, p[i]);
		expect(&fx, stream_is_up(p[i]->tls));
		expect(&fx, i || tls_greet(p[i], "127.0.0.7@tcp"));
		tls_peer_end(p[i]);
	}
	still_works(&fx);
	return pair_down(&fx);
}

/* Handshakes wait for time while their node ends. */
static int no_time_at_the_end(void)
{
	struct tls_peer *p;
	struct fx fx;
	bool good;

	if (!up_patiently(&fx))
		return 1;
	p = tls_peer_connect(&fx, "127.0.0.7@tcp", proofs_node("site", ALL, 0));
	census_set_door(fx.rig->node[0], false);
	expect(&fx, tls_flush(p));
	expect(&fx, comes_to(&fx, "handshakes_deferred", 1));
	good = !pair_down(&fx);
	good = hear_end(p->fd) && good;
	tls_peer_end(p);
	return good ? 0 : 1;
}

/* The peer's first message of a handshake ends at each place. */
static void cut_handshakes(struct fx *fx)
{
	struct ulrpc_keys *keys = proofs_node("site", ALL, 0);
	struct tls_peer *p;
	size_t n = 1;

	for (size_t cut = 0; cut < n; cut++) {
		const uint8_t *bytes;

		p = tls_peer_connect(fx, "127.0.0.7@tcp", keys);
		bytes = stream_bytes(p->tls, &n);
		expect(fx, say(p->fd, bytes, cut));
		shutdown(p->fd, SHUT_WR);
		expect(fx, hear_end(p->fd));
		tls_peer_end(p);
	}
	expect(fx, n > 100);
}

static const struct tls_test tests[] = {
	{ "a slow stranger", .alone = slow },
	{ "one address begins all handshakes", .alone = crowd },
	{ "handshakes have used up their time", .alone = no_time },
	{ "a node ends while handshakes wait", .alone = no_time_at_the_end },
	{ "handshakes that are cut", .fn = cut_handshakes },
};

const struct tls_tests tls_strangers = { tests, ARRAY_SIZE(tests) };
