/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/portal/match.h"

#include <errno.h>

#include "lnet/portal/md.h"

/* ---- finding ---- */

enum portal_kind portal_kind(const struct lnet_cpt *cpt, unsigned int portal)
{
	return atomic_load_explicit(
		&portal_node(cpt->node)->portals[portal].kind,
		memory_order_relaxed);
}

static uint64_t bits_hash(const struct lnet_cpt *cpt, uint64_t bits)
{
	return hash_u64(bits, cpt->node->hash_seed);
}

uint64_t match_hash(struct lnet_cpt *cpt, const struct match_want *want)
{
	struct {
		uint64_t bits;
		struct ulnet_id id;
	} key;

	if (portal_kind(cpt, want->portal) != PORTAL_UNIQUE)
		return bits_hash(cpt, want->bits);
	key.bits = want->bits;
	key.id = want->id;
	return hash_bytes(&key, sizeof(key), cpt->node->hash_seed);
}

static bool id_matches(const struct ulnet_id *is, const struct match_want *want)
{
	if (is->pid != LNET_PID_ANY && is->pid != want->id.pid)
		return false;
	return lnet_nid_is_any(&is->nid) ||
	       directory_same(want->peers, &is->nid, &want->id.nid);
}

static bool bits_match(const struct me_args *is, const struct match_want *want)
{
	return ((is->match_bits ^ want->bits) & ~is->ignore_bits) == 0;
}

bool me_is_for(const struct me_args *is, const struct match_want *want)
{
	return bits_match(is, want) && id_matches(&is->match_id, want);
}

bool me_args_alike(const struct me_args *a, const struct me_args *b)
{
	return a->match_bits == b->match_bits &&
	       a->ignore_bits == b->ignore_bits &&
	       a->match_id.pid == b->match_id.pid &&
	       lnet_nid_eq(&a->match_id.nid, &b->match_id.nid);
}

/* Do the bits match, and does the entry have an MD that can take another
 * operation? */
static inline bool me_takes(const struct lnet_me *me,
			    const struct match_want *want)
{
	const struct lnet_md *md = me->md;

	return bits_match(&me->is, want) && md && md->options & want->op &&
	       !md_exhausted(md);
}

static inline bool me_matches(const struct lnet_me *me,
			      const struct match_want *want)
{
	return me_takes(me, want) && id_matches(&me->is.match_id, want);
}

/* Computes where in the MD the data of the message belongs, and how much of it.
 * Returns 0, or -EMSGSIZE if it does not fit. */
static int md_fit(const struct lnet_md *md, const struct match_want *want,
		  struct match_found *f)
{
	uint32_t room;

	f->offset = md->options & LNET_MD_MANAGE_REMOTE ? want->roffset
							: md->offset;
	room = f->offset < md->length ? md->length - f->offset : 0;
	if (md->options & LNET_MD_MAX_SIZE)
		room = MIN(room, md->max_size);
	/* A GET may ask for more than a message can carry. */
	room = MIN(room, LNET_MTU);
	f->mlength = want->rlength;
	if (want->rlength <= room)
		return 0;
	if (!(md->options & LNET_MD_TRUNCATE))
		return -EMSGSIZE;
	f->mlength = room;
	return 0;
}

static int me_take(struct lnet_me *me, const struct match_want *want,
		   struct match_found *f)
{
	struct lnet_md *md = me->md;
	int rc = md_fit(md, want, f);

	if (rc)
		return rc;
	if (md->eq && !eq_reserve(&portal_node(md->cpt->node)->eqs, md->eq, 1))
		return -ENOBUFS;
	f->md = md;
	md_ref(md);
	md_take(md, f->mlength, f->offset);
	return 0;
}

static in_line struct lnet_me *find_masked(struct lnet_portal *p,
					   const struct match_want *want)
{
	struct lnet_me *me;

	list_for_each_entry (me, &p->masked, link)
		if (me_matches(me, want))
			return me;
	return NULL;
}

