/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules that several threads add, list, reset and delete while CPTs use
 * them. Each operation ends once, and nodes can be closed while they have rules
 * and delayed messages.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/util.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/fault.h"

#define CPTS	2
#define PORTAL	5
#define LENGTH	20000
#define ROUNDS	100 /* of each thread that changes rules */
#define PUTS	600
#define LATE	10
#define PATIENT 200000 /* us, of a PUT */

static uint8_t from[LENGTH], to[LENGTH];
static struct lnet *nodes[2];
static struct ulnet_id server_id;
static sem_t ended;

static struct lnet *node_up(const char *nid, uint16_t port)
{
	struct ulnet_ni_conf ni = { 0 };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.cpts = CPTS;
	conf.port = port;
	conf.accept = LNET_ACCEPT_ALL;
	check(lnet_nid_parse(nid, &ni.nid) == 0);
	BUG_ON(lnet_open(&conf, &node));
	if (lnet_ni_add(node, &ni)) {
		puts("no TCP on the loopback interface");
		exit(77);
	}
	return node;
}

static void attach(void)
{
	struct ulnet_md md = { .start = to,
			       .length = LENGTH,
			       .threshold = LNET_MD_THRESH_INF,
			       .options =
				       LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE };
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_md_handle mdh;
	struct ulnet_me_handle me;

	check(LNetMEAttach(nodes[1], PORTAL, any, 1, 0, LNET_RETAIN,
			   LNET_INS_AFTER, &me) == 0);
	check(LNetMDAttach(me, &md, LNET_RETAIN, &mdh) == 0);
}

static void on_event(const struct ulnet_event *ev)
{
	atomic_uint *ends = ev->user_ptr;

	if (!ev->terminal)
		return;
	check(atomic_fetch_add(ends, 1) == 0);
	sem_post(&ended);
}

static void put(atomic_uint *ends)
{
	struct ulnet_md md = { .start = from,
			       .length = LENGTH,
			       .threshold = 2,
			       .timeout = PATIENT,
			       .user_ptr = ends,
			       .handler = on_event };
	struct ulnet_md_handle mdh;

	check(LNetMDBind(nodes[0], &md, LNET_UNLINK, &mdh) == 0);
	check(LNetPut(LNET_NID_ANY, mdh, LNET_ACK_REQ, server_id, PORTAL, 1, 0,
		      0) == 0);
}

static void add_one(struct lnet *node, unsigned int i)
{
	struct ulnet_fault f;
	int rc;

	lnet_fault_init(&f, i % LNET_FAULT_KINDS);
	f.rate = 1 + i % 3;
	f.random = i % 2;
	if (f.kind == LNET_FAULT_DELAY)
		f.latency = 1 + i * 97 % 2000;
	if (f.kind == LNET_FAULT_ERROR)
		f.causes = LNET_FAULT_CAUSES;
	rc = lnet_fault_add(node, &f);
	check(rc == 0 || rc == -EEXIST); /* another thread may have added it */
}

static void *change_rules(void *arg)
{
	struct ulnet_fault_info infos[4];
	unsigned int *first = arg;

	for (unsigned int i = *first; i < *first + ROUNDS; i++) {
		struct lnet *node = nodes[i % 2];
		enum ulnet_fault_kind kind = i / 2 % LNET_FAULT_KINDS;

		add_one(node, i / 2);
		check(lnet_fault_list(node, kind, infos, 4) >= 0);
		check(lnet_fault_reset(node, kind) == 0);
		if (i % 3)
			check(lnet_fault_del(node, kind, NULL, NULL) >= 0);
	}
	return NULL;
}

/* From now on all that @node sends or receives is delayed. */
static void delay_all(struct lnet *node)
{
	struct ulnet_fault f;

	for (unsigned int i = 0; i < LNET_FAULT_KINDS; i++)
		check(lnet_fault_del(node, i, NULL, NULL) >= 0);
	lnet_fault_init(&f, LNET_FAULT_DELAY);
	f.rate = 1;
	f.latency = LNET_FAULT_US_MAX;
	check(lnet_fault_add(node, &f) == 0);
}

static void await(unsigned int n)
{
	while (n--)
		while (sem_wait(&ended))
			;
}

int main(void)
{
	static atomic_uint ends[PUTS + LATE];
	unsigned int first[2] = { 0, 1 };
	uint16_t port = free_port();
	pthread_t threads[2];

	sem_init(&ended, 0, 0);
	nodes[0] = node_up("127.0.0.63@tcp", port);
	nodes[1] = node_up("127.0.0.64@tcp", port);
	check(LNetGetId(nodes[1], 1, &server_id) == 0);
	attach();
	for (unsigned int i = 0; i < 2; i++)
		BUG_ON(pthread_create(&threads[i], NULL, change_rules,
				      &first[i]));
	for (unsigned int i = 0; i < PUTS; i++)
		put(&ends[i]);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	await(PUTS);
	delay_all(nodes[0]);
	delay_all(nodes[1]);
	for (unsigned int i = 0; i < LATE; i++)
		put(&ends[PUTS + i]);
	lnet_close(nodes[1]);
	lnet_close(nodes[0]);
	await(LATE);
	return atomic_load(&failures) ? 1 : 0;
}
