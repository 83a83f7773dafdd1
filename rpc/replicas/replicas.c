/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/replicas/replicas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/context/intercept.h"
#include "rpc/replicas/call.h"
#include "rpc/stream/streams.h"
#include "rpc/text.h"

/* ns: how long servers wait for which there was no memory */
#define MISSING_PAUSE NSEC_PER_SEC

/* ---- the configuration ---- */

void ulrpc_replicas_conf_init(struct ulrpc_replicas_conf *conf)
{
	*conf = (struct ulrpc_replicas_conf){ 0 };
}

#define refuse(conf, ...) \
	conf_refuse(client_conf_owner(&(conf)->client), -EINVAL, __VA_ARGS__)

static int nids_check(const struct ulrpc_replicas_conf *conf)
{
	const struct ulrpc_client_conf *c = &conf->client;
	char nid[LNET_NIDSTR_SIZE];

	if (!c->nids || !c->nnids)
		return refuse(conf, "nids: there are none");
	if (c->nnids > ULRPC_REPLICAS_MAX)
		return refuse(conf, "nnids: %u is more than %d", c->nnids,
			      ULRPC_REPLICAS_MAX);
	for (unsigned int i = 0; i < c->nnids; i++) {
		if (lnet_nid_is_any(&c->nids[i]))
			return refuse(conf, "nids: LNET_NID_ANY is not the NID "
					    "of one server");
		for (unsigned int j = 0; j < i; j++)
			if (lnet_nid_eq(&c->nids[i], &c->nids[j]))
				return refuse(conf, "nids: %s comes twice",
					      lnet_nid_format(&c->nids[i], nid,
							      sizeof(nid)));
	}
	return 0;
}

static int target_check(const struct ulrpc_replicas_conf *conf)
{
	struct ulnet_target target;
	struct ulnet_text_error err;

	if (conf->client.nids || conf->client.nnids)
		return refuse(conf, "nids: target is set, too");
	if (lnet_target_parse(conf->client.target, &target, &err))
		return refuse(conf, "target: '%.100s': %s",
			      conf->client.target + err.offset, err.what);
	return 0;
}

static int conf_check(const struct ulrpc *rpc,
		      const struct ulrpc_replicas_conf *conf)
{
	int rc = client_conf_check(rpc, &conf->client);

	if (rc)
		return rc;
	if ((unsigned int)conf->choice > ULRPC_CHOOSE_TURNS)
		return refuse(conf, "choice: %u is none",
			      (unsigned int)conf->choice);
	if (conf->hedge > 1000)
		return refuse(conf, "hedge: %u is more than 1000", conf->hedge);
	return conf->client.target ? target_check(conf) : nids_check(conf);
}

/* Copies what the user has given. */
static int conf_take(struct ulrpc_replicas *rs,
		     const struct ulrpc_replicas_conf *conf)
{
	const struct ulrpc_client_conf *c = &conf->client;

	rs->choice = conf->choice;
	rs->hedge = conf->hedge;
	rs->streams.window_messages = conf->window_messages;
	rs->streams.window_bytes = conf->window_bytes;
	rs->streams.patience = conf->patience;
	atomic_init(&rs->patience, streams_patience(&rs->streams));
	rs->conf = *c;
	rs->conf.target = NULL;
	rs->conf.err = NULL;
	if (!c->inflight_max)
		rs->conf.inflight_max = CLIENT_INFLIGHT_MAX;
	rs->retry = c->retry ? *c->retry
			     : (struct ulrpc_retry){ .max = ULRPC_RETRIES_ANY };
	rs->tell_overloaded = rs->retry.tell_overloaded;
	rs->retry.tell_overloaded = true;
	rs->conf.retry = &rs->retry;
	backlog_init(&rs->backlog, c->queue_max, c->queue_bytes);
	rs->conf.queue_max = UINT32_MAX;
	rs->conf.queue_bytes = UINT64_MAX;
	text_copy(rs->service, sizeof(rs->service), c->service);
	rs->conf.service = rs->service;
	if (call_chain_new(c->interceptors, c->ninterceptors, NULL, 0,
			   &rs->chain))
		return -ENOMEM;
	if (rs->chain)
		rs->conf.interceptors = rs->chain->list;
	if (c->target)
		rs->target = strdup(c->target);
	if (c->server)
		rs->conf.server = rs->server = strdup(c->server);
	if (c->nnids) {
		rs->nids = calloc(c->nnids, sizeof(*rs->nids));
		if (!rs->nids)
			return -ENOMEM;
		memcpy(rs->nids, c->nids, c->nnids * sizeof(*rs->nids));
		rs->nnids = c->nnids;
	}
	return (c->target && !rs->target) || (c->server && !rs->server)
		       ? -ENOMEM
		       : 0;
}

