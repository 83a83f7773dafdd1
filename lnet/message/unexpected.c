/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/unexpected.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/share.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"
#include "lnet/portal/md.h"

#define UNEXPECTED_LOG_PAUSE (60 * NSEC_PER_SEC)
/* Interval at which a message with an unread payload is reconsidered. */
#define UNREAD_RECHECK (200 * NSEC_PER_MSEC)

/* A match query: a new buffer that looks for waiting messages, on one CPT after
 * the other. */
struct lnet_query {
	struct work work;
	struct lnet_cpt *home; /* the CPT of the buffer */
	/* the CPT where the query is, or to which it is posted */
	struct lnet_cpt *at;
	/* in the list .queries of @home, until the query has looked there */
	struct list link;
	struct me_args is;
	uint32_t todo; /* a bit for each CPT that is still to be visited */
};

void unexpected_init(struct lnet_cpt *cpt)
{
	pool_init(&msg_cpt(cpt)->query_pool, sizeof(struct lnet_query), 0);
	for (unsigned int i = 0; i < LNET_PORTALS; i++) {
		struct unexpected_queue *h = &msg_cpt(cpt)->unexpected[i];

		list_init(&h->waiting);
		h->passed = &h->waiting;
		hash_init(&h->waiting_by_bits);
		list_init(&h->queries);
	}
}

void unexpected_fini(struct lnet_cpt *cpt)
{
	cpt_pool_fini(cpt, &msg_cpt(cpt)->query_pool, "match queries");
	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		hash_fini(&msg_cpt(cpt)->unexpected[i].waiting_by_bits);
}

static struct unexpected_queue *unexpected_of(const struct msg_in *msg)
{
	return &msg_cpt(msg->out.home)->unexpected[msg->out.hdr.portal];
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

static bool unexpected_has_share(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	const struct ulnet_conf *conf = &cpt->node->conf;
	const struct lnet_quota *has = in_quota(msg);

	return share_allows(has->unexpected, msg_cpt(cpt)->has_all.unexpected,
			    conf->lazy_max, 1) &&
	       share_allows(has->unexpected_bytes,
			    msg_cpt(cpt)->has_all.unexpected_bytes,
			    conf->lazy_bytes_max, msg->out.hdr.payload_length);
}

/* Other senders have used up the bounce buffers. May the payload of @msg stay
 * unread? It may not if the sender may owe this node an answer, which could be
 * queued behind @msg; nor if the sender's share of unread messages is used up.
 */
static bool unexpected_may_stay_unread(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	const struct lnet_peer_ni *sender = msg->sender;

	return sender && !sender->has.unexpected &&
	       msg_cpt(cpt)->has_all.unexpected &&
	       sender->peer->asked_until <= loop_now(cpt->loop) &&
	       share_allows(sender->has.unexpected_unread,
			    msg_cpt(cpt)->has_all.unexpected_unread,
			    cpt->node->conf.messages_max / 4, 1);
}

static bool unexpected_is_unread(const struct msg_in *msg)
{
	return msg->fsm.state == IN_UNEXPECTED && !msg->bounced;
}

static void unexpected_count_unread(const struct msg_in *msg, int n)
{
	in_quota(msg)->unexpected_unread += (uint32_t)n;
	msg_cpt(msg->out.home)->has_all.unexpected_unread += (uint32_t)n;
}

/* Logs that the sender of @msg has used up its share, unless that was logged a
 * short time ago. */
static void unexpected_log_full(const struct msg_in *msg, const char *what)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct lnet_quota *has = in_quota(msg);
	uint64_t now = loop_now(cpt->loop);
	char nid[LNET_NIDSTR_SIZE];

	if (now < has->unexpected_quiet_until)
		return;
	has->unexpected_quiet_until = now + UNEXPECTED_LOG_PAUSE;
	log_warn_limited(&cpt->limits_log, now, "portal",
			 "%u: messages of %s %s: no buffer is posted, "
			 "and its share of what may be held is used up (%u "
			 "messages, %" PRIu64 " bytes)",
			 msg->out.hdr.portal,
			 lnet_nid_format(&msg->from, nid, sizeof(nid)), what,
			 has->unexpected, has->unexpected_bytes);
}

