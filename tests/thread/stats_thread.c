/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics are read, set to 0, and shown by a control socket that is opened
 * and closed, while calls count on several CPTs. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/thread/check.h"
#include "ulnet/control.h"
#include "ulnet/service.h"

#define CALLS 3000
#define WAYS  4

static atomic_bool over;

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

struct rig {
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	struct lnet_control *control;
};

static void *calls_main(void *arg)
{
	struct rig *rig = arg;
	const struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER };
	const char *const methods[] = { "A", "B", "C" };

	for (unsigned int i = 0; i < CALLS; i++) {
		struct ulrpc_outcome o;

		check(ulrpc_call_wait(rig->client, ulrpc_method(methods[i % 3]),
				      "x", 1, &conf, NULL, 0, NULL, &o) == 0);
		check(o.cause ==
		      (i % 3 == 2 ? ULRPC_CAUSE_NO_METHOD : ULRPC_CAUSE_OK));
	}
	return NULL;
}

static void *read_main(void *arg)
{
	struct rig *rig = arg;
	char *text;

	for (unsigned int i = 0; !atomic_load(&over); i++) {
		check(ulrpc_method_declare(rig->rpc, i % 2 ? "C" : "D") == 0);
		check(ulrpc_stats(rig->rpc, &text) == 0);
		check(strstr(text, "requests:"));
		free(text);
		if (i % 4 == 0)
			check(ulrpc_stats_reset(rig->rpc) == 0);
	}
	return NULL;
}

static void *ask_main(void *arg)
{
	struct rig *rig = arg;
	char *answer;

	while (!atomic_load(&over)) {
		check(lnet_control_request(rig->control,
					   "rpc show: {verbose: 1}",
					   &answer) == 0);
		check(!strncmp(answer, "status: 0", 9) ||
		      strstr(answer, "runs no RPC"));
		free(answer);
	}
	return NULL;
}

static void *control_main(void *arg)
{
	struct rig *rig = arg;

	while (!atomic_load(&over)) {
		check(ulrpc_control(rig->rpc, rig->control) == 0);
		check(ulrpc_control(rig->rpc, NULL) == 0);
	}
	return NULL;
}

static int rig_open(struct rig *rig)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "A", .handler = echo, .run = ULRPC_RUN_INLINE },
		{ .name = "B", .handler = echo },
	};
	struct ulrpc_service_conf sconf;
	struct ulrpc_client_conf cconf;
	struct ulrpc_service *service;
	struct ulnet_conf conf;
	int rc;

	lnet_conf_init(&conf);
	conf.cpts = 2;
	rc = lnet_open(&conf, &rig->node);
	if (!rc)
		rc = lnet_control_start(rig->node, NULL, &rig->control);
	if (!rc)
		rc = ulrpc_open(rig->node, NULL, &rig->rpc);
	ulrpc_service_conf_init(&sconf);
	sconf.name = "test";
	sconf.methods = methods;
	sconf.nmethods = 2;
	if (!rc)
		rc = ulrpc_service_start(rig->rpc, &sconf, &service);
	ulrpc_client_conf_init(&cconf);
	cconf.nids = &LNET_NID_LO;
	cconf.nnids = 1;
	cconf.service = "test";
	if (!rc)
		rc = ulrpc_client_open(rig->rpc, &cconf, &rig->client);
	return rc;
}

int main(void)
{
	void *(*const mains[WAYS])(void *arg) = { calls_main, read_main,
						  ask_main, control_main };
	pthread_t threads[WAYS];
	struct rig rig;

	if (!check(rig_open(&rig) == 0))
		return 1;
	for (unsigned int i = 0; i < WAYS; i++)
		if (pthread_create(&threads[i], NULL, mains[i], &rig))
			return 1;
	pthread_join(threads[0], NULL);
	atomic_store(&over, true);
	for (unsigned int i = 1; i < WAYS; i++)
		pthread_join(threads[i], NULL);
	check(ulrpc_control(rig.rpc, rig.control) == 0);
	check(ulrpc_close(rig.rpc) == 0);
	lnet_control_stop(rig.control);
	lnet_close(rig.node);
	return atomic_load(&failures) ? 1 : 0;
}
