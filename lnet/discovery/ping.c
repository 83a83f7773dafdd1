/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/ping.h"

#include <errno.h>

#include "base/buf.h"
#include "base/log.h"
#include "lnet/message/op.h"
#include "lnet/message/wire.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"
#include "lnet/portal/match.h"
#include "lnet/portal/md.h"

#define PING_MAGIC UINT32_C(0x70696e67)
#define PING_UP	   UINT32_C(0x15aac0de)
#define PING_DOWN  UINT32_C(0xdeadface)
#define PING_FEATURES                                                          \
	(LNET_PING_NI_STATUS | LNET_PING_RTE_DISABLED | LNET_PING_MULTI_RAIL | \
	 LNET_PING_DISCOVERY)
#define LARGE_ENTRY_SIZE 24 /* status and an IPv6 NID */
#define SHORT_ENTRY_SIZE 12 /* the shortest one: status and a NID of 8 bytes */

/* ---- encoding ---- */

static uint32_t ni_status(const struct lnet_ni *ni)
{
	return ni_is_up(ni) ? PING_UP : PING_DOWN;
}

static void write_u32(struct writer *w, uint32_t v)
{
	write_bytes(w, &v, sizeof(v));
}

static void write_u64(struct writer *w, uint64_t v)
{
	write_bytes(w, &v, sizeof(v));
}

static uint32_t count_large(const struct lnet_config *c)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < c->nnis; i++)
		n += !lnet_nid_is_nid4(&c->ni[i]->lnd.nid);
	return n;
}

static uint32_t info_features(const struct lnet_config *c, uint32_t nlarge)
{
	uint32_t features = PING_FEATURES;

	if (nlarge)
		features |= LNET_PING_LARGE_ADDR;
	if (c->nnis > 1 && !lnet_nid_is_nid4(&c->ni[1]->lnd.nid))
		features |= LNET_PING_PRIMARY_LARGE;
	return features;
}

static void write_entries(struct writer *w, const struct lnet_config *c,
			  bool large)
{
	for (unsigned int i = 1; i < c->nnis; i++) {
		const struct lnet_ni *ni = c->ni[i];

		if (lnet_nid_is_nid4(&ni->lnd.nid) == large)
			continue;
		if (large) {
			write_u32(w, ni_status(ni));
			write_bytes(w, &ni->lnd.nid, sizeof(ni->lnd.nid));
		} else {
			write_u64(w, lnet_nid_to_nid4(&ni->lnd.nid));
			write_u32(w, ni_status(ni));
			write_u32(w, 0);
		}
	}
}

size_t ping_info_encode(const struct lnet *node, const struct lnet_config *c,
			void *buf, size_t size)
{
	uint32_t nlarge = count_large(c);
	uint32_t nsmall = c->nnis - nlarge;
	size_t need = PING_HEADER_SIZE + (size_t)nsmall * PING_ENTRY_SIZE +
		      (size_t)nlarge * LARGE_ENTRY_SIZE;
	struct writer w;

	if (need > size)
		return need;
	w = writer_of(buf, need);
	write_u32(&w, PING_MAGIC);
	write_u32(&w, info_features(c, nlarge));
	write_u32(&w, node->conf.pid);
	write_u32(&w, nsmall);
	/* The entry of 0@lo bears the sequence number as its status. */
	write_u64(&w, lnet_nid_to_nid4(&c->ni[0]->lnd.nid));
	write_u32(&w, c->sequence);
	write_u32(&w, nlarge ? (uint32_t)need : 0);
	write_entries(&w, c, false);
	write_entries(&w, c, true);
	BUG_ON(w.bad);
	return need;
}

/* ---- decoding ---- */

struct info_reader {
	struct reader r;
	bool swap;
	uint32_t nsmall;
	uint32_t msg_size;
	struct ulnet_ping_info *info;
	struct ulnet_ping_ni *ni;
	unsigned int max;
};

