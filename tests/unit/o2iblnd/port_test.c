/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of an NI goes down, is removed, and returns, and so does the NI,
 * with messages in any state. */
#include "base/env.h"
#include "tests/unit/o2iblnd/node_rig.h"
#include "ulnet/fault.h"

#include <criterion/parameterized.h>

static struct node_rig r;
static struct seen seen[4];
static uint8_t bytes[MIB], memory[MIB];

struct shape {
	unsigned int cpts, conns;
};

static struct shape shapes[] = { { 1, 1 }, { 3, 1 }, { 3, 3 } };

static void open_nodes(const struct shape *shape, int64_t bounce_max)
{
	struct ulnet_md umd = md_of(
		memory, MIB,
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	r.tunables[0] =
		(struct ulnet_tunable){ "conns_per_peer", shape->conns };
	r.tunables[1] = (struct ulnet_tunable){ "bounce_max", bounce_max };
	r.ntunables = 2;
	node_rig_open(&r, 2, shape->cpts, NULL);
	for (unsigned int i = 0; i < 2; i++)
		post_md(r.node[i], PORTAL, BITS, &umd);
}

/* Both nodes send a message. */
static void talk(void)
{
	for (unsigned int i = 0; i < 4; i++)
		seen[i].n = 0;
	for (unsigned int i = 0; i < 2; i++) {
		node_rig_put(&r, i, r.id[1 - i], bytes, 100, 0, &seen[i]);
		node_rig_get(&r, i, r.id[1 - i], bytes, MIB, &seen[2 + i]);
	}
}

/* The same, and it must arrive. */
static void all_is_well(void)
{
	talk();
	node_rig_run(&r, 2 * NSEC_PER_SEC);
	for (unsigned int i = 0; i < 2; i++) {
		seen_end(&seen[i], LNET_EVENT_SEND, 0, LNET_OUTCOME_UNKNOWN,
			 LNET_CAUSE_OK);
		cr_assert_eq(seen_last(&seen[2 + i]), LNET_EVENT_REPLY);
		cr_assert_eq(seen[2 + i].ev[seen[2 + i].n - 1].status, 0);
	}
	cr_assert_eq(lnet_sim_check(r.sim), 0);
}

/* The first messages find out which connections are dead, as a peer may not
 * have noticed that the port was gone. Then all is as before. */
static void all_is_well_again(void)
{
	talk();
	node_rig_run(&r, 100 * NSEC_PER_SEC);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert(seen[i].ev[seen[i].n - 1].terminal);
	all_is_well();
}

static bool has_port(unsigned int n)
{
	struct simqp_usage u;

	simqp_usage(r.fabric, &r.id[n].nid, &u);
	cr_assert(u.open || (!u.qps && !u.mrs && !u.locked));
	return u.open;
}

static int ni_add(unsigned int n)
{
	const struct ulnet_ni_conf conf = {
		.nid = r.id[n].nid,
		.tunables = r.tunables,
		.ntunables = r.ntunables,
	};

	return lnet_ni_add(r.node[n], &conf);
}

static void ni_del(unsigned int n)
{
	cr_assert_eq(lnet_ni_del(r.node[n], &r.id[n].nid), 0);
	node_rig_run(&r, NSEC_PER_SEC);
	cr_assert_not(has_port(n));
}

ParameterizedTestParameters(o2ib_port, down_and_up)
{
	return cr_make_param_array(struct shape, shapes, ARRAY_SIZE(shapes));
}

ParameterizedTest(struct shape *shape, o2ib_port, down_and_up)
{
	open_nodes(shape, 8 * MIB);
	all_is_well();
	simqp_port_set(r.fabric, &r.id[0].nid, false, "no link");
	node_rig_run(&r, MSEC);
	cr_assert(has_port(0));
	/* Up, and down again before any CPT has noticed, and up. */
	simqp_port_set(r.fabric, &r.id[0].nid, true, NULL);
	simqp_port_set(r.fabric, &r.id[0].nid, false, "no link");
	simqp_port_set(r.fabric, &r.id[0].nid, true, NULL);
	node_rig_run(&r, 5 * NSEC_PER_SEC);
	all_is_well_again();
	node_rig_close(&r);
}

ParameterizedTestParameters(o2ib_port, removed_and_inserted)
{
	return cr_make_param_array(struct shape, shapes, ARRAY_SIZE(shapes));
}

ParameterizedTest(struct shape *shape, o2ib_port, removed_and_inserted)
{
	open_nodes(shape, 8 * MIB);
	all_is_well();
	for (unsigned int i = 0; i < 3; i++) {
		/* The link may go down first. */
		if (i == 1)
			simqp_port_set(r.fabric, &r.id[0].nid, false, "no");
		simqp_remove(r.fabric, &r.id[0].nid);
		node_rig_run(&r, 3 * NSEC_PER_SEC);
		cr_assert_not(has_port(0));
		simqp_insert(r.fabric, &r.id[0].nid);
		node_rig_run(&r, 2 * NSEC_PER_SEC);
		cr_assert(has_port(0));
		if (i == 1) {
			simqp_port_set(r.fabric, &r.id[0].nid, true, NULL);
			node_rig_run(&r, 2 * NSEC_PER_SEC);
		}
		node_rig_run(&r, 5 * NSEC_PER_SEC);
		all_is_well_again();
	}
	node_rig_close(&r);
}

/* The NI is deleted while its device is being removed, is gone, or returns. */
ParameterizedTestParameters(o2ib_port, removed_and_deleted)
{
	return cr_make_param_array(struct shape, shapes, ARRAY_SIZE(shapes));
}

ParameterizedTest(struct shape *shape, o2ib_port, removed_and_deleted)
{
	static const uint64_t before[] = { 0,	       1,	   2500,
					   MSEC,       999 * MSEC, 1000 * MSEC,
					   3000 * MSEC };

	open_nodes(shape, 8 * MIB);
	all_is_well();
	for (unsigned int i = 0; i < ARRAY_SIZE(before); i++) {
		simqp_remove(r.fabric, &r.id[0].nid);
		if (i % 2)
			simqp_insert(r.fabric, &r.id[0].nid);
		node_rig_run(&r, before[i]);
		ni_del(0);
		simqp_insert(r.fabric, &r.id[0].nid);
		cr_assert_eq(ni_add(0), 0);
		node_rig_run(&r, 5 * NSEC_PER_SEC);
		all_is_well_again();
	}
	node_rig_close(&r);
}

/* The device is removed, or goes down, as soon as it has returned. */
ParameterizedTestParameters(o2ib_port, at_startup)
{
	return cr_make_param_array(struct shape, shapes, ARRAY_SIZE(shapes));
}

ParameterizedTest(struct shape *shape, o2ib_port, at_startup)
{
	open_nodes(shape, 8 * MIB);
	ni_del(0);
	simqp_remove(r.fabric, &r.id[0].nid);
	cr_assert_eq(ni_add(0), -ENODEV);
	simqp_insert(r.fabric, &r.id[0].nid);
	cr_assert_eq(ni_add(0), 0);
	simqp_remove(r.fabric, &r.id[0].nid);
	node_rig_run(&r, NSEC_PER_SEC);
	cr_assert_not(has_port(0));
	simqp_insert(r.fabric, &r.id[0].nid);
	node_rig_run(&r, 5 * NSEC_PER_SEC);
	all_is_well_again();
	ni_del(0);
	simqp_port_set(r.fabric, &r.id[0].nid, false, "no link");
	cr_assert_eq(ni_add(0), 0);
	node_rig_run(&r, NSEC_PER_SEC);
	simqp_port_set(r.fabric, &r.id[0].nid, true, NULL);
	node_rig_run(&r, 5 * NSEC_PER_SEC);
	all_is_well_again();
	node_rig_close(&r);
}

/* Data that arrived before the device was removed is there when LNet takes it,
 * and does not keep the port open. */
ParameterizedTestParameters(o2ib_port, removed_while_held)
{
	return cr_make_param_array(struct shape, shapes, ARRAY_SIZE(shapes));
}

ParameterizedTest(struct shape *shape, o2ib_port, removed_while_held)
{
	struct ulnet_fault fault;

	open_nodes(shape, 8 * MIB);
	all_is_well();
	lnet_fault_init(&fault, LNET_FAULT_DELAY);
	fault.local = r.id[0].nid;
	fault.rate = 1;
	fault.latency = 500000;
	fault.source = r.id[1].nid;
	cr_assert_eq(lnet_fault_add(r.node[0], &fault), 0);
	memset(memory, 'm', MIB);
	memset(bytes, 0, MIB);
	seen[0].n = seen[1].n = seen[2].n = 0;
	node_rig_get(&r, 0, r.id[1], bytes, MIB, &seen[0]);
	node_rig_put(&r, 1, r.id[0], memory, 100, 0, &seen[1]);
	node_rig_put(&r, 1, r.id[0], memory, MIB, 0, &seen[2]);
	node_rig_run(&r, 100 * MSEC);
	simqp_remove(r.fabric, &r.id[0].nid);
	node_rig_run(&r, 100 * MSEC);
	cr_assert_not(has_port(0));
	cr_assert_eq(seen_last(&seen[0]), LNET_EVENT_SEND);
	node_rig_run(&r, 400 * MSEC);
	cr_assert_eq(seen_last(&seen[0]), LNET_EVENT_REPLY);
	cr_assert_eq(seen[0].ev[1].status, 0);
	cr_assert_eq(seen[0].ev[1].mlength, MIB);
	for (unsigned int i = 0; i < MIB; i++)
		cr_assert_eq(bytes[i], 'm');
	lnet_fault_del(r.node[0], LNET_FAULT_KINDS, NULL, NULL);
	simqp_insert(r.fabric, &r.id[0].nid);
	node_rig_run(&r, 5 * NSEC_PER_SEC);
	all_is_well_again();
	node_rig_close(&r);
}

/* ---- chance ---- */

struct storm {
	struct rng rng;
	bool has_ni[2];
	unsigned int begun;
};

static unsigned int ended;

static void on_end(const struct ulnet_event *ev)
{
	ended += ev->terminal;
}

static void say_something(struct storm *st)
{
	static const uint32_t lengths[] = { 0, 100, 4096, 60000, MIB };
	unsigned int from = (unsigned int)rng_below(&st->rng, 2);
	struct ulnet_md umd =
		md_of(bytes, lengths[rng_below(&st->rng, 5)], 0, NULL);
	bool get = rng_below(&st->rng, 2);
	struct ulnet_md_handle md;
	int rc;

	umd.handler = on_end;
	umd.threshold = 1 + get;
	if (!rng_below(&st->rng, 4))
		umd.timeout = 1 + rng_below(&st->rng, 40000);
	md = bind_md(r.node[from], &umd);
	rc = get ? LNetGet(LNET_NID_ANY, md, r.id[1 - from], PORTAL, BITS, 0)
		 : LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, r.id[1 - from],
			   PORTAL, BITS, 0, 0);
	cr_assert_eq(rc, 0);
	st->begun++;
}

