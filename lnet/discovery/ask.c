/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/ask.h"

#include <errno.h>

#include "lnet/message/msg.h"
#include "lnet/message/op.h"
#include "lnet/message/wire.h"
#include "lnet/portal/md.h"
#include "lnet/portal/portal.h"

void ask_init(struct ask *a, struct lnet_cpt *cpt, void (*done)(struct ask *))
{
	*a = (struct ask){ .cpt = cpt, .done = done };
}

void ask_fini(struct ask *a)
{
	BUG_ON(a->md);
	free(a->buf);
	a->buf = NULL;
}

int ask_reserve(struct ask *a, size_t size)
{
	uint8_t *buf;

	if (size <= a->size)
		return 0;
	buf = realloc(a->buf, size);
	if (!buf)
		return -ENOMEM;
	a->buf = buf;
	a->size = size;
	return 0;
}

static void ask_answered(struct ask *a, const struct ulnet_event *ev)
{
	a->status = ev->status;
	a->length = ev->mlength;
	a->ni = ev->path_local;
	a->lpni = ev->path_peer;
}

static void ask_event(const struct ulnet_event *ev)
{
	struct ask *a = ev->user_ptr;
	struct lnet_md *md;

	if (ev->type == LNET_EVENT_REPLY || ev->type == LNET_EVENT_ACK)
		ask_answered(a, ev);
	else if (ev->terminal && ev->outcome != LNET_OUTCOME_DELIVERED)
		a->status = ev->status ? ev->status : -ETIMEDOUT;
	md = id_lookup(&portal_cpt(a->cpt)->mds, ev->md.cookie);
	if (ev->terminal && md)
		md_unlink(md, false);
	if (!ev->unlinked)
		return;
	a->md = 0;
	a->done(a);
}

static int ask_begin(struct ask *a, struct op_args *args, size_t length,
		     uint64_t timeout)
{
	struct ulnet_md umd = {
		.start = a->buf,
		.length = (uint32_t)length,
		.threshold = 2,
		.options = LNET_MD_TRUNCATE | LNET_MD_TRACK_RESPONSE,
		.user_ptr = a,
		.timeout = (timeout + NSEC_PER_USEC - 1) / NSEC_PER_USEC,
		.handler = ask_event
	};
	struct lnet_md *md;
	int rc = md_new(a->cpt, &umd, LNET_UNLINK, false, &md);

	if (rc)
		return rc;
	md->internal = true;
	args->portal = PING_PORTAL;
	args->match_bits = PING_MATCH_BITS;
	args->md = md->cookie;
	a->md = md->cookie;
	a->status = -EIO;
	rc = op_begin(a->cpt, args);
	if (rc) {
		a->md = 0;
		md_free_unused(md);
	}
	return rc;
}

int ask_get(struct ask *a, const struct ulnet_nid *self,
	    const struct ulnet_id *target, uint8_t flags, uint64_t timeout)
{
	struct op_args args = { .type = LNET_MSG_GET,
				.self = *self,
				.target = *target,
				.flags = flags };

	return ask_begin(a, &args, a->size, timeout);
}

int ask_exact(struct ask *a, const struct ulnet_nid *from,
	      const struct ulnet_nid *to, uint64_t timeout)
{
	const struct ulnet_id target = { *to, LNET_PID_LUSTRE };

	return ask_get(a, from, &target, MSG_ONCE | MSG_EXACT | MSG_PROBE,
		       timeout);
}

int ask_put(struct ask *a, const struct ulnet_nid *self,
	    const struct ulnet_id *target, size_t length, uint64_t timeout)
{
	struct op_args args = { .type = LNET_MSG_PUT,
				.self = *self,
				.target = *target,
				.ack = true };

	return ask_begin(a, &args, length, timeout);
}

int ask_tell(struct ask *a, const struct ulnet_id *to, size_t length,
	     uint64_t timeout)
{
	struct op_args args = { .type = LNET_MSG_PUT,
				.self = LNET_NID_ANY,
				.target = *to,
				.flags = MSG_EXACT | MSG_PROBE,
				.ack = true };

	return ask_begin(a, &args, length, timeout);
}
