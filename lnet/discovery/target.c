/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/discovery.h"

#include <errno.h>

#include "base/log.h"
#include "lnet/discovery/info.h"
#include "lnet/message/reroute.h"
#include "lnet/message/wire.h"
#include "lnet/net/net.h"
#include "lnet/portal/match.h"
#include "lnet/portal/md.h"

/* ns: after this time a failure for lack of memory is followed by another
 * attempt. */
#define RETRY_AFTER (NSEC_PER_SEC / 10)

/* The memory of a target's MD, which is freed with the MD. A push that has come
 * into it is handed, together with the buffer, to the CPT that owns the NID
 * that pushed, and the buffer returns from there; until then the next push
 * waits. */
struct target_buf {
	struct lnet_cpt *cpt;
	uint32_t size;
	struct work work;
	struct disc_push push; /* push.bytes is @bytes */
	/* bytes of the whole push, even if it was cut off */
	uint32_t wanted;
	uint8_t bytes[];
};

static struct targets *targets_of(const struct lnet_cpt *cpt)
{
	return &discovery_cpt(cpt)->targets;
}

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
	md->options |= MD_OF_NODE;
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
	struct lnet_me *old = targets_of(cpt)->ping;
	struct ulnet_md umd = {
		.length = (uint32_t)size,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE |
			   LNET_MD_TRUNCATE | LNET_MD_OF_LAYER,
		.user_ptr = b,
		.handler = ping_target_event,
	};
	uint32_t version = atomic_load(&cpt->node->info_version);
	int rc;

	if (!b)
		return -ENOMEM;
	umd.start = b->bytes;
	ping_info_encode(cpt->node, cpt->config, b->bytes, size);
	rc = target_attach(b, &umd, LNET_RETAIN, &targets_of(cpt)->ping);
	if (rc) {
		free(b);
		return rc;
	}
	if (old)
		me_unlink(old);
	disc_news(cpt, version);
	return 0;
}

static void push_repost(struct target_buf *b, uint32_t size);

/* Returns the size of the next buffer. If the last push was cut off, that is
 * what it would have needed. */
static uint32_t push_next_size(const struct target_buf *b)
{
	uint32_t max = PING_HEADER_SIZE +
		       (settings_interfaces_max(&b->cpt->node->settings) + 1) *
			       PING_LARGE_SIZE;

	return MAX(b->size, MIN(b->wanted, max));
}

static void push_over(struct target_buf *b)
{
	if (b->cpt->closing)
		free(b);
	else
		push_repost(b, push_next_size(b));
}

/* The buffer has returned from the CPT that owns the NID that pushed. */
static void push_back(struct work *w)
{
	struct target_buf *b = container_of(w, struct target_buf, work);
	struct lnet_cpt *cpt = b->cpt;

	targets_of(cpt)->away = false;
	push_over(b);
	cpt_ended_one(cpt);
}

static void push_deliver(struct work *w)
{
	struct target_buf *b = container_of(w, struct target_buf, work);
	struct lnet *node = b->cpt->node;
	struct lnet_cpt *owner = node->cpt[node_cpt_of(node, &b->push.from)];

	if (!loop_is_owner(owner->loop)) {
		loop_post(owner->loop, w);
		return;
	}
	if (!owner->closing)
		disc_pushed(owner, &b->push);
	w->fn = push_back;
	loop_post(b->cpt->loop, w);
}

/* Handles the push in @b on the CPT that owns the NID that pushed. */
static void push_pass(struct target_buf *b)
{
	struct lnet_cpt *cpt = b->cpt;

	if (node_cpt_of(cpt->node, &b->push.from) == cpt->index) {
		disc_pushed(cpt, &b->push);
		push_over(b);
		return;
	}
	targets_of(cpt)->away = true;
	b->work.fn = push_deliver;
	push_deliver(&b->work);
}

static void push_target_event(const struct ulnet_event *ev)
{
	struct target_buf *b = ev->user_ptr;
	struct lnet_cpt *cpt = b->cpt;
	bool came = ev->type == LNET_EVENT_PUT && ev->status == 0;

	b->wanted = came ? ev->rlength : 0;
	b->push = (struct disc_push){ .from = ev->source,
				      .pid = ev->initiator.pid,
				      .bytes = b->bytes,
				      .length = ev->mlength };
	if (!ev->unlinked)
		return;
	targets_of(cpt)->push = 0;
	if (came && !cpt->closing)
		push_pass(b);
	else
		push_over(b);
}

