/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Framework requests, which a console sends to a member of its session. A
 * handler sets fields of the reply, and returns its status: 0 or a positive
 * errno. It checks in the same order as kernel nodes. All of this is on
 * LST_HOME.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lst_priv.h"

#define TARGETS_MAX	87296
#define CONCURRENCY_MAX 1024
/* Returned by handlers instead of a status. DROPPED: there is no answer. LATER:
 * it is sent later. */
#define DROPPED UINT32_MAX
#define LATER	(UINT32_MAX - 1)

static bool names_no_session(const struct lst_session_id *id)
{
	return id->console == UINT64_MAX;
}

static bool names_our_session(const struct lst *lst, const struct lst_msg *msg)
{
	return lst->session && lst_session_eq(&lst->session->id, &msg->session);
}

/* ---- sessions ---- */

static uint32_t make_serve(struct lst *lst, const struct lst_msg *msg,
			   struct lst_msg *reply)
{
	struct lst_session *s = lst->session;

	reply->timeout = lst->conf.session_s;
	if (names_no_session(&msg->session))
		return EINVAL;
	if (names_our_session(lst, msg)) {
		s->refs++;
		return 0;
	}
	if (s && !msg->make.force) {
		memcpy(reply->name, s->name, sizeof(reply->name));
		return EBUSY;
	}
	if (s)
		lst_session_end(s);
	return lst_session_make(lst, msg) ? 0 : ENOMEM;
}

static uint32_t remove_serve(struct lst *lst, const struct lst_msg *msg)
{
	struct lst_session *s = lst->session;

	if (names_no_session(&msg->session))
		return EINVAL;
	if (!s)
		return ESRCH;
	if (!names_our_session(lst, msg))
		return EBUSY;
	if (--s->refs == 0)
		lst_session_end(s);
	return 0;
}

static uint32_t debug_serve(const struct lst *lst, struct lst_msg *reply)
{
	if (!lst->session)
		return ESRCH;
	reply->timeout = lst->conf.session_s;
	memcpy(reply->name, lst->session->name, sizeof(reply->name));
	return 0;
}

/* ---- counters ---- */

static void count_lnet(struct lnet *node, struct lst_counters *c)
{
	struct ulnet_stat stats[256];
	int n = lnet_stats(node, stats, 256);
	const struct {
		const char *name;
		uint32_t *count;
		uint64_t *length;
	} wanted[] = {
		{ "msgs_alloc", &c->msgs_alloc, NULL },
		{ "msgs_max", &c->msgs_max, NULL },
		{ "errors", &c->msgs_errors, NULL },
		{ "send_count", &c->send_count, NULL },
		{ "recv_count", &c->recv_count, NULL },
		{ "route_count", &c->route_count, NULL },
		{ "drop_count", &c->drop_count, NULL },
		{ "send_length", NULL, &c->send_length },
		{ "recv_length", NULL, &c->recv_length },
		{ "route_length", NULL, &c->route_length },
		{ "drop_length", NULL, &c->drop_length },
	};

	for (int i = 0; i < n && i < 256; i++) {
		for (size_t k = 0; k < sizeof(wanted) / sizeof(*wanted); k++) {
			if (strcmp(stats[i].name, wanted[k].name) != 0)
				continue;
			if (wanted[k].count)
				*wanted[k].count = (uint32_t)stats[i].value;
			else
				*wanted[k].length = stats[i].value;
		}
	}
}

static void count_session(const struct lst *lst, struct lst_counters *c)
{
	const struct lst_session *s = lst->session, *zombie;
	const struct lst_batch *b;

	c->running_ms =
		(uint32_t)((lnet_now(lst->node, LST_HOME) - s->made) / 1000000);
	c->brw_errors = s->brw_errors;
	c->ping_errors = s->ping_errors;
	TAILQ_FOREACH (b, &s->batches, entry)
		c->active_batches += lst_batch_active(b) > 0;
	LIST_FOREACH (zombie, &lst->zombies, zombie)
		c->zombie_sessions++;
}

static void count_calls(const struct lst *lst, struct lst_counters *c)
{
	for (unsigned int i = 0; i < lst->ncpts; i++) {
		const struct lst_calls *calls = &lst->cpts[i].calls;

		c->errors += calls->errors;
		c->rpcs_sent += calls->sent;
		c->rpcs_dropped += calls->dropped;
		c->rpcs_expired += calls->expired;
	}
}

static uint32_t stat_serve(const struct lst *lst, const struct lst_msg *msg,
			   struct lst_msg *reply)
{
	struct lst_counters *c = &reply->stat;

