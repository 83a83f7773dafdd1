/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics are read, set to 0, and shown by a control socket that is opened
 * and closed, while calls count on several CPTs. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/thread/rig.h"

#define CALLS 3000
#define WAYS  4

static atomic_bool over;

static void *calls_main(void *arg)
{
	rig_call(arg, CALLS, true);
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

static const struct ulrpc_method_conf methods[] = {
	{ .name = "A", .handler = echo, .run = ULRPC_RUN_INLINE },
	{ .name = "B", .handler = echo },
};

int main(void)
{
	void *(*const mains[WAYS])(void *arg) = { calls_main, read_main,
						  ask_main, control_main };
	pthread_t threads[WAYS];
	struct rig rig;

	if (!check(rig_open(&rig, methods, 2) == 0))
		return 1;
	for (unsigned int i = 0; i < WAYS; i++)
		if (pthread_create(&threads[i], NULL, mains[i], &rig))
			return 1;
	pthread_join(threads[0], NULL);
	atomic_store(&over, true);
	for (unsigned int i = 1; i < WAYS; i++)
		pthread_join(threads[i], NULL);
	check(ulrpc_control(rig.rpc, rig.control) == 0);
	rig_close(&rig);
	return atomic_load(&failures) ? 1 : 0;
}
