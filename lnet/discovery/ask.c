/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/ask.h"

#include <errno.h>

#include "lnet/discovery/info.h"
#include "lnet/message/out.h"
#include "lnet/message/op.h"
#include "lnet/message/wire.h"
#include "lnet/net/net.h"
#include "lnet/portal/md.h"
#include "lnet/portal/portal.h"
#include "ulnet/loop.h"

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

static void ask_event(const struct ulnet_event *ev)
{
	struct ask *a = ev->user_ptr;
	struct lnet_md *md;

	if (ev->type == LNET_EVENT_REPLY || ev->type == LNET_EVENT_ACK) {
		a->status = ev->status;
		a->cause = ev->cause;
		a->length = ev->mlength;
		a->ni = ev->path_local;
		a->lpni = ev->path_peer;
	} else if (ev->terminal && ev->outcome != LNET_OUTCOME_DELIVERED) {
		a->status = ev->status ? ev->status : -ETIMEDOUT;
		a->cause = ev->cause;
	}
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
		.options = LNET_MD_TRUNCATE | LNET_MD_TRACK_RESPONSE |
			   LNET_MD_OF_LAYER,
		.user_ptr = a,
		.timeout = (timeout + NSEC_PER_USEC - 1) / NSEC_PER_USEC,
		.handler = ask_event
	};
	struct lnet_md *md;
	int rc = md_new(a->cpt, &umd, LNET_UNLINK, false, &md);

	if (rc)
		return rc;
	md->options |= MD_OF_NODE;
	args->portal = PING_PORTAL;
	args->match_bits = PING_MATCH_BITS;
	args->md = md->cookie;
	a->md = md->cookie;
	a->status = -EIO;
	a->cause = LNET_CAUSE_LOCAL_ERROR;
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

int ask_tell(struct ask *a, const struct ulnet_nid *self,
	     const struct ulnet_id *target, uint8_t flags, uint64_t timeout)
{
	const struct lnet_cpt *cpt = a->cpt;
	size_t size = ping_info_encode(cpt->node, cpt->config, NULL, 0);
	struct op_args args = { .type = LNET_MSG_PUT,
				.self = *self,
				.target = *target,
				.flags = flags,
				.ack = true };
	int rc = ask_reserve(a, size);

	if (rc)
		return rc;
	ping_info_encode(cpt->node, cpt->config, a->buf, size);
	return ask_begin(a, &args, size, timeout);
}

/* ---- lnet_ping() ---- */

/* Bytes of the buffer of the first GET, as in kernel nodes. */
#define PING_SINK_SIZE 3960

struct ping {
	struct ask ask;
	struct ulnet_nid self; /* the local NI to ask from; LNET_NID_ANY: any */
	struct ulnet_id target;
	/* ns: the timeout that the user has given, and when it ends */
	uint64_t timeout, until;
	/* the setting max_interfaces when the ping began */
	unsigned int ni_max;
	ulnet_ping_fn done;
	void *arg;
};

static void ping_free(struct ping *p)
{
	ask_fini(&p->ask);
	free(p);
}

/* On error no GET is under way. */
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
	struct ulnet_ping_info info;
	struct ulnet_ping_ni *ni = NULL;
	size_t need = 0;
	int rc = a->status;

	if (!rc)
		rc = ping_info_read(a->buf, a->length, &info, &ni, p->ni_max,
				    &need);
	if (rc == -EMSGSIZE && need > a->size) {
		rc = ping_ask(p, need);
		if (!rc) {
			free(ni);
			return;
		}
	}
	if (!rc)
		(void)ping_info_add_here(a->buf, a->length,
					 config_host(a->cpt->config), &info, ni,
					 p->ni_max);
	if (!a->cpt->node->crashed)
		p->done(p->arg, rc, rc ? NULL : &info);
	free(ni);
	ping_free(p);
}

static int ping_begin(void *arg)
{
	struct ping *p = arg;
	const struct lnet_cpt *cpt = p->ask.cpt;

	p->until = loop_now(cpt->loop) + p->timeout;
	p->ni_max = settings_interfaces_max(&cpt->node->settings);
	return cpt->closing ? -ESHUTDOWN : ping_ask(p, PING_SINK_SIZE);
}

int lnet_ping_from(struct lnet *node, const struct ulnet_nid *self,
		   struct ulnet_id target, uint64_t timeout, ulnet_ping_fn done,
		   void *arg)
{
	struct lnet_cpt *cpt = node_home(node);
	struct ping *p;
	int rc;

	if (!done || lnet_nid_is_any(&target.nid))
		return -EINVAL;
	if (target.pid == LNET_PID_ANY)
		target.pid = LNET_PID_LUSTRE;
	timeout = timeout ? MIN(timeout, TIME_NEVER / 4000) * NSEC_PER_USEC
			  : settings_transaction_timeout(&node->settings);
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct ping){ .self = *self,
			    .target = target,
			    .timeout = timeout,
			    .done = done,
			    .arg = arg };
	ask_init(&p->ask, cpt, ping_asked);
	rc = loop_call(cpt->loop, ping_begin, p);
	if (rc)
		ping_free(p);
	return rc;
}

int lnet_ping(struct lnet *node, struct ulnet_id target, uint64_t timeout,
	      ulnet_ping_fn done, void *arg)
{
	const struct ulnet_nid any = LNET_NID_ANY;

	return lnet_ping_from(node, &any, target, timeout, done, arg);
}

/* ---- pushes that nobody waits for ---- */

/* ns: a process that needs longer than this for its ACK has lost the
 * connection. */
#define TELL_TIMEOUT NSEC_PER_SEC

static void tell_done(struct ask *a)
{
	if (!a->status)
		cpt_stat(a->cpt, STAT_pushes_sent);
	ask_fini(a);
	free(a);
}

int ask_tell_once(struct lnet_cpt *cpt, const struct ulnet_id *target)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	struct ask *a = malloc(sizeof(*a));
	int rc;

	if (!a)
		return -ENOMEM;
	ask_init(a, cpt, tell_done);
	rc = ask_tell(a, &any, target, MSG_EXACT | MSG_PROBE, TELL_TIMEOUT);
	if (rc) {
		ask_fini(a);
		free(a);
	}
	return rc;
}

int lnet_tell(struct lnet *node, unsigned int cpt, const struct ulnet_id *peer)
{
	struct lnet_cpt *here = node->cpt[cpt];

	node_check_owner(node, cpt, "lnet_tell");
	if (!pid_only_calls(peer->pid))
		return -EINVAL;
	if (here->closing)
		return -ESHUTDOWN;
	if (settings_discovery(&node->settings) == LNET_DISCOVERY_OFF)
		return -EOPNOTSUPP;
	return ask_tell_once(here, peer);
}
