/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/hold.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/share.h"
#include "lnet/message/msgs.h"
#include "lnet/message/request.h"
#include "lnet/net/net.h"
#include "lnet/portal/md.h"

#define HOLD_LOG_PAUSE (60 * NSEC_PER_SEC)
/* Messages whose connections stand still are looked at again after this
 * time. */
#define HOLD_STANDING (200 * NSEC_PER_MSEC)

/* What a buffer that was attached looks for, and where. */
struct lnet_query {
	struct work work;
	struct lnet_cpt *home; /* the buffer's */
	struct lnet_cpt *at;   /* where it is, or is posted to */
	struct list link;      /* home's hold.queries, until it has looked
				* there */
	struct me_args is;
	uint32_t todo; /* CPTs to be visited: bits */
};

void holds_init(struct lnet_cpt *cpt)
{
	pool_init(&msg_cpt(cpt)->query_pool, sizeof(struct lnet_query), 0);
	for (unsigned int i = 0; i < LNET_PORTALS; i++) {
		struct hold *h = &msg_cpt(cpt)->holds[i];

		list_init(&h->waiting);
		hash_init(&h->waiting_by_bits);
		list_init(&h->queries);
	}
}

void holds_fini(struct lnet_cpt *cpt)
{
	cpt_pool_fini(cpt, &msg_cpt(cpt)->query_pool, "wishes");
	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		hash_fini(&msg_cpt(cpt)->holds[i].waiting_by_bits);
}

static struct hold *hold_of(const struct msg_in *msg)
{
	return &msg_cpt(msg->out.home)->holds[msg->out.hdr.portal];
}

static struct portal_shared *portal_of(const struct msg_in *msg)
{
	return &portal_node(msg->out.home->node)->portals[msg->out.hdr.portal];
}

static uint32_t cpt_bit(const struct lnet_cpt *cpt)
{
	return UINT32_C(1) << cpt->index;
}

/* ---- shares ---- */

static bool hold_has_share(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	const struct ulnet_conf *conf = &cpt->node->conf;
	const struct lnet_holdings *has = in_quota(msg);

	return share_allows(has->held, msg_cpt(cpt)->has_all.held,
			    conf->lazy_max, 1) &&
	       share_allows(has->held_bytes, msg_cpt(cpt)->has_all.held_bytes,
			    conf->lazy_bytes_max, msg->out.hdr.payload_length);
}

/* Others have all the room for payloads: may the connection of @msg stand still
 * instead? Not if an answer of the sender could stand behind @msg, and not
 * beyond the sender's share of messages that stand. */
static bool hold_may_stand(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	const struct lnet_peer_ni *sender = msg->sender;

	return sender && !sender->has.held && msg_cpt(cpt)->has_all.held &&
	       sender->peer->asked_until <= loop_now(cpt->loop) &&
	       share_allows(sender->has.standing,
			    msg_cpt(cpt)->has_all.standing,
			    cpt->node->conf.messages_max / 4, 1);
}

static bool hold_stands(const struct msg_in *msg)
{
	return msg->fsm.state == IN_HELD && !msg->aside;
}

static void hold_count_standing(const struct msg_in *msg, int n)
{
	in_quota(msg)->standing += (uint32_t)n;
	msg_cpt(msg->out.home)->has_all.standing += (uint32_t)n;
}

/* Says once in a while who has reached its share. */
static void hold_tell_full(const struct msg_in *msg, const char *what)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct lnet_holdings *has = in_quota(msg);
	uint64_t now = loop_now(cpt->loop);
	char nid[LNET_NIDSTR_SIZE];

	if (now < has->held_quiet_until)
		return;
	has->held_quiet_until = now + HOLD_LOG_PAUSE;
	log_warn_limited(&cpt->limits_log, now, "portal",
			 "%u: messages of %s %s: no buffer is posted, "
			 "and its share of what may be held is used up (%u "
			 "messages, %" PRIu64 " bytes)",
			 msg->out.hdr.portal,
			 lnet_nid_format(&msg->from, nid, sizeof(nid)), what,
			 has->held, has->held_bytes);
}