/* Does find_exact() find .recent, without a look into the table? Whoever is
 * answered again and again at the same entry, as an import of RPC is at the
 * buffer that it keeps, finds that one. */
static in_line bool recent_matches(const struct lnet_portal *p,
				   const struct match_want *want)
{
	const struct lnet_me *me = p->recent;

	return me && me->is.match_id.pid == want->id.pid &&
	       lnet_nid_eq(&me->is.match_id.nid, &want->id.nid) &&
	       me_takes(me, want);
}

static struct lnet_me *find_exact(struct lnet_cpt *cpt, struct lnet_portal *p,
				  const struct match_want *want)
{
	struct hash_node *first = hash_first(&p->exact, match_hash(cpt, want));

	for (struct hash_node *n = first; n; n = hash_next(n)) {
		struct lnet_me *me = container_of(n, struct lnet_me, hash);

		if (!me_matches(me, want))
			continue;
		if (n == first)
			p->recent = me;
		return me;
	}
	return NULL;
}

bool match_has_alias(const struct lnet_cpt *cpt, const struct match_want *want)
{
	struct directory_entry e;

	return portal_kind(cpt, want->portal) == PORTAL_UNIQUE &&
	       directory_find(want->peers, &want->id.nid, &e);
}

/* Finds an entry that matches, and names another NID of the initiator. */
static struct lnet_me *find_alias(struct lnet_cpt *cpt, struct lnet_portal *p,
				  const struct match_want *want)
{
	struct hash_node *n;

	if (likely(!match_has_alias(cpt, want)))
		return NULL;
	for (n = hash_first(&p->by_bits, bits_hash(cpt, want->bits)); n;
	     n = hash_next(n)) {
		struct lnet_me *me = container_of(n, struct lnet_me, by_bits);

		if (me_matches(me, want))
			return me;
	}
	return NULL;
}

static in_line struct lnet_me *find_me(struct lnet_cpt *cpt,
				       const struct match_want *want)
{
	struct lnet_portal *p = &portal_cpt(cpt)->portals[want->portal];
	struct lnet_me *me;

	if (!p->mes)
		return NULL;
	me = find_masked(p, want);
	if (!me && recent_matches(p, want))
		return p->recent;
	if (!me)
		me = find_exact(cpt, p, want);
	return me ? me : find_alias(cpt, p, want);
}

int match_find(struct lnet_cpt *cpt, const struct match_want *want,
	       struct match_found *found)
{
	struct lnet_me *me = find_me(cpt, want);

	return me ? me_take(me, want, found) : -ENOENT;
}

bool match_exists(struct lnet_cpt *cpt, const struct match_want *want)
{
	return find_me(cpt, want) != NULL;
}

/* ---- entries ---- */

/* The first entry decides the kind of a portal, on all CPTs and for ever.
 * Returns 0, or -EPERM if another kind has been decided. */
static int portal_decide(struct portal_shared *ps, enum portal_kind kind)
{
	uint8_t was = PORTAL_UNDECIDED;

	if (atomic_compare_exchange_strong(&ps->kind, &was, (uint8_t)kind))
		return 0;
	return was == kind ? 0 : -EPERM;
}

static void portal_count(struct lnet_cpt *cpt, unsigned int portal, int n)
{
	struct lnet_portal *p = &portal_cpt(cpt)->portals[portal];
	_Atomic uint32_t *cpts = &portal_node(cpt->node)->portals[portal].cpts;

	p->mes += (uint32_t)n;
	if (p->mes == 0)
		atomic_fetch_and(cpts, ~(UINT32_C(1) << cpt->index));
	else if (n > 0 && p->mes == 1)
		atomic_fetch_or(cpts, UINT32_C(1) << cpt->index);
}

static int table_insert(struct hash *h, struct hash_node *n, uint64_t hash,
			enum ulnet_ins_pos pos)
{
	return pos == LNET_INS_BEFORE ? hash_add(h, n, hash)
				      : hash_add_tail(h, n, hash);
}

