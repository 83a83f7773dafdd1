/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/portal/md.h"

#include <errno.h>

#include "base/log.h"
#include "lnet/portal/match.h"

#define MD_OPTIONS                                                            \
	(LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE |            \
	 LNET_MD_TRUNCATE | LNET_MD_ACK_DISABLE | LNET_MD_MAX_SIZE |          \
	 LNET_MD_IOVEC | LNET_MD_TRACK_RESPONSE | LNET_MD_NO_TRACK_RESPONSE | \
	 LNET_MD_URGENT | LNET_MD_PREFER_PATH | LNET_MD_NUMA_NODE |           \
	 LNET_MD_OF_LAYER)
#define MD_OPS (LNET_MD_OP_PUT | LNET_MD_OP_GET)

struct ulnet_md_handle md_handle(const struct lnet_md *md)
{
	return (struct ulnet_md_handle){ md->cpt->node, md->cookie };
}

/* ---- making ---- */

/* Returns 0 and the length of all fragments in bytes, or -EINVAL. */
static int iov_length(const struct ulnet_md *umd, uint64_t *length_p)
{
	const struct iovec *iov = umd->start;

	if (!(umd->options & LNET_MD_IOVEC)) {
		*length_p = umd->length;
		return umd->length && !umd->start ? -EINVAL : 0;
	}
	if (umd->length == 0 || umd->length > LNET_MAX_IOV || !iov)
		return -EINVAL;
	*length_p = 0;
	for (uint32_t i = 0; i < umd->length; i++) {
		if (iov[i].iov_len > UINT32_MAX ||
		    (iov[i].iov_len && !iov[i].iov_base))
			return -EINVAL;
		*length_p += iov[i].iov_len;
	}
	return *length_p > UINT32_MAX ? -EINVAL : 0;
}

static int md_check(const struct ulnet_md *umd, enum ulnet_unlink unlink,
		    bool attach, uint32_t *length_p)
{
	uint64_t length;

	if (umd->options & ~MD_OPTIONS || umd->threshold < LNET_MD_THRESH_INF)
		return -EINVAL;
	if (umd->handler && umd->eq.node)
		return -EINVAL;
	if (unlink != LNET_RETAIN && unlink != LNET_UNLINK)
		return -EINVAL;
	if (iov_length(umd, &length))
		return -EINVAL;
	if (attach ? !(umd->options & MD_OPS)
		   : (umd->options & MD_OPS || length > LNET_MTU))
		return -EINVAL;
	if (umd->options & LNET_MD_NUMA_NODE && umd->numa_node < 0)
		return -EINVAL;
	if (umd->options & LNET_MD_MAX_SIZE && umd->max_size > length)
		return -EINVAL;
	*length_p = (uint32_t)length;
	return 0;
}

/* Copies the fragments, since the user may free the array. */
static int md_set_memory(struct lnet_md *md, const struct ulnet_md *umd)
{
	struct iovec *copy = md->own;

	md->iov = copy;
	md->niov = 1;
	if (likely(!(umd->options & LNET_MD_IOVEC))) {
		*copy = (struct iovec){ umd->start, umd->length };
		return 0;
	}
	md->niov = umd->length;
	if (unlikely(md->niov > MD_OWN_IOV))
		md->iov = copy = malloc(md->niov * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, umd->start, md->niov * sizeof(*copy));
	return 0;
}

/* Sets md->mem if the user has registered the memory. */
static void md_find_mem(struct lnet_md *md)
{
	const struct mems *mems = &portal_cpt(md->cpt)->mems;

	if (likely(!mems->n))
		return;
	md->mem = mems_find(mems, md->iov, md->niov);
	if (md->mem)
		mem_use(md->mem);
}

/* To be called before the last event, in the handler of which the user may
 * unregister the memory. */
static void md_leave_mem(struct lnet_md *md)
{
	if (unlikely(md->mem))
		mem_unuse(md->mem);
}

static void md_free(struct lnet_md *md)
{
	struct lnet_cpt *cpt = md->cpt;

	if (md->eq)
		eq_unreserve(&portal_node(cpt->node)->eqs, md->eq, 0, true);
	if (unlikely(md->iov != md->own))
		free((void *)md->iov);
	list_del(&md->link);
	pool_put(&portal_cpt(cpt)->md_pool, md);
	cpt_ended_one(cpt);
}