/* ---- what is known of a server ---- */

static void replicas_give(struct ulrpc_replicas *rs)
{
	if (rs->given)
		return;
	rs->given = true;
	shard_hold(rs->shard);
	shard_defer(rs->shard, &rs->work);
}

/* What client_watch.fn calls. */
static void replica_on_news(void *arg, enum client_news news)
{
	struct replica *r = arg;

	r->changed = true;
	if (news == CLIENT_GONE)
		r->lost = true;
	else
		r->down = news == CLIENT_DOWN;
	replicas_give(r->all);
}

void replica_give_up(struct replica *r, bool outlier)
{
	struct shard *s = r->all->shard;
	uint64_t now = shard_now(s);
	char nid[LNET_NIDSTR_SIZE];

	if (r->fsm.state == REPLICA_LEFT)
		return;
	replica_leave(r, outlier, now, shard_random(s, UINT64_MAX));
	lnet_log(LNET_LOG_INFO, "rpc", "%s: %s, it is left for %u ms",
		 lnet_nid_format(&r->address.nid, nid, sizeof(nid)),
		 outlier ? "slower than others, or calls fail"
			 : "not there, or it goes",
		 (unsigned int)((r->until - now) / NSEC_PER_MSEC));
}

/* Takes calls away from @r, which cannot be connected to, and may be gone. */
static void replica_lose(struct replica *r)
{
	calls_leave(r);
	if (r->lost)
		openings_lose(r);
	r->lost = false;
}

static bool replica_look(struct replica *r)
{
	r->changed = false;
	if (r->down) {
		replica_give_up(r, false);
		replica_lose(r);
		return false;
	}
	r->lost = false;
	if (!client_is_well(r->client))
		return false;
	replica_is_back(r);
	return true;
}

static bool replicas_add_missing(struct ulrpc_replicas *rs);
static void replicas_leave_gone(struct ulrpc_replicas *rs, bool all);

static void replicas_on_work(struct ulnet_work *work)
{
	struct ulrpc_replicas *rs =
		container_of(work, struct ulrpc_replicas, work);
	struct shard *s = rs->shard;
	bool found = false;

	rs->given = false;
	rs->busy++;
	for (unsigned int i = 0; i < rs->n; i++)
		if (rs->all[i]->changed)
			found |= replica_look(rs->all[i]);
	replicas_leave_gone(rs, false);
	if (rs->nmissing && replicas_are_open(rs))
		found |= replicas_add_missing(rs);
	if (found)
		calls_on_server(rs);
	rs->busy--;
	replicas_on_quiet(rs);
	shard_release(s);
}

/* ---- servers come and go ---- */

static int number_take(struct ulrpc_replicas *rs, unsigned int *number_p)
{
	for (unsigned int i = 0; i < ULRPC_REPLICAS_MAX; i++)
		if (!replica_set_has(&rs->numbers, i)) {
			replica_set_add(&rs->numbers, i);
			*number_p = i;
			return 0;
		}
	return -ENOSPC;
}

static int replica_open(struct replica *r)
{
	struct ulrpc_replicas *rs = r->all;
	struct ulrpc_client_conf conf = rs->conf;
	int rc = number_take(rs, &r->number);

	if (rc)
		return rc;
	conf.nids = &r->address.nid;
	conf.nnids = 1;
	rc = client_open_at(rs->rpc, rs->shard->cpt, &conf, !rs->target,
			    &r->client);
	if (rc) {
		replica_set_del(&rs->numbers, r->number);
		return rc;
	}
	r->client->of_set = true;
	r->client->watch = (struct client_watch){ replica_on_news, r };
	return 0;
}

static int replica_new(struct ulrpc_replicas *rs,
		       const struct ulnet_address *address,
		       struct replica **replica_p)
{
	struct replica *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->all = rs;
	r->address = *address;
	r->hash = replica_hash(&address->nid);
	r->fsm.state = REPLICA_USED;
	list_init(&r->gone);
	list_init(&r->attempts);
	rc = replica_open(r);
	if (rc)
		free(r);
	else
		*replica_p = r;
	return rc;
}

static void replica_free(struct replica *r)
{
	r->client->watch = (struct client_watch){ 0 };
	list_unlink(&r->gone);
	replica_set_del(&r->all->numbers, r->number);
	free(r);
}