static void hold_count(const struct msg_in *msg, int n)
{
	struct lnet_holdings *all = &msg_cpt(msg->out.home)->has_all;
	int64_t bytes = (int64_t)n * msg->out.hdr.payload_length;

	in_quota(msg)->held += (uint32_t)n;
	in_quota(msg)->held_bytes += (uint64_t)bytes;
	all->held += (uint32_t)n;
	all->held_bytes += (uint64_t)bytes;
}

/* 0, or -ENOMEM. Handlers may run. */
static int hold_put_aside(struct msg_in *msg)
{
	if (in_put_aside(msg))
		return -ENOMEM;
	msg->aside = true;
	hold_count(msg, 1);
	return 0;
}

bool hold_aside(struct msg_in *msg)
{
	return hold_has_share(msg) && !hold_put_aside(msg);
}

void hold_not_aside(struct msg_in *msg)
{
	if (msg->aside)
		hold_count(msg, -1);
	msg->aside = false;
}

/* ---- those who wait ---- */

/* The hash of match bits; on unique portals of the initiator's NID as well,
 * like that of entries, so that an exact entry finds its messages and no
 * others. */
static uint64_t hold_hash(const struct msg_in *msg)
{
	struct match_want want;

	request_wants(msg, &want);
	return match_hash(msg->out.home, &want);
}

/* Messages may come before the first entry decides of what kind the portal is,
 * once and for all. */
static void hold_hash_again(struct lnet_cpt *cpt, unsigned int portal)
{
	struct hold *h = &msg_cpt(cpt)->holds[portal];
	enum portal_kind kind = portal_kind(cpt, portal);
	struct msg_in *msg;

	if (likely(h->waiting_kind == kind))
		return;
	h->waiting_kind = kind;
	list_for_each_entry (msg, &h->waiting, out.link) {
		hash_del(&h->waiting_by_bits, &msg->by_bits);
		/* There is a table, since the message was in it just now. */
		BUG_ON(hash_add_tail(&h->waiting_by_bits, &msg->by_bits,
				     hold_hash(msg)));
	}
}

static int hold_enter(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct hold *h = hold_of(msg);
	int rc;

	hold_hash_again(cpt, msg->out.hdr.portal);
	rc = hash_add_tail(&h->waiting_by_bits, &msg->by_bits, hold_hash(msg));
	if (rc)
		return rc;
	msg->arrival = ++msg_cpt(cpt)->arrivals;
	list_add_tail(&h->waiting, &msg->out.link);
	if (h->waiting_by_bits.count == 1)
		atomic_fetch_or(&portal_of(msg)->waiting, cpt_bit(cpt));
	return 0;
}

static void hold_leave(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct hold *h = hold_of(msg);

	if (hold_stands(msg))
		hold_count_standing(msg, -1);
	list_del(&msg->out.link);
	hash_del(&h->waiting_by_bits, &msg->by_bits);
	if (h->waiting_by_bits.count == 0)
		atomic_fetch_and(&portal_of(msg)->waiting, ~cpt_bit(cpt));
	hold_not_aside(msg);
	loop_timer_cancel(cpt->loop, &msg->out.timer);
}

static void hold_leave_and_drop(struct msg_in *msg, enum lnet_stat why)
{
	hold_leave(msg);
	in_drop(msg, why);
}

/* @msg is not held any more, but waits as before. */
static void hold_offer(struct msg_in *msg)
{
	if (hold_stands(msg))
		hold_count_standing(msg, -1);
	in_move(msg, IN_OFFERED);
	msg->came = 0;
}

/* STAT_COUNT, or why a message that nothing matches is dropped. GETs are never
 * held. */
