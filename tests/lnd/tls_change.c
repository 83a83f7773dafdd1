/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and rules that change while connections are there. */
#include "tests/lnd/tls_rig.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- other keys ---- */

/* A certificate that was renewed is no reason to end a connection. */
static void renewed(struct fx *fx)
{
	struct tls_peer *p;

	p = tls_peer_open(fx);
	for (unsigned int i = 0; i < 2; i++)
		expect(fx, lnet_use_keys(pair.node[i],
					 proofs_node("site", ALL, 0)) == 0);
	still_puts(fx, p);
	tls_peer_end(p);
	p = tls_peer_open(fx);
	still_puts(fx, p);
	tls_peer_end(p);
}

/* How peers lose what they are let in by. */
struct loss {
	const char *authority;
	const char *nids; /* in the certificate of those who lose */
	void (*before)(struct fx *fx, const struct ulrpc_keys *keys);
	void (*lose)(struct fx *fx, const struct ulrpc_keys *keys);
};

static void not_let_in(struct fx *fx, struct tls_peer *p, const char *nid)
{
	expect(fx, !tls_greet(p, nid));
	tls_peer_end(p);
}

static struct tls_peer *let_in(struct fx *fx, const char *nid,
			       struct ulrpc_keys *keys)
{
	struct tls_peer *p = tls_peer_new(fx, nid, keys);

	expect(fx, tls_greet(p, nid));
	still_puts(fx, p);
	return p;
}

static bool cut_off(struct fx *fx, struct tls_peer *p)
{
	bool good = expect(fx, hear_end(p->fd));

	tls_peer_end(p);
	return good;
}

/* Waits for the end of one only if the one before has ended. */
static void all_cut_off(struct fx *fx, struct tls_peer **p, unsigned int n)
{
	bool good = true;

	for (unsigned int i = 0; i < n; i++)
		if (good)
			good = cut_off(fx, p[i]);
		else
			tls_peer_end(p[i]);
}

#define LOSERS 4

/* Peers that are believed no more are cut off, on each CPT; who was in the
 * middle of a handshake is not let in, nor is he later. Others go on. */
static int lost(const struct loss *l)
{
	static const char *const nids[LOSERS] = { "127.0.0.1@tcp",
						  "127.0.0.2@tcp",
						  "127.0.0.3@tcp",
						  "127.0.0.4@tcp" };
	struct ulrpc_keys *bad = proofs_node(l->authority, l->nids, 0);
	struct tls_peer *out[LOSERS], *half, *other;
	struct fx fx;

	pair_net.cpts = 4;
	if (!up_with(&fx, proofs_node(l->authority, ALL, 0),
		     proofs_node(l->authority, ALL, 0)))
		return 1;
	l->before(&fx, bad);
	other = let_in(&fx, "127.0.0.7@tcp", proofs_node(l->authority, ALL, 0));
	for (unsigned int i = 0; i < LOSERS; i++)
		out[i] = let_in(&fx, nids[i], bad);
	half = tls_peer_new(&fx, "127.0.0.8@tcp", bad);
	l->lose(&fx, bad);
	all_cut_off(&fx, out, LOSERS);
	not_let_in(&fx, half, "127.0.0.8@tcp");
	not_let_in(&fx, tls_peer_new(&fx, nids[0], bad), nids[0]);
	still_puts(&fx, other);
	tls_peer_end(other);
	still_works(&fx);
	return pair_down(&fx);
}

static void nothing(struct fx *fx, const struct ulrpc_keys *keys)
{
	(void)fx;
	(void)keys;
}

static void revoke_it(struct fx *fx, const struct ulrpc_keys *keys)
{
	expect(fx, lnet_use_keys(pair.node[0],
				 proofs_revoking("strict", ALL, keys)) == 0);
}

