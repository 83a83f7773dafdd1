/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions, their batches, and the tests of batches. A client test consists of
 * units; each unit sends one request at a time to one destination. LST_HOME
 * owns sessions and tests, and the CPT of its destination owns a unit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lst_priv.h"

static void unit_next(struct lst_unit *u);

/* ---- tests ---- */

static uint64_t unit_bytes_of(const struct lst_test *t)
{
	return t->service == LST_SERVICE_BRW
		       ? (uint64_t)t->nunits * t->brw.length
		       : 0;
}

static unsigned int nlanes(const struct lst_test *t)
{
	return t->lanes ? t->session->lst->ncpts : 0;
}

static struct lst_lane *unit_lane_of(const struct lst_test *t,
				     const struct ulnet_nid *nid)
{
	int cpt = lnet_cpt_of(t->session->lst->node, nid);

	return &t->lanes[cpt < 0 ? LST_HOME : cpt];
}

static int units_new(struct lst_test *t, const struct lst_msg *request,
		     const struct ulnet_id *ids)
{
	struct lst *lst = t->session->lst;
	uint32_t concurrency = request->test.concurrency;
	uint64_t bytes;

	t->nunits = request->test.targets * concurrency;
	bytes = unit_bytes_of(t);
	if (t->nunits > LST_UNITS_MAX - lst->units ||
	    bytes > LST_UNIT_BYTES - lst->unit_bytes)
		return -ENOMEM;
	t->units = calloc(t->nunits, sizeof(*t->units));
	t->lanes = calloc(lst->ncpts, sizeof(*t->lanes));
	if (!t->units || !t->lanes)
		return -ENOMEM;
	for (unsigned int i = 0; i < lst->ncpts; i++)
		t->lanes[i] =
			(struct lst_lane){ .test = t, .cpt = &lst->cpts[i] };
	for (unsigned int i = 0; i < t->nunits; i++) {
		t->units[i].test = t;
		t->units[i].target = ids[i / concurrency];
		t->units[i].lane = unit_lane_of(t, &t->units[i].target.nid);
		t->units[i].lane->nunits++;
		if (!bytes)
			continue;
		/* Zeroed, because less data than that may come. */
		t->units[i].memory = calloc(1, t->brw.length);
		if (!t->units[i].memory)
			return -ENOMEM;
	}
	return 0;
}

static void units_free(struct lst_test *t)
{
	for (unsigned int i = 0; t->units && i < t->nunits; i++)
		free(t->units[i].memory);
	free(t->units);
	free(t->lanes);
}

static struct lst_brw_params brw_of(const struct lst_msg *request)
{
	struct lst_brw_params brw = request->test.brw;

	if (!(request->features & LST_BYTES)) {
		brw.length = brw.pages * LST_PAGE_SIZE;
		brw.offset = 0;
	}
	return brw;
}

int lst_test_new(struct lst_session *s, const struct lst_msg *request,
		 const struct ulnet_id *ids, struct lst_test **test_p)
{
	struct lst_test *t;
	int rc = 0;

	if (s->ntests == LST_TESTS_MAX)
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->session = s;
	t->is_client = request->test.is_client;
	t->stop_on_error = request->test.stop_on_error;
	t->service = request->test.service;
	t->loop = (int32_t)request->test.loop;
	t->brw = brw_of(request);
	if (t->is_client)
		rc = units_new(t, request, ids);
	if (rc) {
		units_free(t);
		free(t);
		return rc;
	}
	s->ntests++;
	s->lst->units += t->nunits;
	s->lst->unit_bytes += unit_bytes_of(t);
	if (t->is_client && t->service == LST_SERVICE_PING)
		s->lst->sequence = 0;
	*test_p = t;
	return 0;
}

static void test_free(struct lst_test *t)
{
	struct lst *lst = t->session->lst;

	lst->units -= t->nunits;
	lst->unit_bytes -= unit_bytes_of(t);
	units_free(t);
	free(t);
}

/* ---- sessions ---- */

struct lst_session *lst_session_make(struct lst *lst,
				     const struct lst_msg *request)
{
	struct lst_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lst = lst;
	s->id = request->session;
	memcpy(s->name, request->name, sizeof(s->name));
	s->features = request->features;
	s->refs = 1;
	s->made = lnet_now(lst->node, LST_HOME);
	s->deadline = s->made + lst->conf.session_s * NS_PER_S;
	TAILQ_INIT(&s->batches);
	lst->session = s;
	lst->member = true;
	lst_watch(&lst->cpts[LST_HOME]);
	return s;
}

static void session_batch_free(struct lst_batch *b)
{
	struct lst_test *t;

	while ((t = TAILQ_FIRST(&b->tests))) {
		TAILQ_REMOVE(&b->tests, t, entry);
		test_free(t);
	}
	free(b);
}

static void session_free(struct lst_session *s)
{
	struct lst_batch *b;

	while ((b = TAILQ_FIRST(&s->batches))) {
		TAILQ_REMOVE(&s->batches, b, entry);
		session_batch_free(b);
	}
	free(s);
}

