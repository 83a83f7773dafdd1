/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/tls_rig.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

const struct ulnet_tunable with_tls[TUNABLES] = { { "min_reconnectms", 1 },
						  { "max_reconnectms", 20 },
						  { "conns_per_peer", 1 },
						  { "tls", 1 } };

/* ---- two nodes ---- */

struct ulrpc_keys *keys_of_node[2];
static unsigned int opened;
uint64_t tls_accept_timeout;
uint32_t tls_accept_max;

static void tune(struct ulnet_conf *conf, bool hasty)
{
	(void)hasty;
	conf->keys = keys_of_node[opened++ % 2];
	conf->accept_timeout = tls_accept_timeout;
	conf->accept_max = tls_accept_max;
	conf->transaction_timeout = 120 * UINT64_C(1000000);
}

bool up_with(struct fx *fx, struct ulrpc_keys *first, struct ulrpc_keys *second)
{
	keys_of_node[0] = first;
	keys_of_node[1] = second;
	opened = 0;
	pair_net.tune = tune;
	return pair_up(fx, with_tls, TUNABLES);
}

bool up(struct fx *fx)
{
	return up_with(fx, proofs_node("site", ALL, 0),
		       proofs_node("site", ALL, 0));
}

/* ---- peers whose bytes the test writes itself ---- */

bool tls_flush(struct tls_peer *p)
{
	size_t n;
	const uint8_t *bytes = stream_bytes(p->tls, &n);
	bool good = !n || say(p->fd, bytes, n);

	stream_sent(p->tls, n);
	return good;
}

bool tls_fill(struct tls_peer *p)
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

bool tls_say(struct tls_peer *p, const void *bytes, size_t n)
{
	return stream_write(p->tls, bytes, n) == (ssize_t)n && tls_flush(p);
}

struct tls_peer *tls_peer_connect(struct fx *fx, const char *nid,
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

void tls_peer_shake(struct fx *fx, struct tls_peer *p)
{
	expect(fx, tls_flush(p));
	while (!stream_is_up(p->tls) && tls_fill(p))
		;
}

struct tls_peer *tls_peer_new(struct fx *fx, const char *nid,
			      struct ulrpc_keys *keys)
{
	struct tls_peer *p = tls_peer_connect(fx, nid, keys);

	tls_peer_shake(fx, p);
	return p;
}

void tls_peer_end(struct tls_peer *p)
{
	stream_free(p->tls);
	close(p->fd);
	raw_peer_fini(&p->raw);
	free(p);
}

bool tls_greet(struct tls_peer *p, const char *claimed)
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

struct tls_peer *tls_peer_open(struct fx *fx)
{
	struct tls_peer *p =
		tls_peer_new(fx, "127.0.0.7@tcp", proofs_node("site", ALL, 0));

	expect(fx, stream_is_up(p->tls));
	expect(fx, tls_greet(p, "127.0.0.7@tcp"));
	return p;
}

size_t put_make(struct tls_peer *p, uint64_t bits, const void *payload,
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

struct box *buffer(struct fx *fx, uint64_t bits)
{
	struct box *b = box_new(fx, 4096, CUT_NONE);

	box_post(b, &(struct post){ .portal = PORTAL,
				    .bits = bits,
				    .options = LNET_MD_OP_PUT });
	return b;
}

void still_puts(struct fx *fx, struct tls_peer *p)
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

bool comes_to(struct fx *fx, const char *stat, uint64_t least)
{
	for (uint64_t us = 0; fx_stat(fx, 0, stat) < least; us += 1000) {
		if (us > fx_patience(fx))
			return false;
		fx_run(fx, 1000);
	}
	return true;
}