static int revoked(void)
{
	return lost(&(struct loss){ "strict", ALL, nothing, revoke_it });
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

/* ---- rules ---- */

static void rule(struct fx *fx, unsigned int node, const char *name,
		 const char *nids)
{
	struct ulnet_text_error err;
	int rc = lnet_tls_rule_set(pair.node[node], name, nids, &err);

	if (!expect(fx, rc == 0))
		printf("  %s, %s: %s\n", name, nids, err.what);
}

static void allow(struct fx *fx, const struct ulrpc_keys *keys)
{
	rule(fx, 0, proofs_name(keys), ALL);
}

static void forbid(struct fx *fx, const struct ulrpc_keys *keys)
{
	expect(fx, lnet_tls_rule_del(pair.node[0], proofs_name(keys)) == 0);
}

static int rule_deleted(void)
{
	return lost(&(struct loss){ "site", NULL, allow, forbid });
}

/* A rule that says less than before, and not only of other NIDs. */
static void forbid_some(struct fx *fx, const struct ulrpc_keys *keys)
{
	rule(fx, 0, proofs_name(keys), "127.0.0.9@tcp");
}

static int rule_replaced(void)
{
	return lost(&(struct loss){ "site", NULL, allow, forbid_some });
}

/* Certificates without NIDs are enough, if there are rules on both sides. */
static int by_rules(const char *name)
{
	struct ulrpc_keys *keys[2] = { proofs_node("site", NULL, 0),
				       proofs_node("site", NULL, 0) };
	struct fx fx;

	if (!up_with(&fx, keys[0], keys[1]))
		return 1;
	for (unsigned int i = 0; i < 2; i++)
		rule(&fx, i, name ? name : proofs_name(keys[1 - i]),
		     "127.0.0.[1-9]@tcp");
	still_works(&fx);
	expect(&fx, fx_stat(&fx, 0, "peers_unproven") == 0);
	return pair_down(&fx);
}

static int by_names(void)
{
	return by_rules(NULL);
}

static int by_pattern(void)
{
	return by_rules("n?de*");
}

/* Rules for another name, another NID and another net say nothing. */
static void beside(struct fx *fx)
{
	struct ulrpc_keys *keys = proofs_node("site", NULL, 0);

	rule(fx, 0, "nobody", ALL);
	rule(fx, 0, "nobod?*", ALL);
	rule(fx, 0, "*", "127.0.0.8@tcp 127.0.0.7@tcp1");
	not_let_in(fx, tls_peer_new(fx, "127.0.0.7@tcp", keys),
		   "127.0.0.7@tcp");
	expect(fx, fx_stat(fx, 0, "peers_unproven") == 1);
	tls_peer_end(let_in(fx, "127.0.0.8@tcp", keys));
}

/* Who keeps his NID by a rule that says less, and who gets one back. */
static void kept(struct fx *fx)
{
	struct ulrpc_keys *keys = proofs_node("site", NULL, 0);
	const char *name = proofs_name(keys);
	struct tls_peer *stays, *goes;

	rule(fx, 0, name, "127.0.0.[7-8]@tcp");
	stays = let_in(fx, "127.0.0.7@tcp", keys);
	goes = let_in(fx, "127.0.0.8@tcp", keys);
	rule(fx, 0, name, "127.0.0.7@tcp");
	cut_off(fx, goes);
	still_puts(fx, stays);
	/* A pattern lets it speak, too, when its own rule has gone. */
	rule(fx, 0, "*", "127.0.0.[7-8]@tcp");
	expect(fx, lnet_tls_rule_del(pair.node[0], name) == 0);
	still_puts(fx, stays);
	tls_peer_end(stays);
	tls_peer_end(let_in(fx, "127.0.0.8@tcp", keys));
}

static const struct tls_test tests[] = {
	{ "a certificate that was renewed", .fn = renewed },
	{ "a certificate that was revoked", .alone = revoked },
	{ "a rule that is deleted", .alone = rule_deleted },
	{ "a rule that is replaced", .alone = rule_replaced },
	{ "rules of names instead of NIDs", .alone = by_names },
	{ "a rule of a pattern", .alone = by_pattern },
	{ "rules that are for others", .fn = beside },
	{ "a rule that says less", .fn = kept },
	{ "another authority", .alone = authority_changed },
};

const struct tls_tests tls_changes = { tests, ARRAY_SIZE(tests) };
