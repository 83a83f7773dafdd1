/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom discovery believes over nets with tls: required, and for whom a peer may
 * speak. */
#include "tests/lnd/tls_rig.h"

#include <time.h>

#include "ulnet/route.h"

static bool add_net(struct fx *fx, struct lnet *node, const char *address,
		    const char *net)
{
	struct ulnet_ni_conf ni = { .tunables = with_tls };
	char nid[LNET_NIDSTR_SIZE];

	snprintf(nid, sizeof(nid), "%s@%s", address, net);
	ni.ntunables = strcmp(net, "tcp") ? TUNABLES : PLAIN;
	return expect(fx, lnet_nid_parse(nid, &ni.nid) == 0) &&
	       expect(fx, lnet_ni_add(node, &ni) == 0);
}

/* A node with @nets, all on one address, of which tcp has no TLS. */
static bool node_of(struct fx *fx, const char *address, struct ulrpc_keys *keys,
		    const char *const nets[], struct lnet **node_p)
{
	struct ulnet_conf conf;
	bool good;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.port = pair.port;
	conf.keys = keys;
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
	struct ulrpc_keys *keys; /* of the node that announces */
	struct lnet *asks, *says;
	struct ulnet_nid plain, tls, tls2; /* of the node that announces */
};

static bool announced_up(struct announced *a, const char *proof,
			 const char *const asks[])
{
	/* The NID without TLS, with which nothing is proven, is primary. */
	static const char *const says[] = { "tcp", "tcp1", "tcp2", NULL };

	*a = (struct announced){ .keys = proofs_node("site", proof, 0) };
	BUG_ON(lnet_nid_parse("127.0.0.9@tcp", &a->plain) ||
	       lnet_nid_parse("127.0.0.9@tcp1", &a->tls) ||
	       lnet_nid_parse("127.0.0.9@tcp2", &a->tls2));
	/* for its port */
	return up(&a->fx) &&
	       node_of(&a->fx, "127.0.0.8", proofs_node("site", TCP1_2, 0),
		       asks, &a->asks) &&
	       node_of(&a->fx, "127.0.0.9", a->keys, says, &a->says);
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

/* A rule bears out what the certificate does not; without it, the NID goes with
 * the next announcement, and not before, and it comes back with the rule.
 * Something may be under way to the NID meanwhile: then it is known until that
 * has ended, as a peer of its own, and comes back only then. */
static int announced_by_rule(void)
{
	struct announced a;
	const char *name;

	if (!announced_up(&a, TCP1, all_nets))
		return 1;
	name = proofs_name(a.keys);
	expect(&a.fx,
	       lnet_tls_rule_set(a.asks, name, "127.0.0.9@tcp2", NULL) == 0);
	discover(&a.fx, a.asks, &a.tls);
	expect(&a.fx, primary_is(&a, &a.tls2, &a.tls));
	expect(&a.fx, lnet_tls_rule_del(a.asks, name) == 0);
	discover(&a.fx, a.asks, &a.tls);
	expect(&a.fx, is_known(&a, &a.tls));
	expect(&a.fx, !primary_is(&a, &a.tls2, &a.tls));
	expect(&a.fx, lnet_tls_rule_set(a.asks, name, "*@tcp2", NULL) == 0);
	/* for a minute */
	for (unsigned int i = 0; i < 600; i++) {
		discover(&a.fx, a.asks, &a.tls);
		if (primary_is(&a, &a.tls2, &a.tls))
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	expect(&a.fx, primary_is(&a, &a.tls2, &a.tls));
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
static void from_afar(struct fx *fx, bool gateway)
{
	struct ulnet_route route = { .priority = 0 };
	struct ulnet_nid afar;

	BUG_ON(lnet_nid_parse("10.1.2.3@o2ib7", &afar) ||
	       lnet_nid_parse("127.0.0.7@tcp", &route.gateway));
	route.net = lnet_nid_net(&afar);
	if (gateway)
		expect(fx, lnet_route_add(pair.node[0], &route) == 0);
	says_from_afar(fx, &afar, gateway);
}

static void from_peer(struct fx *fx)
{
	from_afar(fx, false);
}

static void from_gateway(struct fx *fx)
{
	from_afar(fx, true);
}

static const struct tls_test tests[] = {
	{ "NIDs that are announced without proof", .alone = announced_plain },
	{ "NIDs that are announced with proof", .alone = announced_proven },
	{ "NIDs that are announced with half a proof",
	  .alone = announced_half_proven },
	{ "NIDs that are announced by a rule", .alone = announced_by_rule },
	{ "NIDs that were announced before", .alone = announced_before },
	{ "a peer speaks for another net", .fn = from_peer },
	{ "a gateway speaks for another net", .fn = from_gateway },
};

const struct tls_tests tls_announcements = { tests, ARRAY_SIZE(tests) };
