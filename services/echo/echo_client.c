/* SPDX-License-Identifier: BSD-3-Clause */
/* How echo is called. */
#include "echo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "services/echo/echo.pb-c.h"
#include "services/common/pattern.h"

static bool check_payload(const struct probe_call *call, const void *payload,
			  size_t length, char *what, size_t size)
{
	size_t good;

	if (length != call->size) {
		snprintf(what, size, "%zu bytes came back, not %ju", length,
			 (uintmax_t)call->size);
		return false;
	}
	good = pattern_check(payload, length, call->seed, call->offset);
	if (good == length)
		return true;
	snprintf(what, size, "byte %zu of %zu is not what was sent", good,
		 length);
	return false;
}

/* ---- bytes ---- */

static int raw_prepare(const struct probe_call *call, void *body)
{
	pattern_fill(body, call->size, call->seed, call->offset);
	return (int)call->size;
}

/* ---- messages ---- */

static int message_prepare(const struct probe_call *call, void *body)
{
	Ulrpc__Echo__EchoRequest m = ULRPC__ECHO__ECHO_REQUEST__INIT;
	size_t length;

	m.delay = call->delay;
	m.progress = call->progress;
	m.payload.len = call->size;
	m.payload.data = malloc(call->size + 1);
	if (!m.payload.data)
		return -ENOMEM;
	pattern_fill(m.payload.data, call->size, call->seed, call->offset);
	length = ulrpc__echo__echo_request__pack(&m, body);
	free(m.payload.data);
	return (int)length;
}

static bool message_check(const struct probe_call *call, const void *reply,
			  size_t length, char *what, size_t size)
{
	Ulrpc__Echo__EchoReply *m =
		ulrpc__echo__echo_reply__unpack(NULL, length, reply);
	bool good;

	if (!m) {
		snprintf(what, size, "the reply cannot be read");
		return false;
	}
	good = check_payload(call, m->payload.data, m->payload.len, what, size);
	ulrpc__echo__echo_reply__free_unpacked(m, NULL);
	return good;
}

static const struct probe probes[] = {
	{ .method = "Raw",
	  .text = "bytes, on the loop",
	  .verifies = true,
	  .prepare = raw_prepare,
	  .check = check_payload },
	{ .method = "RawWorker",
	  .text = "bytes, by a worker",
	  .worker = true,
	  .verifies = true,
	  .prepare = raw_prepare,
	  .check = check_payload },
	{ .method = "Echo",
	  .text = "a message, on the loop; waits by a timer",
	  .delays = true,
	  .verifies = true,
	  .prepare = message_prepare,
	  .check = message_check },
	{ .method = "EchoWorker",
	  .text = "a message, by a worker, who sleeps",
	  .delays = true,
	  .worker = true,
	  .verifies = true,
	  .prepare = message_prepare,
	  .check = message_check },
};

const struct service_type echo_service = {
	.name = "echo",
	.text = "what is sent comes back",
	.start = echo_start,
	.stop = echo_stop,
	.probes = probes,
	.nprobes = sizeof(probes) / sizeof(probes[0]),
};