void replica_on_idle(struct replica *r)
{
	struct ulrpc_replicas *rs = r->all;

	if (list_empty(&r->gone) || r->under_way)
		return;
	ulrpc_client_close(r->client);
	/* Streams that are open there go on. */
	if (r->streams)
		streams_retire(r->streams);
	replica_free(r);
	if (rs->nmissing && replicas_are_open(rs))
		replicas_give(rs); /* there is room for one of them */
}

/* Inserts @r behind the servers of its priority, so that the order of those
 * that were there does not change: ULRPC_CHOOSE_FIRST goes on choosing the same
 * one. */
static void replicas_insert(struct ulrpc_replicas *rs, struct replica *r)
{
	unsigned int i = rs->n++;

	for (; i && rs->all[i - 1]->address.priority > r->address.priority; i--)
		rs->all[i] = rs->all[i - 1];
	rs->all[i] = r;
}

/* If the node only calls, adds the NI by which this host reaches the server, if
 * that needs no waiting. */
static void replicas_reach(const struct ulrpc_replicas *rs,
			   const struct ulnet_nid *nid)
{
	struct lnet *node = rs->shard->node;
	struct ulnet_id own;
	char text[LNET_NIDSTR_SIZE];
	int rc;

	if (LNetGetId(node, 0, &own) || !(own.pid & LNET_PID_USERFLAG))
		return;
	rc = lnet_ni_reach(node, nid);
	if (rc)
		lnet_log(LNET_LOG_INFO, "rpc", "%s: no interface for it: %s",
			 lnet_nid_format(nid, text, sizeof(text)),
			 strerror(-rc));
}

static int replicas_add(struct ulrpc_replicas *rs,
			const struct ulnet_address *address)
{
	struct replica *r;
	int rc;

	if (rs->n == ULRPC_REPLICAS_MAX)
		return -ENOSPC;
	rc = replica_new(rs, address, &r);
	if (!rc)
		replicas_insert(rs, r);
	return rc;
}

static const struct ulnet_address *answer_find(
	const struct ulnet_name_answer *answer, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < answer->n; i++)
		if (lnet_nid_eq(&answer->addresses[i].nid, nid))
			return &answer->addresses[i];
	return NULL;
}

/* Keeps the servers that are in @answer, and moves the others to rs->gone. */
static void replicas_keep(struct ulrpc_replicas *rs,
			  const struct ulnet_name_answer *answer)
{
	struct replica *old[ULRPC_REPLICAS_MAX];
	unsigned int n = rs->n;

	memcpy(old, rs->all, n * sizeof(*old));
	rs->n = 0;
	for (unsigned int i = 0; i < n; i++) {
		const struct ulnet_address *a =
			answer_find(answer, &old[i]->address.nid);

		if (a) {
			old[i]->address = *a;
			replicas_insert(rs, old[i]);
		} else {
			list_add_tail(&rs->gone, &old[i]->gone);
		}
	}
}

static bool replicas_have(const struct ulrpc_replicas *rs,
			  const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < rs->n; i++)
		if (lnet_nid_eq(&rs->all[i]->address.nid, nid))
			return true;
	return false;
}

/* Adds servers of the name that the set has not, as far as there are room and
 * memory. Returns 0, or why some are still missing: -ENOSPC or another -errno.
 */
static int missing_try(struct ulrpc_replicas *rs)
{
	unsigned int n = rs->nmissing;
	int rc = 0;

	rs->nmissing = 0;
	for (unsigned int i = 0; i < n; i++) {
		const struct ulnet_address a = rs->missing[i];
		int one;

		if (replicas_have(rs, &a.nid))
			continue;
		replicas_reach(rs, &a.nid);
		one = replicas_add(rs, &a);
		if (!one)
			continue;
		rs->missing[rs->nmissing++] = a;
		rc = one;
	}
	/* Room comes with the end of a call; that of memory is not told. */
	if (rc && rc != -ENOSPC)
		shard_arm(rs->shard, &rs->missing_timer,
			  rpc_at(shard_now(rs->shard), MISSING_PAUSE));
	return rc;
}

/* Returns whether a server was added. */
static bool replicas_add_missing(struct ulrpc_replicas *rs)
{
	unsigned int n = rs->nmissing;

	shard_cancel(rs->shard, &rs->missing_timer);
	if (!missing_try(rs))
		lnet_log(LNET_LOG_INFO, "rpc",
			 "%s: there is room for all servers again", rs->target);
	return rs->nmissing < n;
}

static void missing_on_timer(struct ulnet_timer *timer)
{
	replicas_give(
		container_of(timer, struct ulrpc_replicas, missing_timer));
}