static void unexpected_count(const struct msg_in *msg, int n)
{
	struct lnet_quota *all = &msg_cpt(msg->out.home)->has_all;
	int64_t bytes = (int64_t)n * msg->out.hdr.payload_length;

	in_quota(msg)->unexpected += (uint32_t)n;
	in_quota(msg)->unexpected_bytes += (uint64_t)bytes;
	all->unexpected += (uint32_t)n;
	all->unexpected_bytes += (uint64_t)bytes;
}

/* Copies the payload of @msg into a bounce buffer, and counts that. Returns 0
 * or -ENOMEM. Users' handlers may run. */
static int bounce_counted(struct msg_in *msg)
{
	if (in_bounce(msg))
		return -ENOMEM;
	msg->bounced = true;
	unexpected_count(msg, 1);
	return 0;
}

bool unexpected_bounce(struct msg_in *msg)
{
	return unexpected_has_share(msg) && !bounce_counted(msg);
}

void unexpected_unbounce(struct msg_in *msg)
{
	if (msg->bounced)
		unexpected_count(msg, -1);
	msg->bounced = false;
}

/* ---- the queue ---- */

/* Hashes as match entries are hashed: by match bits, and on unique portals also
 * by the initiator's NID. So an entry without ignore bits finds exactly its
 * messages. */
static uint64_t unexpected_hash(const struct msg_in *msg)
{
	struct match_want want;

	request_match_want(msg, &want);
	return match_hash(msg->out.home, &want);
}

/* Hashes the queue again if the kind of the portal was decided, by its first
 * entry, after messages were queued. */
static void unexpected_rehash(struct lnet_cpt *cpt, unsigned int portal)
{
	struct unexpected_queue *h = &msg_cpt(cpt)->unexpected[portal];
	enum portal_kind kind = portal_kind(cpt, portal);
	struct msg_in *msg;

	if (likely(h->waiting_kind == kind))
		return;
	h->waiting_kind = kind;
	list_for_each_entry (msg, &h->waiting, out.link) {
		hash_del(&h->waiting_by_bits, &msg->by_bits);
		/* This cannot fail: the table exists, since the message was in
		 * it. */
		BUG_ON(hash_add_tail(&h->waiting_by_bits, &msg->by_bits,
				     unexpected_hash(msg)));
	}
}

static int unexpected_enter(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct unexpected_queue *h = unexpected_of(msg);
	int rc;

	unexpected_rehash(cpt, msg->out.hdr.portal);
	rc = hash_add_tail(&h->waiting_by_bits, &msg->by_bits,
			   unexpected_hash(msg));
	if (rc)
		return rc;
	list_add_tail(&h->waiting, &msg->out.link);
	if (h->waiting_by_bits.count == 1)
		atomic_fetch_or(&portal_of(msg)->waiting, cpt_bit(cpt));
	return 0;
}

static void unexpected_leave(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct unexpected_queue *h = unexpected_of(msg);

	if (unexpected_is_unread(msg))
		unexpected_count_unread(msg, -1);
	if (h->passed == &msg->out.link)
		h->passed = msg->out.link.prev;
	list_del(&msg->out.link);
	hash_del(&h->waiting_by_bits, &msg->by_bits);
	if (h->waiting_by_bits.count == 0)
		atomic_fetch_and(&portal_of(msg)->waiting, ~cpt_bit(cpt));
	unexpected_unbounce(msg);
	loop_timer_cancel(cpt->loop, &msg->out.timer);
}

static void unexpected_drop(struct msg_in *msg, enum lnet_stat why)
{
	unexpected_leave(msg);
	in_drop(msg, why);
}

/* @msg is queued, and is about to ask CPTs again. It keeps its place in the
 * queue. */
static void unexpected_reoffer(struct msg_in *msg)
{
	if (unexpected_is_unread(msg))
		unexpected_count_unread(msg, -1);
	in_move(msg, IN_OFFERED);
	msg->came = 0;
}

/* Returns the counter of the reason for which a message that no buffer matches
 * is dropped; STAT_COUNT: it may be queued. GETs are never queued. */
