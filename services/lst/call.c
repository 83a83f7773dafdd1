/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define US_PER_S UINT64_C(1000000)

/* ---- a single use of memory ---- */

static void md_note(struct lst_md *md, const struct ulnet_event *ev)
{
	if (ev->type == md->wanted) {
		md->status = ev->status;
		md->length = ev->mlength;
		md->peer.nid = ev->source;
		md->peer.pid = ev->initiator.pid;
		md->self = ev->target.nid;
	} else if (ev->status && md->status == -EINPROGRESS) {
		md->status = ev->status;
	}
}

static void md_on_event(const struct ulnet_event *ev)
{
	struct lst_md *md = ev->user_ptr;

	md_note(md, ev);
	if (!ev->unlinked) {
		/* The request of a GET has failed, so no REPLY will come. */
		if (ev->terminal && ev->status)
			LNetMDUnlink(ev->md);
		return;
	}
	if (md->status == -EINPROGRESS)
		md->status = -ECANCELED;
	md->busy = false;
	md->done(md);
}

static struct ulnet_md md_of(struct lst_md *md, void *memory, uint32_t length,
			     int threshold)
{
	md->status = -EINPROGRESS;
	md->length = 0;
	return (struct ulnet_md){ .start = memory,
				  .length = length,
				  .threshold = threshold,
				  .options = LNET_MD_OF_LAYER,
				  .user_ptr = md,
				  .handler = md_on_event };
}

/* Begins a PUT or a GET. If it fails after the MD was bound, returns 0, and the
 * failure comes with the UNLINK event. */
static int md_begin(struct lst_md *md, const struct lst_address *at,
		    void *memory, uint32_t length, bool get)
{
	/* A GET uses its MD twice, for the request and for the REPLY. */
	struct ulnet_md conf = md_of(md, memory, length, get ? 2 : 1);
	int rc;

	md->wanted = get ? LNET_EVENT_REPLY : LNET_EVENT_SEND;
	conf.timeout = at->timeout;
	rc = LNetMDBind(at->node, &conf, LNET_UNLINK, &md->handle);
	if (rc)
		return rc;
	md->busy = true;
	rc = get ? LNetGet(at->self, md->handle, at->peer, at->portal, at->bits,
			   0)
		 : LNetPut(at->self, md->handle, LNET_NOACK_REQ, at->peer,
			   at->portal, at->bits, 0, 0);
	if (rc) {
		md->status = rc;
		LNetMDUnlink(md->handle);
	}
	return 0;
}

int lst_md_put(struct lst_md *md, const struct lst_address *to, void *memory,
	       uint32_t length)
{
	return md_begin(md, to, memory, length, false);
}

int lst_md_get(struct lst_md *md, const struct lst_address *from, void *memory,
	       uint32_t length)
{
	return md_begin(md, from, memory, length, true);
}

int lst_md_expect(struct lst_md *md, const struct lst_address *from,
		  unsigned int op, void *memory, uint32_t length)
{
	struct ulnet_md conf = md_of(md, memory, length, 1);
	struct ulnet_me_handle me;
	int rc;

	md->wanted = op == LNET_MD_OP_GET ? LNET_EVENT_GET : LNET_EVENT_PUT;
	conf.options |= op;
	rc = LNetMEAttach(from->node, from->portal, from->peer, from->bits, 0,
			  LNET_UNLINK, LNET_INS_LOCAL, &me);
	if (rc)
		return rc;
	/* If this fails, LNet has unlinked the match entry. */
	rc = LNetMDAttach(me, &conf, LNET_UNLINK, &md->handle);
	if (!rc)
		md->busy = true;
	return rc;
}

void lst_md_cancel(struct lst_md *md)
{
	if (md->busy)
		LNetMDUnlink(md->handle);
}

/* ---- a request ---- */

void lst_calls_init(struct lst_calls *calls, struct lnet *node,
		    unsigned int cpt)
{
	calls->node = node;
	calls->cpt = cpt;
	TAILQ_INIT(&calls->all);
	lnet_random(node, cpt, &calls->next_id, sizeof(calls->next_id));
}

static void call_fail(struct lst_call *call, int status)
{
	if (!call->status)
		call->status = status;
	lst_md_cancel(&call->request);
	lst_md_cancel(&call->reply);
	lst_md_cancel(&call->bulk);
}

/* Decodes the reply to a request of @type. If the reply tells an error, no bulk
 * data will come, and the call does not wait for them. */
static void take_reply(struct lst_call *call, uint32_t type)
{
	struct lst_msg msg;
	int rc = lst_msg_decode(&msg, call->in, call->reply.length);

	if (rc || msg.type != type + 1) {
		call_fail(call, -EBADMSG);
		return;
	}
	call->msg = msg;
	if (msg.status)
		lst_md_cancel(&call->bulk);
}

