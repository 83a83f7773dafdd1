/* SPDX-License-Identifier: BSD-3-Clause */
/* Local nets come and go with their interfaces (requirement C1). */
#include "lnet/net/net.h"

#include <criterion/criterion.h>

static struct lnet_ni ni_make_fake(const char *nid)
{
	struct lnet_ni ni = { .node = NULL };

	cr_assert_eq(lnet_nid_parse(nid, &ni.lnd.nid), 0, "%s", nid);
	ni.segment = nid_segment(&ni.lnd.nid);
	return ni;
}

/* 1@tcp 2@tcp | 3@tcp1"| Asserts the NIs of a configuration, as in "0@lo |
 * 1@tcp 2@tcp | 3@tcp1", with "|" between nets. */
static void config_is(const struct lnet_config *c, const char *want)
{
	char text[1024] = "", nid[LNET_NIDSTR_SIZE];
	unsigned int nnis = 0;

	for (unsigned int i = 0; i < c->nnets; i++) {
		const struct lnet_net *net = &c->net[i];

		if (i)
			strcat(text, " | ");
		cr_assert_gt(net->nnis, 0);
		cr_assert_eq(config_net(c, net->segment), net);
		for (unsigned int k = 0; k < net->nnis; k++) {
			cr_assert_eq(net->ni[k], c->ni[nnis++]);
			cr_assert_eq(net->ni[k]->segment, net->segment);
			if (k)
				strcat(text, " ");
			strcat(text, lnet_nid_format(&net->ni[k]->lnd.nid, nid,
						     sizeof(nid)));
		}
	}
	cr_assert_eq(nnis, c->nnis);
	cr_assert_str_eq(text, want);
}

static struct lnet_config *with(struct lnet_config *old, struct lnet_ni *ni)
{
	struct lnet_config *new = config_with(old, ni);

	cr_assert_not_null(new);
	free(old);
	return new;
}

static struct lnet_config *without(struct lnet_config *old,
				   const struct lnet_ni *ni)
{
	struct lnet_config *new = config_without(old, ni);

	cr_assert_not_null(new);
	cr_assert_null(config_ni(new, &ni->lnd.nid));
	free(old);
	return new;
}

Test(config, nets_come_and_go_with_their_interfaces)
{
	struct lnet_ni lo = ni_make_fake("0@lo");
	struct lnet_ni a = ni_make_fake("10.0.0.1@tcp");
	struct lnet_ni b = ni_make_fake("10.0.0.2@tcp1");
	struct lnet_ni c = ni_make_fake("10.0.0.3@tcp");
	struct lnet_ni d = ni_make_fake("10.0.0.4@o2ib");
	struct lnet_config *config = config_with(NULL, &lo);

	cr_assert_not_null(config);
	config_is(config, "0@lo");
	cr_assert_null(config_net(config, a.segment));
	config = with(config, &a);
	config = with(config, &b);
	config_is(config, "0@lo | 10.0.0.1@tcp | 10.0.0.2@tcp1");
	/* The new NI stands beside the one on the same net. */
	config = with(config, &c);
	config = with(config, &d);
	config_is(config, "0@lo | 10.0.0.1@tcp 10.0.0.3@tcp | 10.0.0.2@tcp1 | "
			  "10.0.0.4@o2ib");
	cr_assert_eq(config_ni(config, &c.lnd.nid), &c);
	config = without(config, &a);
	config_is(config,
		  "0@lo | 10.0.0.3@tcp | 10.0.0.2@tcp1 | 10.0.0.4@o2ib");
	config = without(config, &b);
	config_is(config, "0@lo | 10.0.0.3@tcp | 10.0.0.4@o2ib");
	cr_assert_null(config_net(config, b.segment));
	/* A net that comes back is the last one. */
	config = without(config, &c);
	config = with(config, &b);
	config = with(config, &a);
	config_is(config,
		  "0@lo | 10.0.0.4@o2ib | 10.0.0.2@tcp1 | 10.0.0.1@tcp");
	free(config);
}

/* Addresses of one family stand together, next to the others of their net. */
Test(config, families_of_a_net)
{
	struct lnet_ni lo = ni_make_fake("0@lo");
	struct lnet_ni a = ni_make_fake("10.0.0.1@tcp");
	struct lnet_ni b = ni_make_fake("fd77::1@tcp");
	struct lnet_ni c = ni_make_fake("10.0.0.3@tcp");
	struct lnet_ni d = ni_make_fake("10.0.0.4@o2ib");
	struct lnet_ni e = ni_make_fake("fd77::2@tcp");
	struct lnet_config *config = config_with(NULL, &lo);

	cr_assert_not_null(config);
	config = with(config, &a);
	config = with(config, &d);
	config = with(config, &b);
	config_is(config, "0@lo | 10.0.0.1@tcp | fd77::1@tcp | 10.0.0.4@o2ib");
	config = with(config, &c);
	config = with(config, &e);
	config_is(config, "0@lo | 10.0.0.1@tcp 10.0.0.3@tcp | "
			  "fd77::1@tcp fd77::2@tcp | 10.0.0.4@o2ib");
	config = without(config, &a);
	config = without(config, &c);
	cr_assert_null(config_net(config, a.segment));
	cr_assert(config_has_net(config, lnet_nid_net(&a.lnd.nid)));
	config = without(config, &b);
	config = without(config, &e);
	cr_assert(!config_has_net(config, lnet_nid_net(&a.lnd.nid)));
	free(config);
}

/* Is 10.0.128.1 in the IP network of 10.0.0.1? That depends on how long that
 * is. */
Test(config, ip_networks)
{
	static const struct {
		unsigned int prefix;
		const char *other;
		bool neighbours;
	} rows[] = {
		{ 8, "10.0.128.1@tcp", true },
		{ 16, "10.0.128.1@tcp", true },
		{ 17, "10.0.128.1@tcp", false },
		{ 17, "10.0.127.1@tcp", true },
		{ 24, "10.0.1.1@tcp", false },
		{ 32, "10.0.0.2@tcp", false },
		{ 32, "10.0.0.1@tcp", true },
		{ 0, "10.0.0.1@tcp", false }, /* not known */
		{ 8, "a00:1::@tcp", false },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct lnet_ni ni = ni_make_fake("10.0.0.1@tcp");
		struct ulnet_nid other;

		ni.lnd.prefix = rows[i].prefix;
		cr_assert_eq(lnet_nid_parse(rows[i].other, &other), 0);
		cr_expect_eq(ni_is_neighbour(&ni, &other), rows[i].neighbours,
			     "row %u", i);
	}
}

/* NIs of several nets may be in several IP networks. */
Test(config, apart)
{
	struct lnet_ni ni[] = { ni_make_fake("10.0.0.1@tcp"),
				ni_make_fake("10.0.1.1@tcp1"),
				ni_make_fake("10.0.0.9@tcp"),
				ni_make_fake("10.0.1.1@tcp") };
	struct lnet_config *c = NULL, *old;

	for (unsigned int i = 0; i < ARRAY_SIZE(ni); i++) {
		ni[i].lnd.prefix = 24;
		old = c;
		c = config_with(old, &ni[i]);
		free(old);
		cr_assert_eq(config_is_apart(c), i == 3, "with %u NIs", i + 1);
	}
	ni[0].lnd.prefix = 0;
	cr_assert_not(config_is_apart(c));
	free(c);
}