static bool me_is_unique(const struct lnet_me *me)
{
	return portal_kind(me->cpt, me->is.portal) == PORTAL_UNIQUE;
}

static int me_insert(struct lnet_me *me, enum ulnet_ins_pos pos)
{
	struct lnet_portal *p = &portal_cpt(me->cpt)->portals[me->is.portal];
	const struct match_want want = { .id = me->is.match_id,
					 .bits = me->is.match_bits,
					 .portal = me->is.portal };
	int rc;

	if (me->is.ignore_bits) {
		if (pos == LNET_INS_BEFORE)
			list_add(&p->masked, &me->link);
		else
			list_add_tail(&p->masked, &me->link);
		return 0;
	}
	rc = table_insert(&p->exact, &me->hash, match_hash(me->cpt, &want),
			  pos);
	if (pos == LNET_INS_BEFORE)
		p->recent = NULL;
	if (rc || !me_is_unique(me))
		return rc;
	rc = table_insert(&p->by_bits, &me->by_bits,
			  bits_hash(me->cpt, me->is.match_bits), pos);
	if (rc)
		hash_del(&p->exact, &me->hash);
	return rc;
}

int me_attach(struct lnet_cpt *cpt, const struct me_args *args,
	      enum ulnet_ins_pos pos, struct lnet_me **me_p)
{
	struct portal_cpt *pc = portal_cpt(cpt);
	bool unique = args->ignore_bits == 0 &&
		      !lnet_nid_is_any(&args->match_id.nid) &&
		      args->match_id.pid != LNET_PID_ANY;
	struct lnet_me *me;
	int rc;

	rc = portal_decide(&portal_node(cpt->node)->portals[args->portal],
			   unique ? PORTAL_UNIQUE : PORTAL_WILDCARD);
	if (rc)
		return rc;
	me = pool_get(&pc->me_pool);
	if (!me)
		return -ENOMEM;
	me->cpt = cpt;
	me->is = *args;
	me->md = NULL;
	list_init(&me->link);
	rc = id_alloc(&pc->mes, me, &me->cookie);
	if (rc)
		goto err_put;
	rc = me_insert(me, pos);
	if (rc)
		goto err_free_id;
	portal_count(cpt, me->is.portal, 1);
	*me_p = me;
	return 0;

err_free_id:
	id_free(&pc->mes, me->cookie);
err_put:
	pool_put(&pc->me_pool, me);
	return rc;
}

void me_unlink(struct lnet_me *me)
{
	struct lnet_cpt *cpt = me->cpt;
	struct portal_cpt *pc = portal_cpt(cpt);
	struct lnet_portal *p = &pc->portals[me->is.portal];
	struct lnet_md *md = me->md;

	if (p->recent == me)
		p->recent = NULL;
	if (me->is.ignore_bits)
		list_del(&me->link);
	else
		hash_del(&p->exact, &me->hash);
	if (!me->is.ignore_bits && me_is_unique(me))
		hash_del(&p->by_bits, &me->by_bits);
	portal_count(cpt, me->is.portal, -1);
	id_free(&pc->mes, me->cookie);
	pool_put(&pc->me_pool, me);
	if (md) {
		md->me = NULL;
		md_unlink(md, true);
	}
}

/* If messages wait for buffers on the portal, tells the room above that there
 * is a new one. */
static int me_tell(const struct lnet_me *me)
{
	const struct lnet *node = me->cpt->node;

	if (likely(!atomic_load(
		    &portal_node(node)->portals[me->is.portal].waiting)))
		return 0;
	return portal_node(node)->portal_users->buffer_came(me);
}

int me_attach_md(struct lnet_me *me, const struct ulnet_md *umd,
		 enum ulnet_unlink unlink, struct lnet_md **md_p)
{
	struct lnet_md *md;
	int rc;