static int md_register(struct lnet_md *md, const struct ulnet_md *umd)
{
	struct lnet *node = md->cpt->node;
	int rc = id_alloc(&portal_cpt(md->cpt)->mds, md, &md->cookie);

	if (rc || !umd->eq.node)
		return rc;
	if (umd->eq.node != node)
		rc = -EINVAL;
	else
		rc = eq_use(&portal_node(node)->eqs, umd->eq.cookie, 1,
			    &md->eq);
	if (rc)
		id_free(&portal_cpt(md->cpt)->mds, md->cookie);
	return rc;
}

/* Sets each field separately, since zeroing the structure would take longer. */
static void md_init(struct lnet_md *md, const struct ulnet_md *umd)
{
	md->me = NULL;
	md->mem = NULL;
	list_init(&md->link);
	md->offset = 0;
	md->threshold = umd->threshold;
	md->max_size = umd->max_size;
	md->options = umd->options;
	md->numa_node = umd->numa_node;
	md->refs = 0;
	md->unlinked = false;
	md->aborted = false;
	md->start = umd->start;
	md->user_ptr = umd->user_ptr;
	md->handler = umd->handler;
	md->eq = NULL;
	md->timeout = MIN(umd->timeout, TIME_NEVER / 4000) * NSEC_PER_USEC;
	list_init(&md->ops);
}

int md_new(struct lnet_cpt *cpt, const struct ulnet_md *umd,
	   enum ulnet_unlink unlink, bool attach, struct lnet_md **md_p)
{
	struct lnet_md *md;
	uint32_t length;
	int rc = md_check(umd, unlink, attach, &length);

	if (rc)
		return rc;
	md = pool_get(&portal_cpt(cpt)->md_pool);
	if (!md)
		return -ENOMEM;
	md_init(md, umd);
	md->cpt = cpt;
	md->length = length;
	md->attached = attach;
	md->auto_unlink = unlink == LNET_UNLINK;
	rc = md_set_memory(md, umd);
	if (!rc)
		md_find_mem(md);
	if (!rc)
		rc = md_register(md, umd);
	if (rc) {
		md->eq = NULL;
		md_leave_mem(md);
		md_free(md);
		return rc;
	}
	*md_p = md;
	return 0;
}

void md_free_unused(struct lnet_md *md)
{
	if (md->eq)
		eq_unreserve(&portal_node(md->cpt->node)->eqs, md->eq, 1,
			     false);
	id_free(&portal_cpt(md->cpt)->mds, md->cookie);
	md_leave_mem(md);
	md_free(md);
}

/* ---- events ---- */

static out_of_line void md_handler_late(struct loop *l, ulnet_handler_fn fn)
{
	loop_guard_end(l, "the handler %s of a memory descriptor",
		       code_name((code_fn)fn, (char[CODE_NAME]){ 0 }));
}

static in_line void md_call_handler(struct loop *l, ulnet_handler_fn fn,
				    const struct ulnet_event *ev)
{
	fn(ev);
	if (unlikely(loop_guard_is_late(l)))
		md_handler_late(l, fn);
}

/* Inlined, since every message has an event. */
static inline __attribute__((always_inline)) void md_deliver(
	struct lnet_md *md, struct ulnet_event *ev, uint64_t op)
{
	struct lnet *node = md->cpt->node;

	ev->md = md_handle(md);
	ev->md_start = md->start;
	ev->user_ptr = md->user_ptr;
	ev->md_options = md->options;
	ev->sequence = ++portal_cpt(md->cpt)->sequence;
	if (node->observer)
		node->observer->event(node->observer->arg, node, op, ev);
	if (node->crashed && !(md->options & LNET_MD_OF_LAYER)) {
		if (md->eq && ev->unlinked)
			eq_unreserve(&portal_node(node)->eqs, md->eq, 1, true);
		if (ev->unlinked)
			md->eq = NULL;
		return;
	}
	if (md->handler)
		md_call_handler(md->cpt->loop, md->handler, ev);
	else if (md->eq)
		eq_push(&portal_node(node)->eqs, md->eq, ev, ev->unlinked);
	if (ev->unlinked)
		md->eq = NULL;
}

void md_event(struct lnet_md *md, struct ulnet_event *ev, uint64_t op)
{
	ev->unlinked = false;
	md_deliver(md, ev, op);
}

/* Does what md_event_put() does if nobody else has a reference to @md, which is
 * unlinked. */
