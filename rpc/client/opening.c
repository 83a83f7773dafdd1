/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/opening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/bulk/bulk.h"
#include "rpc/bulk/seal.h"
#include "rpc/client/bulks.h"
#include "rpc/client/client.h"
#include "rpc/text.h"

struct opening {
	struct shard *shard;
	/* the call whose sinks are opened; NULL: it has ended */
	struct ulrpc_call *call;
	struct list link; /* node in client.opening */
	struct ulnet_work work;
	/* @work is posted. It frees this if @call is NULL when it runs */
	bool posted;
	struct ulnet_timer timer; /* fires at the deadline */
	struct ulrpc_outcome outcome;
	void (*tell)(struct ulrpc_call *call, struct ulrpc_outcome *o,
		     const void *body, size_t length);
	size_t length;
	uint8_t body[];
};

static void outcome_spoil(struct ulrpc_outcome *o, enum ulrpc_cause cause)
{
	o->cause = cause;
	o->status = cause_status(cause);
}

static void opening_end(struct opening *e)
{
	struct ulrpc_call *call = e->call;
	size_t length = e->outcome.cause == ULRPC_CAUSE_OK ? e->length : 0;

	shard_cancel(e->shard, &e->timer);
	list_del(&e->link);
	e->call = NULL;
	e->tell(call, &e->outcome, length ? e->body : NULL, length);
	if (!e->posted)
		free(e);
}

/* Ends the call with @cause, because the caller does not wait any longer. */
static void opening_give_up(struct opening *e, enum ulrpc_cause cause)
{
	outcome_spoil(&e->outcome, cause);
	for (unsigned int i = 0; i < e->call->nbulks; i++)
		bulk_on_idle_cancel(e->call->bulks[i]);
	opening_end(e);
}

static void opening_on_timer(struct ulnet_timer *timer)
{
	opening_give_up(container_of(timer, struct opening, timer),
			ULRPC_CAUSE_DEADLINE);
}

void openings_abort(struct list *openings, enum ulrpc_cause cause)
{
	while (!list_empty(openings))
		opening_give_up(list_first(openings, struct opening, link),
				cause);
}

/* Opens the next slice in the next turn. */
static void opening_go_on(void *arg)
{
	struct opening *e = arg;

	e->posted = true;
	shard_hold(e->shard);
	shard_post(e->shard, &e->work);
}

/* Opens a slice, once nothing can touch the sinks any more. */
static void opening_step(struct opening *e)
{
	struct ulrpc_bulk *busy = bulks_busy(e->call);
	uint64_t left = SEAL_SLICE;
	int rc;

	if (busy) {
		bulk_on_idle(busy, opening_go_on, e);
		return;
	}
	rc = bulks_open(e->call, &left);
	if (!rc) {
		opening_go_on(e);
		return;
	}
	if (rc < 0)
		outcome_spoil(&e->outcome, rc == -ENOMEM
						   ? ULRPC_CAUSE_NO_MEMORY
						   : ULRPC_CAUSE_CHECKSUM);
	opening_end(e);
}

static void on_opening(struct ulnet_work *work)
{
	struct opening *e = container_of(work, struct opening, work);
	struct shard *s = e->shard;

	e->posted = false;
	if (e->call)
		opening_step(e);
	else
		free(e);
	shard_release(s);
}

void opening_begin(struct ulrpc_call *call, struct ulrpc_outcome *o,
		   const void *body, size_t length,
		   void (*tell)(struct ulrpc_call *call,
				struct ulrpc_outcome *o, const void *body,
				size_t length))
{
	struct opening *e = malloc(sizeof(*e) + length);

	if (!e) {
		outcome_spoil(o, ULRPC_CAUSE_NO_MEMORY);
		tell(call, o, NULL, 0);
		return;
	}
	*e = (struct opening){ .shard = call->shard,
			       .call = call,
			       .work.fn = on_opening,
			       .outcome = *o,
			       .tell = tell,
			       .length = length };
	if (length)
		memcpy(e->body, body, length);
	lnet_timer_init(&e->timer, opening_on_timer);
	if (call->deadline != TIME_NEVER)
		shard_arm(e->shard, &e->timer, call->deadline);
	list_add_tail(&call->client->opening, &e->link);
	opening_go_on(e);
}
