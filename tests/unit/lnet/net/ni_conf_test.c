/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of an interface, and what is shown of it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/injector.h"

static struct injector *open_bare(void)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.cpts = 2;
	return inject_open(&conf, NULL, 0);
}

static struct ulnet_ni_info info_of(struct lnet *node, unsigned int index)
{
	struct ulnet_ni_info info;

	cr_assert_eq(lnet_ni_info(node, index, &info), 0);
	return info;
}

/* ---- interfaces ---- */

static int add_interface(struct lnet *node, const char *interface)
{
	/* Of the NID only the net and the size count. */
	struct ulnet_ni_conf conf = { .nid = nid_of("fd77::9@tcp3"),
				      .interface = interface };

	return lnet_ni_add(node, &conf);
}

Test(ni_conf, by_interface)
{
	struct injector *in = open_bare();
	struct ulnet_ni_info info;

	cr_assert_eq(add_interface(in->node, "inj0"), 0);
	info = info_of(in->node, 1);
	cr_assert(nid_is(&info.nid, "10.77.0.2@tcp3"));
	cr_assert_str_eq(info.interface, "inj0");
	cr_assert(lnet_nid_eq(&in->ni[0]->lnd->nid, &info.nid));
	cr_assert_str_eq(in->ni[0]->lnd->interface, "inj0");
	/* The same interface cannot be added twice. */
	cr_assert_eq(add_interface(in->node, "inj0"), -EEXIST);
	cr_assert_eq(add_interface(in->node, "inj6"), 0);
	info = info_of(in->node, 2);
	cr_assert_eq(info.nid.size, LNET_NID_IPV6_SIZE);
	cr_assert_eq(lnet_ni_del(in->node, &info.nid), 0);
	cr_assert_eq(add_interface(in->node, "two"), 0);
	info = info_of(in->node, 2);
	cr_assert_eq(info.nid.size, LNET_NID_IPV6_SIZE);
	inject_close(in);
}

/* The caller is told which NID the NI has got, and nothing on failure. */
Test(ni_conf, nid_told)
{
	struct injector *in = open_bare();
	struct ulnet_nid nid = LNET_NID_ANY;
	struct ulnet_ni_conf conf = { .nid = nid_of("0.0.0.0@tcp3"),
				      .interface = "bare",
				      .nid_p = &nid };

	cr_assert_eq(lnet_ni_add(in->node, &conf), -EADDRNOTAVAIL);
	cr_assert(lnet_nid_is_any(&nid));
	conf.interface = "inj0";
	cr_assert_eq(lnet_ni_add(in->node, &conf), 0);
	cr_assert(nid_is(&nid, "10.77.0.2@tcp3"));
	nid = LNET_NID_ANY;
	cr_assert_eq(lnet_ni_add(in->node, &conf), -EEXIST);
	cr_assert(lnet_nid_is_any(&nid));
	conf.nid = nid_of("10.77.0.3@tcp");
	conf.interface = NULL;
	cr_assert_eq(lnet_ni_add(in->node, &conf), 0);
	cr_assert(nid_is(&nid, "10.77.0.3@tcp"));
	cr_assert_eq(lnet_cpts(in->node), 2);
	inject_close(in);
}

Test(ni_conf, bad_interfaces)
{
	struct injector *in = open_bare();
	char name[LNET_INTERFACE_SIZE + 1];
	struct ulnet_ni_info info;

	memset(name, 'x', sizeof(name));
	name[LNET_INTERFACE_SIZE] = '\0';
	cr_assert_eq(add_interface(in->node, "inj1"), -ENODEV);
	cr_assert_eq(add_interface(in->node, ""), -ENODEV);
	cr_assert_eq(add_interface(in->node, name), -ENODEV);
	cr_assert_eq(add_interface(in->node, "bare"), -EADDRNOTAVAIL);
	cr_assert_eq(add_interface(in->node, "odd"), -EADDRNOTAVAIL);
	cr_assert_eq(lnet_ni_info(in->node, 1, &info), -ENOENT);
	inject_close(in);
}

/* The simulated LND has no interfaces, only NIDs. */
Test(ni_conf, lnd_without_interfaces)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_ni_conf conf = { .nid = nid_of("fd77::9@tcp") };

	cr_assert_eq(add_interface(node, "eth0"), -EOPNOTSUPP);
	cr_assert_eq(lnet_ni_add(node, &conf), 0);
	cr_assert_str_eq(info_of(node, 0).interface, "");
	cr_assert_str_eq(info_of(node, 1).interface, "10.0.0.1");
	cr_assert_str_eq(info_of(node, 2).interface, "fd77::9");
	cluster_end(sim);
}

/* If only a NID is given, the LND says which interface has it, if it can. */
Test(ni_conf, name_of_the_interface)
{
	struct injector *in = open_bare();
	struct ulnet_ni_conf conf = { .nid = nid_of("10.77.0.2@tcp") };

	cr_assert_eq(lnet_ni_add(in->node, &conf), 0);
	cr_assert_str_eq(info_of(in->node, 1).interface, "inj0");
	conf.nid = nid_of("10.77.0.3@tcp");
	cr_assert_eq(lnet_ni_add(in->node, &conf), 0);
	cr_assert_str_eq(info_of(in->node, 2).interface, "10.77.0.3");
	conf.nid = nid_of("10.66.6.6@tcp");
	cr_assert_eq(lnet_ni_add(in->node, &conf), -EADDRNOTAVAIL);
	inject_close(in);
}

/* ---- tunables ---- */

