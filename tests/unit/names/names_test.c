/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, their users, and schemes, in the simulator. */
#include "ulnet/names.h"

#include <errno.h>

#include "lnet/net/net.h"
#include "names/names.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"
#include "ulnet/route.h"

struct told {
	unsigned int n;
	int status;
	char why[LNET_NAME_WHY];
	unsigned int naddresses;
	struct ulnet_address first;
};

static struct lnet_sim *sim;
static struct lnet *node;

static void open_one(void)
{
	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL),
		     0);
	node = lnet_sim_node(sim, 0);
}

static void close_one(void)
{
	cr_assert_eq(lnet_sim_free(sim), 0);
}

static void tell(void *arg, const struct ulnet_name_answer *answer)
{
	struct told *t = arg;

	t->n++;
	t->status = answer->status;
	strcpy(t->why, answer->why);
	t->naddresses = answer->n;
	if (answer->n)
		t->first = answer->addresses[0];
}

static struct ulnet_name *use(const char *text, struct told *t)
{
	struct ulnet_name *name;

	*t = (struct told){ 0 };
	cr_assert_eq(lnet_name_open(node, 0, text, tell, t, &name, NULL), 0);
	cr_assert_eq(t->n, 0, "never inside of lnet_name_open()");
	return name;
}

static void set_name(const char *text, const char *nid, uint64_t delay)
{
	struct ulnet_address address = { .port = 0 };
	struct ulnet_name_answer answer = { .n = 1, .addresses = &address };

	cr_assert_eq(lnet_nid_parse(nid, &address.nid), 0);
	cr_assert_eq(lnet_sim_name_set(sim, text, &answer, delay), 0);
}

static void found(const struct told *t, unsigned int n, const char *nid)
{
	struct ulnet_nid expected;

	cr_assert_eq(lnet_nid_parse(nid, &expected), 0);
	cr_assert_eq(t->n, n, "told %u times", t->n);
	cr_assert_eq(t->status, 0);
	cr_assert_eq(t->naddresses, 1);
	cr_assert(lnet_nid_eq(&t->first.nid, &expected));
}

Test(names, what_needs_no_look_up)
{
	struct ulnet_name *name;
	struct told t;

	open_one();
	name = use("10.0.0.2@tcp,10.0.1.2@tcp1", &t);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.n, 1);
	cr_assert_eq(t.naddresses, 2);
	lnet_name_close(name);
	name = use("[fd00::2]:7000@tcp1", &t);
	lnet_sim_run(sim, MSEC);
	found(&t, 1, "fd00::2@tcp1");
	cr_assert_eq(t.first.port, 7000);
	lnet_name_close(name);
	name = use("10.0.0.2:7000,10.0.0.3,10.0.0.2@tcp", &t);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.n, 1);
	cr_assert_eq(t.naddresses, 2, "one of a NID, and its first port");
	cr_assert_eq(t.first.port, 7000);
	lnet_name_close(name);
	close_one();
}

/* A list with a name is looked up as a whole. */
Test(names, a_list_with_a_name)
{
	struct ulnet_name *name;
	struct told t;

	open_one();
	set_name("10.0.0.2,srv", "10.0.0.3@tcp", 5 * MSEC);
	name = use("10.0.0.2,srv", &t);
	lnet_sim_run(sim, 4 * MSEC);
	cr_assert_eq(t.n, 0);
	lnet_sim_run(sim, 2 * MSEC);
	found(&t, 1, "10.0.0.3@tcp");
	lnet_name_close(name);
	close_one();
}

Test(names, an_answer_its_change_and_a_failure)
{
	struct ulnet_name *name, *second;
	struct told t, u;

	open_one();
	set_name("srv", "10.0.0.2@tcp", 5 * MSEC);
	name = use("srv", &t);
	lnet_sim_run(sim, 4 * MSEC);
	cr_assert_eq(t.n, 0);
	lnet_sim_run(sim, 2 * MSEC);
	found(&t, 1, "10.0.0.2@tcp");
	/* One who comes later is told what is known. */
	second = use("srv", &u);
	lnet_sim_run(sim, MSEC);
	found(&u, 1, "10.0.0.2@tcp");
	lnet_name_close(second);
	/* The same answer again is no news. */
	set_name("srv", "10.0.0.2@tcp", 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.n, 1);
	set_name("srv", "10.0.0.3@tcp", 0);
	lnet_sim_run(sim, MSEC);
	found(&t, 2, "10.0.0.3@tcp");
	/* After a failure, what was known is kept. */
	cr_assert_eq(lnet_sim_name_set(
			     sim, "srv",
			     &(struct ulnet_name_answer){ .status = -ETIMEDOUT,
							  .why = "silent" },
			     0),
		     0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.n, 3);
	cr_assert_eq(t.status, -ETIMEDOUT);
	cr_assert_str_eq(t.why, "silent");
	cr_assert_eq(t.naddresses, 1);
	lnet_name_close(name);
	set_name("srv", "10.0.0.2@tcp", 0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.n, 3, "a closed name is not told");
	cr_assert_eq(u.n, 1);
	close_one();
}

