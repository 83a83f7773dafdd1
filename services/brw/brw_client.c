/* SPDX-License-Identifier: BSD-3-Clause */
/* How brw is called. */
#include "brw.h"

#include <stdio.h>

#include "services/brw/brw.pb-c.h"
#include "services/common/pattern.h"

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
	.probes = probes,
	.nprobes = sizeof(probes) / sizeof(probes[0]),
};