static enum lnet_stat unexpected_refuses(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;

	if (cpt->closing || msg->out.ni->cpt[cpt->index].stopped)
		return STAT_drop_closing;
	if (msg->out.hdr.type != LNET_MSG_PUT ||
	    !atomic_load(&portal_of(msg)->lazy))
		return STAT_drop_no_match;
	/* An entry for these bits will never be attached to portal 0. */
	if (msg->out.hdr.portal == PING_PORTAL &&
	    msg->out.hdr.match_bits != PING_MATCH_BITS)
		return STAT_drop_no_match;
	if (!msg->bounced && !unexpected_has_share(msg))
		return STAT_drop_lazy_full;
	return STAT_COUNT;
}

static void unexpected_keep(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	uint64_t until;

	in_move(msg, IN_UNEXPECTED);
	/* A message that was queued before keeps its deadline. */
	if (msg->out.lnd.deadline == 0)
		msg->out.lnd.deadline = cpt_deadline(cpt);
	until = msg->out.lnd.deadline;
	if (unexpected_is_unread(msg)) {
		unexpected_count_unread(msg, 1);
		until = MIN(until, loop_now(cpt->loop) + UNREAD_RECHECK);
	}
	loop_timer_arm(cpt->loop, &msg->out.timer, until);
}

/* No CPT has a buffer for @msg: queues it if the portal is lazy, otherwise
 * drops it. */
static void unexpected_keep_or_drop(struct msg_in *msg)
{
	enum lnet_stat why = unexpected_refuses(msg);

	if (why == STAT_drop_lazy_full && unexpected_may_stay_unread(msg)) {
		unexpected_log_full(msg, "wait at its connection");
		/* the message was not queued before */
		if (msg->out.lnd.deadline == 0)
			cpt_stat(msg->out.home, STAT_stood);
		unexpected_keep(msg);
		return;
	}
	if (why == STAT_COUNT && !msg->bounced) {
		/* This may run handlers, which may change the reason. */
		why = bounce_counted(msg) ? STAT_drop_no_memory
					  : unexpected_refuses(msg);
	}
	if (why == STAT_drop_lazy_full)
		unexpected_log_full(msg, "are dropped");
	if (why == STAT_COUNT)
		unexpected_keep(msg);
	else
		unexpected_drop(msg, why);
}

void unexpected_late(struct msg_in *msg)
{
	if (loop_now(msg->out.home->loop) >= msg->out.lnd.deadline) {
		unexpected_drop(msg, STAT_drop_lazy_late);
		return;
	}
	/* The payload is unread. By now there may be a bounce buffer for it, or
	 * the sender may owe an answer. */
	unexpected_reoffer(msg);
	unexpected_keep_or_drop(msg);
}

/* ---- offers: a message asks CPTs for a buffer ---- */

static void query_look(struct lnet_cpt *cpt, struct lnet_query *query);
static void query_end(struct lnet_query *query);

static void offer_ask(struct msg_in *msg);

/* On the home of the message: the CPTs were asked, and msg->out.status says
 * whether one has a buffer. */
static void offer_answered(struct work *w)
{
	struct msg_in *msg = in_of_work(w);
	struct lnet_cpt *home = msg->out.home;
	struct lnet_query *query = msg->query;
	int rc = msg->out.status;

	msg->query = NULL;
	if (!rc) {
		unexpected_leave(msg);
		request_deliver(msg);
	} else if (rc != -ENOENT) {
		unexpected_drop(msg, request_no_match(rc));
	} else if (msg->came) {
		msg->asks = msg->came;
		msg->came = 0;
		offer_ask(msg);
	} else {
		unexpected_keep_or_drop(msg);
	}
	if (!query)
		return;
	/* With -ENOENT, the buffer that fetched the message is full or gone. */
	if (rc == -ENOENT)
		query_end(query);
	else
		query_look(home, query);
}

/* Called on the CPT that is asked. */
static void offer_asked(struct work *w)
{
	struct msg_in *msg = in_of_work(w);

	msg->out.status = request_match(msg);
	msg->asks &= ~cpt_bit(msg->out.cpt);
	if (msg->out.status == -ENOENT && msg->asks)
		offer_ask(msg);
	else
		in_pass(msg, msg->out.home, offer_answered);
}

/* Asks the next CPT in msg->asks. */
static void offer_ask(struct msg_in *msg)
{
	struct lnet *node = msg->out.home->node;

	in_pass(msg, node->cpt[__builtin_ctz(msg->asks)], offer_asked);
}

static void offer_ask_work(struct work *w)
{
	offer_ask(in_of_work(w));
}

