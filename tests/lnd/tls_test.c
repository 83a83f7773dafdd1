/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nets with tls: required: who is let in, who is not and hears why, and what
 * goes over the wire. The conformance suite runs over TLS, too: socklnd_test.c.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lnd/socklnd/tls.h"
#include "secure/stream.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/pair.h"
#include "tests/lnd/proofs.h"
#include "tests/lnd/raw_peer.h"
#include "ulnet/route.h"

#define ALL "127.0.0.[1-9]@tcp"

static const struct ulnet_tunable with_tls[] = { { "min_reconnectms", 1 },
						 { "max_reconnectms", 20 },
						 { "conns_per_peer", 1 },
						 { "tls", 1 } };
#define PLAIN 3 /* as many of these: without TLS */

/* ---- two nodes ---- */

static struct ulrpc_keys *keys_of_node[2];
static unsigned int opened;
static uint64_t accept_timeout;
static uint32_t accept_max;

static void tune(struct ulnet_conf *conf, bool hasty)
{
	(void)hasty;
	conf->keys = keys_of_node[opened++ % 2];
	conf->accept_timeout = accept_timeout;
	conf->accept_max = accept_max;
	conf->transaction_timeout = 120 * UINT64_C(1000000);
}

static bool up_with(struct fx *fx, struct ulrpc_keys *first,
		    struct ulrpc_keys *second)
{
	keys_of_node[0] = first;
	keys_of_node[1] = second;
	opened = 0;
	pair_net.tune = tune;
	return pair_up(fx, with_tls, ARRAY_SIZE(with_tls));
}

static bool up(struct fx *fx)
{
	return up_with(fx, proofs_node("site", ALL, 0),
		       proofs_node("site", ALL, 0));
}

/* Node 0 sends to node 1, and is told soon that this was in vain: not at the
 * deadline, which is a minute away. */
