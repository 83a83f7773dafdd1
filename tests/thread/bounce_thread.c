/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long answer for an operation of a busy CPT, and a long PUT for a buffer of
 * a busy CPT, do not keep back what comes behind them on the connection
 * (requirement I2). The CPT is kept busy by a handler, or by posted work, that
 * waits for exactly that.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lnet/node/node.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/loop.h"

#define CPTS   2
#define PORTAL 5
#define LENGTH 1048576

static uint8_t from[LENGTH], to[LENGTH], note[8];
static struct lnet *client, *server;
static struct ulnet_id client_id;
static sem_t behind_came, came, busy;

static struct lnet *node_up(const char *nid, unsigned int cpts, uint16_t port)
{
	/* All messages go over one connection. */
	const struct ulnet_tunable one = { "min_bulk", 2097152 };
	struct ulnet_conf conf;
	struct ulnet_ni_conf ni = { .tunables = &one, .ntunables = 1 };
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.cpts = cpts;
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

static void attach(struct lnet *node, uint64_t bits, void *start,
		   uint32_t length, uint32_t options, ulnet_handler_fn handler)
{
	struct ulnet_md md = { .start = start,
			       .length = length,
			       .threshold = LNET_MD_THRESH_INF,
			       .options = options | LNET_MD_MANAGE_REMOTE,
			       .handler = handler };
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_md_handle mdh;
	struct ulnet_me_handle me;

	check(LNetMEAttach(node, PORTAL, any, bits, 0, LNET_RETAIN,
			   LNET_INS_AFTER, &me) == 0);
	check(LNetMDAttach(me, &md, LNET_RETAIN, &mdh) == 0);
}

/* Sends a PUT from the server to the client. */
static void put(uint64_t bits, void *start, uint32_t length)
{
	struct ulnet_md md = { .start = start,
			       .length = length,
			       .threshold = 1 };
	struct ulnet_md_handle mdh;

	check(LNetMDBind(server, &md, LNET_UNLINK, &mdh) == 0);
	check(LNetPut(LNET_NID_ANY, mdh, LNET_NOACK_REQ, client_id, PORTAL,
		      bits, 0, 0) == 0);
}

/* Runs on the server: the REPLY is on its way, and a note is sent behind it. */
static void on_asked(const struct ulnet_event *ev)
{
	if (ev->type != LNET_EVENT_GET)
		return;
	check(ev->status == 0);
	put(2, note, sizeof(note));
}

static void on_note(const struct ulnet_event *ev)
{
	if (ev->type == LNET_EVENT_PUT)
		sem_post(&behind_came);
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/* Runs on the client, on the CPT of the operation, or of the buffer. */
static void on_answer(const struct ulnet_event *ev)
{
	if (ev->type == LNET_EVENT_SEND) {
		wait_for(&behind_came);
	} else if (ev->type == LNET_EVENT_REPLY || ev->type == LNET_EVENT_PUT) {
		check(ev->status == 0 && ev->mlength == LENGTH);
		sem_post(&came);
	}
}

static void be_busy(struct ulnet_work *work)
{
	(void)work;
	sem_post(&busy);
	wait_for(&behind_came);
}

/* Runs on the CPT that receives what the server sends. */
static int attach_note(void *arg)
{
	(void)arg;
	attach(client, 2, note, sizeof(note), LNET_MD_OP_PUT, on_note);
	return 0;
}

/* Runs on the other CPT. */
static int ask(void *arg)
{
	struct ulnet_md md = { .start = to,
			       .length = LENGTH,
			       .threshold = 2,
			       .handler = on_answer };
	struct ulnet_md_handle mdh;
	struct ulnet_id id;

	(void)arg;
	check(LNetGetId(server, 1, &id) == 0);
	check(LNetMDBind(client, &md, LNET_UNLINK, &mdh) == 0);
	return LNetGet(LNET_NID_ANY, mdh, id, PORTAL, 1, 0);
}

/* Runs on the other CPT. */
static int attach_buffer(void *arg)
{
	(void)arg;
	attach(client, 3, to, LENGTH, LNET_MD_OP_PUT, on_answer);
	return 0;
}

static void put_to_busy_cpt(unsigned int cpt)
{
	struct ulnet_work work = { .fn = be_busy };

	memset(to, 0, sizeof(to));
	check(lnet_call(client, cpt, attach_buffer, NULL) == 0);
	lnet_post(client, cpt, &work);
	wait_for(&busy);
	put(3, from, LENGTH);
	put(2, note, sizeof(note));
	wait_for(&came);
	check(memcmp(from, to, LENGTH) == 0);
}

static uint64_t counter_of(struct lnet *node, const char *name)
{
	struct ulnet_stat stats[128];
	int n = lnet_stats(node, stats, ARRAY_SIZE(stats));

	for (int i = 0; i < n; i++)
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	check(false);
	return 0;
}

int main(void)
{
	uint16_t port = free_port();
	struct ulnet_id server_id;
	unsigned int here;

	sem_init(&behind_came, 0, 0);
	sem_init(&came, 0, 0);
	sem_init(&busy, 0, 0);
	client = node_up("127.0.0.61@tcp", CPTS, port);
	server = node_up("127.0.0.62@tcp", 1, port);
	check(LNetGetId(client, 1, &client_id) == 0);
	memset(from, 5, sizeof(from));
	attach(server, 1, from, LENGTH, LNET_MD_OP_GET, on_asked);
	check(LNetGetId(server, 1, &server_id) == 0);
	here = node_cpt_of(client, &server_id.nid);
	check(lnet_call(client, here, attach_note, NULL) == 0);
	check(lnet_call(client, 1 - here, ask, NULL) == 0);
	wait_for(&came);
	check(memcmp(from, to, LENGTH) == 0);
	check(counter_of(client, "aside") == 1);
	put_to_busy_cpt(1 - here);
	check(counter_of(client, "aside") == 2);
	lnet_close(client);
	lnet_close(server);
	return atomic_load(&failures) ? 1 : 0;
}