/* Takes @msg from the queue to the CPT of the query's buffer. */
static void query_fetch(struct msg_in *msg, struct lnet_query *query)
{
	loop_timer_cancel(msg->out.home->loop, &msg->out.timer);
	unexpected_reoffer(msg);
	msg->asks = cpt_bit(query->home);
	msg->query = query;
	offer_ask(msg);
}

/* The peer that sent @msg has other NIDs now, and there may be entries for
 * these: asks all CPTs again. */
static void offer_ask_all(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	uint32_t cpts = atomic_load(&portal_of(msg)->cpts);

	if (msg->fsm.state == IN_OFFERED)
		msg->came |= cpts;
	if (msg->fsm.state != IN_UNEXPECTED || !cpts)
		return;
	loop_timer_cancel(cpt->loop, &msg->out.timer);
	unexpected_reoffer(msg);
	msg->asks = cpts;
	msg->query = NULL;
	/* Deferred, since no handler may run in this call. */
	msg->out.work.fn = offer_ask_work;
	loop_defer(cpt->loop, &msg->out.work);
}

void unexpected_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct msg_in *msg;

	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		list_for_each_entry (msg, &msg_cpt(cpt)->unexpected[i].waiting,
				     out.link)
			if (directory_same(&cpt->node->directory,
					   &msg->out.hdr.src_nid, nid))
				offer_ask_all(msg);
}

void unexpected_offer_late(struct msg_in *msg)
{
	if (unexpected_has_share(msg))
		/* without memory the payload stays unread */
		(void)bounce_counted(msg);
}

/* @msg, for which its home has no buffer, begins to ask other CPTs. If the
 * sender's share allows it, the connection is read on meanwhile: at once, or
 * soon. */
static void unexpected_begin(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;

	msg->bounced = false;
	msg->query = NULL;
	msg->came = 0;
	in_move(msg, IN_OFFERED);
	if (unexpected_enter(msg)) {
		in_drop(msg, STAT_drop_no_memory);
		return;
	}
	/* Must be read after other CPTs can see that the message waits. */
	msg->asks = atomic_load(&portal_of(msg)->cpts) & ~cpt_bit(cpt);
	if (!msg->asks) {
		unexpected_keep_or_drop(msg);
		return;
	}
	if (!in_stays_unread(msg) && unexpected_has_share(msg) &&
	    bounce_counted(msg)) {
		unexpected_drop(msg, STAT_drop_no_memory);
		return;
	}
	offer_ask(msg);
}

static void queries_look(struct lnet_cpt *cpt, unsigned int portal);

void unexpected_or_deliver(struct msg_in *msg)
{
	int rc;

	/* Messages that came earlier are served first: a query is about to look
	 * for them. */
	if (unlikely(!list_empty(&unexpected_of(msg)->queries)))
		queries_look(msg->out.home, msg->out.hdr.portal);
	rc = request_match(msg);
	if (likely(!rc))
		request_deliver(msg);
	else if (rc == -ENOENT)
		unexpected_begin(msg);
	else
		in_drop(msg, request_no_match(rc));
}

/* ---- queries: a buffer asks CPTs for messages ---- */

enum query_fit {
	FIT_NOT,
	/* the message fits, but is asking other CPTs, and will ask this one,
	 * too */
	FIT_AWAY,
	FIT
};

static enum query_fit query_fits(struct lnet_query *query, struct msg_in *msg)
{
	struct match_want want;

	cpt_stat(msg->out.home, STAT_hold_tries);
	request_match_want(msg, &want);
	if (!me_is_for(&query->is, &want))
		return FIT_NOT;
	if (msg->fsm.state == IN_UNEXPECTED)
		return FIT;
	msg->came |= cpt_bit(query->home);
	return FIT_AWAY;
}

/* Returns the first message with @hash that fits, or NULL. */
static struct msg_in *query_seek_hash(struct unexpected_queue *h,
				      struct lnet_query *query, uint64_t hash)
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
	struct unexpected_queue *h =
		&msg_cpt(cpt)->unexpected[query->is.portal];
	const struct match_want want = { .peers = &cpt->node->directory,
					 .id = query->is.match_id,
					 .bits = query->is.match_bits,
					 .portal = query->is.portal };
	struct msg_in *msg;

	unexpected_rehash(cpt, query->is.portal);
	msg = query_seek_hash(h, query, match_hash(cpt, &want));
	if (likely(msg || !match_has_alias(cpt, &want)))
		return msg;
	/* Messages from other NIDs of the peer that the entry names have other
	 * hashes. */
	list_for_each_entry (msg, &h->waiting, out.link)
		if (query_fits(query, msg) == FIT)
			return msg;
	return NULL;
}