	if (me->md)
		return -EBUSY;
	rc = md_new(me->cpt, umd, unlink, true, &md);
	if (rc)
		return rc;
	md->me = me;
	me->md = md;
	rc = me_tell(me);
	if (rc) {
		me->md = NULL;
		md_free_unused(md);
		return rc;
	}
	*md_p = md;
	return 0;
}

/* ---- the API ---- */

struct me_attach_call {
	struct lnet_cpt *cpt;
	struct me_args args;
	enum ulnet_ins_pos pos;
	struct ulnet_me_handle *me_p;
};

static int match_attach(void *arg)
{
	struct me_attach_call *c = arg;
	struct lnet_me *me;
	int rc;

	if (c->cpt->closing)
		return -ESHUTDOWN;
	rc = me_attach(c->cpt, &c->args, c->pos, &me);
	if (rc)
		return rc;
	*c->me_p = (struct ulnet_me_handle){ c->cpt->node, me->cookie };
	return 0;
}

int LNetMEAttach(struct lnet *node, unsigned int portal,
		 struct ulnet_id match_id, uint64_t match_bits,
		 uint64_t ignore_bits, enum ulnet_unlink unlink,
		 enum ulnet_ins_pos pos, struct ulnet_me_handle *me_p)
{
	struct me_attach_call c = { .args = { .portal = portal,
					      .match_id = match_id,
					      .match_bits = match_bits,
					      .ignore_bits = ignore_bits,
					      .unlink = unlink == LNET_UNLINK },
				    .pos = pos,
				    .me_p = me_p };

	if (portal == 0 || portal >= LNET_PORTALS)
		return -EINVAL;
	if (pos > LNET_INS_LOCAL || unlink > LNET_UNLINK)
		return -EINVAL;
	if (pos == LNET_INS_LOCAL || lnet_nid_is_any(&match_id.nid))
		c.cpt = node_home(node);
	else
		c.cpt = node->cpt[node_cpt_of(node, &match_id.nid)];
	return loop_call(c.cpt->loop, match_attach, &c);
}

struct me_call {
	struct lnet_cpt *cpt;
	uint64_t cookie;
	const struct ulnet_md *umd;
	enum ulnet_unlink unlink;
	struct ulnet_md_handle *md_p;
};

/* The entry that a user names; NULL: there is none, or it is LNet's own, which
 * are those of portal 0. */
static struct lnet_me *me_of_user(const struct me_call *c)
{
	struct lnet_me *me = id_lookup(&portal_cpt(c->cpt)->mes, c->cookie);

	return me && me->is.portal ? me : NULL;
}

static int attach_md(void *arg)
{
	struct me_call *c = arg;
	struct lnet_me *me = me_of_user(c);
	struct lnet_md *md;
	int rc;

	if (!me)
		return -ENOENT;
	rc = me_attach_md(me, c->umd, c->unlink, &md);
	if (rc) {
		/* As in kernel LNet, the entry is freed if its MD is refused.
		 */
		if (rc != -EBUSY)
			me_unlink(me);
		return rc;
	}
	*c->md_p = md_handle(md);
	return 0;
}

int LNetMDAttach(struct ulnet_me_handle h, const struct ulnet_md *umd,
		 enum ulnet_unlink unlink, struct ulnet_md_handle *md_p)
{
	struct me_call c = {
		.cookie = h.cookie, .umd = umd, .unlink = unlink, .md_p = md_p
	};

	c.cpt = node_cpt_of_id(h.node, h.cookie);
	if (!c.cpt)
		return -ENOENT;
	return loop_call(c.cpt->loop, attach_md, &c);
}

static int unlink_me(void *arg)
{
	struct lnet_me *me = me_of_user(arg);

	if (!me)
		return -ENOENT;
	me_unlink(me);
	return 0;
}

int LNetMEUnlink(struct ulnet_me_handle h)
{
	struct me_call c = { .cookie = h.cookie };

	c.cpt = node_cpt_of_id(h.node, h.cookie);
	if (!c.cpt)
		return -ENOENT;
	return loop_call(c.cpt->loop, unlink_me, &c);
}