Test(names, no_such_name_and_nobody_who_answers)
{
	struct ulnet_name_answer *answer;
	struct ulnet_name *name;
	struct told t;

	open_one();
	name = use("nowhere", &t);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.n, 1);
	cr_assert_eq(t.status, -ENOENT);
	cr_assert_str_eq(t.why, "there is no such name");
	cr_assert_eq(t.naddresses, 0);
	lnet_name_close(name);
	cr_assert_eq(lnet_sim_name_set(sim, "mute", NULL, 0), 0);
	name = use("mute", &t);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.n, 0);
	cr_assert_eq(lnet_name_lookup_wait(node, "mute", 0, &answer, NULL),
		     -ETIMEDOUT);
	lnet_name_close(name);
	cr_assert_eq(lnet_name_lookup_wait(node, "nowhere", 0, &answer, NULL),
		     0);
	cr_assert_eq(answer->status, -ENOENT);
	free(answer);
	close_one();
}

Test(names, what_is_known_is_kept_for_those_who_come_back)
{
	struct ulnet_name *name;
	struct told t;

	open_one();
	set_name("srv", "10.0.0.2@tcp", 0);
	lnet_name_close(use("srv", &t));
	set_name("srv", "10.0.0.3@tcp", 5 * MSEC);
	name = use("srv", &t);
	lnet_sim_run(sim, MSEC);
	found(&t, 1, "10.0.0.2@tcp");
	lnet_sim_run(sim, 5 * MSEC);
	found(&t, 2, "10.0.0.3@tcp");
	lnet_name_close(name);
	close_one();
}

Test(names, mistakes)
{
	struct ulnet_text_error err;
	struct ulnet_name *name;
	struct told t;

	open_one();
	cr_assert_eq(lnet_name_open(node, 0, "host:x", tell, &t, &name, &err),
		     -EINVAL);
	cr_assert_eq(err.offset, 5);
	/* Left open: the node closes it. */
	use("left", &t);
	close_one();
}

/* ---- schemes ---- */

struct scheme {
	struct ulnet_name_scheme s;
	uint64_t feed;
	char rest[64];
	unsigned int opened, closed;
	int rc;
};

static int on_open(void *arg, struct lnet *n, uint64_t feed, const char *rest,
		   void **priv_p)
{
	struct scheme *x = arg;

	cr_assert_eq(n, node);
	x->feed = feed;
	strcpy(x->rest, rest);
	*priv_p = x;
	x->opened += !x->rc;
	return x->rc;
}

static void on_close(void *arg, void *priv)
{
	struct scheme *x = arg;

	cr_assert_eq(priv, x);
	x->closed++;
}

static void answer_with(const struct scheme *x, unsigned int n)
{
	struct ulnet_address addresses[3] = {
		{ .nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 3),
		  .priority = 2 },
		{ .nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 2),
		  .priority = 1 },
		{ .nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 1),
		  .priority = 1 },
	};
	const struct ulnet_name_answer a = { .n = n, .addresses = addresses };

	cr_assert_eq(lnet_name_answer(node, x->feed, &a, 1000000), 0);
}

Test(names, a_scheme_of_the_program)
{
	struct scheme x = { .s = { .scheme = "etcd",
				   .open = on_open,
				   .close = on_close,
				   .arg = &x } };
	struct ulnet_name *name;
	struct told t;

	open_one();
	cr_assert_eq(lnet_name_scheme_add(node, &x.s), 0);
	cr_assert_eq(lnet_name_scheme_add(node, &x.s), -EEXIST);
	name = use("etcd://h:1/servers", &t);
	cr_assert_eq(x.opened, 1);
	cr_assert_str_eq(x.rest, "h:1/servers");
	answer_with(&x, 3);
	lnet_sim_run(sim, MSEC);
	/* The lowest priority first, and otherwise in their order. */
	found(&(struct told){ 1, 0, "", 1, t.first }, 1, "0.0.0.2@tcp");
	cr_assert_eq(t.naddresses, 3);
	cr_assert_eq(x.closed, 0);
	lnet_name_close(name);
	cr_assert_eq(x.closed, 1);
	answer_with(&x, 1); /* goes nowhere */
	x.rc = -EMFILE;
	name = use("etcd://other", &t);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t.status, -EMFILE);
	cr_assert_str_eq(t.why, "Too many open files");
	lnet_name_close(name);
	cr_assert_eq(x.closed, 1, "what was not opened is not closed");
	close_one();
}