void lst_session_end(struct lst_session *s)
{
	struct lst_batch *b;
	struct lst_test *t;

	s->lst->session = NULL;
	s->lst->member = false;
	if (!s->busy) {
		session_free(s);
		return;
	}
	s->ended = true;
	LIST_INSERT_HEAD(&s->lst->zombies, s, zombie);
	TAILQ_FOREACH (b, &s->batches, entry)
		TAILQ_FOREACH (t, &b->tests, entry)
			lst_test_stop(t, true);
}

void lst_session_test_ended(struct lst_session *s)
{
	if (--s->busy || !s->ended)
		return;
	LIST_REMOVE(s, zombie);
	session_free(s);
}

struct lst_batch *lst_session_batch(struct lst_session *s, uint64_t id)
{
	struct lst_batch *b;

	TAILQ_FOREACH (b, &s->batches, entry)
		if (b->id == id)
			return b;
	return NULL;
}

struct lst_batch *lst_session_need_batch(struct lst_session *s, uint64_t id)
{
	struct lst_batch *b = lst_session_batch(s, id);

	if (b || s->nbatches == LST_TESTS_MAX)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->id = id;
	TAILQ_INIT(&b->tests);
	TAILQ_INSERT_TAIL(&s->batches, b, entry);
	s->nbatches++;
	return b;
}

unsigned int lst_batch_active(const struct lst_batch *b)
{
	const struct lst_test *t;
	unsigned int n = 0;

	TAILQ_FOREACH (t, &b->tests, entry)
		n += t->busy > 0;
	return n;
}

/* ---- lanes ---- */

static void lane_begin(struct lst_lane *lane, struct ulnet_work *work,
		       void (*fn)(struct ulnet_work *work))
{
	struct lst_test *t = lane->test;

	if (t->busy++ == 0)
		t->session->busy++;
	work->fn = fn;
	lnet_post(t->session->lst->node, lane->cpt->index, work);
}

/* The work that lane_begin() posted has come back to LST_HOME. */
static void lane_back(struct lst_lane *lane)
{
	struct lst_test *t = lane->test;

	if (--t->busy == 0)
		lst_session_test_ended(t->session);
}

static void lane_on_ended(struct ulnet_work *work)
{
	struct lst_lane *lane = LST_OF(work, struct lst_lane, run);

	lane->running = false;
	lane_back(lane);
}

static void lane_on_aborted(struct ulnet_work *work)
{
	struct lst_lane *lane = LST_OF(work, struct lst_lane, abort);

	lane->aborting = false;
	lane_back(lane);
}

static void lane_run(struct ulnet_work *work)
{
	struct lst_lane *lane = LST_OF(work, struct lst_lane, run);
	struct lst_test *t = lane->test;

	/* Set before the first unit begins, because a unit may end at once. */
	lane->left = lane->nunits;
	lane->cpt->lanes++;
	lst_watch(lane->cpt);
	for (unsigned int i = 0; i < t->nunits; i++) {
		if (t->units[i].lane != lane)
			continue;
		t->units[i].left = t->loop;
		unit_next(&t->units[i]);
	}
}

static void lane_abort(struct ulnet_work *work)
{
	struct lst_lane *lane = LST_OF(work, struct lst_lane, abort);
	struct lst_test *t = lane->test;

	for (unsigned int i = 0; i < t->nunits; i++)
		if (t->units[i].lane == lane && t->units[i].running)
			lst_call_cancel(&t->units[i].call);
	work->fn = lane_on_aborted;
	lnet_post(t->session->lst->node, LST_HOME, work);
}

void lst_test_stop(struct lst_test *t, bool abort)
{
	t->stopping = true;
	for (unsigned int i = 0; abort && t->busy && i < nlanes(t); i++) {
		struct lst_lane *lane = &t->lanes[i];

		if (!lane->running || lane->aborting)
			continue;
		lane->aborting = true;
		lane_begin(lane, &lane->abort, lane_abort);
	}
}

void lst_test_run(struct lst_test *t)
{
	t->stopping = false;
	t->running = t->nunits;
	for (unsigned int i = 0; i < nlanes(t); i++) {
		struct lst_lane *lane = &t->lanes[i];

		if (!lane->nunits)
			continue;
		lane->running = true;
		lane_begin(lane, &lane->run, lane_run);
	}
}

/* ---- units ---- */

static void unit_end(struct lst_unit *u)
{
	struct lst_lane *lane = u->lane;

	atomic_fetch_sub(&u->test->running, 1);
	if (--lane->left)
		return;
	lane->cpt->lanes--;
	lane->run.fn = lane_on_ended;
	lnet_post(u->test->session->lst->node, LST_HOME, &lane->run);
}

static void count_failure(struct lst_test *t)
{
	if (t->service == LST_SERVICE_PING)
		atomic_fetch_add(&t->session->ping_errors, 1);
	else
		atomic_fetch_add(&t->session->brw_errors, 1);
}

