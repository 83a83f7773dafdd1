/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nets with tls: required: who is let in, who is not and hears why, and what
 * goes over the wire. The conformance suite runs over TLS, too: socklnd_test.c.
 */
#include "tests/lnd/tls_rig.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

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

static void proven(struct fx *fx)
{
	still_works(fx);
	expect(fx, fx_stat(fx, 0, "peers_unproven") == 0);
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

static void no_keys(struct fx *fx)
{
	const char *why = NULL;
	struct ulnet_ni_conf ni = { .tunables = with_tls,
				    .ntunables = TUNABLES,
				    .why_p = &why };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.port = pair.port;
	if (!expect(fx, lnet_nid_parse("127.0.0.7@tcp", &ni.nid) == 0) ||
	    !expect(fx, lnet_open(&conf, &node) == 0))
		return;
	expect(fx, lnet_ni_add(node, &ni) == -ENOKEY);
	expect(fx, why && strstr(why, "no keys"));
	expect(fx, lnet_use_keys(node, NULL) == -EINVAL);
	/* Without TLS it needs none. */
	ni.ntunables = PLAIN;
	expect(fx, lnet_ni_add(node, &ni) == 0);
	/* It can get some later. */
	ni.ntunables = TUNABLES;
	expect(fx, lnet_use_keys(node, keys_of_node[0]) == 0);
	expect(fx, lnet_nid_parse("127.0.0.8@tcp", &ni.nid) == 0);
	expect(fx, lnet_ni_add(node, &ni) == 0);
	lnet_close(node);
}

/* ---- raw peers ---- */

/* The peer of the other tests is one that is let in. What it has put is
 * compared with the pattern when the event comes. */
static void raw_proven(struct fx *fx)
{
	struct tls_peer *p;
	struct box *b, *src;
	uint8_t buf[8192];
	size_t n;

	b = buffer(fx, 5);
	src = box_new(fx, 17, CUT_NONE);
	box_fill(src, 1);
	p = tls_peer_open(fx);
	n = put_make(p, 5, src->iov[0].iov_base, 17, buf);
	expect(fx, tls_say(p, buf, n));
	expect(fx, fx_wait(fx, &b->n[LNET_EVENT_PUT], 1));
	tls_peer_end(p);
}

/* A certificate that is good, for another NID than the peer names. */
static void false_nid(struct fx *fx)
{
	struct tls_peer *p;

	p = tls_peer_new(fx, "127.0.0.7@tcp",
			 proofs_node("site", "127.0.0.8@tcp", 0));
	expect(fx, stream_is_up(p->tls));
	expect(fx, !tls_greet(p, "127.0.0.7@tcp"));
	expect(fx, p->nsaid == 0);
	expect(fx, fx_stat(fx, 0, "peers_unproven") == 1);
	tls_peer_end(p);
}

static void plain_peer(struct fx *fx)
{
	struct raw_peer s;

	raw_peer_init(&s, fx, "127.0.0.7@tcp");
	expect(fx, raw_peer_open(&s, SOCK_CONTROL) == -ECONNRESET);
	expect(fx, fx_stat(fx, 0, "peers_unproven") == 1);
	raw_peer_fini(&s);
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
static void garbage(struct fx *fx)
{
	struct tls_peer *p;

	p = tls_peer_open(fx);
	expect(fx, say(p->fd, "nothing that anybody understands", 32));
	expect(fx, hear_end(p->fd));
	tls_peer_end(p);
}

/* A record in which the network changes one byte: nothing of it is
 * delivered. */
static void altered(struct fx *fx)
{
	struct tls_peer *p;
	uint8_t buf[8192], record[8192];
	const uint8_t *bytes;
	struct box *b;
	size_t n;

	b = buffer(fx, 6);
	p = tls_peer_open(fx);
	n = put_make(p, 6, "true", 4, buf);
	expect(fx, stream_write(p->tls, buf, n) == (ssize_t)n);
	bytes = stream_bytes(p->tls, &n);
	memcpy(record, bytes, n);
	record[n / 2] ^= 1;
	expect(fx, say(p->fd, record, n));
	expect(fx, hear_end(p->fd));
	tls_peer_end(p);
	still_works(fx);
	expect(fx, fx_read(fx, &b->n[LNET_EVENT_PUT]) == 0);
	box_end(b);
}

/* A connection that ends in the middle of a record, and one that ends without
 * a word. */
static void cut(struct fx *fx)
{
	struct tls_peer *p;
	uint8_t buf[8192];
	const uint8_t *bytes;
	struct box *b;
	size_t n;

	b = buffer(fx, 8);
	p = tls_peer_open(fx);
	n = put_make(p, 8, "half", 4, buf);
	expect(fx, stream_write(p->tls, buf, n) == (ssize_t)n);
	bytes = stream_bytes(p->tls, &n);
	expect(fx, say(p->fd, bytes, n / 2));
	shutdown(p->fd, SHUT_WR);
	expect(fx, hear_end(p->fd));
	tls_peer_end(p);
	p = tls_peer_open(fx);
	shutdown(p->fd, SHUT_WR);
	expect(fx, hear_end(p->fd));
	tls_peer_end(p);
	still_works(fx);
	expect(fx, fx_read(fx, &b->n[LNET_EVENT_PUT]) == 0);
	box_end(b);
}

/* ---- what goes over the wire ---- */

static bool has(const uint8_t *bytes, size_t n, const char *text)
{
	return memmem(bytes, n, text, strlen(text));
}

/* Nothing of a message can be read on the wire, and it is there within TLS. */
static void captured(struct fx *fx)
{
	static const char marker[] = "nobody else may know these words";
	struct tls_peer *p;
	struct box *src;

	p = tls_peer_open(fx);
	src = box_new(fx, sizeof(marker), CUT_NONE);
	memcpy(src->iov[0].iov_base, marker, sizeof(marker));
	expect(fx, box_bind(src, 0, 0, 60 * UINT64_C(1000000)) &&
			   box_put_to(src, &p->raw.nid, false, PORTAL, 9,
				      HDR(9, 0)));
	while (!has(p->said, p->nsaid, marker))
		if (!expect(fx, tls_fill(p)))
			break;
	expect(fx, has(p->said, p->nsaid, marker));
	expect(fx, !has(p->wire, p->nwire, marker));
	tls_peer_end(p);
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

static const struct tls_test tests[] = {
	{ "both are proven", .fn = proven },
	{ "both have the cluster's key", .alone = cluster },
	{ "another cluster's key", .alone = other_cluster },
	{ "another authority", .alone = other_authority },
	{ "the client's certificate is for another NID", .alone = client_nid },
	{ "the client's certificate is for no NID",
	  .alone = client_without_nids },
	{ "the server's certificate is for another NID", .alone = server_nid },
	{ "a certificate for another net", .alone = other_net },
	{ "a node without keys", .fn = no_keys },
	{ "a raw peer that is proven", .fn = raw_proven },
	{ "a raw peer that names another NID", .fn = false_nid },
	{ "a peer without TLS", .fn = plain_peer },
	{ "TLS on a net without", .alone = plain_net },
	{ "garbage behind the handshake", .fn = garbage },
	{ "an altered record", .fn = altered },
	{ "a connection that is cut", .fn = cut },
	{ "nothing can be read", .fn = captured },
	{ "without TLS all can be read", .alone = captured_plain },
};

static int run(const void *arg)
{
	const struct tls_test *t = arg;
	struct fx fx;

	if (t->alone)
		return t->alone();
	if (!up(&fx))
		return 1;
	t->fn(&fx);
	still_works(&fx);
	return pair_down(&fx);
}

static void run_all(struct apart *a, const struct tls_tests *all)
{
	for (unsigned int i = 0; i < all->n; i++)
		apart_run(a, all->tests[i].name, run, &all->tests[i]);
}

int main(int argc, char **argv)
{
	static const struct tls_tests own = { tests, ARRAY_SIZE(tests) };
	struct apart a = apart_begin(argc, argv, NULL);

	run_all(&a, &own);
	run_all(&a, &tls_strangers);
	run_all(&a, &tls_changes);
	run_all(&a, &tls_announcements);
	return apart_end(&a);
}
