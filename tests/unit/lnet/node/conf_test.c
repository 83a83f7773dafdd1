/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a node, and which defaults 0 stands for. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
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
	struct lnet *node = NULL;
	struct ulnet_id id;

	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(LNetGetId(node, 1, &id), 0);
	cr_assert(nid_is(&id.nid, "127.0.0.1@tcp"));
	cr_assert_eq(LNetGetId(node, 2, &id), 0);
	cr_assert(nid_is(&id.nid, "127.0.0.2@tcp1"));
	cr_assert_eq(LNetGetId(node, 3, &id), -ENOENT);
	lnet_close(node);
	conf.nids = "";
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(LNetGetId(node, 1, &id), -ENOENT);
	lnet_close(node);
}

/* lnet_networks(7), beside NIDs, with blanks wherever the texts have them. */
Test(node_conf, nids_may_be_networks)
{
	static const struct {
		const char *nids, *want[3];
	} cases[] = {
		{ "tcp(lo)", { "127.0.0.1@tcp" } },
		{ "tcp(127.0.0.3, lo) tcp1(lo),\ttcp2 (lo)  127.0.0.2",
		  { "127.0.0.3@tcp", "127.0.0.1@tcp", "127.0.0.2@tcp" } },
		{ " 127.0.0.2@tcp7\n tcp (lo) ",
		  { "127.0.0.2@tcp7", "127.0.0.1@tcp" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulnet_conf conf = { .run = LNET_RUN_POLL,
					   .nids = cases[i].nids,
					   .port = free_port() };
		struct lnet *node;
		struct ulnet_id id;

		cr_assert_eq(lnet_open(&conf, &node), 0, "%s", conf.nids);
		for (unsigned int k = 0; k < 3 && cases[i].want[k]; k++) {
			cr_assert_eq(LNetGetId(node, k + 1, &id), 0);
			cr_assert(nid_is(&id.nid, cases[i].want[k]), "%s: %s",
				  conf.nids, cases[i].want[k]);
		}
		lnet_close(node);
	}
}

/* A net alone: the first interface that works. Whether this host has one
 * depends on the host. */
Test(node_conf, a_net_alone)
{
	struct ulnet_conf_error err = { "" };
	struct ulnet_conf conf = { .run = LNET_RUN_POLL,
				   .nids = "tcp",
				   .accept = LNET_ACCEPT_NONE,
				   .err = &err };
	struct ulnet_ni_conf *nis;
	struct lnet *node;
	struct ulnet_id id;
	unsigned int n;
	int rc = lnet_networks_parse("tcp", &nis, &n, NULL);

	cr_assert_eq(lnet_open(&conf, &node), rc, "%s", err.what);
	if (rc) {
		cr_assert_str_eq(err.what, "nids: 'tcp': tcp: no interface "
					   "that could be used");
		return;
	}
	free(nis);
	cr_assert_eq(LNetGetId(node, 1, &id), 0);
	cr_assert_eq(lnet_nid_net(&id.nid), LNET_NET(LNET_TYPE_SOCK, 0));
	lnet_close(node);
}

/* ---- NIs that the node chooses ---- */

static int reach(struct lnet *node, const char *target)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(target, &nid), 0);
	return lnet_ni_reach(node, &nid);
}

static void has_nis(struct lnet *node, const char *first, const char *second)
{
	struct ulnet_id id;

	cr_assert_eq(LNetGetId(node, 1, &id), first ? 0 : -ENOENT);
	cr_assert(!first || nid_is(&id.nid, first));
	cr_assert_eq(LNetGetId(node, 2, &id), second ? 0 : -ENOENT);
	cr_assert(!second || nid_is(&id.nid, second));
}

Test(node_conf, the_interface_that_reaches_a_target)
{
	struct ulnet_conf conf = { .accept = LNET_ACCEPT_NONE };
	struct lnet *node;

	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(reach(node, "0@lo"), 0);
	has_nis(node, NULL, NULL);
	cr_assert_eq(reach(node, "5@kfi"), -EPROTONOSUPPORT);
	has_nis(node, NULL, NULL);
	cr_assert_eq(reach(node, "127.0.0.1@tcp7"), 0);
	has_nis(node, "127.0.0.1@tcp7", NULL);
	/* From the same address, and on another net. */
	cr_assert_eq(reach(node, "127.0.0.9@tcp7"), 0);
	has_nis(node, "127.0.0.1@tcp7", NULL);
	cr_assert_eq(reach(node, "127.0.0.9@tcp8"), 0);
	has_nis(node, "127.0.0.1@tcp7", "127.0.0.1@tcp8");
	lnet_close(node);
}

Test(node_conf, nothing_is_added_to_what_the_user_has_chosen)
{
	struct ulnet_conf conf = { .run = LNET_RUN_POLL,
				   .nids = "127.0.0.3@tcp",
				   .accept = LNET_ACCEPT_NONE };
	struct lnet *node;

	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(reach(node, "127.0.0.1@tcp"), 0);
	cr_assert_eq(reach(node, "127.0.0.1@tcp8"), 0);
	has_nis(node, "127.0.0.3@tcp", NULL);
	lnet_close(node);
}