static void befall(struct storm *st)
{
	unsigned int n = (unsigned int)rng_below(&st->rng, 2);
	const struct ulnet_nid *nid = &r.id[n].nid;

	switch (rng_below(&st->rng, 8)) {
	case 0:
		simqp_port_set(r.fabric, nid, false, "no link");
		break;
	case 1:
	case 2:
		simqp_port_set(r.fabric, nid, true, NULL);
		break;
	case 3:
		simqp_remove(r.fabric, nid);
		break;
	case 4:
	case 5:
		simqp_insert(r.fabric, nid);
		break;
	case 6:
		simqp_cut(r.fabric, &r.id[0].nid, &r.id[1].nid);
		break;
	default:
		if (st->has_ni[n])
			(void)lnet_ni_del(r.node[n], nid);
		else if (ni_add(n))
			break;
		st->has_ni[n] = !st->has_ni[n];
		break;
	}
}

static void weather(uint64_t seed)
{
	const struct shape *shape = &shapes[seed % ARRAY_SIZE(shapes)];
	const struct simqp_link slow = { .latency = 100000,
					 .jitter = 50000,
					 .bandwidth = 200000000 };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct storm st = { .has_ni = { true, true } };

	rng_seed(&st.rng, seed);
	ended = 0;
	r.nraw_peers = 0;
	open_nodes(shape, 4 * MIB);
	simqp_link_set(r.fabric, &any, &any, &slow);
	for (unsigned int i = 0; i < 100; i++) {
		if (rng_below(&st.rng, 5))
			say_something(&st);
		else
			befall(&st);
		node_rig_run(&r, rng_below(&st.rng, 3) * 1000 *
					 rng_below(&st.rng, 20000));
	}
	for (unsigned int n = 0; n < 2; n++) {
		simqp_insert(r.fabric, &r.id[n].nid);
		simqp_port_set(r.fabric, &r.id[n].nid, true, NULL);
		node_rig_run(&r, 20 * NSEC_PER_SEC);
		if (!st.has_ni[n])
			cr_assert_eq(ni_add(n), 0, "seed %u",
				     (unsigned int)seed);
	}
	node_rig_run(&r, 200 * NSEC_PER_SEC);
	cr_assert_eq(ended, st.begun, "seed %u", (unsigned int)seed);
	all_is_well();
	node_rig_close(&r);
}

Test(o2ib_port, chance)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		weather(seed);
}
