/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/service_conf.h"

#include <errno.h>
#include <string.h>

#include "rpc/context/intercept.h"
#include "rpc/flavour.h"
#include "rpc/rpc.h"
#include "rpc/server/serve/service.h"
#include "rpc/wire/wire.h"

#define REQUEST_MAX	    (UINT32_C(64) << 10)
#define REQUEST_LIMIT	    (UINT32_C(16) << 20)
#define BUFFERS		    4
#define MESSAGES_PER_BUFFER 4
#define QUEUE_MAX	    4096
/* bytes: the default of queue_bytes_max, enough for QUEUE_MAX requests without
 * long bodies, with replies of up to 4096 bytes. */
#define REPLY_LIMIT	(UINT32_C(16) << 20)
#define QUEUE_BYTES_MAX (UINT64_C(32) << 20)
#define WINDOW		1024
#define RETRY_AFTER_US	UINT64_C(10000)
#define STUCK_US	UINT64_C(60000000)
#define HIGH_RATIO	10
#define SEGMENTS	8
#define WORKERS_MAX	4096

#define refuse(c, ...) service_refuse(c, -EINVAL, __VA_ARGS__)

/* ---- what is refused ---- */

int service_method_check(const struct ulrpc_service_conf *c,
			 const struct ulrpc_method_conf *mc)
{
	if (!mc->name || !mc->name[0])
		return refuse(c, "methods: number %td has no name",
			      mc - c->methods + 1);
	if (!mc->handler)
		return refuse(c, "methods: '%.64s' has no handler", mc->name);
	if ((unsigned int)mc->run > ULRPC_RUN_INLINE)
		return refuse(c, "methods: '%.64s': %u is no way to run it",
			      mc->name, (unsigned int)mc->run);
	if ((unsigned int)mc->priority > ULRPC_PRIORITY_BACKGROUND)
		return refuse(c, "methods: '%.64s': %u is no priority",
			      mc->name, (unsigned int)mc->priority);
	if ((unsigned int)mc->semantics > ULRPC_EXACTLY_ONCE)
		return refuse(c, "methods: '%.64s': %u is no semantics",
			      mc->name, (unsigned int)mc->semantics);
	if ((unsigned int)mc->flavour > FLAVOUR_MAX)
		return refuse(c, "methods: '%.64s': %u is no flavour", mc->name,
			      (unsigned int)mc->flavour);
	return 0;
}

static bool portal_is_taken(unsigned int portal)
{
	return portal == ULRPC_PORTAL_CONTROL || portal == ULRPC_PORTAL_REPLY ||
	       portal == ULRPC_PORTAL_BULK;
}

static int service_check_name(const struct ulrpc_service_conf *c)
{
	if (!c->name || !c->name[0])
		return refuse(c, "name: a name is expected");
	if (strlen(c->name) >= ULRPC_SERVICE_NAME)
		return refuse(c, "name: it has more than %d bytes",
			      ULRPC_SERVICE_NAME - 1);
	if (!c->nmethods || !c->methods)
		return refuse(c, "methods: there are none");
	if (c->portal >= LNET_PORTALS)
		return refuse(c, "portal: %u is more than %d", c->portal,
			      LNET_PORTALS - 1);
	if (portal_is_taken(c->portal))
		return refuse(c, "portal: %u is for RPC itself", c->portal);
	return 0;
}

static int service_check_limits(const struct ulrpc_service_conf *c)
{
	unsigned int most = MAX(c->workers_min, c->workers_max);

	if (c->request_max > ULRPC_BODY_MAX)
		return refuse(c, "request_max: %u is more than %u",
			      c->request_max, ULRPC_BODY_MAX);
	if (c->request_limit && c->request_limit < c->request_max)
		return refuse(c,
			      "request_limit: %u is less than request_max, %u",
			      c->request_limit, c->request_max);
	if (c->workers_max && c->workers_max < c->workers_min)
		return refuse(c, "workers_max: %u is less than workers_min, %u",
			      c->workers_max, c->workers_min);
	if (most > WORKERS_MAX)
		return refuse(c, "%s: %u is more than %d",
			      most == c->workers_min ? "workers_min"
						     : "workers_max",
			      most, WORKERS_MAX);
	if (c->buffers == 1 || c->buffers > ULRPC_BUFFERS_MAX)
		return refuse(c, "buffers: %u is not from 2 to %d", c->buffers,
			      ULRPC_BUFFERS_MAX);
	if ((unsigned int)c->flavour > FLAVOUR_MAX)
		return refuse(c, "flavour: %u is none",
			      (unsigned int)c->flavour);
	return 0;
}