static void replicas_take(struct ulrpc_replicas *rs,
			  const struct ulnet_name_answer *answer)
{
	int rc;

	shard_cancel(rs->shard, &rs->missing_timer);
	rs->nmissing = 0;
	for (unsigned int i = 0; i < answer->n; i++)
		if (!replicas_have(rs, &answer->addresses[i].nid))
			rs->missing[rs->nmissing++] = answer->addresses[i];
	rc = missing_try(rs);
	if (rc)
		lnet_log(LNET_LOG_WARN, "rpc",
			 "%s: %u servers are not called until there is room "
			 "for them: %s",
			 rs->target, rs->nmissing, strerror(-rc));
}

/* Takes calls away from servers that are not in the set any more, as far as
 * they may go to others. @all: not only from those that have just been found
 * not to be there. */
static void replicas_leave_gone(struct ulrpc_replicas *rs, bool all)
{
	struct replica *r, *next;

	list_for_each_entry_safe (r, next, &rs->gone, gone) {
		bool leave = all || (r->changed && r->down);

		/* The server may have come back since. */
		if (!r->down)
			r->lost = false;
		r->changed = false;
		if (!leave)
			continue;
		/* so that calls which end meanwhile do not free @r */
		r->under_way++;
		replica_lose(r);
		r->under_way--;
		replica_on_idle(r);
	}
}

static void replicas_on_answer(void *arg,
			       const struct ulnet_name_answer *answer)
{
	struct ulrpc_replicas *rs = arg;

	memcpy(rs->why, answer->why, sizeof(rs->why));
	rs->answered = true;
	rs->busy++;
	if (answer->n) {
		replicas_keep(rs, answer);
		replicas_take(rs, answer);
		replicas_leave_gone(rs, true);
		calls_on_server(rs);
	} else {
		calls_on_no_address(rs);
	}
	rs->busy--;
	replicas_on_quiet(rs);
}

/* ---- life ---- */

static void replicas_free(struct ulrpc_replicas *rs)
{
	times_free(&rs->times);
	free(rs->nids);
	free(rs->target);
	free(rs->server);
	call_chain_put(rs->chain);
	free(rs);
}

static int attach_nids(struct ulrpc_replicas *rs)
{
	int rc = 0;

	for (unsigned int i = 0; i < rs->nnids && !rc; i++) {
		const struct ulnet_address address = { .nid = rs->nids[i] };

		rc = replicas_add(rs, &address);
	}
	return rc;
}

/* Closes the clients, and takes the set out of its list. */
static void replicas_detach(struct ulrpc_replicas *rs)
{
	list_unlink(&rs->link);
	lnet_name_close(rs->name);
	rs->name = NULL;
	shard_cancel(rs->shard, &rs->waiting_timer);
	shard_cancel(rs->shard, &rs->missing_timer);
	while (rs->n) {
		struct replica *r = rs->all[--rs->n];

		ulrpc_client_close(r->client);
		ulrpc_streams_close(r->streams);
		replica_free(r);
	}
}

/* Called by lnet_call() on the set's CPT: opens the name, or the clients. */
static int replicas_attach(void *arg)
{
	struct ulrpc_replicas *rs = arg;
	struct shard *s = rs->shard;
	int rc;

	if (s->closing)
		return -ESHUTDOWN;
	list_add_tail(&s->replicas->sets, &rs->link);
	rc = rs->target
		     ? lnet_name_open(s->node, s->cpt, rs->target,
				      replicas_on_answer, rs, &rs->name, NULL)
		     : attach_nids(rs);
	if (rc)
		replicas_detach(rs);
	return rc;
}

void replicas_on_quiet(struct ulrpc_replicas *rs)
{
	if (!rs->closed || rs->given || rs->busy || !list_empty(&rs->calls))
		return;
	replicas_detach(rs);
	replicas_free(rs);
}

static void replicas_on_close(struct ulnet_work *work)
{
	struct ulrpc_replicas *rs =
		container_of(work, struct ulrpc_replicas, close_work);
	struct shard *s = rs->shard;

	rs->closed = true;
	rs->busy++;
	calls_cancel(rs);
	rs->busy--;
	replicas_on_quiet(rs);
	shard_taken(s);
}