	if (names_no_session(&msg->session))
		return EINVAL;
	if (!names_our_session(lst, msg))
		return ESRCH;
	count_lnet(lst->node, c);
	count_session(lst, c);
	count_calls(lst, c);
	c->errors += lst->errors;
	c->rpcs_received = lst->received;
	c->rpcs_dropped += lst->dropped;
	c->bulk_got = lst->bulk_got;
	c->bulk_put = lst->bulk_put;
	return 0;
}

/* ---- batches ---- */

static uint32_t batch_run(struct lst_batch *b)
{
	struct lst_test *t;

	if (lst_batch_active(b))
		return 0;
	TAILQ_FOREACH (t, &b->tests, entry)
		if (t->is_client)
			lst_test_run(t);
	return 0;
}

static uint32_t batch_stop(struct lst_batch *b, bool force)
{
	struct lst_test *t;

	TAILQ_FOREACH (t, &b->tests, entry)
		lst_test_stop(t, force);
	return 0;
}

static uint32_t batch_state(const struct lst_batch *b, int32_t index,
			    uint32_t *active)
{
	const struct lst_test *t;

	if (index < 0)
		return EINVAL;
	if (index == 0) {
		*active = lst_batch_active(b);
		return 0;
	}
	TAILQ_FOREACH (t, &b->tests, entry) {
		if (--index)
			continue;
		*active = t->running;
		return 0;
	}
	return ENOENT;
}

static uint32_t batch_serve(struct lst *lst, const struct lst_msg *msg,
			    struct lst_msg *reply)
{
	struct lst_batch *b;

	if (!names_our_session(lst, msg))
		return ESRCH;
	b = lst_session_batch(lst->session, msg->batch.id);
	if (!b)
		return ENOENT;
	switch (msg->batch.op) {
	case LST_RUN:
		return batch_run(b);
	case LST_STOP:
		return batch_stop(b, msg->batch.arg);
	case LST_QUERY:
		return batch_state(b, (int32_t)msg->batch.index,
				   &reply->batch.active);
	}
	return DROPPED;
}

/* ---- tests ---- */

static bool test_valid(const struct lst_msg *msg)
{
	if (!msg->test.loop || names_no_session(&msg->session))
		return false;
	if (!msg->test.concurrency || msg->test.concurrency > CONCURRENCY_MAX)
		return false;
	if (msg->test.targets > TARGETS_MAX ||
	    (msg->test.is_client && !msg->test.targets))
		return false;
	return msg->test.service == LST_SERVICE_BRW ||
	       msg->test.service == LST_SERVICE_PING;
}

/* Finds or makes the batch that the test in @msg is to be added to. Returns the
 * status for the reply. */
static uint32_t test_batch(struct lst *lst, const struct lst_msg *msg,
			   struct lst_batch **b_p)
{
	struct lst_batch *b;

	if (!test_valid(msg))
		return EINVAL;
	if (!names_our_session(lst, msg))
		return ENOENT;
	b = lst_session_need_batch(lst->session, msg->test.batch);
	if (!b)
		return ENOMEM;
	if (lst_batch_active(b))
		return EBUSY;
	*b_p = b;
	return 0;
}

/* Are the parameters of the test valid? Only clients need to check: their
 * requests tell the parameters to the server. */
static bool params_valid(const struct lst_msg *msg)
{
	const struct lst_brw_params *brw = &msg->test.brw;

	if (msg->test.service != LST_SERVICE_BRW)
		return true;
	if (!(msg->features & LST_BYTES))
		return lst_data_valid(brw->opcode, brw->flags,
				      (uint64_t)brw->pages * LST_PAGE_SIZE);
	return brw->offset % LST_PAGE_SIZE % LST_WORD == 0 &&
	       lst_data_valid(brw->opcode, brw->flags, brw->length);
}

static uint32_t test_add(struct lst *lst, const struct lst_msg *msg,
			 const struct ulnet_id *ids)
{
	struct lst_batch *b;
	struct lst_test *t;
	uint32_t status = test_batch(lst, msg, &b);
	int rc;

	if (status)
		return status;
	if (msg->test.is_client && !params_valid(msg))
		return EINVAL;
	rc = lst_test_new(lst->session, msg, ids, &t);
	if (rc)
		return (uint32_t)-rc;
	TAILQ_INSERT_TAIL(&b->tests, t, entry);
	return 0;
}

static void frame_end(struct lst_slot *slot, struct lst_msg *reply,
		      uint32_t status);

