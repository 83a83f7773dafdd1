/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of clients and hosts: how long they exist, and how much they allow. */
#include <criterion/criterion.h>

#include "rpc/server/queue/share.h"

#define MAX_HELD 1000

static struct host_queues *queues;
static struct hosts hosts;

static void hosts_begin(void)
{
	queues = host_queues_new(1);
	cr_assert_not_null(queues);
	hosts_init(&hosts, queues, 1);
}

static struct ulnet_nid nid_of(const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0);
	return nid;
}

static unsigned int count(const struct list *head)
{
	unsigned int n = 0;

	for (const struct list *l = head->next; l != head; l = l->next)
		n++;
	return n;
}

/* There is one struct host for each NID and service; it goes with its last
 * share. */
Test(share, hosts)
{
	struct ulnet_nid a = nid_of("10.0.0.1@tcp"), b = nid_of("10.0.0.2@tcp");
	struct share *s[4];
	struct list mine;

	hosts_begin();
	list_init(&mine);
	s[0] = share_new(&hosts, &a, 30, false);
	s[1] = share_new(&hosts, &a, 30, false);
	s[2] = share_new(&hosts, &a, 31, false);
	s[3] = share_new(&hosts, &b, 30, false);
	cr_assert_eq(s[0]->host, s[1]->host);
	cr_assert_neq(s[0]->host, s[2]->host);
	cr_assert_neq(s[0]->host, s[3]->host);
	cr_assert_eq(count(&hosts.all), 3);
	for (unsigned int i = 0; i < 4; i++)
		list_add_tail(&mine, &s[i]->link);
	/* A share that still holds something, of whatever kind, stays. */
	share_charge(s[0], 1, 0, 0);
	share_charge(s[1], 0, 10, 0);
	share_charge(s[2], 0, 0, 100);
	cr_assert_eq(s[1]->host->used.requests, 1);
	cr_assert_eq(s[1]->host->used.bytes, 10);
	shares_drop(&mine);
	cr_assert(list_empty(&mine));
	cr_assert_eq(count(&hosts.all), 2);
	share_charge(s[2], 0, 0, -100);
	cr_assert_eq(count(&hosts.all), 1);
	share_charge(s[0], -1, 0, 0);
	cr_assert_eq(count(&hosts.all), 1);
	cr_assert_eq(s[1]->host->used.requests, 0);
	share_charge(s[1], 0, -10, 0);
	cr_assert_eq(count(&hosts.all), 0);
	hosts_fini(&hosts);
	host_queues_free(queues);
}

/* In the queue of a service, a host is the same on all CPTs, until the last of
 * them has forgotten it. */
Test(share, one_host_on_several_cpts)
{
	struct ulnet_nid a = nid_of("10.0.0.1@tcp"), b = nid_of("10.0.0.2@tcp");
	struct share *here, *there, *other, *service;
	struct hosts far;

	hosts_begin();
	hosts_init(&far, queues, 2);
	here = share_new(&hosts, &a, 30, true);
	there = share_new(&far, &a, 30, true);
	other = share_new(&far, &b, 30, true);
	service = share_new(&far, &a, 31, true);
	cr_assert_neq(here->host, there->host);
	cr_assert_eq(here->queue.host, there->queue.host);
	cr_assert(lnet_nid_eq(here->queue.host->nid, &a));
	cr_assert_neq(here->queue.host, other->queue.host);
	cr_assert_neq(here->queue.host, service->queue.host);
	/* What each holds on its CPT is its own. */
	share_charge(here, 1, 0, 0);
	cr_assert_eq(there->host->used.requests, 0);
	share_charge(here, -1, 0, 0);
	cr_assert(lnet_nid_eq(there->queue.host->nid, &a));
	share_put(there);
	share_put(other);
	hosts_fini(&far);
	hosts_fini(&hosts);
	/* The node may end before what was charged is given back. */
	host_queues_free(queues);
	share_put(service);
}

/* A share without a connection goes with what it holds, and is charged to the
 * same host as others. */
Test(share, without_a_connection)
{
	struct ulnet_nid a = nid_of("10.0.0.1@tcp");
	struct share *s, *t;

	hosts_begin();
	s = share_new(&hosts, &a, 30, true);
	t = share_new(&hosts, &a, 30, true);
	share_charge(s, 0, 0, 5);
	share_charge(t, 0, 0, 6);
	cr_assert_eq(s->host, t->host);
	cr_assert_eq(s->host->used.refusals, 11);
	share_charge(t, 0, 0, -6);
	cr_assert_eq(s->host->shares, 1);
	/* hosts_fini() comes before the last charge is given back. */
	hosts_fini(&hosts);
	host_queues_free(queues);
	share_charge(s, 0, 0, -5);
}