static enum lnet_stat hold_refuses(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;

	if (cpt->closing || msg->out.ni->cpt[cpt->index].stopped)
		return STAT_drop_closing;
	if (msg->out.hdr.type != LNET_MSG_PUT ||
	    !atomic_load(&portal_of(msg)->lazy))
		return STAT_drop_no_match;
	/* No entry for these bits will ever be attached to portal 0. */
	if (msg->out.hdr.portal == PING_PORTAL &&
	    msg->out.hdr.match_bits != PING_MATCH_BITS)
		return STAT_drop_no_match;
	if (!msg->aside && !hold_has_share(msg))
		return STAT_drop_lazy_full;
	return STAT_COUNT;
}

static void hold_enter_held(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	uint64_t until;

	in_move(msg, IN_HELD);
	/* A message that is held again keeps its deadline. */
	if (msg->out.lnd.deadline == 0)
		msg->out.lnd.deadline = cpt_deadline(cpt);
	until = msg->out.lnd.deadline;
	if (hold_stands(msg)) {
		hold_count_standing(msg, 1);
		until = MIN(until, loop_now(cpt->loop) + HOLD_STANDING);
	}
	loop_timer_arm(cpt->loop, &msg->out.timer, until);
}

/* No CPT has a buffer: held if the portal is lazy. */
static void hold_or_drop(struct msg_in *msg)
{
	enum lnet_stat why = hold_refuses(msg);

	if (why == STAT_drop_lazy_full && hold_may_stand(msg)) {
		hold_tell_full(msg, "wait at its connection");
		if (msg->out.lnd.deadline == 0) /* for the first time */
			cpt_stat(msg->out.home, STAT_stood);
		hold_enter_held(msg);
		return;
	}
	if (why == STAT_COUNT && !msg->aside) {
		if (hold_put_aside(msg))
			why = STAT_drop_no_memory;
		else
			why = hold_refuses(msg); /* handlers may have run */
	}
	if (why == STAT_drop_lazy_full)
		hold_tell_full(msg, "are dropped");
	if (why == STAT_COUNT)
		hold_enter_held(msg);
	else
		hold_leave_and_drop(msg, why);
}

void hold_late(struct msg_in *msg)
{
	if (loop_now(msg->out.home->loop) >= msg->out.lnd.deadline) {
		hold_leave_and_drop(msg, STAT_drop_lazy_late);
		return;
	}
	/* Its connection stands: by now there may be room for the payload, or
	 * an answer behind it. */
	hold_offer(msg);
	hold_or_drop(msg);
}

/* ---- offers: a message asks CPTs for a buffer ---- */

static void query_look(struct lnet_cpt *cpt, struct lnet_query *query);
static void query_end(struct lnet_query *query);

static void hold_ask(struct msg_in *msg);

/* On the message's home: a CPT was asked, and may have given it a buffer. */
static void hold_answered(struct work *w)
{
	struct msg_in *msg = in_of_work(w);
	struct lnet_cpt *home = msg->out.home;
	struct lnet_query *query = msg->query;
	int rc = msg->out.status;

	msg->query = NULL;
	if (!rc) {
		hold_leave(msg);
		request_deliver(msg);
	} else if (rc != -ENOENT) {
		hold_leave_and_drop(msg, request_no_match(rc));
	} else if (msg->came) {
		msg->asks = msg->came;
		msg->came = 0;
		hold_ask(msg);
	} else {
		hold_or_drop(msg);
	}
	if (!query)
		return;
	/* The buffer that fetched the message is full, or gone. */
	if (rc == -ENOENT)
		query_end(query);
	else
		query_look(home, query);
}

/* On the CPT that is asked. */
static void hold_asked(struct work *w)
{
	struct msg_in *msg = in_of_work(w);

	msg->out.status = request_match(msg);
	msg->asks &= ~cpt_bit(msg->out.cpt);
	if (msg->out.status == -ENOENT && msg->asks)
		hold_ask(msg);
	else
		in_pass(msg, msg->out.home, hold_answered);
}