static int add_entry(struct info_reader *ir, struct ulnet_nid nid,
		     uint32_t status)
{
	struct ulnet_ping_info *info = ir->info;

	if (info->nnis == ir->max)
		return -E2BIG;
	ir->ni[info->nnis].nid = nid;
	ir->ni[info->nnis].up = status == PING_UP;
	info->nnis++;
	return 0;
}

static int read_small(struct info_reader *ir)
{
	for (uint32_t i = 1; i < ir->nsmall; i++) {
		uint64_t nid4 = read_u64(&ir->r, ir->swap);
		uint32_t status = read_u32(&ir->r, ir->swap);
		int rc;

		read_u32(&ir->r, ir->swap);
		rc = add_entry(ir, lnet_nid_from_nid4(nid4), status);
		if (rc)
			return rc;
	}
	return 0;
}

/* Entries that are no NID we know are skipped; what is left of one that does
 * not end in time is ignored. */
static int read_large(struct info_reader *ir, size_t bytes)
{
	while (bytes >= SHORT_ENTRY_SIZE) {
		uint32_t status = read_u32(&ir->r, ir->swap);
		const uint8_t *p = read_skip(&ir->r, 8);
		struct ulnet_nid nid = { 0 };
		size_t rest;
		int rc;

		if (!p)
			return -EPROTO;
		rest = (size_t)(p[0] + 3) / 4 * 4;
		if (bytes < SHORT_ENTRY_SIZE + rest)
			return 0;
		bytes -= SHORT_ENTRY_SIZE + rest;
		if (p[0] > 12) {
			read_skip(&ir->r, rest);
			continue;
		}
		memcpy(&nid, p, 8);
		read_bytes(&ir->r, nid.addr + 4, rest);
		if (!nid_is_sane(&nid))
			continue;
		rc = add_entry(ir, nid, status);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_header(struct info_reader *ir)
{
	uint32_t magic = read_u32(&ir->r, false);
	uint64_t lo;

	ir->swap = magic == __builtin_bswap32(PING_MAGIC);
	if (magic != PING_MAGIC && !ir->swap)
		return -EPROTO;
	ir->info->features = read_u32(&ir->r, ir->swap);
	ir->info->pid = read_u32(&ir->r, ir->swap);
	ir->nsmall = read_u32(&ir->r, ir->swap);
	lo = read_u64(&ir->r, ir->swap);
	ir->info->sequence = read_u32(&ir->r, ir->swap);
	ir->msg_size = read_u32(&ir->r, ir->swap) & ~UINT32_C(3);
	if (ir->r.bad || !(ir->info->features & LNET_PING_NI_STATUS) ||
	    ir->nsmall < 1 || lo != UINT64_C(9) << 48)
		return -EPROTO;
	return 0;
}

/* A large primary NID stands behind the small ones: moved to the front. */
static void primary_first(struct info_reader *ir, unsigned int nsmall)
{
	struct ulnet_ping_ni primary;

	if (!(ir->info->features & LNET_PING_PRIMARY_LARGE) ||
	    nsmall >= ir->info->nnis)
		return;
	primary = ir->ni[nsmall];
	memmove(ir->ni + 1, ir->ni, nsmall * sizeof(*ir->ni));
	ir->ni[0] = primary;
}

int ping_info_decode(const void *buf, size_t len, struct ulnet_ping_info *info,
		     struct ulnet_ping_ni *ni, unsigned int max, size_t *need_p)
{
	struct info_reader ir = {
		.r = reader_of(buf, len), .info = info, .ni = ni, .max = max
	};
	size_t small, need;
	int rc;

	*info = (struct ulnet_ping_info){ .ni = ni };
	rc = read_header(&ir);
	if (rc)
		return rc;
	if (ir.nsmall - 1 > max)
		return -E2BIG;
	small = PING_HEADER_SIZE + (size_t)ir.nsmall * PING_ENTRY_SIZE;
	need = small;
	if (info->features & LNET_PING_LARGE_ADDR && ir.msg_size > small)
		need = ir.msg_size;
	*need_p = need;
	if (need > small + (size_t)max * LARGE_ENTRY_SIZE)
		return -E2BIG;
	if (len < need)
		return -EMSGSIZE;
	rc = read_small(&ir);
	if (!rc)
		rc = read_large(&ir, need - small);
	if (rc)
		return rc;
	primary_first(&ir, ir.nsmall - 1);
	return 0;
}

unsigned int ping_info_room(size_t len, unsigned int max)
{
	return MAX(MIN(max, len / SHORT_ENTRY_SIZE), 1);
}

/* ---- targets: what every node answers ---- */

struct ping_target {
	struct lnet_cpt *cpt;
	struct lnet_me *ping; /* NULL: none posted */
	uint64_t push;	      /* cookie of its entry, which goes with a push */
	struct work work;     /* ping_nis_changed() */
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

int ping_refresh(struct lnet_cpt *cpt)
{
	size_t size = ping_info_encode(cpt->node, cpt->config, NULL, 0);
	struct target_buf *b = target_buf_new(cpt, size);
	struct lnet_me *old = discovery_cpt(cpt)->ping->ping;
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
			   &discovery_cpt(cpt)->ping->ping);
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
			       LARGE_ENTRY_SIZE;

	if (ev->type == LNET_EVENT_PUT && ev->status == 0) {
		push_look_at(cpt, ev, b);
		/* Too small for this one: the next shall fit. */
		if (ev->rlength > size)
			size = MAX(size, MIN(ev->rlength, max));
	}
	if (!ev->unlinked)
		return;
	discovery_cpt(cpt)->ping->push = 0;
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
	discovery_cpt(cpt)->ping->push = me->cookie;
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

	if (discovery_cpt(cpt)->ping->push)
		return 0;
	b = target_buf_new(cpt, PUSH_TARGET_SIZE);
	rc = b ? push_post(b) : -ENOMEM;
	if (rc)
		free(b);
	return rc;
}

static void nis_changed(struct work *w)
{
	struct ping_target *t = container_of(w, struct ping_target, work);

	atomic_store(&t->posted, false);
	if (t->cpt->closing)
		return;
	if (ping_refresh(t->cpt) || push_start(t->cpt))
		log_warn("ping", "no memory: pings are answered with an older "
				 "state, or pushes not");
}

static void ping_nis_changed(struct lnet *node)
{
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct ping_target *t = discovery_cpt(node->cpt[i])->ping;

		if (!atomic_exchange(&t->posted, true))
			loop_post(node->loops[i], &t->work);
	}
}

/* The state of an NI is part of what peers see. */
void lnet_ni_set_up(struct lnd_ni *lnd, bool up)
{
	struct lnet_ni *ni = ni_of(lnd);

	if (ni_set_up(ni, up))
		ping_nis_changed(ni->node);
}

int ping_start(struct lnet_cpt *cpt)
{
	struct ping_target *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->cpt = cpt;
	t->work.fn = nis_changed;
	discovery_cpt(cpt)->ping = t;
	rc = ping_refresh(cpt);
	if (!rc)
		rc = push_start(cpt);
	return rc;
}

void ping_stop(struct lnet_cpt *cpt)
{
	struct ping_target *t = discovery_cpt(cpt)->ping;
	struct lnet_me *push = id_lookup(&portal_cpt(cpt)->mes, t->push);

	if (t->ping)
		me_unlink(t->ping);
	/* A push that is being received has unlinked its target already. */
	if (push)
		me_unlink(push);
	t->ping = NULL;
	t->push = 0;
}

void ping_fini(struct lnet_cpt *cpt)
{
	free(discovery_cpt(cpt)->ping);
	discovery_cpt(cpt)->ping = NULL;
}

/* ---- lnet_ping() ---- */

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