/* A client that is alone on the only host may hold a quarter: half of the
 * host's half. A second client of that host may hold less than one of another
 * host. */
Test(share, law)
{
	uint64_t n = 0, same, other = 0;

	while (shares_allow(n, n, n, MAX_HELD, 1))
		n++;
	cr_assert_geq(n, MAX_HELD / 4);
	cr_assert_leq(n, MAX_HELD / 4 + 1);
	while (shares_allow(other, n + other, n + other, MAX_HELD, 1))
		other++;
	same = other;
	cr_assert_gt(same, MAX_HELD / 20);
	other = 0;
	while (shares_allow(other, other, n + other, MAX_HELD, 1))
		other++;
	cr_assert_gt(other, same);
	cr_assert_gt(other, MAX_HELD / 6);
	cr_assert_not(shares_allow(0, 0, MAX_HELD, MAX_HELD, 1));
	cr_assert_not(shares_allow(0, 0, 2 * MAX_HELD, MAX_HELD, 1));
}

/* ---- grants ---- */

#define MS     NSEC_PER_MSEC
#define TARGET (5 * MS)

static struct grant g;
static uint64_t now;
static uint32_t whole;

/* Samples 100 ms, in which requests come every 10 ms and have waited from
 * @least to @most. Returns whether the window has shrunk. */
static bool interval(uint64_t least, uint64_t most, uint32_t flight)
{
	bool shrinks = false;

	for (unsigned int i = 0; i < 10; i++) {
		now += 10 * MS;
		shrinks |= grant_sample(&g, i == 4 ? least : most, TARGET,
					whole, flight, now);
	}
	return shrinks;
}

static void begin(uint32_t window)
{
	now = 1000 * MS;
	whole = window;
	g = (struct grant){ 0 };
	grant_sample(&g, 0, TARGET, whole, 1, now);
}

Test(grant, whole_without_a_queue)
{
	begin(1024);
	for (unsigned int i = 0; i < 50; i++)
		cr_assert_not(interval(0, 50 * MS, 4000));
	cr_assert_eq(grant_of(&g, whole), 1024);
}

Test(grant, shrinks_and_grows)
{
	uint32_t was;

	begin(1024);
	interval(0, 0, 100);
	interval(6 * MS, 9 * MS, 100);
	cr_assert(interval(6 * MS, 9 * MS, 100));
	cr_assert_eq(grant_of(&g, whole), 80, "of what is under way");
	interval(6 * MS, 9 * MS, 100);
	cr_assert_eq(grant_of(&g, whole), 64);
	interval(4 * MS, 9 * MS, 100);
	was = grant_of(&g, whole);
	interval(4 * MS, 9 * MS, 100);
	cr_assert_eq(grant_of(&g, whole), was + was / 8);
	for (unsigned int i = 0; i < 100; i++)
		interval(0, 0, 100);
	cr_assert_eq(grant_of(&g, whole), 1024);
}

Test(grant, never_less_than_one)
{
	begin(16);
	for (unsigned int i = 0; i < 100; i++)
		interval(6 * MS, 9 * MS, 16);
	cr_assert_eq(grant_of(&g, whole), 1);
	/* Then it grows by one for each 100 ms; the current 100 ms may have
	 * begun before the queue was empty. */
	interval(0, 0, 1);
	interval(0, 0, 1);
	cr_assert_geq(grant_of(&g, whole), 2);
	cr_assert_leq(grant_of(&g, whole), 3);
}

/* After a minute without requests the client has its whole window again. */
Test(grant, grows_in_silence)
{
	begin(1024);
	for (unsigned int i = 0; i < 100; i++)
		interval(6 * MS, 9 * MS, 100);
	now += 60 * 1000 * MS;
	grant_sample(&g, 0, TARGET, whole, 1, now);
	cr_assert_eq(grant_of(&g, whole), 1024);
}

Test(grant, window_of_one)
{
	begin(1);
	for (unsigned int i = 0; i < 10; i++) {
		interval(6 * MS, 9 * MS, 16);
		cr_assert_eq(grant_of(&g, whole), 1);
	}
	for (unsigned int i = 0; i < 10; i++) {
		interval(0, 0, 16);
		cr_assert_eq(grant_of(&g, whole), 1);
	}
}