/* Asks the next CPT of msg->asks. */
static void hold_ask(struct msg_in *msg)
{
	struct lnet *node = msg->out.home->node;

	in_pass(msg, node->cpt[__builtin_ctz(msg->asks)], hold_asked);
}

static void hold_ask_first(struct work *w)
{
	hold_ask(in_of_work(w));
}

/* @query, whose buffer is on another CPT, takes @msg, which is held. */
static void hold_fetched(struct msg_in *msg, struct lnet_query *query)
{
	loop_timer_cancel(msg->out.home->loop, &msg->out.timer);
	hold_offer(msg);
	msg->asks = cpt_bit(query->home);
	msg->query = query;
	hold_ask(msg);
}

/* The peer that sent @msg has other NIDs now: there may be entries for it. */
static void hold_ask_all(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	uint32_t cpts = atomic_load(&portal_of(msg)->cpts);

	if (msg->fsm.state == IN_OFFERED)
		msg->came |= cpts;
	if (msg->fsm.state != IN_HELD || !cpts)
		return;
	loop_timer_cancel(cpt->loop, &msg->out.timer);
	hold_offer(msg);
	msg->asks = cpts;
	msg->query = NULL;
	/* Not in this call, in which no handler may run. */
	msg->out.work.fn = hold_ask_first;
	loop_defer(cpt->loop, &msg->out.work);
}

void hold_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct msg_in *msg;

	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		list_for_each_entry (msg, &msg_cpt(cpt)->holds[i].waiting,
				     out.link)
			if (directory_same(&cpt->node->directory,
					   &msg->out.hdr.src_nid, nid))
				hold_ask_all(msg);
}

void hold_offer_late(struct msg_in *msg)
{
	if (hold_has_share(msg))
		(void)hold_put_aside(msg); /* without memory it stands */
}

/* There is no buffer on the message's own CPT. The LND need not wait for other
 * CPTs, or not for long, while the sender has room for one more message. */
static void hold_wait(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;

	msg->aside = false;
	msg->query = NULL;
	msg->came = 0;
	in_move(msg, IN_OFFERED);
	if (hold_enter(msg)) {
		in_drop(msg, STAT_drop_no_memory);
		return;
	}
	/* Not to be read before other CPTs can see that the message waits. */
	msg->asks = atomic_load(&portal_of(msg)->cpts) & ~cpt_bit(cpt);
	if (!msg->asks) {
		hold_or_drop(msg);
		return;
	}
	if (!in_stands(msg) && hold_has_share(msg) && hold_put_aside(msg)) {
		hold_leave_and_drop(msg, STAT_drop_no_memory);
		return;
	}
	hold_ask(msg);
}

static void queries_look(struct lnet_cpt *cpt, unsigned int portal);

void hold_request(struct msg_in *msg)
{
	int rc;

	/* What came earlier is served first. */
	if (unlikely(!list_empty(&hold_of(msg)->queries)))
		queries_look(msg->out.home, msg->out.hdr.portal);
	rc = request_match(msg);
	if (likely(!rc))
		request_deliver(msg);
	else if (rc == -ENOENT)
		hold_wait(msg);
	else
		in_drop(msg, request_no_match(rc));
}

/* ---- queries: a buffer asks CPTs for messages ---- */

enum query_fit {
	FIT_NOT,
	FIT_AWAY, /* but the message is asking other CPTs: it will ask here,
		   * too */
	FIT
};

static enum query_fit query_fits(struct lnet_query *query, struct msg_in *msg)
{
	struct match_want want;

	cpt_stat(msg->out.home, STAT_hold_tries);
	request_wants(msg, &want);
	if (!me_is_for(&query->is, &want))
		return FIT_NOT;
	if (msg->fsm.state == IN_HELD)
		return FIT;
	msg->came |= cpt_bit(query->home);
	return FIT_AWAY;
}

