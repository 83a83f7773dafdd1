/* SPDX-License-Identifier: BSD-3-Clause */
/* Annexes of requests and replies (rpc/context/annex.h), and statuses: what a
 * handler gets and tells beside bodies. */
#include "rpc/context/annex.h"
#include "rpc/context/scope.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/server/serve/durable.h"
#include "rpc/server/serve/request.h"
#include "rpc/streaming.h"
#include "rpc/server/session/export.h"
#include "rpc/text.h"

/* ---- what has come ---- */

/* Takes the annex off the body of @r. False: the body cannot be read. */
static bool take_annex(struct ulrpc_request *r)
{
	const uint8_t *start = r->body;
	struct wire_view body = { start, start + r->length };

	/* What is known was checked when it became known. */
	if (r->rare & REQUEST_KNOWN)
		body.p = r->annex.end;
	else if (!annex_split(&body, &r->annex))
		return false;
	r->body = body.p;
	r->annex_length = (uint32_t)(body.p - start);
	r->length -= r->annex_length;
	return true;
}

bool request_prepare(struct ulrpc_request *r)
{
	if (r->rare & REQUEST_ANNEX && !take_annex(r)) {
		request_answer(r, WIRE_BAD_REQUEST, 0, NULL, 0);
		return true;
	}
	return r->durable && durable_answers(r);
}

int ulrpc_request_metadata(const struct ulrpc_request *request,
			   unsigned int index, struct ulrpc_metadata *pair)
{
	if (!(request->rare & REQUEST_ANNEX))
		return -ENOENT;
	return annex_pair(request->annex, index, pair);
}

int ulrpc_request_find(const struct ulrpc_request *request, const char *name,
		       struct ulrpc_metadata *pair)
{
	if (!(request->rare & REQUEST_ANNEX))
		return -ENOENT;
	return annex_find(request->annex, name, pair);
}

const void *request_metadata_of(const struct ulrpc_request *r, size_t *length_p)
{
	bool has = r->rare & REQUEST_ANNEX;

	*length_p = has ? view_length(r->annex) : 0;
	return has ? r->annex.p : NULL;
}

/* ---- what the handler adds ---- */

static struct annex *annex_of_reply(struct ulrpc_request *r)
{
	if (!(r->rare & REQUEST_ADDED)) {
		annex_init(&r->added);
		r->annexed = NULL;
		r->rare |= REQUEST_ADDED;
	}
	return &r->added;
}

void request_added_free(struct ulrpc_request *r)
{
	if (r->rare & REQUEST_SCOPE)
		scope_put(r->scope);
	if (r->rare & REQUEST_SEEN)
		request_seen_put(r->seen);
	if (!(r->rare & REQUEST_ADDED))
		return;
	annex_fini(&r->added);
	free(r->annexed);
}

int ulrpc_reply_add(struct ulrpc_request *request, const char *name,
		    const void *value, size_t length)
{
	return annex_add(annex_of_reply(request), name, value, length);
}

int ulrpc_reply_details(struct ulrpc_request *request,
			const struct ulrpc_details *details)
{
	return annex_add_details(annex_of_reply(request), details);
}

void ulrpc_fail_status(struct ulrpc_request *request, enum ulrpc_status status,
		       const char *text)
{
	ulrpc_fail_text(request, ulrpc_status_errno(status), text ? text : "");
}

/* ---- the reply ---- */

/* Makes a body of what the handler has added to @reply, and of *@body. Returns
 * how the request ended. */
static uint32_t annex_reply(struct ulrpc_request *r, struct wire_reply *reply,
			    const void **body)
{
	const uint8_t *text = *body;
	bool failed = reply->status == WIRE_FAILED;
	struct annex_failure failure = { .error = reply->error };
	size_t length = failed ? 0 : reply->length;

	if (failed)
		failure.text = (struct wire_view){ text, text + reply->length };
	r->annexed =
		annex_body_new(&r->added, &failure, *body, length, &length);
	if (!r->annexed) {
		reply->status = WIRE_FAILED;
		reply->error = ENOMEM;
		reply->length = 0;
		return WIRE_FAILED;
	}
	*body = r->annexed;
	reply->status = length > ULRPC_REPLY_MAX ? WIRE_TOO_LONG : WIRE_ANNEXED;
	reply->error = 0;
	reply->length = (uint32_t)length;
	return failed ? WIRE_FAILED : WIRE_OK;
}

/* @reply is from the store, where it was kept with its annex. If the client
 * cannot read annexes, takes it off. Returns how the request ended. */
static uint32_t annex_replayed(struct wire_reply *reply, bool readable,
			       const void **body)
{
	const uint8_t *p = *body;
	struct wire_view rest = { p, p + reply->length }, annex;
	struct annex_failure failure = { .error = EIO };
	uint32_t end;

	if (annex_split(&rest, &annex))
		failure = annex_failure(annex);
	end = failure.error ? WIRE_FAILED : WIRE_OK;
	if (readable) {
		reply->error = 0;
		return end;
	}
	reply->status = end;
	reply->error = failure.error;
	if (failure.error)
		rest = (struct wire_view){ NULL, NULL };
	*body = rest.p;
	reply->length = (uint32_t)view_length(rest);
	return end;
}

uint32_t request_annex(struct ulrpc_request *r, struct wire_reply *reply,
		       const void **body)
{
	const struct export *e = r->reply_to->export;
	bool readable = e && e->annexes;

	if (reply->status == WIRE_ANNEXED)
		return annex_replayed(reply, readable, body);
	if (!(r->rare & REQUEST_ADDED) || !r->added.length || !readable ||
	    (reply->status != WIRE_OK && reply->status != WIRE_FAILED))
		return reply->status;
	return annex_reply(r, reply, body);
}