/* ---- ports ---- */

#define USUAL 988 /* the port of a node, by default */

/* DNS says that @text is at @nid and @port; 0: the usual one. */
static void set_port(const char *text, const char *nid, uint16_t port)
{
	struct ulnet_address address = { .port = port };
	struct ulnet_name_answer answer = { .n = 1, .addresses = &address };

	cr_assert_eq(lnet_nid_parse(nid, &address.nid), 0);
	cr_assert_eq(lnet_sim_name_set(sim, text, &answer, 0), 0);
}

/* At which port this node connects to @text. */
static void is_at(const char *text, unsigned int port)
{
	struct ulnet_nid nid;
	unsigned int found;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0);
	found = lnd_ports_get(&net_node(node)->ports, &nid, USUAL);
	cr_assert_eq(found, port, "%s: %u, not %u", text, found, port);
}

static struct ulnet_name *use_now(const char *text, struct told *t)
{
	struct ulnet_name *name = use(text, t);

	lnet_sim_run(sim, MSEC);
	cr_assert_eq(t->n, 1);
	return name;
}

static void is_refused(const struct told *t)
{
	cr_assert_eq(t->naddresses, 0);
	cr_assert_eq(t->status, -EADDRINUSE);
	cr_assert_str_eq(t->why,
			 "its servers have other ports than the name says");
}

static struct ulnet_nid nid_in(const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0);
	return nid;
}

Test(names, a_port_is_forgotten_with_its_last_name)
{
	struct ulnet_name *a, *b;
	struct told t, u;

	open_one();
	set_port("a", "10.0.0.5@tcp", 7000);
	set_port("b", "10.0.0.5@tcp", 7000);
	a = use_now("a", &t);
	b = use_now("b", &u);
	is_at("10.0.0.5@tcp", 7000);
	lnet_name_close(a);
	is_at("10.0.0.5@tcp", 7000);
	/* b does not answer with it any more. */
	set_port("b", "10.0.0.6@tcp", 7001);
	lnet_sim_run(sim, MSEC);
	is_at("10.0.0.5@tcp", USUAL);
	is_at("10.0.0.6@tcp", 7001);
	/* The only one who says so may change its mind. */
	set_port("b", "10.0.0.6@tcp", 7002);
	lnet_sim_run(sim, MSEC);
	is_at("10.0.0.6@tcp", 7002);
	lnet_name_close(b);
	is_at("10.0.0.6@tcp", USUAL);
	cr_assert_eq(net_node(node)->ports.n, 0);
	/* What is remembered of a name has its port again, while it is used. */
	a = use_now("b", &t);
	is_at("10.0.0.6@tcp", 7002);
	lnet_name_close(a);
	cr_assert_eq(net_node(node)->ports.n, 0);
	close_one();
}

Test(names, a_port_of_another_name_is_not_changed)
{
	struct ulnet_name *first, *second;
	struct told t, u;

	open_one();
	set_port("first", "10.0.0.5@tcp", 0);
	set_port("second", "10.0.0.5@tcp", 7000);
	first = use_now("first", &t);
	second = use_now("second", &u);
	is_refused(&u);
	is_at("10.0.0.5@tcp", USUAL);
	lnet_name_close(first);
	/* Now nobody else says anything. */
	set_port("second", "10.0.0.5@tcp", 7001);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(u.naddresses, 1);
	is_at("10.0.0.5@tcp", 7001);
	/* What is remembered of the first one is not good any more. */
	first = use("first", &t);
	lnet_sim_run(sim, MSEC);
	is_refused(&t);
	lnet_name_close(first);
	lnet_name_close(second);
	close_one();
}

