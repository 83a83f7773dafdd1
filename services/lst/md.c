/* SPDX-License-Identifier: BSD-3-Clause */
#include "md.h"

#include <errno.h>

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
		/* A GET whose request failed waits for no REPLY. */
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

/* A PUT, or a GET. If it could not begin on an MD that is there, the UNLINK
 * event is its end. */
static int md_begin(struct lst_md *md, const struct lst_place *at, void *memory,
		    uint32_t length, bool get)
{
	/* Of a GET, the request and its REPLY. */
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

int lst_md_put(struct lst_md *md, const struct lst_place *to, void *memory,
	       uint32_t length)
{
	return md_begin(md, to, memory, length, false);
}

int lst_md_get(struct lst_md *md, const struct lst_place *from, void *memory,
	       uint32_t length)
{
	return md_begin(md, from, memory, length, true);
}

int lst_md_expect(struct lst_md *md, const struct lst_place *from,
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
	/* If this fails, the entry is taken away again. */
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