static int add_tuned(struct lnet *node, const struct ulnet_tunable *t,
		     unsigned int n)
{
	struct ulnet_ni_conf conf = { .nid = nid_of("10.77.0.2@tcp"),
				      .tunables = t,
				      .ntunables = n };

	return lnet_ni_add(node, &conf);
}

Test(ni_conf, tunables)
{
	static const struct ulnet_tunable given[] = { { "tos", 255 },
						      { "fixed", INT64_MAX },
						      { "depth", 1 } };
	static const struct {
		const char *name;
		int64_t def, value;
	} want[INJECT_TUNABLES] = { { "depth", 16, 1 },
				    { "tos", -1, 255 },
				    { "fixed", INT64_MAX, INT64_MAX } };

	for (unsigned int n = 0; n <= 3; n += 3) {
		struct injector *in = open_bare();
		struct ulnet_ni_info info;

		cr_assert_eq(add_tuned(in->node, n ? given : NULL, n), 0);
		info = info_of(in->node, 1);
		cr_assert_eq(info.ntunables, INJECT_TUNABLES);
		for (unsigned int i = 0; i < INJECT_TUNABLES; i++) {
			int64_t value = n ? want[i].value : want[i].def;

			cr_assert_str_eq(info.tunables[i].name, want[i].name);
			cr_assert_eq(info.tunables[i].value, value);
			cr_assert_eq(in->ni[0]->lnd->tunables[i], value);
		}
		cr_assert_eq(info_of(in->node, 0).ntunables, 0);
		inject_close(in);
	}
}

static char logged[200];

static void see_log(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	snprintf(logged, sizeof(logged), "%s", line);
}

Test(ni_conf, bad_tunables)
{
	static const struct {
		struct ulnet_tunable t[3];
		unsigned int n;
		int rc;
		const char *said; /* part of the line in the log */
	} cases[] = {
		{ { { "depth", 0 } }, 1, -EINVAL, "depth" },
		{ { { "depth", 101 } }, 1, -EINVAL, "101" },
		{ { { "tos", -2 } }, 1, -EINVAL, "tos" },
		{ { { "tos", INT64_MIN } }, 1, -EINVAL, "tos" },
		{ { { "depth", 5 }, { "fixed", 5 } }, 2, -EINVAL, "fixed" },
		{ { { "depth", 5 }, { "Depth", 5 } }, 2, -ENOENT, "Depth" },
		{ { { "", 5 } }, 1, -ENOENT, "tunable" },
		{ { { NULL, 5 } }, 1, -EINVAL, NULL },
		{ { { "tos", 1 }, { "depth", 7 }, { "tos", 1 } },
		  3,
		  -EINVAL,
		  "tos" },
	};
	struct injector *in = open_bare();
	struct ulnet_ni_info info;

	lnet_log_set(LNET_LOG_WARN, see_log, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		logged[0] = '\0';
		cr_assert_eq(add_tuned(in->node, cases[i].t, cases[i].n),
			     cases[i].rc, "case %zu", i);
		cr_assert(!cases[i].said || strstr(logged, cases[i].said),
			  "case %zu: %s", i, logged);
	}
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
	cr_assert_eq(add_tuned(in->node, NULL, 1), -EINVAL);
	cr_assert_eq(lnet_ni_info(in->node, 1, &info), -ENOENT);
	cr_assert_null(in->ni[0]);
	inject_close(in);
}

/* ---- numbers ---- */

Test(ni_conf, defaults)
{
	struct injector *in = open_bare();
	struct ulnet_ni_info info;

	cr_assert_eq(add_tuned(in->node, NULL, 0), 0);
	info = info_of(in->node, 1);
	cr_assert_eq(info.tx_credits, 256);
	cr_assert_eq(info.peer_credits, 8);
	cr_assert_eq(info.peer_buffer_credits, 8);
	cr_assert_eq(info.peer_timeout, 180);
	cr_assert_eq(info.lnd_timeout, 16000000);
	cr_assert_eq(in->ni[0]->lnd->conf->port, 988);
	cr_assert_eq(in->ni[0]->lnd->conf->cpts, 2);
	/* 0@lo needs none of these. */
	info = info_of(in->node, 0);
	cr_assert_eq(info.tx_credits + info.peer_credits +
			     info.peer_buffer_credits,
		     0);
	cr_assert_eq(info.peer_timeout, 0);
	inject_close(in);
}

Test(ni_conf, as_configured)
{
	struct injector *in = open_bare();
	struct ulnet_ni_conf conf = { .nid = nid_of("10.77.0.2@tcp"),
				      .credits = 20,
				      .peer_credits = 30,
				      .peer_timeout = -1 };
	struct ulnet_ni_info info;

	cr_assert_eq(lnet_ni_add(in->node, &conf), 0);
	info = info_of(in->node, 1);
	cr_assert_eq(info.tx_credits, 20);
	cr_assert_eq(info.credits_max, 40); /* two CPTs */
	cr_assert_eq(info.peer_credits, 20);
	cr_assert_eq(info.peer_buffer_credits, 20);
	cr_assert_eq(info.peer_timeout, -1);
	conf.nid = nid_of("10.77.0.3@tcp");
	conf.peer_buffer_credits = 65535;
	conf.peer_timeout = 7;
	cr_assert_eq(lnet_ni_add(in->node, &conf), 0);
	info = info_of(in->node, 2);
	cr_assert_eq(info.peer_buffer_credits, 65535);
	cr_assert_eq(info.peer_timeout, 7);
	conf.nid = nid_of("10.77.0.4@tcp");
	conf.peer_buffer_credits = 65536;
	cr_assert_eq(lnet_ni_add(in->node, &conf), -EINVAL);
	inject_close(in);
}