static struct ulrpc_replicas *replicas_new(struct ulrpc *rpc)
{
	struct ulrpc_replicas *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	rs->rpc = rpc;
	strcpy(rs->why, "nobody has answered yet");
	list_init(&rs->link);
	list_init(&rs->gone);
	list_init(&rs->calls);
	list_init(&rs->parked);
	list_init(&rs->waiting);
	times_init(&rs->times);
	lnet_timer_init(&rs->waiting_timer, calls_on_waiting);
	lnet_timer_init(&rs->missing_timer, missing_on_timer);
	rs->work.fn = replicas_on_work;
	rs->close_work.fn = replicas_on_close;
	return rs;
}

/* Chooses the CPT, and adds NIs by which this node reaches one of the servers.
 */
static int replicas_place(struct ulrpc *rpc,
			  const struct ulrpc_client_conf *conf,
			  unsigned int *cpt_p)
{
	if (conf->target)
		return client_name_cpt(rpc, conf, cpt_p);
	*cpt_p = lnet_in_turn()
			 ? (unsigned int)MAX(lnet_cpt_current(rpc->node), 0)
			 : (unsigned int)lnet_cpt_of(rpc->node, conf->nids);
	return client_reach(rpc, conf);
}

int ulrpc_replicas_open(struct ulrpc *rpc,
			const struct ulrpc_replicas_conf *conf,
			struct ulrpc_replicas **replicas_p)
{
	struct ulrpc_replicas *rs;
	unsigned int cpt;
	int rc = conf_check(rpc, conf);

	if (!rc &&
	    (atomic_load(&rpc->state) != RPC_OPEN || lnet_is_forked(rpc->node)))
		rc = -ESHUTDOWN;
	if (!rc)
		rc = replicas_place(rpc, &conf->client, &cpt);
	if (rc)
		return rc;
	rs = replicas_new(rpc);
	if (!rs)
		return -ENOMEM;
	rs->shard = &rpc->shards[cpt];
	rc = conf_take(rs, conf);
	/* The call waits if another thread runs the CPT. */
	if (!rc)
		rc = lnet_call(rpc->node, cpt, replicas_attach, rs);
	if (rc) {
		replicas_free(rs);
		return rc == -EXDEV ? -EDEADLK : rc;
	}
	*replicas_p = rs;
	return 0;
}

void ulrpc_replicas_close(struct ulrpc_replicas *rs)
{
	if (rs && !lnet_is_forked(rs->shard->node))
		shard_give(rs->shard, &rs->close_work);
}

struct ulrpc *ulrpc_replicas_rpc(struct ulrpc_replicas *rs)
{
	return rs->rpc;
}

unsigned int ulrpc_replicas_cpt(const struct ulrpc_replicas *rs)
{
	return rs->shard->cpt;
}

/* ---- with RPC ---- */

static void on_abort(struct ulnet_work *work)
{
	struct replicas_shard *x =
		container_of(work, struct replicas_shard, abort_work);
	struct shard *s = x->shard;
	struct ulrpc_replicas *rs, *next;

	list_for_each_entry_safe (rs, next, &x->sets, link) {
		rs->busy++;
		if (shard_is_mute(s))
			calls_drop(rs);
		else
			calls_cancel(rs);
		rs->busy--;
		replicas_on_quiet(rs);
	}
	shard_release(s);
}

static int replicas_shard_open(struct shard *s)
{
	s->replicas->shard = s;
	list_init(&s->replicas->sets);
	s->replicas->abort_work.fn = on_abort;
	return 0;
}

static void replicas_shard_abort(struct shard *s)
{
	shard_hold(s);
	shard_defer(s, &s->replicas->abort_work);
}

static void replicas_shard_stop(struct shard *s)
{
	struct ulrpc_replicas *rs;

	list_for_each_entry (rs, &s->replicas->sets, link) {
		lnet_name_close(rs->name);
		rs->name = NULL;
		shard_cancel(s, &rs->waiting_timer);
		shard_cancel(s, &rs->missing_timer);
	}
}

/* Frees the sets that their users have not closed. */
static void replicas_shard_free(struct shard *s)
{
	struct ulrpc_replicas *rs;

	while ((rs = list_pop(&s->replicas->sets, struct ulrpc_replicas,
			      link))) {
		calls_drop(rs);
		while (rs->n)
			replica_free(rs->all[--rs->n]);
		while (!list_empty(&rs->gone))
			replica_free(
				list_first(&rs->gone, struct replica, gone));
		replicas_free(rs);
	}
}

const struct rpc_part replicas_part = {
	RPC_PART_STATE(struct replicas_shard, replicas),
	.shard_open = replicas_shard_open,
	.shard_abort = replicas_shard_abort,
	.shard_stop = replicas_shard_stop,
	.shard_free = replicas_shard_free,
};