static uint32_t test_add_list(struct lst_slot *slot)
{
	const struct lst_msg *msg = &slot->msg;
	size_t n = msg->test.targets;
	struct ulnet_id *ids = calloc(n, sizeof(*ids));
	uint32_t status;
	int rc;

	if (!ids)
		return ENOMEM;
	rc = lst_list_decode(ids, n, slot->memory, slot->bulk.length,
			     msg->swapped);
	status = rc ? EINVAL : test_add(slot->cpt->lst, msg, ids);
	free(ids);
	return status;
}

static void test_on_list(struct lst_md *md)
{
	struct lst_slot *slot = LST_OF(md, struct lst_slot, bulk);
	struct lst *lst = slot->cpt->lst;
	struct lst_msg reply = { 0 };

	if (slot->cpt->closing)
		return;
	if (md->status) {
		lst_slot_drop(slot);
		return;
	}
	atomic_fetch_add(&lst->bulk_got, md->length);
	frame_end(slot, &reply, test_add_list(slot));
}

static uint32_t test_serve(struct lst_slot *slot)
{
	struct lst *lst = slot->cpt->lst;
	const struct lst_msg *msg = &slot->msg;
	struct lst_batch *b;
	uint32_t status = test_batch(lst, msg, &b);

	if (status || !msg->test.is_client)
		return status ? status : test_add(lst, msg, NULL);
	if ((uint64_t)msg->test.targets * msg->test.concurrency >
	    LST_UNITS_MAX - lst->units)
		return ENOMEM;
	if (lst_slot_fetch(slot, msg->test.targets * LST_RECORD_SIZE,
			   test_on_list))
		return ENOMEM;
	return LATER;
}

/* ---- any request of the framework ---- */

static bool features_fit(const struct lst *lst, const struct lst_msg *msg)
{
	if (msg->features & ~LST_BYTES)
		return false;
	if (msg->type == LST_MAKE || msg->type == LST_DEBUG)
		return true;
	return !lst->session || lst->session->features == msg->features;
}

static uint32_t handle(struct lst_slot *slot, struct lst_msg *reply)
{
	struct lst *lst = slot->cpt->lst;
	const struct lst_msg *msg = &slot->msg;

	if (!features_fit(lst, msg))
		return EPROTO;
	switch (msg->type) {
	case LST_MAKE:
		return make_serve(lst, msg, reply);
	case LST_REMOVE:
		return remove_serve(lst, msg);
	case LST_DEBUG:
		return debug_serve(lst, reply);
	case LST_STAT:
		return stat_serve(lst, msg, reply);
	case LST_BATCH:
		return batch_serve(lst, msg, reply);
	case LST_TEST:
		return test_serve(slot);
	}
	return DROPPED;
}

/* Answers a framework request with @status. A request of the session's own
 * console, which was not refused, postpones the end of the session; no other
 * does, or strangers could keep a session whose console has gone. */
static void frame_end(struct lst_slot *slot, struct lst_msg *reply,
		      uint32_t status)
{
	struct lst *lst = slot->cpt->lst;
	struct lst_session *s = lst->session;

	if (!status && names_our_session(lst, &slot->msg))
		s->deadline = lnet_now(lst->node, LST_HOME) +
			      lst->conf.session_s * NS_PER_S;
	if (status == DROPPED) {
		lst_slot_drop(slot);
		return;
	}
	reply->status = status;
	reply->session = s ? s->id : LST_SESSION_NONE;
	reply->features = s && status != EPROTO ? s->features : LST_BYTES;
	lst_slot_reply(slot, reply);
}

/* Answers with @status, and names no session. */
static void frame_refuse(struct lst_slot *slot, uint32_t status)
{
	struct lst_msg reply = { .features = LST_BYTES,
				 .status = status,
				 .session = LST_SESSION_NONE };

	lst_slot_reply(slot, &reply);
}

static bool permitted(const struct lst_slot *slot)
{
	const struct ulnet_nidlist *consoles = slot->cpt->lst->conf.consoles;

	return !consoles ||
	       lnet_nidlist_match(consoles, &slot->request.peer.nid);
}

bool lst_serves_tests(const struct lst *lst)
{
	return !lst->conf.consoles || lst->member;
}

void lst_frame_serve(struct lst_slot *slot)
{
	struct lst_msg reply = { 0 };
	uint32_t status;

	/* JOIN is a request to a console, which this node is not. */
	if (slot->msg.type == LST_JOIN) {
		frame_refuse(slot, ESRCH);
		return;
	}
	if (!permitted(slot)) {
		frame_refuse(slot, EACCES);
		return;
	}
	reply.type = slot->msg.type + 1;
	status = handle(slot, &reply);
	if (status != LATER)
		frame_end(slot, &reply, status);
}
