/* SPDX-License-Identifier: BSD-3-Clause */
/* Service "brw": reads bulk data from the service's memory, or writes them
 * there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "services/brw/brw.pb-c.h"
#include "services/common/pattern.h"
#include "services/services.h"

/* Most bytes of fresh memory that are touched on the loop. More would delay
 * the calls of others: 250 MiB take 0.1 s. */
#define TOUCHED_INLINE ((size_t)64 << 10)

struct brw {
	struct service base;
	struct memory memory;
};

/* A request, and the memory to which it moves bulk data, or from which it moves
 * them. */
struct move {
	struct brw *brw;
	struct ulrpc_request *request;
	struct chunk *chunk;
	struct iovec iov; /* the part of the chunk that is used */
	unsigned int bulk;
	/* the bulk is moved to the chunk, since the client writes; false: from
	 * it */
	bool get;
	uint64_t seed, offset;
};

/* ---- the request, and its reply ---- */

/* Reads the request, and gets memory for its bulk. Returns 0; -EBADMSG: the
 * body cannot be read; -ENOBUFS: there is no memory now; or another errno for
 * the client. */
static int move_init(struct move *m, const void *body, size_t length)
{
	Ulrpc__Brw__BrwRequest *r =
		ulrpc__brw__brw_request__unpack(NULL, length, body);
	struct ulrpc_request_info caller;
	struct ulrpc_bulk_info info;
	int rc = 0;

	if (!r)
		return -EBADMSG;
	m->bulk = r->bulk ? r->bulk->index : 0;
	m->seed = r->seed;
	m->offset = r->offset;
	ulrpc__brw__brw_request__free_unpacked(r, NULL);
	if (m->offset % PATTERN_ALIGN)
		return -EINVAL;
	rc = ulrpc_request_bulk(m->request, m->bulk, &info);
	if (rc)
		return rc;
	if (!info.length)
		return -EINVAL;
	ulrpc_request_info(m->request, &caller);
	m->chunk = memory_get(&m->brw->memory, info.length, &caller.source);
	if (!m->chunk)
		return -ENOBUFS;
	m->iov = (struct iovec){ m->chunk->data, info.length };
	return 0;
}

/* Returns NULL if the request has been answered with an error. */
static struct move *move_new(struct brw *b, struct ulrpc_request *request,
			     const void *body, size_t length)
{
	struct move *m = malloc(sizeof(*m));
	int rc;

	if (!m) {
		ulrpc_overloaded(request);
		return NULL;
	}
	*m = (struct move){ .brw = b, .request = request };
	rc = move_init(m, body, length);
	if (!rc)
		return m;
	free(m);
	if (rc == -ENOBUFS)
		ulrpc_overloaded(request);
	else if (rc == -EBADMSG) /* the request was not executed */
		ulrpc_refuse(request);
	else
		ulrpc_fail(request, rc);
	return NULL;
}

/* Replies, and frees @m. @status: 0 or -errno for the client. @good: how many
 * bytes of the bulk, from its beginning, are those of the pattern. */
static void move_end(struct move *m, int status, uint64_t good)
{
	Ulrpc__Brw__BrwReply r = ULRPC__BRW__BRW_REPLY__INIT;
	struct ulrpc_request *request = m->request;
	uint8_t body[64]; /* room for a reply, which is three numbers */

	r.moved = m->iov.iov_len;
	r.wrong = good < m->iov.iov_len;
	r.wrong_at = r.wrong ? good : 0;
	memory_put(&m->brw->memory, m->chunk);
	free(m);
	if (status)
		ulrpc_fail(request, status);
	else
		ulrpc_reply(request, body,
			    ulrpc__brw__brw_reply__pack(&r, body));
}

/* ---- on the loop ---- */

static void brw_on_moved(void *arg, int status, uint64_t moved)
{
	struct move *m = arg;

	/* @moved is not looked at: if status is 0, everything was moved */
	(void)moved;
	move_end(m, status, m->iov.iov_len);
}