static void sends_in_vain(struct fx *fx)
{
	struct box *src = box_new(fx, 100, CUT_NONE);
	struct box *dst = box_new(fx, 100, CUT_NONE);

	if (!box_post(dst, &(struct post){ .side = 1,
					   .portal = PORTAL,
					   .bits = 7,
					   .options = LNET_MD_OP_PUT }) ||
	    !box_bind(src, 0, 0, 60 * UINT64_C(1000000)) ||
	    !box_put(src, 1, true, PORTAL, 7, HDR(7, 0)))
		return;
	expect(fx, fx_wait(fx, &src->terminals, 1));
	expect(fx, src->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	expect(fx, src->terminal.status != -ETIMEDOUT);
	expect(fx, dst->n[LNET_EVENT_PUT] == 0);
	box_end(dst);
}

static int in_vain(struct ulrpc_keys *first, struct ulrpc_keys *second,
		   bool counted)
{
	struct fx fx;

	if (!up_with(&fx, first, second))
		return 1;
	sends_in_vain(&fx);
	expect(&fx, !counted || fx_stat(&fx, 1, "peers_unproven") > 0);
	return pair_down(&fx);
}

static int proven(void)
{
	struct fx fx;

	if (!up(&fx))
		return 1;
	still_works(&fx);
	expect(&fx, fx_stat(&fx, 0, "peers_unproven") == 0);
	return pair_down(&fx);
}

static int cluster(void)
{
	struct fx fx;

	if (!up_with(&fx, proofs_cluster("lab"), proofs_cluster("lab")))
		return 1;
	still_works(&fx);
	return pair_down(&fx);
}

static int other_cluster(void)
{
	return in_vain(proofs_cluster("lab"), proofs_cluster("other"), false);
}

static int other_authority(void)
{
	return in_vain(proofs_node("site", ALL, 0),
		       proofs_node("elsewhere", ALL, 0), false);
}

/* Node 1 refuses a node whose certificate does not speak for its NID. */
static int client_nid(void)
{
	return in_vain(proofs_node("site", "127.0.0.[6-9]@tcp", 0),
		       proofs_node("site", ALL, 0), true);
}

static int client_without_nids(void)
{
	return in_vain(proofs_node("site", NULL, 0),
		       proofs_node("site", ALL, 0), true);
}

/* Node 0 refuses a node that listens on a NID which it has no proof of. */
static int server_nid(void)
{
	return in_vain(proofs_node("site", ALL, 0),
		       proofs_node("site", "127.0.0.[1-5]@tcp", 0), false);
}

static int other_net(void)
{
	return in_vain(proofs_node("site", "127.0.0.[1-9]@tcp1", 0),
		       proofs_node("site", ALL, 0), false);
}

/* ---- what cannot be added ---- */

static int no_keys(void)
{
	const char *why = NULL;
	struct ulnet_ni_conf ni = { .tunables = with_tls,
				    .ntunables = ARRAY_SIZE(with_tls),
				    .why_p = &why };
	struct ulnet_conf conf;
	struct lnet *node;
	struct fx fx;

	if (!up(&fx))
		return 1;
	lnet_conf_init(&conf);
	conf.port = pair.port;
	if (!expect(&fx, lnet_nid_parse("127.0.0.7@tcp", &ni.nid) == 0) ||
	    !expect(&fx, lnet_open(&conf, &node) == 0))
		return 1;
	expect(&fx, lnet_ni_add(node, &ni) == -ENOKEY);
	expect(&fx, why && strstr(why, "no keys"));
	expect(&fx, lnet_use_keys(node, NULL) == -EINVAL);
	/* Without TLS it needs none. */
	ni.ntunables = PLAIN;
	expect(&fx, lnet_ni_add(node, &ni) == 0);
	/* It can get some later. */
	ni.ntunables = ARRAY_SIZE(with_tls);
	expect(&fx, lnet_use_keys(node, keys_of_node[0]) == 0);
	expect(&fx, lnet_nid_parse("127.0.0.8@tcp", &ni.nid) == 0);
	expect(&fx, lnet_ni_add(node, &ni) == 0);
	lnet_close(node);
	return pair_down(&fx);
}

/* ---- peers whose bytes the test writes itself ---- */

/* A raw peer that speaks TLS. */
struct tls_peer {
	struct raw_peer raw;
	int fd;
	struct stream *tls;
	/* what has come in by the wire, and what that was */
	uint8_t wire[1 << 17], said[1 << 17];
	size_t nwire, nsaid;
};

static bool tls_flush(struct tls_peer *p)
{
	size_t n;
	const uint8_t *bytes = stream_bytes(p->tls, &n);
	bool good = !n || say(p->fd, bytes, n);

	stream_sent(p->tls, n);
	return good;
}

/* Reads once. false: the node has closed, or does not say more. */
static bool tls_fill(struct tls_peer *p)
{
	uint8_t *at = p->wire + p->nwire;
	ssize_t n, did;

	BUG_ON(p->nwire + 8192 > sizeof(p->wire));
	n = recv(p->fd, at, 8192, 0);
	if (n <= 0)
		return false;
	p->nwire += (size_t)n;
	if (stream_take(p->tls, at, (size_t)n))
		return false;
	while ((did = stream_read(p->tls, p->said + p->nsaid,
				  sizeof(p->said) - p->nsaid)) > 0)
		p->nsaid += (size_t)did;
	return did == -EAGAIN && tls_flush(p);
}

static bool tls_say(struct tls_peer *p, const void *bytes, size_t n)
{
	return stream_write(p->tls, bytes, n) == (ssize_t)n && tls_flush(p);
}

/* Connects to node 0, for tls_peer_shake(). */
static struct tls_peer *tls_peer_connect(struct fx *fx, const char *nid,
					 struct ulrpc_keys *keys)
{
	struct tls_peer *p = calloc(1, sizeof(*p));

	BUG_ON(!p);
	raw_peer_init(&p->raw, fx, nid);
	p->fd = raw_peer_connect(&p->raw);
	p->tls = stream_new(HANDSHAKE_CLIENT, (struct keys *)keys);
	BUG_ON(!p->tls);
	expect(fx, p->fd >= 0);
	return p;
}

static void tls_peer_shake(struct fx *fx, struct tls_peer *p)
{
	expect(fx, tls_flush(p));
	while (!stream_is_up(p->tls) && tls_fill(p))
		;
}

static struct tls_peer *tls_peer_new(struct fx *fx, const char *nid,
				     struct ulrpc_keys *keys)
{
	struct tls_peer *p = tls_peer_connect(fx, nid, keys);

	tls_peer_shake(fx, p);
	return p;
}

static void tls_peer_end(struct tls_peer *p)
{
	stream_free(p->tls);
	close(p->fd);
	raw_peer_fini(&p->raw);
	free(p);
}

/* Sends request and HELLO, as the NID @claimed, and waits for the answer.
 * false: the node has closed. */
static bool tls_greet(struct tls_peer *p, const char *claimed)
{
	uint8_t buf[SOCK_REQUEST_LARGE_SIZE + SOCK_HELLO_LARGE_SIZE];
	size_t n = raw_peer_request(&p->raw, buf);

	BUG_ON(lnet_nid_parse(claimed, &p->raw.nid));
	n += raw_peer_hello(&p->raw, SOCK_CONTROL, buf + n);
	if (!tls_say(p, buf, n))
		return false;
	while (p->nsaid < SOCK_HELLO_SIZE)
		if (!tls_fill(p))
			return false;
	return true;
}

static struct tls_peer *tls_peer_open(struct fx *fx)
{
	struct tls_peer *p =
		tls_peer_new(fx, "127.0.0.7@tcp", proofs_node("site", ALL, 0));

	expect(fx, stream_is_up(p->tls));
	expect(fx, tls_greet(p, "127.0.0.7@tcp"));
	return p;
}

/* A PUT of @size bytes at @payload for the buffer with @bits of node 0. */
static size_t put_make(struct tls_peer *p, uint64_t bits, const void *payload,
		       uint32_t size, uint8_t *buf)
{
	const struct sock_hdr hdr = { .type = SOCK_MSG_LNET };
	struct lnet_hdr lnet =
		raw_peer_put_hdr(&p->raw, PORTAL, bits, HDR(1, 0), size);
	size_t n;

	lnet.wmd = LNET_WIRE_NONE;
	n = raw_peer_hdr(&p->raw, &hdr, &lnet, buf);
	memcpy(buf + n, payload, size);
	return n + size;
}

static struct box *buffer(struct fx *fx, uint64_t bits)
{
	struct box *b = box_new(fx, 4096, CUT_NONE);

	box_post(b, &(struct post){ .portal = PORTAL,
				    .bits = bits,
				    .options = LNET_MD_OP_PUT });
	return b;
}

/* The peer of the other tests is one that is let in. What it has put is
 * compared with the pattern when the event comes. */
static int raw_proven(void)
{
	struct tls_peer *p;
	struct box *b, *src;
	uint8_t buf[8192];
	struct fx fx;
	size_t n;

	if (!up(&fx))
		return 1;
	b = buffer(&fx, 5);
	src = box_new(&fx, 17, CUT_NONE);
	box_fill(src, 1);
	p = tls_peer_open(&fx);
	n = put_make(p, 5, src->iov[0].iov_base, 17, buf);
	expect(&fx, tls_say(p, buf, n));
	expect(&fx, fx_wait(&fx, &b->n[LNET_EVENT_PUT], 1));
	tls_peer_end(p);
	return pair_down(&fx);
}

/* A certificate that is good, for another NID than the peer names. */
static int false_nid(void)
{
	struct tls_peer *p;
	struct fx fx;

	if (!up(&fx))
		return 1;
	p = tls_peer_new(&fx, "127.0.0.7@tcp",
			 proofs_node("site", "127.0.0.8@tcp", 0));
	expect(&fx, stream_is_up(p->tls));
	expect(&fx, !tls_greet(p, "127.0.0.7@tcp"));
	expect(&fx, p->nsaid == 0);
	expect(&fx, fx_stat(&fx, 0, "peers_unproven") == 1);
	tls_peer_end(p);
	still_works(&fx);
	return pair_down(&fx);
}

static int plain_peer(void)
{
	struct raw_peer s;
	struct fx fx;

	if (!up(&fx))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	expect(&fx, raw_peer_open(&s, SOCK_CONTROL) == -ECONNRESET);
	expect(&fx, fx_stat(&fx, 0, "peers_unproven") == 1);
	raw_peer_fini(&s);
	still_works(&fx);
	return pair_down(&fx);
}

/* TLS where nobody expects it. */
static int plain_net(void)
{
	struct tls_peer *p;
	struct fx fx;

	pair_net.tune = NULL;
	if (!pair_up(&fx, with_tls, PLAIN))
		return 1;
	p = tls_peer_new(&fx, "127.0.0.7@tcp", proofs_node("site", ALL, 0));
	expect(&fx, !stream_is_up(p->tls));
	expect(&fx, p->nwire == 0);
	tls_peer_end(p);
	still_works(&fx);
	return pair_down(&fx);
}

/* Bytes that are no record of TLS. */
static int garbage(void)
{
	struct tls_peer *p;
	struct fx fx;

	if (!up(&fx))
		return 1;
	p = tls_peer_open(&fx);
	expect(&fx, say(p->fd, "nothing that anybody understands", 32));
	expect(&fx, hear_end(p->fd));
	tls_peer_end(p);
	still_works(&fx);
	return pair_down(&fx);
}

/* A record in which the network changes one byte: nothing of it is
 * delivered. */
static int altered(void)
{
	struct tls_peer *p;
	uint8_t buf[8192], record[8192];
	const uint8_t *bytes;
	struct box *b;
	struct fx fx;
	size_t n;

	if (!up(&fx))
		return 1;
	b = buffer(&fx, 6);
	p = tls_peer_open(&fx);
	n = put_make(p, 6, "true", 4, buf);
	expect(&fx, stream_write(p->tls, buf, n) == (ssize_t)n);
	bytes = stream_bytes(p->tls, &n);
	memcpy(record, bytes, n);
	record[n / 2] ^= 1;
	expect(&fx, say(p->fd, record, n));
	expect(&fx, hear_end(p->fd));
	tls_peer_end(p);
	still_works(&fx);
	expect(&fx, fx_read(&fx, &b->n[LNET_EVENT_PUT]) == 0);
	box_end(b);
	return pair_down(&fx);
}

/* A connection that ends in the middle of a record, and one that ends without
 * a word. */
static int cut(void)
{
	struct tls_peer *p;
	uint8_t buf[8192];
	const uint8_t *bytes;
	struct box *b;
	struct fx fx;
	size_t n;

	if (!up(&fx))
		return 1;
	b = buffer(&fx, 8);
	p = tls_peer_open(&fx);
	n = put_make(p, 8, "half", 4, buf);
	expect(&fx, stream_write(p->tls, buf, n) == (ssize_t)n);
	bytes = stream_bytes(p->tls, &n);
	expect(&fx, say(p->fd, bytes, n / 2));
	shutdown(p->fd, SHUT_WR);
	expect(&fx, hear_end(p->fd));
	tls_peer_end(p);
	p = tls_peer_open(&fx);
	shutdown(p->fd, SHUT_WR);
	expect(&fx, hear_end(p->fd));
	tls_peer_end(p);
	still_works(&fx);
	expect(&fx, fx_read(&fx, &b->n[LNET_EVENT_PUT]) == 0);
	box_end(b);
	return pair_down(&fx);
}

/* Who begins with TLS, and then says nothing, is dropped. */
static int slow(void)
{
	static const uint8_t start[] = { SOCK_TLS_FIRST, 3, 1, 2, 0, 1, 0, 1 };
	struct raw_peer s;
	struct fx fx;
	int fd;

	accept_timeout = 300000;
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

/* ---- many strangers ---- */

#define MAX_HANDSHAKES 16
#define STRANGERS      (4 * MAX_HANDSHAKES)

static bool up_patiently(struct fx *fx)
{
	accept_timeout = 60 * UINT64_C(1000000);
	accept_max = MAX_HANDSHAKES;
	return up(fx);
}

static bool comes_to(struct fx *fx, const char *stat, uint64_t least)
{
	for (uint64_t us = 0; fx_stat(fx, 0, stat) < least; us += 1000) {
		if (us > fx_patience(fx))
			return false;
		fx_run(fx, 1000);
	}
	return true;
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
	expect(&fx, comes_to(&fx, "handshakes_dropped",
			     STRANGERS - MAX_HANDSHAKES));
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
static int cut_handshakes(void)
{
	struct ulrpc_keys *keys = proofs_node("site", ALL, 0);
	struct tls_peer *p;
	struct fx fx;
	size_t n = 1;

	if (!up(&fx))
		return 1;
	for (size_t cut = 0; cut < n; cut++) {
		const uint8_t *bytes;

		p = tls_peer_connect(&fx, "127.0.0.7@tcp", keys);
		bytes = stream_bytes(p->tls, &n);
		expect(&fx, say(p->fd, bytes, cut));
		shutdown(p->fd, SHUT_WR);
		expect(&fx, hear_end(p->fd));
		tls_peer_end(p);
	}
	expect(&fx, n > 100);
	still_works(&fx);
	return pair_down(&fx);
}

/* ---- other keys ---- */

/* What the peer puts arrives at node 0. */
static void still_puts(struct fx *fx, struct tls_peer *p)
{
	static uint64_t bits = 100;
	struct box *b = buffer(fx, ++bits);
	struct box *src = box_new(fx, 17, CUT_NONE);
	uint8_t buf[8192];
	size_t n;

	box_fill(src, 1);
	n = put_make(p, bits, src->iov[0].iov_base, 17, buf);
	expect(fx, tls_say(p, buf, n));
	expect(fx, fx_wait(fx, &b->n[LNET_EVENT_PUT], 1));
}

/* A certificate that was renewed is no reason to end a connection. */
static int renewed(void)
{
	struct tls_peer *p;
	struct fx fx;

	if (!up(&fx))
		return 1;
	p = tls_peer_open(&fx);
	for (unsigned int i = 0; i < 2; i++)
		expect(&fx, lnet_use_keys(pair.node[i],
					  proofs_node("site", ALL, 0)) == 0);
	still_puts(&fx, p);
	tls_peer_end(p);
	p = tls_peer_open(&fx);
	still_puts(&fx, p);
	tls_peer_end(p);
	still_works(&fx);
	return pair_down(&fx);
}

#define REVOKED 4 /* peers with a certificate that is to be revoked */

/* Peers whose certificate is revoked are cut off, on each CPT; who was in the
 * middle of a handshake is not let in, nor is he later. Others go on. */
static int revoked(void)
{
	static const char *const nids[REVOKED] = { "127.0.0.1@tcp",
						   "127.0.0.2@tcp",
						   "127.0.0.3@tcp",
						   "127.0.0.4@tcp" };
	struct ulrpc_keys *bad = proofs_node("strict", ALL, 0);
	struct tls_peer *out[REVOKED], *half, *other;
	struct fx fx;

	pair_net.cpts = 4;
	if (!up_with(&fx, proofs_node("strict", ALL, 0),
		     proofs_node("strict", ALL, 0)))
		return 1;
	other = tls_peer_new(&fx, "127.0.0.7@tcp",
			     proofs_node("strict", ALL, 0));
	expect(&fx, tls_greet(other, "127.0.0.7@tcp"));
	still_puts(&fx, other);
	for (unsigned int i = 0; i < REVOKED; i++) {
		out[i] = tls_peer_new(&fx, nids[i], bad);
		expect(&fx, tls_greet(out[i], nids[i]));
		still_puts(&fx, out[i]);
	}
	half = tls_peer_new(&fx, "127.0.0.8@tcp", bad);
	expect(&fx, lnet_use_keys(pair.node[0],
				  proofs_revoking("strict", ALL, bad)) == 0);
	for (unsigned int i = 0; i < REVOKED; i++) {
		expect(&fx, hear_end(out[i]->fd));
		tls_peer_end(out[i]);
	}
	expect(&fx, !tls_greet(half, "127.0.0.8@tcp"));
	tls_peer_end(half);
	half = tls_peer_new(&fx, "127.0.0.1@tcp", bad);
	expect(&fx, !tls_greet(half, "127.0.0.1@tcp"));
	tls_peer_end(half);
	still_puts(&fx, other);
	tls_peer_end(other);
	still_works(&fx);
	return pair_down(&fx);
}

/* A site changes its authority at once: who has not followed is cut off. */
static int authority_changed(void)
{
	struct tls_peer *p;
	struct fx fx;

	if (!up(&fx))
		return 1;
	still_works(&fx);
	p = tls_peer_open(&fx);
	for (unsigned int i = 0; i < 2; i++)
		expect(&fx, lnet_use_keys(pair.node[i],
					  proofs_node("new", ALL, 0)) == 0);
	expect(&fx, hear_end(p->fd));
	tls_peer_end(p);
	works_again(&fx);
	return pair_down(&fx);
}

/* ---- what goes over the wire ---- */

static bool has(const uint8_t *bytes, size_t n, const char *text)
{
	return memmem(bytes, n, text, strlen(text));
}

/* Nothing of a message can be read on the wire, and it is there within TLS. */
static int captured(void)
{
	static const char marker[] = "nobody else may know these words";
	struct tls_peer *p;
	struct box *src;
	struct fx fx;

	if (!up(&fx))
		return 1;
	p = tls_peer_open(&fx);
	src = box_new(&fx, sizeof(marker), CUT_NONE);
	memcpy(src->iov[0].iov_base, marker, sizeof(marker));
	expect(&fx, box_bind(src, 0, 0, 60 * UINT64_C(1000000)) &&
			    box_put_to(src, &p->raw.nid, false, PORTAL, 9,
				       HDR(9, 0)));
	while (!has(p->said, p->nsaid, marker))
		if (!expect(&fx, tls_fill(p)))
			break;
	expect(&fx, has(p->said, p->nsaid, marker));
	expect(&fx, !has(p->wire, p->nwire, marker));
	tls_peer_end(p);
	return pair_down(&fx);
}

/* Without TLS they can: else the search would prove nothing. */
static int captured_plain(void)
{
	static const char marker[] = "anybody may know these words";
	struct raw_peer s;
	struct frame f = { .payload = NULL };
	struct box *src;
	struct fx fx;
	int fd;

	pair_net.tune = NULL;
	if (!pair_up(&fx, with_tls, PLAIN))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	fd = raw_peer_open(&s, SOCK_CONTROL);
	src = box_new(&fx, sizeof(marker), CUT_NONE);
	memcpy(src->iov[0].iov_base, marker, sizeof(marker));
	expect(&fx,
	       box_bind(src, 0, 0, 60 * UINT64_C(1000000)) &&
		       box_put_to(src, &s.nid, false, PORTAL, 9, HDR(9, 0)));
	expect(&fx, raw_peer_hear(&s, fd, &f) == 0);
	expect(&fx, f.payload && has(f.payload, f.lnet.payload_length, marker));
	close(fd);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* ---- whom discovery believes ---- */

static bool add_net(struct fx *fx, struct lnet *node, const char *address,
		    const char *net)
{
	struct ulnet_ni_conf ni = { .tunables = with_tls };
	char nid[LNET_NIDSTR_SIZE];

	snprintf(nid, sizeof(nid), "%s@%s", address, net);
	ni.ntunables = strcmp(net, "tcp") ? ARRAY_SIZE(with_tls) : PLAIN;
	return expect(fx, lnet_nid_parse(nid, &ni.nid) == 0) &&
	       expect(fx, lnet_ni_add(node, &ni) == 0);
}

/* A node with @nets, all on one address, of which tcp has no TLS. It has a
 * proof for @proof. */
static bool node_of(struct fx *fx, const char *address, const char *proof,
		    const char *const nets[], struct lnet **node_p)
{
	struct ulnet_conf conf;
	bool good;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.port = pair.port;
	conf.keys = proofs_node("site", proof, 0);
	good = expect(fx, lnet_open(&conf, node_p) == 0);
	for (; *nets && good; nets++)
		good = add_net(fx, *node_p, address, *nets);
	return good;
}

struct discovered {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over;
	int status;
};

static void on_discovered(void *arg, int status)
{
	struct discovered *d = arg;

	pthread_mutex_lock(&d->lock);
	d->over = true;
	d->status = status;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

static void discover(struct fx *fx, struct lnet *node,
		     const struct ulnet_nid *nid)
{
	struct discovered d = { .lock = PTHREAD_MUTEX_INITIALIZER,
				.changed = PTHREAD_COND_INITIALIZER };

	if (!expect(fx, lnet_discover(node, nid, LNET_DISCOVER_FORCE,
				      on_discovered, &d) == 0))
		return;
	pthread_mutex_lock(&d.lock);
	while (!d.over)
		pthread_cond_wait(&d.changed, &d.lock);
	pthread_mutex_unlock(&d.lock);
	expect(fx, d.status == 0);
}

#define TCP1   "127.0.0.[1-9]@tcp1"
#define TCP1_2 TCP1 " 127.0.0.[1-9]@tcp2"

/* Two nodes, one of which announces itself to the other. */
struct announced {
	struct fx fx;
	struct lnet *asks, *says;
	struct ulnet_nid plain, tls, tls2; /* of the node that announces */
};

static bool announced_up(struct announced *a, const char *proof,
			 const char *const asks[])
{
	/* The NID without TLS, with which nothing is proven, is primary. */
	static const char *const says[] = { "tcp", "tcp1", "tcp2", NULL };

	*a = (struct announced){ .asks = NULL };
	BUG_ON(lnet_nid_parse("127.0.0.9@tcp", &a->plain) ||
	       lnet_nid_parse("127.0.0.9@tcp1", &a->tls) ||
	       lnet_nid_parse("127.0.0.9@tcp2", &a->tls2));
	/* for its port */
	return up(&a->fx) &&
	       node_of(&a->fx, "127.0.0.8", TCP1_2, asks, &a->asks) &&
	       node_of(&a->fx, "127.0.0.9", proof, says, &a->says);
}

static int announced_down(struct announced *a)
{
	lnet_close(a->asks);
	lnet_close(a->says);
	return pair_down(&a->fx);
}

static bool is_known(const struct announced *a, const struct ulnet_nid *nid)
{
	struct ulnet_peer_info info;

	return lnet_peer_info(a->asks, nid, &info) == 0;
}

static bool primary_is(const struct announced *a, const struct ulnet_nid *nid,
		       const struct ulnet_nid *expected)
{
	struct ulnet_nid primary;

	return lnet_primary(a->asks, nid, &primary) == 0 &&
	       lnet_nid_eq(&primary, expected);
}

static const char *const all_nets[] = { "tcp", "tcp1", "tcp2", NULL };

/* Over the net without TLS a node may say what it likes of NIDs on the other
 * ones: they are not taken. */
static int announced_plain(void)
{
	struct announced a;

	if (!announced_up(&a, TCP1_2, all_nets))
		return 1;
	discover(&a.fx, a.asks, &a.plain);
	expect(&a.fx, is_known(&a, &a.plain));
	expect(&a.fx, !is_known(&a, &a.tls));
	expect(&a.fx, !is_known(&a, &a.tls2));
	return announced_down(&a);
}

/* With TLS, NIDs that the node has a proof for are taken, and not the one that
 * anybody could have. So it is two peers. */
static int announced_proven(void)
{
	struct announced a;

	if (!announced_up(&a, TCP1_2, all_nets))
		return 1;
	discover(&a.fx, a.asks, &a.tls);
	expect(&a.fx, primary_is(&a, &a.tls2, &a.tls));
	expect(&a.fx, !is_known(&a, &a.plain));
	discover(&a.fx, a.asks, &a.plain);
	discover(&a.fx, a.asks, &a.tls);
	expect(&a.fx, is_known(&a, &a.plain));
	expect(&a.fx, primary_is(&a, &a.plain, &a.plain));
	expect(&a.fx, primary_is(&a, &a.tls, &a.tls));
	expect(&a.fx, primary_is(&a, &a.tls2, &a.tls));
	return announced_down(&a);
}

static int announced_half_proven(void)
{
	struct announced a;

	if (!announced_up(&a, TCP1, all_nets))
		return 1;
	discover(&a.fx, a.asks, &a.tls);
	expect(&a.fx, is_known(&a, &a.tls));
	expect(&a.fx, !is_known(&a, &a.tls2));
	return announced_down(&a);
}

/* To a node without nets with TLS it is one peer. When the node gets one, the
 * next announcement parts them. */
static int announced_before(void)
{
	static const char *const plain[] = { "tcp", NULL };
	struct announced a;

	if (!announced_up(&a, TCP1_2, plain))
		return 1;
	discover(&a.fx, a.asks, &a.plain);
	expect(&a.fx, primary_is(&a, &a.tls, &a.plain));
	if (add_net(&a.fx, a.asks, "127.0.0.8", "tcp1")) {
		discover(&a.fx, a.asks, &a.plain);
		expect(&a.fx, primary_is(&a, &a.tls, &a.tls));
		expect(&a.fx, primary_is(&a, &a.tls2, &a.plain));
	}
	return announced_down(&a);
}

/* ---- for whom a peer may speak ---- */

/* A proven peer sends a message from another net, which is taken or not, and
 * then one of its own. */
static void says_from_afar(struct fx *fx, const struct ulnet_nid *afar,
			   bool taken)
{
	struct box *b = buffer(fx, 5), *own = buffer(fx, 6);
	struct box *src = box_new(fx, 17, CUT_NONE);
	struct tls_peer *p = tls_peer_open(fx);
	const struct ulnet_nid nid = p->raw.nid;
	uint8_t buf[2][1024];
	size_t n[2];

	box_fill(src, 1);
	p->raw.nid = *afar;
	n[0] = put_make(p, 5, src->iov[0].iov_base, 17, buf[0]);
	p->raw.nid = nid;
	n[1] = put_make(p, 6, src->iov[0].iov_base, 17, buf[1]);
	for (unsigned int i = 0; i < 2; i++)
		expect(fx, tls_say(p, buf[i], n[i]));
	expect(fx, fx_wait(fx, &own->n[LNET_EVENT_PUT], 1));
	if (taken)
		expect(fx, fx_wait(fx, &b->n[LNET_EVENT_PUT], 1));
	expect(fx, fx_read(fx, &b->n[LNET_EVENT_PUT]) == taken);
	expect(fx, fx_stat(fx, 0, "drop_asym_route") == !taken);
	tls_peer_end(p);
}

/* Only a gateway by which the node has a route to the net may do that. */
static int from_afar(bool gateway)
{
	struct ulnet_route route = { .priority = 0 };
	struct ulnet_nid afar;
	struct fx fx;

	if (!up(&fx))
		return 1;
	BUG_ON(lnet_nid_parse("10.1.2.3@o2ib7", &afar) ||
	       lnet_nid_parse("127.0.0.7@tcp", &route.gateway));
	route.net = lnet_nid_net(&afar);
	if (gateway)
		expect(&fx, lnet_route_add(pair.node[0], &route) == 0);
	says_from_afar(&fx, &afar, gateway);
	return pair_down(&fx);
}

static int from_peer(void)
{
	return from_afar(false);
}

static int from_gateway(void)
{
	return from_afar(true);
}

static const struct apart_test tests[] = {
	{ "both are proven", proven },
	{ "both have the cluster's key", cluster },
	{ "another cluster's key", other_cluster },
	{ "another authority", other_authority },
	{ "the client's certificate is for another NID", client_nid },
	{ "the client's certificate is for no NID", client_without_nids },
	{ "the server's certificate is for another NID", server_nid },
	{ "a certificate for another net", other_net },
	{ "a node without keys", no_keys },
	{ "a raw peer that is proven", raw_proven },
	{ "a raw peer that names another NID", false_nid },
	{ "a peer without TLS", plain_peer },
	{ "TLS on a net without", plain_net },
	{ "garbage behind the handshake", garbage },
	{ "an altered record", altered },
	{ "a connection that is cut", cut },
	{ "a slow stranger", slow },
	{ "one address begins all handshakes", crowd },
	{ "handshakes have used up their time", no_time },
	{ "a node ends while handshakes wait", no_time_at_the_end },
	{ "handshakes that are cut", cut_handshakes },
	{ "a certificate that was renewed", renewed },
	{ "a certificate that was revoked", revoked },
	{ "another authority", authority_changed },
	{ "nothing can be read", captured },
	{ "without TLS all can be read", captured_plain },
	{ "NIDs that are announced without proof", announced_plain },
	{ "NIDs that are announced with proof", announced_proven },
	{ "NIDs that are announced with half a proof", announced_half_proven },
	{ "NIDs that were announced before", announced_before },
	{ "a peer speaks for another net", from_peer },
	{ "a gateway speaks for another net", from_gateway },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