/* Looks among the messages with the hash of an exact entry. */
static struct msg_in *query_seek_hash(struct hold *h, struct lnet_query *query,
				      uint64_t hash)
{
	struct hash_node *n;

	for (n = hash_first(&h->waiting_by_bits, hash); n; n = hash_next(n)) {
		struct msg_in *msg = container_of(n, struct msg_in, by_bits);

		if (query_fits(query, msg) == FIT)
			return msg;
	}
	return NULL;
}

static struct msg_in *query_seek_exact(struct lnet_cpt *cpt,
				       struct lnet_query *query)
{
	struct hold *h = &msg_cpt(cpt)->holds[query->is.portal];
	const struct match_want want = { .peers = &cpt->node->directory,
					 .id = query->is.match_id,
					 .bits = query->is.match_bits,
					 .portal = query->is.portal };
	struct msg_in *msg;

	hold_hash_again(cpt, query->is.portal);
	msg = query_seek_hash(h, query, match_hash(cpt, &want));
	if (likely(msg || !match_has_alias(cpt, &want)))
		return msg;
	/* Messages from another NID of the peer that the entry names. */
	list_for_each_entry (msg, &h->waiting, out.link)
		if (query_fits(query, msg) == FIT)
			return msg;
	return NULL;
}

/* The first that came after @arrival, or the head of the list. */
static struct list *waiting_after(struct hold *h, uint64_t arrival)
{
	struct list *l = &h->waiting;

	while (l->prev != &h->waiting &&
	       container_of(l->prev, struct msg_in, out.link)->arrival >
		       arrival)
		l = l->prev;
	return l;
}

/* Entries that ignore bits find their messages in the list. Messages that an
 * entry like this one has passed over before need no second look: the buffers
 * of a portal are mostly alike, and strangers must not make every way along the
 * list long. */
static struct msg_in *query_seek_masked(struct lnet_cpt *cpt,
					struct lnet_query *query)
{
	struct hold *h = &msg_cpt(cpt)->holds[query->is.portal];
	bool passing = true;
	struct list *l;

	if (!me_args_alike(&h->passed_by, &query->is)) {
		h->passed_by = query->is;
		h->passed = 0;
	}
	for (l = waiting_after(h, h->passed); l != &h->waiting; l = l->next) {
		struct msg_in *msg = container_of(l, struct msg_in, out.link);
		enum query_fit fit = query_fits(query, msg);

		if (fit == FIT)
			return msg;
		/* A message that is away may come back, and fit the next
		 * buffer. */
		passing = passing && fit == FIT_NOT;
		if (passing)
			h->passed = msg->arrival;
	}
	return NULL;
}

static struct msg_in *query_seek(struct lnet_cpt *cpt, struct lnet_query *query)
{
	return query->is.ignore_bits ? query_seek_masked(cpt, query)
				     : query_seek_exact(cpt, query);
}

/* At the buffer's own CPT. False: the buffer takes no more. */
static bool query_serve(struct lnet_cpt *cpt, struct lnet_query *query)
{
	struct msg_in *msg;

	while ((msg = query_seek(cpt, query))) {
		int rc = request_match(msg);

		if (rc == -ENOENT)
			return false;
		if (rc) {
			hold_leave_and_drop(msg, request_no_match(rc));
			continue;
		}
		hold_leave(msg);
		request_deliver(msg);
	}
	return true;
}

static void queries_look(struct lnet_cpt *cpt, unsigned int portal)
{
	struct lnet_query *query;

	/* Handlers may add queries. Only query_arrived() takes a query off the
	 * list. */
	list_for_each_entry (query, &msg_cpt(cpt)->holds[portal].queries, link)
		query_serve(cpt, query);
}