/* Begins to move the bulk data: from the client to @m's memory if @get, else
 * from @m's memory to the client. */
static void move_begin(struct move *m, bool get, ulrpc_bulk_fn done)
{
	int rc = (get ? ulrpc_bulk_get : ulrpc_bulk_put)(m->request, m->bulk, 0,
							 &m->iov, 1, done, m);

	if (rc)
		move_end(m, rc, 0);
}

/* Runs on a worker. */
static void touch_then_move(void *arg, struct ulrpc_request *request)
{
	struct move *m = arg;

	(void)request;
	memory_touch(m->chunk);
	move_begin(m, m->get, brw_on_moved);
}

/* As move_begin(), for memory that is not touched yet. */
static void brw_move(struct move *m, bool get)
{
	int rc;

	if (m->chunk->fresh <= TOUCHED_INLINE) {
		memory_touch(m->chunk);
		move_begin(m, get, brw_on_moved);
		return;
	}
	m->get = get;
	rc = ulrpc_request_continue(m->request, touch_then_move, m);
	if (rc)
		move_end(m, rc, 0);
}

static void on_read(void *arg, struct ulrpc_request *request, const void *body,
		    size_t length)
{
	struct move *m = move_new(arg, request, body, length);

	if (m)
		brw_move(m, false);
}

static void brw_on_write(void *arg, struct ulrpc_request *request,
			 const void *body, size_t length)
{
	struct move *m = move_new(arg, request, body, length);

	if (m)
		brw_move(m, true);
}

/* ---- by workers ---- */

/* Workers make and check patterns, but do not wait for bulk, because a client
 * that stops in the middle of its transfers would occupy all workers. */
static void on_read_verified(void *arg, struct ulrpc_request *request,
			     const void *body, size_t length)
{
	struct move *m = move_new(arg, request, body, length);

	if (!m)
		return;
	/* this touches all of the memory */
	pattern_fill(m->iov.iov_base, m->iov.iov_len, m->seed, m->offset);
	move_begin(m, false, brw_on_moved);
}

static void check_written(void *arg, struct ulrpc_request *request)
{
	struct move *m = arg;

	(void)request;
	move_end(m, 0,
		 pattern_check(m->iov.iov_base, m->iov.iov_len, m->seed,
			       m->offset));
}

static void on_written(void *arg, int status, uint64_t moved)
{
	struct move *m = arg;

	(void)moved;
	if (!status)
		status = ulrpc_request_continue(m->request, check_written, m);
	if (status)
		move_end(m, status, 0);
}

static void on_write_verified(void *arg, struct ulrpc_request *request,
			      const void *body, size_t length)
{
	struct move *m = move_new(arg, request, body, length);

	if (!m)
		return;
	memory_touch(m->chunk);
	move_begin(m, true, on_written);
}

/* ---- beginning and end ---- */

static void brw_free(struct brw *b)
{
	memory_fini(&b->memory);
	free(b);
}

static int brw_start(struct ulrpc *rpc, const struct service_conf *conf,
		     struct service **service_p)
{
	struct brw *b = calloc(1, sizeof(*b));
	const struct ulrpc_method_conf methods[] = {
		{ .name = "Read",
		  .handler = on_read,
		  .arg = b,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "Write",
		  .handler = brw_on_write,
		  .arg = b,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "ReadVerified",
		  .handler = on_read_verified,
		  .arg = b,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "WriteVerified",
		  .handler = on_write_verified,
		  .arg = b,
		  .semantics = ULRPC_IDEMPOTENT },
	};
	int rc;

	if (!b)
		return -ENOMEM;
	rc = memory_init(&b->memory, ulrpc_node(rpc),
			 conf->memory ? conf->memory : SERVICE_MEMORY_DEFAULT);
	if (rc) {
		free(b);
		return rc;
	}
	rc = service_run(&b->base, &brw_service, rpc, conf, methods,
			 sizeof(methods) / sizeof(methods[0]), 0);
	if (rc)
		brw_free(b);
	else
		*service_p = &b->base;
	return rc;
}

