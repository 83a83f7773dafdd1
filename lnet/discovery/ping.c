/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "lnet/discovery/info.h"
#include "lnet/message/op.h"
#include "lnet/message/wire.h"
#include "lnet/portal/md.h"
#include "lnet/portal/portal.h"

/* Sink of a first ping: what kernel nodes use. */
#define PING_SINK_SIZE 3960

struct ping {
	struct lnet_cpt *cpt;
	struct ulnet_id target;
	uint64_t until; /* ns */
	ulnet_ping_fn done;
	void *arg;
	int status;
	size_t need; /* > size: ask again */
	struct ulnet_ping_info info;
	unsigned int ni_max;	  /* max_interfaces, when it began */
	struct ulnet_ping_ni *ni; /* as many as came; NULL: none yet */
	size_t size;
	uint8_t *buf;
};

static void ping_free(struct ping *p)
{
	free(p->ni);
	free(p->buf);
	free(p);
}

static int ping_ask(struct ping *p, size_t size);

static void ping_finish(struct ping *p)
{
	int rc = p->status;

	if (rc == -EMSGSIZE && p->need > p->size) {
		rc = ping_ask(p, p->need);
		if (!rc)
			return;
	}
	if (!p->cpt->node->crashed)
		p->done(p->arg, rc, rc ? NULL : &p->info);
	ping_free(p);
}

static int ping_read(struct ping *p, size_t len)
{
	unsigned int room = ping_info_room(len, p->ni_max);

	free(p->ni); /* of an answer that was cut */
	p->ni = malloc(room * sizeof(*p->ni));
	if (!p->ni)
		return -ENOMEM;
	return ping_info_decode(p->buf, len, &p->info, p->ni, p->ni_max,
				&p->need);
}

static void ping_event(const struct ulnet_event *ev)
{
	struct ping *p = ev->user_ptr;
	struct lnet_md *md;

	if (ev->type == LNET_EVENT_REPLY && ev->status == 0)
		p->status = ping_read(p, ev->mlength);
	else if (ev->terminal && ev->outcome != LNET_OUTCOME_DELIVERED)
		p->status = ev->status ? ev->status : -ETIMEDOUT;
	else if (ev->type == LNET_EVENT_REPLY)
		p->status = ev->status;
	md = id_lookup(&portal_cpt(p->cpt)->mds, ev->md.cookie);
	if (ev->terminal && md)
		md_unlink(md, false);
	if (ev->unlinked)
		ping_finish(p);
}

/* On error nothing has been begun. */
static int ping_ask(struct ping *p, size_t size)
{
	uint64_t now = loop_now(p->cpt->loop);
	uint8_t *buf = realloc(p->buf, size);
	struct ulnet_md umd = { .start = buf,
				.length = (uint32_t)size,
				.threshold = 2,
				.options = LNET_MD_TRUNCATE |
					   LNET_MD_TRACK_RESPONSE,
				.user_ptr = p,
				.handler = ping_event };
	struct op_args args = { .type = LNET_MSG_GET,
				.self = LNET_NID_ANY,
				.target = p->target,
				.portal = PING_PORTAL,
				.match_bits = PING_MATCH_BITS };
	struct lnet_md *md;
	int rc;

	if (!buf)
		return -ENOMEM;
	p->buf = buf;
	p->size = size;
	if (now >= p->until)
		return -ETIMEDOUT;
	umd.timeout = (p->until - now + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
	rc = md_new(p->cpt, &umd, LNET_UNLINK, false, &md);
	if (rc)
		return rc;
	md->internal = true;
	args.md = md->cookie;
	rc = op_begin(p->cpt, &args);
	if (rc)
		md_free_unused(md);
	return rc;
}

struct ping_call {
	struct lnet_cpt *cpt;
	struct ulnet_id target;
	uint64_t timeout;
	ulnet_ping_fn done;
	void *arg;
};

static int ping_begin(void *arg)
{
	struct ping_call *c = arg;
	struct ping *p;
	int rc;

	if (c->cpt->closing)
		return -ESHUTDOWN;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->cpt = c->cpt;
	p->ni_max = settings_interfaces_max(&c->cpt->node->settings);
	p->target = c->target;
	p->until = loop_now(c->cpt->loop) + c->timeout;
	p->done = c->done;
	p->arg = c->arg;
	rc = ping_ask(p, PING_SINK_SIZE);
	if (rc)
		ping_free(p);
	return rc;
}

int lnet_ping(struct lnet *node, struct ulnet_id target, uint64_t timeout,
	      ulnet_ping_fn done, void *arg)
{
	struct ping_call c = { node_home(node), target, 0, done, arg };

	if (!done || lnet_nid_is_any(&target.nid))
		return -EINVAL;
	c.timeout = timeout ? MIN(timeout, TIME_NEVER / 4000) * NSEC_PER_USEC
			    : settings_transaction_timeout(&node->settings);
	if (target.pid == LNET_PID_ANY)
		c.target.pid = LNET_PID_LUSTRE;
	return loop_call(c.cpt->loop, ping_begin, &c);
}