static void call_ended(struct lst_call *call)
{
	struct lst_calls *calls = call->calls;

	if (--call->busy)
		return;
	TAILQ_REMOVE(&calls->all, call, all);
	if (call->status) {
		atomic_fetch_add(&calls->dropped, 1);
		if (call->status == -ETIMEDOUT)
			atomic_fetch_add(&calls->expired, 1);
		else if (call->status != -ECANCELED &&
			 call->status != -ESHUTDOWN)
			atomic_fetch_add(&calls->errors, 1);
	}
	call->done(call);
}

static void call_on_request(struct lst_md *md)
{
	struct lst_call *call = LST_OF(md, struct lst_call, request);

	if (md->status)
		call_fail(call, md->status);
	call_ended(call);
}

static void on_reply(struct lst_md *md)
{
	struct lst_call *call = LST_OF(md, struct lst_call, reply);

	if (md->status)
		call_fail(call, md->status);
	else if (!call->status)
		take_reply(call, call->msg.type);
	call_ended(call);
}

static void on_bulk(struct lst_md *md)
{
	struct lst_call *call = LST_OF(md, struct lst_call, bulk);

	/* If take_reply() has canceled the bulk because the reply tells an
	 * error, the call itself has not failed. */
	if (!md->status)
		call->moved = md->length;
	else if (call->reply.busy || !call->msg.status)
		call_fail(call, md->status);
	call_ended(call);
}

static int expect(struct lst_call *call, struct ulnet_id from,
		  const struct lst_msg *msg, const struct lst_bulk *bulk)
{
	struct lst_address at = { .node = call->calls->node,
				  .peer = from,
				  .portal = LST_PORTAL_REPLY,
				  .bits = msg->reply_id };
	int rc = lst_md_expect(&call->reply, &at, LNET_MD_OP_PUT, call->in,
			       sizeof(call->in));

	if (rc)
		return rc;
	call->busy++;
	if (!bulk)
		return 0;
	at.bits = msg->bulk_id;
	rc = lst_md_expect(&call->bulk, &at, bulk->op, bulk->memory,
			   bulk->length);
	if (!rc)
		call->busy++;
	return rc;
}

static int call_send(struct lst_call *call, struct ulnet_id to,
		     uint32_t seconds)
{
	struct lst_address at = { .node = call->calls->node,
				  .self = LNET_NID_ANY,
				  .peer = to,
				  .portal = lst_request_portal(call->msg.type),
				  .bits = lst_request_bits(call->msg.type),
				  .timeout = seconds * US_PER_S };
	int rc = lst_md_put(&call->request, &at, call->out, sizeof(call->out));

	if (!rc)
		call->busy++;
	return rc;
}

int lst_call_begin(struct lst_calls *calls, struct lst_call *call,
		   struct ulnet_id to, struct lst_msg *msg,
		   const struct lst_bulk *bulk, uint32_t seconds)
{
	int rc;

	msg->reply_id = ++calls->next_id;
	if (bulk)
		msg->bulk_id = ++calls->next_id;
	call->calls = calls;
	call->status = 0;
	call->moved = 0;
	call->busy = 0;
	call->msg = *msg;
	call->request = (struct lst_md){ .done = call_on_request };
	call->reply = (struct lst_md){ .done = on_reply };
	call->bulk = (struct lst_md){ .done = on_bulk };
	rc = lst_msg_encode(msg, call->out);
	if (!rc)
		rc = expect(call, to, msg, bulk);
	if (!rc)
		rc = call_send(call, to, seconds);
	if (rc && !call->busy)
		return rc;
	/* If the request could not be sent, but LNet expects its reply already:
	 * cancels the reply, whose event then ends the call. */
	TAILQ_INSERT_TAIL(&calls->all, call, all);
	call->deadline = lnet_now(calls->node, calls->cpt) + seconds * NS_PER_S;
	atomic_fetch_add(&calls->sent, 1);
	if (rc)
		call_fail(call, rc);
	return 0;
}

void lst_call_cancel(struct lst_call *call)
{
	call_fail(call, -ECANCELED);
}

bool lst_calls_tick(struct lst_calls *calls, uint64_t now)
{
	struct lst_call *call;

	/* Calls end by events, so no call leaves the list within this loop. */
	TAILQ_FOREACH (call, &calls->all, all)
		if (call->deadline <= now)
			call_fail(call, -ETIMEDOUT);
	return !TAILQ_EMPTY(&calls->all);
}
