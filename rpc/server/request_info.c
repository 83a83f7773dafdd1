/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers ask about their requests. */
#include "rpc/server/request_priv.h"

#include "rpc/bulk/transfer.h"

static uint64_t time_left(struct ulrpc_request *r)
{
	uint64_t now = TIME_NEVER;

	/* See request_wait_users(). */
	atomic_fetch_add(&r->users, 1);
	if (atomic_load(&r->state) != REQUEST_LOST)
		now = shard_now(r->sc->shard);
	atomic_fetch_sub(&r->users, 1);
	if (now != TIME_NEVER && r->deadline == TIME_NEVER)
		return ULRPC_NEVER;
	return now < r->deadline ? (r->deadline - now) / NSEC_PER_USEC : 0;
}

void ulrpc_request_info(const struct ulrpc_request *request,
			struct ulrpc_request_info *info)
{
	const struct origin *o = request->origin;

	*info = (struct ulrpc_request_info){
		.client = o->client,
		.source = o->source,
		.local = o->local,
		.xid = request->xid,
		.attempt = request->attempt + 1,
		.method = request->method->number,
		.reply_max = request->reply_max,
		.time_left = time_left((struct ulrpc_request *)request),
		.priority = request->priority,
		.nbulks = transfers_count(request->transfers),
		.service = request->sc->service->name,
		.method_name = request->method->name,
	};
	if (request->traced)
		trace_format(request->trace, info->trace);
}

struct ulrpc *ulrpc_request_rpc(const struct ulrpc_request *request)
{
	return request->sc->service->rpc;
}

unsigned int ulrpc_request_cpt(const struct ulrpc_request *request)
{
	const struct service_cpt *sc = request->sc;

	return (unsigned int)(sc - sc->service->cpt);
}
