/* SPDX-License-Identifier: BSD-3-Clause */
/* lnet_ping_from(): one question, with its answer for the caller. */
#include <errno.h>

#include "lnet/core/cpt.h"
#include "lnet/discovery/ask.h"
#include "lnet/discovery/info.h"

/* Sink of a first ping: what kernel nodes use. */
#define PING_SINK_SIZE 3960

struct ping {
	struct ask ask;
	struct ulnet_nid self; /* that asks; ANY: any */
	struct ulnet_id target;
	uint64_t until; /* ns */
	ulnet_ping_fn done;
	void *arg;
	size_t need; /* > ask.size: ask again */
	struct ulnet_ping_info info;
	unsigned int ni_max;	  /* max_interfaces, when it began */
	struct ulnet_ping_ni *ni; /* as many as came; NULL: none yet */
};

static void ping_free(struct ping *p)
{
	free(p->ni);
	ask_fini(&p->ask);
	free(p);
}

static int ping_read(struct ping *p)
{
	unsigned int room = ping_info_room(p->ask.length, p->ni_max);

	free(p->ni); /* of an answer that was cut */
	p->ni = malloc(room * sizeof(*p->ni));
	if (!p->ni)
		return -ENOMEM;
	return ping_info_decode(p->ask.buf, p->ask.length, &p->info, p->ni,
				p->ni_max, &p->need);
}

/* On error nothing has been begun. */
static int ping_ask(struct ping *p, size_t size)
{
	uint64_t now = loop_now(p->ask.cpt->loop);
	int rc = ask_reserve(&p->ask, size);

	if (rc)
		return rc;
	if (now >= p->until)
		return -ETIMEDOUT;
	return ask_get(&p->ask, &p->self, &p->target, 0, p->until - now);
}

static void ping_asked(struct ask *a)
{
	struct ping *p = container_of(a, struct ping, ask);
	int rc = a->status;

	if (!rc)
		rc = ping_read(p);
	if (rc == -EMSGSIZE && p->need > a->size) {
		rc = ping_ask(p, p->need);
		if (!rc)
			return;
	}
	if (!a->cpt->node->crashed)
		p->done(p->arg, rc, rc ? NULL : &p->info);
	ping_free(p);
}

struct ping_call {
	struct lnet_cpt *cpt;
	struct ulnet_nid self;
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
	ask_init(&p->ask, c->cpt, ping_asked);
	p->ni_max = settings_interfaces_max(&c->cpt->node->settings);
	p->self = c->self;
	p->target = c->target;
	p->until = loop_now(c->cpt->loop) + c->timeout;
	p->done = c->done;
	p->arg = c->arg;
	rc = ping_ask(p, PING_SINK_SIZE);
	if (rc)
		ping_free(p);
	return rc;
}

int lnet_ping_from(struct lnet *node, const struct ulnet_nid *self,
		   struct ulnet_id target, uint64_t timeout, ulnet_ping_fn done,
		   void *arg)
{
	struct ping_call c = { node_home(node), *self, target, 0, done, arg };

	if (!done || lnet_nid_is_any(&target.nid))
		return -EINVAL;
	c.timeout = timeout ? MIN(timeout, TIME_NEVER / 4000) * NSEC_PER_USEC
			    : settings_transaction_timeout(&node->settings);
	if (target.pid == LNET_PID_ANY)
		c.target.pid = LNET_PID_LUSTRE;
	return loop_call(c.cpt->loop, ping_begin, &c);
}

int lnet_ping(struct lnet *node, struct ulnet_id target, uint64_t timeout,
	      ulnet_ping_fn done, void *arg)
{
	const struct ulnet_nid any = LNET_NID_ANY;

	return lnet_ping_from(node, &any, target, timeout, done, arg);
}