/* For entries with ignore bits, walks along the list. Messages that an earlier
 * entry with the same arguments did not match are skipped: most buffers of a
 * portal have the same arguments, and strangers must not be able to make each
 * walk long. */
static struct msg_in *query_seek_masked(struct lnet_cpt *cpt,
					struct lnet_query *query)
{
	struct unexpected_queue *h =
		&msg_cpt(cpt)->unexpected[query->is.portal];
	bool passing = true;
	struct list *l;

	if (!me_args_alike(&h->passed_by, &query->is)) {
		h->passed_by = query->is;
		h->passed = &h->waiting;
	}
	for (l = h->passed->next; l != &h->waiting; l = l->next) {
		struct msg_in *msg = container_of(l, struct msg_in, out.link);
		enum query_fit fit = query_fits(query, msg);

		if (fit == FIT)
			return msg;
		/* A message that is asking other CPTs may return and fit the
		 * next buffer, so the next buffer must look at it again. */
		passing = passing && fit == FIT_NOT;
		if (passing)
			h->passed = l;
	}
	return NULL;
}

static struct msg_in *query_seek(struct lnet_cpt *cpt, struct lnet_query *query)
{
	return query->is.ignore_bits ? query_seek_masked(cpt, query)
				     : query_seek_exact(cpt, query);
}

/* Delivers messages that wait on the CPT of the buffer. Returns false if the
 * buffer is full. */
static bool query_serve(struct lnet_cpt *cpt, struct lnet_query *query)
{
	struct msg_in *msg;

	while ((msg = query_seek(cpt, query))) {
		int rc = request_match(msg);

		if (rc == -ENOENT)
			return false;
		if (rc) {
			unexpected_drop(msg, request_no_match(rc));
			continue;
		}
		unexpected_leave(msg);
		request_deliver(msg);
	}
	return true;
}

static void queries_look(struct lnet_cpt *cpt, unsigned int portal)
{
	struct lnet_query *query;

	/* Users' handlers may add queries; only query_arrived() removes queries
	 * from the list. */
	list_for_each_entry (query, &msg_cpt(cpt)->unexpected[portal].queries,
			     link)
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

/* Sends the query to the next CPT on which messages wait. */
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

/* Looks for messages on @cpt. A message that is fetched takes the query with
 * it, and brings it back to this CPT (offer_answered()). */
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
		query_fetch(msg, query);
	else
		query_go_on(query);
}

int unexpected_buffer_came(const struct lnet_me *me)
{
	struct lnet_cpt *cpt = me->cpt;
	uint32_t waiting = atomic_load(
		&portal_node(cpt->node)->portals[me->is.portal].waiting);
	struct lnet_query *query;

	/* Only PUTs are queued. */
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
		list_add_tail(&msg_cpt(cpt)->unexpected[me->is.portal].queries,
			      &query->link);
		query_post(query, cpt, query_arrived);
	} else {
		query_go_on(query);
	}
	return 0;
}

/* ---- dropping ---- */

static void unexpected_drop_list(struct list *waiting, const struct lnet_ni *ni,
				 enum lnet_stat why)
{
	struct msg_in *msg, *next;

	/* Messages that ask other CPTs notice it when they return. */
	list_for_each_entry_safe (msg, next, waiting, out.link)
		if (msg->fsm.state == IN_UNEXPECTED &&
		    (!ni || msg->out.ni == ni))
			unexpected_drop(msg, why);
}

void unexpected_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		unexpected_drop_list(&msg_cpt(cpt)->unexpected[i].waiting, ni,
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

static int unexpected_drop_portal(struct lnet_cpt *cpt, void *portal)
{
	unexpected_drop_list(
		&msg_cpt(cpt)->unexpected[*(unsigned int *)portal].waiting,
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
	return node_each_cpt(node, unexpected_drop_portal, &portal);
}