static out_of_line void md_event_last(struct lnet_md *md,
				      struct ulnet_event *ev, uint64_t op)
{
	struct lnet *node = md->cpt->node;

	md->refs = 0;
	ev->unlinked = true;
	/* This event has .unlinked, so the slot that was reserved for an UNLINK
	 * event is not needed. */
	if (md->eq)
		eq_unreserve(&portal_node(node)->eqs, md->eq, 1, false);
	md_leave_mem(md);
	md_deliver(md, ev, op);
	md_free(md);
}

void md_event_put(struct lnet_md *md, struct ulnet_event *ev, uint64_t op)
{
	BUG_ON(md->refs == 0);
	if (md->refs == 1 && !md->attached && !md->unlinked &&
	    md->auto_unlink && md_exhausted(md))
		md_unlink(md, false);
	if (unlikely(md->refs == 1 && md->unlinked)) {
		md_event_last(md, ev, op);
		return;
	}
	ev->unlinked = false;
	/* The reference keeps the MD: the handler may unlink it. */
	md_deliver(md, ev, op);
	if (--md->refs == 0 && md->unlinked)
		loop_defer(md->cpt->loop, &md->work);
}

/* Delivers the UNLINK event of an MD that no operation used when it was
 * unlinked. Called as work. */
static void md_end_idle(struct work *w)
{
	struct lnet_md *md = container_of(w, struct lnet_md, work);
	struct ulnet_event ev = {
		.type = LNET_EVENT_UNLINK,
		.unlinked = true,
		.initiator = { LNET_NID_ANY, LNET_PID_ANY },
		.target = { LNET_NID_ANY, LNET_PID_ANY },
		.source = LNET_NID_ANY,
		.sender = LNET_NID_ANY,
		.path_local = LNET_NID_ANY,
		.path_peer = LNET_NID_ANY,
		.path_hop = LNET_NID_ANY,
	};

	md_leave_mem(md);
	md_deliver(md, &ev, 0);
	md_free(md);
}

void md_unlink(struct lnet_md *md, bool canceled)
{
	const struct portal_users *users =
		portal_node(md->cpt->node)->portal_users;
	struct list *op;

	BUG_ON(md->unlinked);
	md->unlinked = true;
	md->work.fn = md_end_idle;
	id_free(&portal_cpt(md->cpt)->mds, md->cookie);
	list_add_tail(&portal_cpt(md->cpt)->mds_unlinked, &md->link);
	if (md->me) {
		struct lnet_me *me = md->me;

		me->md = NULL;
		md->me = NULL;
		if (me->is.unlink)
			me_unlink(me);
	}
	if (md->refs == 0) {
		loop_defer(md->cpt->loop, &md->work);
		return;
	}
	if (!canceled)
		return;
	md->aborted = true;
	for (op = md->ops.next; op != &md->ops; op = op->next)
		users->abandon(op);
}

/* ---- the API ---- */

struct md_call {
	struct lnet_cpt *cpt;
	uint64_t cookie;
	const struct ulnet_md *umd;
	enum ulnet_unlink unlink;
	struct ulnet_md_handle *md_p;
};

static int bind(void *arg)
{
	struct md_call *c = arg;
	struct lnet_md *md;
	int rc;

	if (c->cpt->closing)
		return -ESHUTDOWN;
	rc = md_new(c->cpt, c->umd, c->unlink, false, &md);
	if (rc)
		return rc;
	*c->md_p = md_handle(md);
	return 0;
}

int LNetMDBind(struct lnet *node, const struct ulnet_md *umd,
	       enum ulnet_unlink unlink, struct ulnet_md_handle *md_p)
{
	struct md_call c = { .cpt = node_home(node),
			     .umd = umd,
			     .unlink = unlink,
			     .md_p = md_p };

	return loop_call(c.cpt->loop, bind, &c);
}

static int unlink_call(void *arg)
{
	struct md_call *c = arg;
	struct lnet_md *md = id_lookup(&portal_cpt(c->cpt)->mds, c->cookie);

	if (!md || md->options & MD_OF_NODE)
		return -ENOENT;
	md_unlink(md, true);
	return 0;
}

int LNetMDUnlink(struct ulnet_md_handle h)
{
	struct md_call c = { .cookie = h.cookie };

	c.cpt = node_cpt_of_id(h.node, h.cookie);
	if (!c.cpt)
		return -ENOENT;
	return loop_call(c.cpt->loop, unlink_call, &c);
}
