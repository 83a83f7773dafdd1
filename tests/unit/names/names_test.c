/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, their users, and schemes, in the simulator. */
#include "ulnet/names.h"

#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"

struct told {
	unsigned int n;
	int status;
	char why[LNET_NAME_WHY];
	unsigned int naddresses;
	struct ulnet_address first;
};

static struct lnet_sim *sim;
static struct lnet *node;

TestSuite(names, .timeout = 60);

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