Test(names, an_answer_moves_nobody_whom_the_program_knows)
{
	struct ulnet_nid peer = nid_in("10.0.0.5@tcp");
	struct ulnet_nid set = nid_in("10.0.0.7@tcp");
	struct ulnet_route route = { .net = LNET_NET(LNET_TYPE_SOCK, 9),
				     .gateway = nid_in("10.0.0.6@tcp") };
	struct ulnet_name *name, *text;
	struct told t, u;

	open_one();
	/* The program may say so later than the name, too. */
	set_port("evil", "10.0.0.6@tcp", 7000);
	name = use_now("evil", &t);
	is_at("10.0.0.6@tcp", 7000);
	cr_assert_eq(lnet_route_add(node, &route), 0);
	is_at("10.0.0.6@tcp", USUAL);
	cr_assert_eq(lnet_peer_add(node, &peer, 1, false), 0);
	set_port("evil", "10.0.0.5@tcp", 7000);
	lnet_sim_run(sim, MSEC);
	is_refused(&t);
	is_at("10.0.0.5@tcp", USUAL);
	cr_assert_eq(lnet_route_del(node, route.net, &route.gateway), 0);
	set_port("evil", "10.0.0.6@tcp", 7000);
	lnet_sim_run(sim, MSEC);
	is_at("10.0.0.6@tcp", 7000);
	/* The program's own text, and what it sets, are stronger. */
	text = use_now("10.0.0.6:7003", &u);
	cr_assert_eq(u.status, 0);
	is_at("10.0.0.6@tcp", 7003);
	lnet_name_close(text);
	is_at("10.0.0.6@tcp", 7000);
	cr_assert_eq(lnet_peer_port_set(node, &set, 7004), 0);
	set_port("evil", "10.0.0.7@tcp", 7000);
	lnet_sim_run(sim, MSEC);
	is_refused(&t);
	is_at("10.0.0.7@tcp", 7004);
	lnet_name_close(name);
	is_at("10.0.0.7@tcp", 7004);
	close_one();
}

Test(names, have_no_more_ports_than_addresses)
{
	struct ulnet_address addresses[LNET_ADDRESSES_MAX];
	struct ulnet_name_answer answer = { .n = LNET_ADDRESSES_MAX,
					    .addresses = addresses };
	struct ulnet_name *name;
	struct told t;

	open_one();
	set_port("many", "10.0.0.5@tcp", 7000);
	name = use_now("many", &t);
	for (unsigned int round = 0; round < 300; round++) {
		for (unsigned int i = 0; i < LNET_ADDRESSES_MAX; i++)
			addresses[i] = (struct ulnet_address){
				.nid = lnet_nid_make(
					LNET_NET(LNET_TYPE_SOCK, 0),
					0x0b000000u + round * 1000 + i),
				.port = 7000,
			};
		cr_assert_eq(lnet_sim_name_set(sim, "many", &answer, 0), 0);
		lnet_sim_run(sim, MSEC);
		cr_assert_eq(t.naddresses, LNET_ADDRESSES_MAX);
		cr_assert_eq(net_node(node)->ports.n, LNET_ADDRESSES_MAX);
	}
	lnet_name_close(name);
	cr_assert_eq(net_node(node)->ports.n, 0);
	close_one();
}

/* And how many there are does not matter to who opens one more: this would take
 * minutes else. */
Test(names, are_as_many_as_said)
{
	struct ulnet_name *name = NULL, *last;
	char text[32];
	struct told t;

	open_one();
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		sprintf(text, "10.1.%u.%u@tcp", i >> 8, i & 255);
		cr_assert_eq(
			lnet_name_open(node, 0, text, tell, &t, &name, NULL),
			0);
	}
	cr_assert_eq(lnet_name_open(node, 0, "srv", tell, &t, &last, NULL),
		     -ENOSPC);
	/* One that is in use already needs no room. */
	cr_assert_eq(lnet_name_open(node, 0, text, tell, &t, &last, NULL), 0);
	lnet_name_close(last);
	lnet_name_close(name);
	cr_assert_eq(lnet_name_open(node, 0, "srv", tell, &t, &last, NULL), 0);
	close_one();
}

Test(names, need_to_be_opened)
{
	struct ulnet_conf conf;
	struct ulnet_name *name;
	struct lnet *real;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &real), 0);
	cr_assert_eq(lnet_name_open(real, 0, "x", tell, NULL, &name, NULL),
		     -ENXIO);
	cr_assert_eq(lnet_names_open(real), 0);
	cr_assert_eq(lnet_names_open(real), 0);
	cr_assert_eq(
		lnet_name_open(real, 0, "etcd://x", tell, NULL, &name, NULL),
		-EPROTONOSUPPORT);
	lnet_close(real);
}
