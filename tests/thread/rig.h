/* SPDX-License-Identifier: BSD-3-Clause */
/* A node of two CPTs that serves and calls itself, with a control socket's
 * commands, for programs of which several threads use it. */
#ifndef TESTS_THREAD_RIG_H
#define TESTS_THREAD_RIG_H

#include <string.h>

#include "tests/thread/check.h"
#include "ulnet/control.h"
#include "ulnet/service.h"

struct rig {
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	struct lnet_control *control;
};

static inline void echo(void *arg, struct ulrpc_request *request,
			const void *body, size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static inline int rig_open_rpc(struct rig *rig)
{
	struct ulnet_conf conf;
	int rc;

	lnet_conf_init(&conf);
	conf.cpts = 2;
	rc = lnet_open(&conf, &rig->node);
	if (!rc)
		rc = lnet_control_start(rig->node, NULL, &rig->control);
	if (!rc)
		rc = ulrpc_open(rig->node, NULL, &rig->rpc);
	return rc;
}

/* Opens all, with the service "test", which has these methods. Returns 0 or
 * -errno. */
static inline int rig_open(struct rig *rig,
			   const struct ulrpc_method_conf *methods,
			   unsigned int nmethods)
{
	struct ulrpc_service_conf sconf;
	struct ulrpc_client_conf cconf;
	struct ulrpc_service *service;
	int rc = rig_open_rpc(rig);

	ulrpc_service_conf_init(&sconf);
	sconf.name = "test";
	sconf.methods = methods;
	sconf.nmethods = nmethods;
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

/* Closes all but the client. */
static inline void rig_close(struct rig *rig)
{
	check(ulrpc_close(rig->rpc) == 0);
	lnet_control_stop(rig->control);
	lnet_close(rig->node);
}

/* Calls the methods A, B and C in turn, @n times in all. Returns when the last
 * call has ended. @none: there is no method C. */
static inline void rig_call(struct rig *rig, unsigned int n, bool none)
{
	const struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER };
	const char *const methods[] = { "A", "B", "C" };

	for (unsigned int i = 0; i < n; i++) {
		struct ulrpc_outcome o;

		check(ulrpc_call_wait(rig->client, ulrpc_method(methods[i % 3]),
				      "x", 1, &conf, NULL, 0, NULL, &o) == 0);
		check(o.cause == (none && i % 3 == 2 ? ULRPC_CAUSE_NO_METHOD
						     : ULRPC_CAUSE_OK));
	}
}

#endif
