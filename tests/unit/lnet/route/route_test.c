/* SPDX-License-Identifier: BSD-3-Clause */
/* Which routes a node has, and what it knows of their gateways. */
#include <criterion/criterion.h>
#include "tests/unit/lnet/cluster.h"
#include "lnet/route/route.h"

static uint32_t net_of(const char *text)
{
	uint32_t net;

	cr_assert_eq(lnet_net_parse(text, &net), 0);
	return net;
}

/* ---- the table ---- */

static struct lnet_route *made[8];

static struct route_table *table_of(const char *const *nets, unsigned int n)
{
	struct route_table *t = calloc(1, sizeof(*t));

	for (unsigned int i = 0; i < n; i++) {
		struct route_table *next;

		made[i] = calloc(1, sizeof(*made[i]));
		made[i]->net = net_of(nets[i]);
		made[i]->gateway =
			nid_of(i % 2 ? "10.0.0.2@tcp" : "10.0.0.1@tcp");
		next = route_table_next(t, &made[i], 1);
		free(t);
		t = next;
	}
	return t;
}

Test(route, table)
{
	const char *const nets[] = { "tcp5", "tcp3", "tcp5", "o2ib", "tcp3" };
	struct route_table *t = table_of(nets, 5), *less;
	unsigned int begin;

	cr_assert_eq(t->n, 5);
	cr_assert_eq(routes_to(t, net_of("tcp3"), &begin) - begin, 2);
	/* in the order in which they were added */
	cr_assert_eq(t->route[begin], made[1]);
	cr_assert_eq(t->route[begin + 1], made[4]);
	cr_assert(route_exists(t, net_of("o2ib")));
	cr_assert_not(route_exists(t, net_of("tcp4")));
	cr_assert_not(route_exists(t, net_of("tcp9")));
	cr_assert_eq(route_find(t, net_of("tcp3"), &made[4]->gateway), made[4]);
	cr_assert_null(route_find(t, net_of("tcp5"), &(struct ulnet_nid){ 0 }));
	made[4]->gone = true;
	less = route_table_next(t, NULL, 0);
	cr_assert_eq(less->n, 4);
	cr_assert_eq(routes_to(less, net_of("tcp3"), &begin) - begin, 1);
	free(less);
	free(t);
	for (unsigned int i = 0; i < 5; i++)
		free(made[i]);
}

/* ---- what gateways announce ---- */

#define ROUTES	  (LNET_PING_NI_STATUS | LNET_PING_MULTI_RAIL)
#define NO_ROUTES (ROUTES | LNET_PING_RTE_DISABLED)

static const struct {
	const char *what;
	uint32_t features;
	const char *nids; /* NIs with "!" are down */
	enum route_told told;
	bool multi_hop;
} tellings[] = {
	{ "works", ROUTES, "10.0.0.1@tcp 10.0.1.1@tcp1", ROUTE_TOLD_WORKS,
	  false },
	{ "does not route", NO_ROUTES, "10.0.0.1@tcp 10.0.1.1@tcp1",
	  ROUTE_TOLD_NO_ROUTER, false },
	{ "near side down", ROUTES, "!10.0.0.1@tcp 10.0.1.1@tcp1",
	  ROUTE_TOLD_NEAR_DOWN, false },
	{ "far side down", ROUTES, "10.0.0.1@tcp !10.0.1.1@tcp1",
	  ROUTE_TOLD_FAR_DOWN, false },
	{ "one of two up", ROUTES, "10.0.0.1@tcp !10.0.1.1@tcp1 10.0.1.2@tcp1",
	  ROUTE_TOLD_WORKS, false },
	{ "another router behind it", ROUTES, "10.0.0.1@tcp 10.0.2.1@tcp2",
	  ROUTE_TOLD_WORKS, true },
	{ "no way to the router behind it", ROUTES,
	  "10.0.0.1@tcp !10.0.2.1@tcp2 !10.0.3.1@tcp3", ROUTE_TOLD_FAR_DOWN,
	  true },
	{ "one way to the router behind it", ROUTES,
	  "10.0.0.1@tcp !10.0.2.1@tcp2 10.0.3.1@tcp3", ROUTE_TOLD_WORKS, true },
	{ "tells of one side only", ROUTES, "10.0.0.1@tcp", ROUTE_TOLD_WORKS,
	  true },
	{ "its other nets do not matter", ROUTES,
	  "10.0.0.1@tcp 10.0.1.1@tcp1 !10.0.2.1@tcp2", ROUTE_TOLD_WORKS,
	  false },
};

static unsigned int nis_of(const char *text, struct ulnet_ping_ni *ni)
{
	char copy[256], *save = NULL;
	unsigned int n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *w = strtok_r(copy, " ", &save); w;
	     w = strtok_r(NULL, " ", &save), n++) {
		ni[n].up = *w != '!';
		ni[n].nid = nid_of(w + !ni[n].up);
	}
	return n;
}

Test(route, told)
{
	const struct ulnet_nid gateway = nid_of("10.0.0.1@tcp");

	for (unsigned int i = 0; i < ARRAY_SIZE(tellings); i++) {
		struct ulnet_ping_ni ni[8];
		const struct ulnet_ping_info info = {
			.features = tellings[i].features,
			.nnis = nis_of(tellings[i].nids, ni),
			.ni = ni,
		};
		bool multi_hop;

		cr_assert_eq(
			route_read(&info, &gateway, net_of("tcp1"), &multi_hop),
			tellings[i].told, "%s", tellings[i].what);
		cr_assert_eq(multi_hop, tellings[i].multi_hop, "%s",
			     tellings[i].what);
	}
}

Test(route, state)
{
	struct lnet_route r = { .net = 1 };

	atomic_init(&r.told, ROUTE_TOLD_NOTHING);
	atomic_init(&r.health, 1000);
	cr_assert_eq(route_state(&r, 100), ROUTE_UP);
	atomic_store(&r.health, 999);
	cr_assert_eq(route_state(&r, 100), ROUTE_ILL);
	cr_assert_eq(route_state(&r, 99), ROUTE_UP);
	cr_assert_eq(route_state(&r, 0), ROUTE_UP);
	atomic_store(&r.told, ROUTE_TOLD_WORKS);
	cr_assert_eq(route_state(&r, 99), ROUTE_UP);
	atomic_store(&r.told, ROUTE_TOLD_FAR_DOWN);
	cr_assert_eq(route_state(&r, 0), ROUTE_DOWN);
}
