/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of a control socket, more than it has room for, together with
 * requests from the process itself; at last the socket is closed while some of
 * them wait.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "base/util.h"
#include "ulnet/control.h"

#define CLIENTS 6
#define PLACES	4
#define ROUNDS	30

static char dir[] = "/tmp/ulnet-control-XXXXXX", path[64];

static int status_of(char *answer)
{
	int status;

	BUG_ON(lnet_ctl_print(answer, NULL, NULL, &status));
	free(answer);
	return status;
}

/* Connects again and again until the node has gone, also when it was dismissed.
 */
static void *client_main(void *arg)
{
	static const char *const requests[] = {
		"net show: {verbose: 4}",
		"ping: {nids: 0@lo, timeout: 60}",
		"export:",
		"set: {retry_count: 3}",
		"set: {retry_count: 4}",
	};
	struct lnet_ctl *ctl = NULL;
	unsigned int *answers = arg;
	char *answer;

	for (unsigned int i = 0;; i++) {
		if (!ctl && lnet_ctl_connect(path, 0, &ctl))
			return NULL;
		if (lnet_ctl_request(ctl, requests[i % ARRAY_SIZE(requests)], 0,
				     &answer)) {
			lnet_ctl_close(ctl);
			ctl = NULL;
			continue;
		}
		/* A dismissed client's ping may end early. */
		status_of(answer);
		++*answers;
	}
}

int main(void)
{
	struct ulnet_control_conf conf = { .path = path,
					   .clients_max = PLACES };
	unsigned int answers[CLIENTS] = { 0 }, all = 0;
	pthread_t threads[CLIENTS];
	struct lnet_control *control;
	struct ulnet_conf node_conf;
	struct lnet *node;
	char *answer;

	BUG_ON(!mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	lnet_conf_init(&node_conf);
	node_conf.cpts = 2;
	BUG_ON(lnet_open(&node_conf, &node));
	BUG_ON(lnet_control_start(node, &conf, &control));
	for (unsigned int i = 0; i < CLIENTS; i++)
		BUG_ON(pthread_create(&threads[i], NULL, client_main,
				      &answers[i]));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		BUG_ON(lnet_control_request(control, "global show:", &answer));
		BUG_ON(status_of(answer));
		BUG_ON(lnet_control_request(
			control, "ping: {nids: 0@lo, timeout: 60}", &answer));
		BUG_ON(status_of(answer));
		BUG_ON(lnet_control_remember(control, NULL));
	}
	lnet_control_stop(control);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		pthread_join(threads[i], NULL);
		all += answers[i];
	}
	lnet_close(node);
	BUG_ON(rmdir(dir)); /* fails unless the socket file has gone */
	printf("%u answers to %d clients\n", all, CLIENTS);
	return 0;
}
