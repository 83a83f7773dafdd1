/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/target.h"

#include <errno.h>

#include "base/log.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/info.h"
#include "lnet/message/leave.h"
#include "lnet/message/wire.h"
#include "lnet/net/net.h"
#include "lnet/portal/match.h"
#include "lnet/portal/md.h"

struct targets {
	struct lnet_cpt *cpt;
	struct lnet_me *ping; /* NULL: none posted */
	uint64_t push;	      /* cookie of its entry, which goes with a push */
	struct work work;     /* targets_nis_changed() */
	atomic_bool posted;
};

/* Memory of a target's MD; goes with it. */
struct target_buf {
	struct lnet_cpt *cpt;
	uint32_t size;
	uint8_t bytes[];
};

static struct target_buf *target_buf_new(struct lnet_cpt *cpt, size_t size)
{
	struct target_buf *b = calloc(1, sizeof(*b) + size);

	if (b) {
		b->cpt = cpt;
		b->size = (uint32_t)size;
	}
	return b;
}

static int target_attach(struct target_buf *b, const struct ulnet_md *umd,
			 enum ulnet_unlink unlink, struct lnet_me **me_p)
{
	struct me_args args = { .portal = PING_PORTAL,
				.match_id = { LNET_NID_ANY, LNET_PID_ANY },
				.match_bits = PING_MATCH_BITS,
				.unlink = true };
	struct lnet_me *me;
	struct lnet_md *md;
	int rc = me_attach(b->cpt, &args, LNET_INS_BEFORE, &me);

	if (rc)
		return rc;
	rc = me_attach_md(me, umd, unlink, &md);
	if (rc) {
		me_unlink(me);
		return rc;
	}
	md->internal = true;
	*me_p = me;
	return 0;
}

static void ping_target_event(const struct ulnet_event *ev)
{
	if (ev->unlinked)
		free(ev->user_ptr);
}

int targets_refresh(struct lnet_cpt *cpt)
{
	size_t size = ping_info_encode(cpt->node, cpt->config, NULL, 0);
	struct target_buf *b = target_buf_new(cpt, size);
	struct lnet_me *old = discovery_cpt(cpt)->targets->ping;
	struct ulnet_md umd = {
		.length = (uint32_t)size,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE |
			   LNET_MD_TRUNCATE,
		.user_ptr = b,
		.handler = ping_target_event,
	};
	int rc;

	if (!b)
		return -ENOMEM;
	umd.start = b->bytes;
	ping_info_encode(cpt->node, cpt->config, b->bytes, size);
	rc = target_attach(b, &umd, LNET_RETAIN,
			   &discovery_cpt(cpt)->targets->ping);
	if (rc) {
		free(b);
		return rc;
	}
	if (old)
		me_unlink(old);
	return 0;
}

static void push_repost(struct target_buf *b, uint32_t size);

/* Looks at what a peer has pushed. Discovery is to use it; the peer is
 * acknowledged in any case. */
static void push_look_at(struct lnet_cpt *cpt, const struct ulnet_event *ev,
			 const struct target_buf *b)
{
	unsigned int max = settings_interfaces_max(&cpt->node->settings);
	unsigned int room = ping_info_room(ev->mlength, max);
	struct ulnet_ping_ni *ni = malloc(room * sizeof(*ni));
	struct ulnet_ping_info info;
	size_t need;
	int rc;

	if (!ni)
		return;
	rc = ping_info_decode(b->bytes, ev->mlength, &info, ni, max, &need);
	cpt_stat(cpt,
		 rc == -EPROTO || rc == -E2BIG ? STAT_pushes_bad : STAT_pushes);
	free(ni);
}