/* On success takes over @b. */
static int push_post(struct target_buf *b)
{
	struct lnet_cpt *cpt = b->cpt;
	struct ulnet_md umd = {
		.start = b->bytes,
		.length = b->size,
		.threshold = 1,
		.options = LNET_MD_OP_PUT | LNET_MD_TRUNCATE | LNET_MD_OF_LAYER,
		.user_ptr = b,
		.handler = push_target_event,
	};
	struct lnet_me *me;
	int rc = target_attach(b, &umd, LNET_UNLINK, &me);

	if (rc)
		return rc;
	targets_of(cpt)->push = me->cookie;
	return 0;
}

/* @b could not be posted. Until it is, pushes of peers wait. */
static void push_spare(struct target_buf *b)
{
	struct lnet_cpt *cpt = b->cpt;
	struct targets *t = targets_of(cpt);

	log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "ping",
			 "no memory: pushes of peers are held");
	t->spare = b;
	loop_timer_arm(cpt->loop, &t->retry, loop_now(cpt->loop) + RETRY_AFTER);
}

static void push_retry(struct timer *timer)
{
	struct targets *t = container_of(timer, struct targets, retry);
	struct target_buf *b = t->spare;

	t->spare = NULL;
	push_repost(b, b->size);
}

/* Takes over @b. Posts a buffer of @size bytes; or @b itself, if it is as large
 * or if there is no memory. */
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
	if (push_post(b))
		push_spare(b);
}

/* Posts the push target, if there is none. */
static int push_start(struct lnet_cpt *cpt)
{
	const struct targets *t = targets_of(cpt);
	struct target_buf *b;
	int rc;

	if (t->push || t->away || t->spare)
		return 0;
	b = target_buf_new(cpt, PUSH_TARGET_SIZE);
	rc = b ? push_post(b) : -ENOMEM;
	if (rc)
		free(b);
	return rc;
}

static void target_changed(struct work *w)
{
	struct discovery_cpt *dc =
		container_of(w, struct discovery_cpt, targets.work);
	struct lnet_cpt *cpt = dc->disc.cpt;

	atomic_store(&dc->targets.posted, false);
	if (cpt->closing)
		return;
	reroute_nis_down(cpt);
	disc_mode_changed(cpt);
	if (targets_refresh(cpt) || push_start(cpt))
		log_warn("ping", "no memory: pings are answered with an older "
				 "state, or pushes not");
}

void targets_changed(struct lnet *node, bool lost)
{
	uint32_t version = atomic_fetch_add(&node->info_version, 1) + 1;

	if (lost)
		atomic_store(&node->info_lost, version);
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct targets *t = targets_of(node->cpt[i]);

		if (!atomic_exchange(&t->posted, true))
			loop_post(node->loops[i], &t->work);
	}
}

void upcall_ni_set_up(struct lnd_ni *lnd, bool up, const char *why)
{
	struct lnet_ni *ni = ni_of(lnd);

	if (ni_set_up(ni, up, why))
		targets_changed(ni->node, !up);
}

static void discovery_changed(struct settings *s)
{
	targets_changed(container_of(s, struct lnet, settings), false);
}

void targets_init(struct lnet *node)
{
	atomic_init(&node->info_version, 1);
	node->settings.discovery_changed = discovery_changed;
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct targets *t = targets_of(node->cpt[i]);

		t->work.fn = target_changed;
		timer_init(&t->retry, push_retry);
	}
}

int targets_start(struct lnet_cpt *cpt)
{
	int rc;

	disc_mode_changed(cpt);
	rc = targets_refresh(cpt);
	return rc ? rc : push_start(cpt);
}

void targets_stop(struct lnet_cpt *cpt)
{
	struct targets *t = targets_of(cpt);
	struct lnet_me *push = id_lookup(&portal_cpt(cpt)->mes, t->push);

	if (t->ping)
		me_unlink(t->ping);
	/* Not found if a push is being received: that push has unlinked it. */
	if (push)
		me_unlink(push);
	t->ping = NULL;
	t->push = 0;
	if (timer_armed(&t->retry))
		loop_timer_cancel(cpt->loop, &t->retry);
	free(t->spare);
	t->spare = NULL;
}

bool targets_are_idle(const struct lnet_cpt *cpt)
{
	return !targets_of(cpt)->away;
}