static void query_ended(struct work *w)
{
	struct lnet_query *query = container_of(w, struct lnet_query, work);
	struct lnet_cpt *home = query->home;

	pool_put(&msg_cpt(home)->query_pool, query);
	cpt_ended_one(home);
}

static void query_post(struct lnet_query *query, struct lnet_cpt *to,
		       work_fn fn)
{
	query->at = to;
	query->work.fn = fn;
	loop_post(to->loop, &query->work);
}

static void query_end(struct lnet_query *query)
{
	query_post(query, query->home, query_ended);
}

static void query_arrived(struct work *w)
{
	struct lnet_query *query = container_of(w, struct lnet_query, work);

	list_del(&query->link);
	query_look(query->at, query);
}

/* Sends the query to the next CPT where messages wait. */
static void query_go_on(struct lnet_query *query)
{
	struct lnet_cpt *next;

	if (!query->todo) {
		query_end(query);
		return;
	}
	next = query->home->node->cpt[__builtin_ctz(query->todo)];
	query->todo &= ~cpt_bit(next);
	query_post(query, next, query_arrived);
}

/* Each message that is fetched brings the query back here (hold_answered). */
static void query_look(struct lnet_cpt *cpt, struct lnet_query *query)
{
	struct msg_in *msg;

	if (cpt == query->home) {
		if (query_serve(cpt, query))
			query_go_on(query);
		else
			query_end(query);
		return;
	}
	msg = query_seek(cpt, query);
	if (msg)
		hold_fetched(msg, query);
	else
		query_go_on(query);
}

int hold_buffer_came(const struct lnet_me *me)
{
	struct lnet_cpt *cpt = me->cpt;
	uint32_t waiting = atomic_load(
		&portal_node(cpt->node)->portals[me->is.portal].waiting);
	struct lnet_query *query;

	/* Only PUTs are held. */
	if (!waiting || !(me->md->options & LNET_MD_OP_PUT))
		return 0;
	query = pool_get(&msg_cpt(cpt)->query_pool);
	if (!query)
		return -ENOMEM;
	query->home = cpt;
	query->is = me->is;
	query->todo = waiting & ~cpt_bit(cpt);
	list_init(&query->link);
	if (waiting & cpt_bit(cpt)) {
		list_add_tail(&msg_cpt(cpt)->holds[me->is.portal].queries,
			      &query->link);
		query_post(query, cpt, query_arrived);
	} else {
		query_go_on(query);
	}
	return 0;
}

/* ---- the end of waiting ---- */

static void hold_drop_list(struct list *waiting, const struct lnet_ni *ni,
			   enum lnet_stat why)
{
	struct msg_in *msg, *next;

	/* Messages that are being offered see it when they come back. */
	list_for_each_entry_safe (msg, next, waiting, out.link)
		if (msg->fsm.state == IN_HELD && (!ni || msg->out.ni == ni))
			hold_leave_and_drop(msg, why);
}

void hold_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		hold_drop_list(&msg_cpt(cpt)->holds[i].waiting, ni,
			       STAT_drop_closing);
}

/* ---- the API ---- */

int LNetSetLazyPortal(struct lnet *node, unsigned int portal)
{
	if (portal == 0 || portal >= LNET_PORTALS)
		return -EINVAL;
	atomic_store(&portal_node(node)->portals[portal].lazy, true);
	return 0;
}

static int drop_held(struct lnet_cpt *cpt, void *portal)
{
	hold_drop_list(&msg_cpt(cpt)->holds[*(unsigned int *)portal].waiting,
		       NULL, STAT_drop_no_match);
	return 0;
}

int LNetClearLazyPortal(struct lnet *node, unsigned int portal)
{
	if (portal == 0 || portal >= LNET_PORTALS)
		return -EINVAL;
	if (!node_may_wait(node))
		return -EXDEV;
	atomic_store(&portal_node(node)->portals[portal].lazy, false);
	return node_each_cpt(node, drop_held, &portal);
}