static void push_target_event(const struct ulnet_event *ev)
{
	struct target_buf *b = ev->user_ptr;
	struct lnet_cpt *cpt = b->cpt;
	uint32_t size = b->size;
	uint32_t max = PING_HEADER_SIZE +
		       (settings_interfaces_max(&cpt->node->settings) + 1) *
			       PING_LARGE_SIZE;

	if (ev->type == LNET_EVENT_PUT && ev->status == 0) {
		push_look_at(cpt, ev, b);
		/* Too small for this one: the next shall fit. */
		if (ev->rlength > size)
			size = MAX(size, MIN(ev->rlength, max));
	}
	if (!ev->unlinked)
		return;
	discovery_cpt(cpt)->targets->push = 0;
	if (cpt->closing)
		free(b);
	else
		push_repost(b, size);
}

/* Takes @b on success. */
static int push_post(struct target_buf *b)
{
	struct lnet_cpt *cpt = b->cpt;
	struct ulnet_md umd = {
		.start = b->bytes,
		.length = b->size,
		.threshold = 1,
		.options = LNET_MD_OP_PUT | LNET_MD_TRUNCATE,
		.user_ptr = b,
		.handler = push_target_event,
	};
	struct lnet_me *me;
	int rc = target_attach(b, &umd, LNET_UNLINK, &me);

	if (rc)
		return rc;
	discovery_cpt(cpt)->targets->push = me->cookie;
	return 0;
}

/* With @size bytes if need and memory be, else with what there was. Takes @b.
 */
static void push_repost(struct target_buf *b, uint32_t size)
{
	struct target_buf *larger = NULL;

	if (size > b->size)
		larger = target_buf_new(b->cpt, size);
	if (larger && !push_post(larger)) {
		free(b);
		return;
	}
	free(larger);
	if (push_post(b)) {
		log_err("ping", "no memory: pushes of peers are held");
		free(b);
	}
}

/* The first target, or one more try after there was no memory. */
static int push_start(struct lnet_cpt *cpt)
{
	struct target_buf *b;
	int rc;

	if (discovery_cpt(cpt)->targets->push)
		return 0;
	b = target_buf_new(cpt, PUSH_TARGET_SIZE);
	rc = b ? push_post(b) : -ENOMEM;
	if (rc)
		free(b);
	return rc;
}

static void nis_changed(struct work *w)
{
	struct targets *t = container_of(w, struct targets, work);

	atomic_store(&t->posted, false);
	if (t->cpt->closing)
		return;
	leave_nis_down(t->cpt);
	if (targets_refresh(t->cpt) || push_start(t->cpt))
		log_warn("ping", "no memory: pings are answered with an older "
				 "state, or pushes not");
}

static void targets_nis_changed(struct lnet *node)
{
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct targets *t = discovery_cpt(node->cpt[i])->targets;

		if (!atomic_exchange(&t->posted, true))
			loop_post(node->loops[i], &t->work);
	}
}

/* The state of an NI is part of what peers see. */
void lnet_ni_set_up(struct lnd_ni *lnd, bool up, const char *why)
{
	struct lnet_ni *ni = ni_of(lnd);

	if (ni_set_up(ni, up, why))
		targets_nis_changed(ni->node);
}

int targets_start(struct lnet_cpt *cpt)
{
	struct targets *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->cpt = cpt;
	t->work.fn = nis_changed;
	discovery_cpt(cpt)->targets = t;
	rc = targets_refresh(cpt);
	if (!rc)
		rc = push_start(cpt);
	return rc;
}

void targets_stop(struct lnet_cpt *cpt)
{
	struct targets *t = discovery_cpt(cpt)->targets;
	struct lnet_me *push = id_lookup(&portal_cpt(cpt)->mes, t->push);

	if (t->ping)
		me_unlink(t->ping);
	/* A push that is being received has unlinked its target already. */
	if (push)
		me_unlink(push);
	t->ping = NULL;
	t->push = 0;
}

void targets_fini(struct lnet_cpt *cpt)
{
	free(discovery_cpt(cpt)->targets);
	discovery_cpt(cpt)->targets = NULL;
}
