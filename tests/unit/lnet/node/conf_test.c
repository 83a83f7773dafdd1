/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a node, and which defaults 0 stands for. */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "tests/port.h"

Test(node_conf, defaults)
{
	struct ulnet_conf conf;

	memset(&conf, 0xff, sizeof(conf));
	lnet_conf_init(&conf);
	cr_assert_eq(conf.run, LNET_RUN_THREADS);
	cr_assert_null(conf.ev);
	cr_assert_eq(conf.cpts, 1);
	cr_assert_eq(conf.pid, 0);
	cr_assert_eq(conf.transaction_timeout, 50000000);
	cr_assert_eq(conf.port, 988);
	cr_assert_eq(conf.accept, LNET_ACCEPT_DEFAULT);
	cr_assert_eq(conf.accept_backlog, 4096);
	cr_assert_eq(conf.accept_max, 1024);
	cr_assert_eq(conf.accept_timeout, 5000000);
}

/* Returns how a node accepts connections that is opened with @port and @accept;
 * zeros in other fields become defaults. */
static enum ulnet_accept accepts(uint16_t port, enum ulnet_accept accept)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = port;
	conf.accept = accept;
	conf.accept_backlog = 0;
	conf.accept_max = 0;
	conf.accept_timeout = 0;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	accept = node->conf.accept;
	cr_assert_eq(node->conf.port, port ? port : 988);
	cr_assert_eq(node->conf.accept_backlog, 4096);
	cr_assert_eq(node->conf.accept_max, 1024);
	cr_assert_eq(node->conf.accept_timeout, 5000000);
	cr_assert_eq(net_node(node)->config->ni[0]->lnd.conf, &node->conf);
	lnet_close(node);
	return accept;
}

Test(node_conf, accept)
{
	cr_assert_eq(accepts(0, LNET_ACCEPT_DEFAULT), LNET_ACCEPT_SECURE);
	cr_assert_eq(accepts(1023, LNET_ACCEPT_DEFAULT), LNET_ACCEPT_SECURE);
	cr_assert_eq(accepts(1024, LNET_ACCEPT_DEFAULT), LNET_ACCEPT_ALL);
	cr_assert_eq(accepts(65535, LNET_ACCEPT_SECURE), LNET_ACCEPT_SECURE);
	cr_assert_eq(accepts(0, LNET_ACCEPT_ALL), LNET_ACCEPT_ALL);
	cr_assert_eq(accepts(0, LNET_ACCEPT_NONE), LNET_ACCEPT_NONE);
}

/* 0 stands for the default in every field. */
Test(node_conf, nothing_is_configured)
{
	struct ulnet_conf zero = { 0 }, polled = { .run = LNET_RUN_POLL };
	struct ulnet_conf want;
	struct lnet *node;

	lnet_conf_init(&want);
	want.accept = LNET_ACCEPT_SECURE;
	want.pid = LNET_PID_LUSTRE;
	cr_assert_eq(lnet_open(&zero, &node), 0);
	cr_assert_eq(memcmp(&node->conf, &want, sizeof(want)), 0);
	lnet_close(node);
	cr_assert_eq(lnet_open(&polled, &node), 0);
	cr_assert_eq(node->conf.run, LNET_RUN_POLL);
	lnet_close(node);
}

Test(node_conf, has_the_interfaces_of_its_configuration)
{
	struct ulnet_conf conf = { .run = LNET_RUN_POLL,
				   .nids = "127.0.0.1@tcp  127.0.0.2@tcp1",
				   .port = free_port() };
	static const char *const bad[] = { "nonsense@", "*",
					   "127.0.0.1@tcp 127.0.0.1@tcp" };
	static const int want[] = { -EINVAL, -EINVAL, -EEXIST };
	struct lnet *node = NULL;
	struct ulnet_id id;

	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(LNetGetId(node, 1, &id), 0);
	cr_assert(nid_is(&id.nid, "127.0.0.1@tcp"));
	cr_assert_eq(LNetGetId(node, 2, &id), 0);
	cr_assert(nid_is(&id.nid, "127.0.0.2@tcp1"));
	cr_assert_eq(LNetGetId(node, 3, &id), -ENOENT);
	lnet_close(node);
	node = NULL;
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		int rc;

		conf.nids = bad[i];
		rc = lnet_open(&conf, &node);
		cr_assert_eq(rc, want[i], "%s: %d", bad[i], rc);
		cr_assert_null(node);
	}
	conf.nids = "";
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(LNetGetId(node, 1, &id), -ENOENT);
	lnet_close(node);
}

static int try_conf(void (*change)(struct ulnet_conf *conf))
{
	struct ulnet_conf conf;
	struct lnet *node = NULL;
	int rc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	change(&conf);
	rc = lnet_open(&conf, &node);
	cr_assert_eq(node == NULL, rc != 0);
	lnet_close(node);
	return rc;
}

static void as_it_is(struct ulnet_conf *c)
{
	c->lazy_max = 0;
}

static void many_cpts(struct ulnet_conf *c)
{
	c->run = LNET_RUN_THREADS;
	c->cpts = LNET_CPTS_MAX + 1;
}

static void two_polled(struct ulnet_conf *c)
{
	c->cpts = 2;
}

static void unknown_run(struct ulnet_conf *c)
{
	c->run = (enum ulnet_run)3;
}

static void ev_without_loop(struct ulnet_conf *c)
{
	c->run = LNET_RUN_EV;
}

static void loop_without_ev(struct ulnet_conf *c)
{
	c->ev = (struct ev_loop *)c;
}

static void two_on_ev(struct ulnet_conf *c)
{
	c->run = LNET_RUN_EV;
	c->ev = (struct ev_loop *)c;
	c->cpts = 2;
}

static void long_timeout(struct ulnet_conf *c)
{
	c->transaction_timeout = UINT64_MAX / 1000;
}

static void any_pid(struct ulnet_conf *c)
{
	c->pid = LNET_PID_ANY;
}

static void unknown_accept(struct ulnet_conf *c)
{
	c->accept = (enum ulnet_accept)(LNET_ACCEPT_NONE + 1);
}

static void long_backlog(struct ulnet_conf *c)
{
	c->accept_backlog = UINT32_C(1) << 31;
}

static void many_handshakes(struct ulnet_conf *c)
{
	c->accept_max = UINT32_C(1) << 31;
}

static void long_accept(struct ulnet_conf *c)
{
	c->accept_timeout = UINT64_C(1000000) * INT32_MAX + 1;
}

static void longest(struct ulnet_conf *c)
{
	c->transaction_timeout = UINT64_C(1000000) * INT32_MAX;
	c->accept_timeout = c->transaction_timeout;
	c->accept_backlog = INT32_MAX;
	c->accept_max = INT32_MAX;
}

static void too_long(struct ulnet_conf *c)
{
	c->transaction_timeout = UINT64_C(1000000) * INT32_MAX + 1;
}

Test(node_conf, bad_configurations)
{
	static void (*const bad[])(struct ulnet_conf * conf) = {
		many_cpts,	 two_polled,   unknown_run,	ev_without_loop,
		loop_without_ev, two_on_ev,    long_timeout,	any_pid,
		unknown_accept,	 long_backlog, many_handshakes, long_accept,
		too_long,
	};

	cr_assert_eq(try_conf(as_it_is), 0);
	cr_assert_eq(try_conf(longest), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(try_conf(bad[i]), -EINVAL, "number %zu", i);
}