/* A refusal says which item it is about, and why. */
Test(node_conf, nids_that_are_refused)
{
	static const struct {
		const char *nids;
		int rc;
		const char *what;
	} cases[] = {
		{ "nonsense@", -EINVAL, "'nonsense@': a net is expected" },
		{ "lo@tcp", -EINVAL,
		  "'lo@tcp': not an address; an interface goes by its name "
		  "so: 'tcp(lo)'" },
		{ "0.0.0.0@tcp", -EADDRNOTAVAIL,
		  "'0.0.0.0@tcp': no interface has that address; 'tcp' alone "
		  "stands for the first one that works" },
		{ "192.0.2.1@tcp", -EADDRNOTAVAIL,
		  "'192.0.2.1@tcp': no interface has that address" },
		{ "127.0.0.1@tcp tpc(lo)", -EINVAL,
		  "'tpc(lo)': no such net: tpc" },
		{ "tcp(lo", -EINVAL, "'tcp(lo': ')' is missing" },
		{ "tcp(no-such0)", -ENODEV,
		  "'tcp(no-such0)': no-such0: no such interface" },
		{ "*", -EINVAL, "'*': no such net: *" },
		{ "*@tcp", -EINVAL, "'*@tcp': not the NID of one interface" },
		{ "0@lo", -EINVAL, "'0@lo': every node has 0@lo" },
		{ "127.0.0.1@tcp tcp(lo)", -EEXIST,
		  "'tcp(lo)': it comes twice" },
		{ "127.0.0.1@kfi", -EINVAL,
		  "'127.0.0.1@kfi': not the NID of one interface" },
		{ "5@kfi", -EPROTONOSUPPORT,
		  "'5@kfi': nothing here serves net kfi" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulnet_conf_error err = { "" };
		struct ulnet_conf conf = { .run = LNET_RUN_POLL,
					   .nids = cases[i].nids,
					   .port = free_port(),
					   .err = &err };
		struct lnet *node = NULL;
		int rc = lnet_open(&conf, &node);

		cr_assert_eq(rc, cases[i].rc, "%s: %d", conf.nids, rc);
		cr_assert_null(node);
		cr_assert_eq(strncmp(err.what, "nids: ", 6), 0, "%s", err.what);
		cr_assert_str_eq(err.what + 6, cases[i].what);
		conf.err = NULL;
		cr_assert_eq(lnet_open(&conf, &node), rc);
	}
}

static int try_conf(void (*change)(struct ulnet_conf *conf), const char *field)
{
	struct ulnet_conf_error err = { "" };
	struct ulnet_conf conf;
	struct lnet *node = NULL;
	int rc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.err = &err;
	change(&conf);
	rc = lnet_open(&conf, &node);
	cr_assert_eq(node == NULL, rc != 0);
	cr_assert_eq(strncmp(err.what, field, strlen(field)), 0, "%s: %s",
		     field, err.what);
	cr_assert_eq(err.what[strlen(field)], rc ? ':' : '\0', "%s", err.what);
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
	c->run = (enum ulnet_run)4;
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

static void pid_of_a_caller(struct ulnet_conf *c)
{
	c->pid = LNET_PID_USERFLAG | 1;
}

static void unknown_discovery(struct ulnet_conf *c)
{
	c->discovery = (enum ulnet_discovery)(LNET_DISCOVERY_VERIFY + 1);
}

static void many_interfaces(struct ulnet_conf *c)
{
	c->interfaces_max = 40001;
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
	static const struct {
		void (*change)(struct ulnet_conf *conf);
		const char *field;
	} bad[] = {
		{ many_cpts, "cpts" },
		{ two_polled, "cpts" },
		{ unknown_run, "run" },
		{ ev_without_loop, "ev" },
		{ loop_without_ev, "ev" },
		{ two_on_ev, "cpts" },
		{ long_timeout, "transaction_timeout" },
		{ any_pid, "pid" },
		{ pid_of_a_caller, "pid" },
		{ unknown_discovery, "discovery" },
		{ many_interfaces, "interfaces_max" },
		{ unknown_accept, "accept" },
		{ long_backlog, "accept_backlog" },
		{ many_handshakes, "accept_max" },
		{ long_accept, "accept_timeout" },
		{ too_long, "transaction_timeout" },
	};

	cr_assert_eq(try_conf(as_it_is, ""), 0);
	cr_assert_eq(try_conf(longest, ""), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(try_conf(bad[i].change, bad[i].field), -EINVAL,
			     "number %zu", i);
}

/* ---- the environment ---- */

/* The first node of a process takes the levels of the log from there: what is
 * set later stays. */
Test(node_conf, levels_of_the_log)
{
	struct ulnet_conf_error err = { "" };
	struct ulnet_conf conf = { .run = LNET_RUN_POLL,
				   .accept = LNET_ACCEPT_NONE,
				   .err = &err };
	char text[LNET_LOG_LEVELS];
	struct lnet *node;

	cr_assert_eq(setenv("ULNET_LOG", "rote=debug", 1), 0);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(lnet_open(&conf, &node), -EINVAL);
		cr_assert_eq(strncmp(err.what,
				     "ULNET_LOG: 'rote' is no subsystem: there "
				     "are config, ",
				     strlen("ULNET_LOG: 'rote' is no "
					    "subsystem: there are config, ")),
			     0, "%s", err.what);
	}
	cr_assert_eq(setenv("ULNET_LOG", "err,route=info", 1), 0);
	lnet_log_level_set(LNET_LOG_DEBUG);
	cr_assert_eq(lnet_open(&conf, &node), 0, "%s", err.what);
	lnet_close(node);
	lnet_log_levels(text, sizeof(text));
	cr_assert_str_eq(text, "err,route=info");
	lnet_log_level_set(LNET_LOG_WARN);
	cr_assert_eq(lnet_open(&conf, &node), 0);
	lnet_close(node);
	cr_assert_eq(lnet_log_level(), LNET_LOG_WARN);
}
