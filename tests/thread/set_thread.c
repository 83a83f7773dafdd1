/* SPDX-License-Identifier: BSD-3-Clause */
/* A service and a client of it are changed again and again by a control socket,
 * while calls wait and run on several CPTs and workers. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/thread/rig.h"

#define CALLS	300
#define CALLERS 4

static atomic_uint left = CALLERS;

static void *calls_main(void *arg)
{
	rig_call(arg, CALLS, false);
	atomic_fetch_sub(&left, 1);
	return NULL;
}

static void ask(struct rig *rig, const char *request, const char *begins)
{
	char *answer;

	check(lnet_control_request(rig->control, request, &answer) == 0);
	if (!check(!strncmp(answer, begins, strlen(begins))))
		printf("%s: %s\n", request, answer);
	free(answer);
}

static void *set_main(void *arg)
{
	static const char *const sets[] = {
		"policy: fifo, workers_min: 1, workers_max: 1",
		("policy: 'rr quantum=4 tbf method=B rate=500 depth=1', "
		 "workers_max: 8"),
		"policy: edf, window: 2, queue_max: 100",
		"policy: 'fair tbf rate=2000 depth=1', window: 512",
		"policy: 'fair tbf method=C rate=1000 depth=2 per=client'",
		"workers_min: 2, high_ratio: 3, segments: 2, retry_after: 100",
	};
	struct rig *rig = arg;
	char request[256];

	for (unsigned int i = 0; atomic_load(&left); i++) {
		snprintf(request, sizeof(request),
			 "rpc set: {service: test, %s}", sets[i % 6]);
		ask(rig, request, "status: 0");
		ask(rig, "rpc set: {service: test, window: 1, policy: worst}",
		    "status: -95");
		ask(rig,
		    i % 2 ? "rpc set: {client: test, reply_limit: 4294967295}"
			  : "rpc set: {client: test, reply_limit: 5000}",
		    "status: 0");
	}
	return NULL;
}

static const struct ulrpc_method_conf methods[] = {
	{ .name = "A", .handler = echo, .run = ULRPC_RUN_INLINE },
	{ .name = "B", .handler = echo },
	{ .name = "C", .handler = echo, .priority = ULRPC_PRIORITY_HIGH },
};

int main(void)
{
	pthread_t callers[CALLERS], setter;
	struct rig rig;

	if (!check(rig_open(&rig, methods, 3) == 0))
		return 1;
	check(ulrpc_control(rig.rpc, rig.control) == 0);
	for (unsigned int i = 0; i < CALLERS; i++)
		if (pthread_create(&callers[i], NULL, calls_main, &rig))
			return 1;
	if (pthread_create(&setter, NULL, set_main, &rig))
		return 1;
	for (unsigned int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	pthread_join(setter, NULL);
	ulrpc_client_close(rig.client);
	rig_close(&rig);
	return atomic_load(&failures) ? 1 : 0;
}