static int service_check_durable(const struct ulrpc_service_conf *c)
{
	if (c->durable && !c->durable->lookup)
		return refuse(c, "durable: there is no lookup");
	if (c->durable && !rpc_id_is_set(c->durable->incarnation))
		return refuse(c, "durable: the incarnation is 0");
	return 0;
}

int service_conf_check(const struct ulrpc_service_conf *c)
{
	int rc = service_check_name(c);

	if (!rc)
		rc = service_check_limits(c);
	if (!rc)
		rc = request_interceptors_check(
			c->interceptors, c->ninterceptors, "interceptors",
			service_owner(c));
	return rc ? rc : service_check_durable(c);
}

int service_conf_fits(const struct ulrpc_service_conf *full,
		      uint32_t message_max, const struct ulrpc_service_conf *c)
{
	if (full->buffer_size < message_max)
		return refuse(c,
			      "buffer_size: %u is less than a message has, %u",
			      full->buffer_size, message_max);
	if (full->queue_bytes_max < full->request_max)
		return refuse(c,
			      "queue_bytes_max: %ju is less than request_max, "
			      "%u",
			      (uintmax_t)full->queue_bytes_max,
			      full->request_max);
	if (full->queue_bytes_max < full->request_limit)
		return refuse(c,
			      "queue_bytes_max: %ju is less than "
			      "request_limit, %u",
			      (uintmax_t)full->queue_bytes_max,
			      full->request_limit);
	return 0;
}

/* ---- defaults ---- */

static void limits_fill(struct ulrpc_service_conf *c)
{
	uint64_t most = c->queue_bytes_max;

	if (!most)
		c->queue_bytes_max =
			MAX(QUEUE_BYTES_MAX, 2 * (uint64_t)MAX(c->request_limit,
							       c->reply_limit));
	if (!c->reply_limit)
		c->reply_limit = REPLY_LIMIT;
	if (!c->request_limit && c->request_max)
		c->request_limit = c->request_max;
	if (!c->request_max)
		c->request_max = c->request_limit
					 ? MIN(REQUEST_MAX, c->request_limit)
					 : REQUEST_MAX;
	if (!c->request_limit)
		c->request_limit =
			most ? (uint32_t)MIN((uint64_t)REQUEST_LIMIT, most)
			     : REQUEST_LIMIT;
	c->request_limit = MAX(c->request_limit, c->request_max);
}

void service_conf_fill(struct ulrpc_service_conf *c, bool workers)
{
	uint64_t message;

	if (!c->workers_min)
		c->workers_min = workers ? 1 : 0;
	if (!c->workers_max)
		c->workers_max = c->workers_min;
	limits_fill(c);
	if (!c->buffers)
		c->buffers = BUFFERS;
	message = MIN(LNET_MTU, (uint64_t)c->request_max + WIRE_HEAD_MAX);
	if (!c->buffer_size)
		c->buffer_size = (uint32_t)message * MESSAGES_PER_BUFFER;
	if (!c->queue_max)
		c->queue_max = QUEUE_MAX;
	c->queue_bytes_max =
		MIN(c->queue_bytes_max, UINT64_MAX / (2 * SERVICE_LIMITS));
	if (!c->window)
		c->window = WINDOW;
	if (!c->retry_after)
		c->retry_after = RETRY_AFTER_US;
	if (!c->stuck)
		c->stuck = STUCK_US;
	if (!c->stalled)
		c->stalled = ULRPC_NEVER;
	if (!c->high_ratio)
		c->high_ratio = HIGH_RATIO;
	if (!c->segments)
		c->segments = SEGMENTS;
}