static bool reply_good(const struct lst_unit *u)
{
	const struct lst_brw_params *brw = &u->test->brw;
	const struct lst_msg *reply = &u->call.msg;

	if (reply->type == LST_PING_REPLY)
		return reply->ping.magic == LST_PING_MAGIC &&
		       reply->ping.sequence == u->sequence;
	if (reply->status)
		return false;
	if (brw->opcode == LST_WRITE)
		return true;
	return u->call.moved == brw->length &&
	       lst_data_good(u->memory, brw->length, brw->offset,
			     (enum lst_check)brw->flags, reply->swapped);
}

/* Sends the next request of a unit: at once, or, if the last one was sent in
 * this turn, in another turn. */
static void unit_again(struct lst_unit *u)
{
	struct lst_cpt *cpt = u->lane->cpt;
	uint64_t now = lnet_now(cpt->lst->node, cpt->index);

	if (u->began != now || cpt->closing) {
		unit_next(u);
		return;
	}
	TAILQ_INSERT_TAIL(&cpt->yielding, u, waiting);
	if (!lnet_timer_armed(&cpt->resume))
		lnet_timer_arm(cpt->lst->node, cpt->index, &cpt->resume,
			       now + 1);
}

/* As unit_again(), but after a request that has failed: no earlier than
 * LST_TICK after the unit's last request was sent. */
static void unit_retry(struct lst_unit *u)
{
	struct lst_cpt *cpt = u->lane->cpt;

	if (cpt->closing || u->test->stopping ||
	    lnet_now(cpt->lst->node, cpt->index) - u->began >= LST_TICK)
		unit_again(u);
	else
		TAILQ_INSERT_TAIL(&cpt->pausing, u, waiting);
}

void lst_units_resume(struct lst_units *units)
{
	struct lst_units some = TAILQ_HEAD_INITIALIZER(some);
	struct lst_unit *u;

	TAILQ_CONCAT(&some, units, waiting);
	while ((u = TAILQ_FIRST(&some))) {
		TAILQ_REMOVE(&some, u, waiting);
		unit_next(u);
	}
}

static void unit_done(struct lst_call *call)
{
	struct lst_unit *u = LST_OF(call, struct lst_unit, call);
	struct lst_test *t = u->test;
	bool aborted = t->stopping && call->status == -ECANCELED;

	u->running = false;
	if (aborted || (!call->status && reply_good(u))) {
		unit_again(u);
		return;
	}
	count_failure(t);
	if (t->stop_on_error)
		unit_end(u);
	else if (call->status)
		unit_retry(u);
	else
		unit_again(u);
}

static struct lst_msg ping_request(struct lst_unit *u)
{
	struct lst_cpt *cpt = u->lane->cpt;
	struct lst_msg msg = { .type = LST_PING };
	uint64_t now = lnet_now(cpt->lst->node, cpt->index);

	u->sequence = atomic_fetch_add(&cpt->lst->sequence, 1);
	msg.ping.magic = LST_PING_MAGIC;
	msg.ping.sequence = u->sequence;
	msg.ping.sec = now / NS_PER_S; /* the receiver does not use the time */
	msg.ping.nsec = now % NS_PER_S;
	return msg;
}

static struct lst_msg brw_request(const struct lst_unit *u)
{
	const struct lst_brw_params *brw = &u->test->brw;

	return (struct lst_msg){ .type = LST_BRW,
				 .brw = { .opcode = brw->opcode,
					  .length = brw->length,
					  .flags = brw->flags } };
}

static struct lst_bulk brw_bulk(const struct lst_unit *u)
{
	const struct lst_brw_params *brw = &u->test->brw;
	enum lst_check check = (enum lst_check)brw->flags;
	bool write = brw->opcode == LST_WRITE;

	if (write)
		lst_data_fill(u->memory, brw->length, brw->offset, check);
	else
		lst_data_poison(u->memory, brw->length, brw->offset, check);
	return (struct lst_bulk){ .op = write ? LNET_MD_OP_GET : LNET_MD_OP_PUT,
				  .memory = u->memory,
				  .length = brw->length };
}

static int unit_send(struct lst_unit *u)
{
	const struct lst_session *s = u->test->session;
	struct lst_cpt *cpt = u->lane->cpt;
	bool ping = u->test->service == LST_SERVICE_PING;
	struct lst_msg msg = ping ? ping_request(u) : brw_request(u);
	struct lst_bulk bulk = { 0 };

	msg.features = s->features;
	if (!ping)
		bulk = brw_bulk(u);
	u->call.done = unit_done;
	u->began = lnet_now(s->lst->node, cpt->index);
	return lst_call_begin(&cpt->calls, &u->call, u->target, &msg,
			      ping ? NULL : &bulk, s->lst->conf.rpc_s);
}

static void unit_next(struct lst_unit *u)
{
	struct lst_test *t = u->test;

	if (t->stopping || u->left == 0) {
		unit_end(u);
		return;
	}
	if (u->left > 0)
		u->left--;
	if (unit_send(u) == 0) {
		u->running = true;
		return;
	}
	/* If a request cannot even be begun, the next one would fail, too. */
	count_failure(t);
	unit_end(u);
}
