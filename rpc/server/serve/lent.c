/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests whose body is longer than a message, so that the caller lends it, as
 * bulk: the body is got before the request is served as any other. Until then
 * the request is ARRIVED, and active: its client is told to wait on, and the
 * bytes of the body are charged to the client's share, whether they have come
 * or not.
 */
#include "rpc/server/serve/request.h"

#include <errno.h>
#include <stdio.h>

#include "rpc/bulk/transfer.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

bool lent_is_too_long(const struct service_cpt *sc, const struct wire_call *c)
{
	return transfers_body_length(c) > sc->service->conf.request_limit;
}

uint32_t lent_excess(const struct service_cpt *sc, const struct wire_call *c,
		     char *text, size_t size)
{
	const struct ulrpc_service_conf *conf = &sc->service->conf;
	uint64_t lent = transfers_body_length(c);
	uint32_t most = lent ? conf->request_limit : conf->request_max;
	uint64_t length = MAX(lent, (uint64_t)c->length);

	if (length <= most)
		return 0;
	snprintf(text, size,
		 "a request of %ju bytes is too long: the service takes up to "
		 "%u",
		 (uintmax_t)length, most);
	return text_fit(text, MIN(size, c->reply_max));
}

int lent_keep(struct ulrpc_request *r, const struct wire_call *c)
{
	uint64_t length = transfers_body_length(c);

	if (!length)
		return 0;
	if (c->length || lent_is_too_long(r->sc, c))
		return -EPROTO;
	r->copy = slab_get(&r->sc->slab, length);
	if (!r->copy)
		return -ENOMEM;
	r->body = r->copy;
	r->length = (uint32_t)length;
	r->rare |= REQUEST_LENT;
	return LENT_BODY;
}

int lent_begin(struct ulrpc_request *r, const struct wire_call *c)
{
	int rc = transfers_get_body(r->transfers, r->copy);

	if (rc)
		return rc;
	stat_count(r->sc->shard, RPC_STAT_requests_lent);
	r->item.wait = 0;
	request_activate(r, c, request_size(c));
	deadline_rest(r);
	request_wait_bulk(r);
	return 0;
}

/* Returns the status with which @r is refused; WIRE_OK: it can be served. */
static uint32_t lent_status(const struct ulrpc_request *r)
{
	int status = transfer_status(r->transfers);

	if (r->losing || status == -ESHUTDOWN || shard_is_mute(r->sc->shard))
		return WIRE_SHUTTING_DOWN;
	if (request_canceled(r) || status == -ETIMEDOUT)
		return WIRE_EXPIRED;
	/* The caller lends less than it has said. */
	if (status == -EPROTO)
		return WIRE_BAD_REQUEST;
	return status ? WIRE_OVERLOADED : WIRE_OK;
}

void lent_on_end(struct ulrpc_request *r)
{
	uint32_t status = lent_status(r);

	transfers_have_body(r->transfers);
	if (status) {
		stat_count(r->sc->shard, RPC_STAT_requests_not_lent);
		atomic_store_explicit(&r->state, REQUEST_QUEUED,
				      memory_order_relaxed);
		r->item.again = 0;
		request_refuse_queued(r, status);
		return;
	}
	r->arrival = shard_now(r->sc->shard);
	if (r->method->run == ULRPC_RUN_INLINE) {
		deadline_go_on(r);
		request_run_inline(r);
	} else if (request_queue(r)) {
		deadline_go_on(r);
	} else {
		request_refuse_queued(r, WIRE_OVERLOADED);
	}
}