static int brw_stop(struct service *service, uint64_t timeout)
{
	/* the service is the first member of struct brw */
	struct brw *b = (struct brw *)service;
	int rc = ulrpc_service_stop(b->base.running, timeout);

	brw_free(b);
	return rc;
}

/* ---- calling it ---- */

static int prepare_access(const struct probe_call *call,
			  enum ulrpc_bulk_access access, void *body)
{
	Ulrpc__Brw__BrwRequest m = ULRPC__BRW__BRW_REQUEST__INIT;
	Ulrpc__Bulk bulk = ULRPC__BULK__INIT;

	bulk.length = call->length;
	bulk.access = access;
	m.bulk = &bulk;
	m.seed = call->seed;
	m.offset = call->offset;
	return (int)ulrpc__brw__brw_request__pack(&m, body);
}

static int read_prepare(const struct probe_call *call, void *body)
{
	return prepare_access(call, ULRPC_BULK_SINK, body);
}

static int write_prepare(const struct probe_call *call, void *body)
{
	return prepare_access(call, ULRPC_BULK_SOURCE, body);
}

static int write_prepare_pattern(const struct probe_call *call, void *body)
{
	pattern_fill(call->bulk, call->length, call->seed, call->offset);
	return write_prepare(call, body);
}

static bool check(const struct probe_call *call, const void *reply,
		  size_t length, char *what, size_t size)
{
	Ulrpc__Brw__BrwReply *m =
		ulrpc__brw__brw_reply__unpack(NULL, length, reply);

	*what = 0;
	if (!m)
		snprintf(what, size, "the reply cannot be read");
	else if (m->wrong)
		snprintf(what, size, "byte %ju of %ju arrived changed",
			 (uintmax_t)m->wrong_at, (uintmax_t)call->length);
	else if (m->moved != call->length)
		snprintf(what, size, "%ju bytes were moved, not %ju",
			 (uintmax_t)m->moved, (uintmax_t)call->length);
	if (m)
		ulrpc__brw__brw_reply__free_unpacked(m, NULL);
	return !*what;
}

static bool read_check(const struct probe_call *call, const void *reply,
		       size_t length, char *what, size_t size)
{
	size_t good;

	if (!check(call, reply, length, what, size))
		return false;
	good = pattern_check(call->bulk, call->length, call->seed,
			     call->offset);
	if (good == call->length)
		return true;
	snprintf(what, size, "byte %zu of %ju is not what it must be", good,
		 (uintmax_t)call->length);
	return false;
}

static const struct probe probes[] = {
	{ .method = "Read",
	  .text = "bulk read, on the loop",
	  .bulk = ULRPC_BULK_SINK,
	  .prepare = read_prepare,
	  .check = check },
	{ .method = "Write",
	  .text = "bulk write, on the loop",
	  .bulk = ULRPC_BULK_SOURCE,
	  .prepare = write_prepare,
	  .check = check },
	{ .method = "ReadVerified",
	  .text = "bulk read of a pattern, by a worker",
	  .bulk = ULRPC_BULK_SINK,
	  .worker = true,
	  .verifies = true,
	  .prepare = read_prepare,
	  .check = read_check },
	{ .method = "WriteVerified",
	  .text = "bulk write of a pattern, by a worker",
	  .bulk = ULRPC_BULK_SOURCE,
	  .worker = true,
	  .verifies = true,
	  .prepare = write_prepare_pattern,
	  .check = check },
};

const struct service_type brw_service = {
	.name = "brw",
	.text = "bulk data from and to memory",
	.start = brw_start,
	.stop = brw_stop,
	.descriptor = &ulrpc__brw__brw__descriptor,
	.probes = probes,
	.nprobes = sizeof(probes) / sizeof(probes[0]),
};
