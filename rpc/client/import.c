/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/import_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/backoff.h"
#include "rpc/client/attempt.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/batch.h"
#include "rpc/client/fetch.h"
#include "rpc/client/naming.h"
#include "rpc/client/shake.h"
#include "rpc/control.h"
#include "rpc/conn_event.h"
#include "rpc/sealed.h"
#include "rpc/wire/wire.h"

/* A Connect that was not answered is sent again after this time. */
#define REPEAT_AFTER (100 * NSEC_PER_MSEC)
/* How many rails a server is told of, at most, besides that of the connection.
 */
#define JOINS_MAX 64
/* Pauses between attempts to connect have full jitter: this is the range of the
 * first pause, and below is the largest range. */
#define PAUSE_FIRST (10 * NSEC_PER_MSEC)
#define PAUSE_MAX   (100 * NSEC_PER_MSEC)
/* Each range is at least JITTER_EACH for each client of the server, up to
 * JITTER_MAX: all the clients may have lost it at the same moment. */
#define JITTER_EACH (100 * NSEC_PER_USEC)
#define JITTER_MAX  NSEC_PER_SEC
/* After so many probes without an answer the server counts as dead. */
#define PROBES_MAX	   5
#define PROBE_INTERVAL_MIN (10 * NSEC_PER_MSEC)
#define PROBE_INTERVAL_MAX NSEC_PER_SEC
#define KEEPALIVE_MIN	   (10 * NSEC_PER_MSEC)
/* The round trip that is assumed before the first sample, at least. */
#define RTT_UNKNOWN (100 * NSEC_PER_MSEC)
/* So long after the last message, a keepalive tells the server which calls have
 * ended. */
#define ACK_SOON (500 * NSEC_PER_MSEC)
/* Once in so many keepalive intervals, a keepalive is sent even to a server
 * that is heard from all the time: the answer says how many clients the server
 * has. */
#define CENSUS_KEEPALIVES 6

const struct fsm_state import_states[IMPORT_STATES] = {
	[IMPORT_IDLE] = { "idle",
			  FSM_TO(IMPORT_CONNECTING) | FSM_TO(IMPORT_CLOSED) },
	[IMPORT_CONNECTING] = { "connecting", FSM_TO(IMPORT_FULL) |
						      FSM_TO(IMPORT_DISCONN) |
						      FSM_TO(IMPORT_CLOSED) },
	[IMPORT_FULL] = { "full",
			  FSM_TO(IMPORT_SUSPECT) | FSM_TO(IMPORT_DISCONN) |
				  FSM_TO(IMPORT_IDLE) | FSM_TO(IMPORT_CLOSED) },
	[IMPORT_SUSPECT] = { "suspect", FSM_TO(IMPORT_FULL) |
						FSM_TO(IMPORT_DISCONN) |
						FSM_TO(IMPORT_IDLE) |
						FSM_TO(IMPORT_CLOSED) },
	[IMPORT_DISCONN] = { "disconnected", FSM_TO(IMPORT_CONNECTING) |
						     FSM_TO(IMPORT_IDLE) |
						     FSM_TO(IMPORT_CLOSED) },
	[IMPORT_CLOSED] = { "closed", 0 },
};

static void import_move(struct import *imp, enum import_state to)
{
	char nid[LNET_NIDSTR_SIZE];

	if (unlikely(lnet_log_on_for(LNET_LOG_DEBUG, "rpc")))
		lnet_log(
			LNET_LOG_DEBUG, "rpc", "%s: %s -> %s, epoch %u",
			lnet_nid_format(&imp->nids[imp->nid], nid, sizeof(nid)),
			fsm_name(&imp->fsm, import_states),
			import_states[to].name, imp->epoch);
	fsm_move(&imp->fsm, import_states, to);
}

/* FULL <-> SUSPECT. */
static void import_move_doubt(struct import *imp, enum import_state to)
{
	import_move(imp, to);
	import_each_client(imp, client_on_doubt);
}

void import_log(const struct import *imp, const char *what)
{
	char nid[LNET_NIDSTR_SIZE];

	lnet_log(LNET_LOG_INFO, "rpc", "%s: %s",
		 lnet_nid_format(&imp->nids[imp->nid], nid, sizeof(nid)), what);
}

uint64_t import_acked(const struct import *imp)
{
	if (list_empty(&imp->calls))
		return imp->xid;
	return list_first(&imp->calls, struct ulrpc_call, order)->xid - 1;
}

/* Has any client of the import a call? */
static bool import_wanted(const struct import *imp)
{
	struct ulrpc_client *c;

	list_for_each_entry (c, &imp->clients, link)
		if (c->ncalls)
			return true;
	return false;
}

void import_each_client(struct import *imp, void (*fn)(struct ulrpc_client *c))
{
	struct ulrpc_client *c;

	/* A client closes by a work, so none leaves the list while it is
	 * walked. */
	list_for_each_entry (c, &imp->clients, link)
		fn(c);
}

void import_on_slot(struct import *imp)
{
	imp->slots.wanted = false;
	import_each_client(imp, client_kick);
}

/* ---- the loss of the connection ---- */

uint64_t import_jitter(const struct import *imp)
{
	return MIN(JITTER_EACH * imp->server_clients, JITTER_MAX);
}

uint64_t import_pause(const struct import *imp, unsigned int n)
{
	uint64_t jitter = import_jitter(imp);
	const struct backoff_law law = { .base = MAX(PAUSE_FIRST, jitter),
					 .cap = MAX(PAUSE_MAX, jitter) };

	return backoff_pause(&law, n + 1, shard_random(imp->shard, UINT64_MAX));
}

/* Called when the connection is lost, or could not be made: connects again
 * after @wait ns. */
static void disconnected(struct import *imp, uint64_t wait)
{
	import_move(imp, IMPORT_DISCONN);
	shake_end(imp);
	shard_cancel(imp->shard, &imp->pause);
	shard_arm(imp->shard, &imp->timer, rpc_at(shard_now(imp->shard), wait));
	batches_abort(imp);
	import_each_client(imp, client_on_disconnected);
}

/* Called when an attempt to connect has failed: did nobody listen there? */
static void nobody_count(struct import *imp)
{
	if (!imp->unheard)
		imp->nobody = 0;
	else if (!imp->nobody++)
		imp->nobody_since = shard_now(imp->shard);
}

bool import_is_gone(const struct import *imp)
{
	return imp->nobody > imp->nnids &&
	       shard_now(imp->shard) >= imp->nobody_since + IMPORT_GONE;
}

void import_gone_for(const struct import *imp, char *text, size_t size)
{
	uint64_t ns = shard_now(imp->shard) - imp->nobody_since;
	char nid[LNET_NIDSTR_SIZE];

	if (import_is_gone(imp))
		snprintf(text, size, "%s%s: nobody has listened there for %u s",
			 lnet_nid_format(&imp->nids[0], nid, sizeof(nid)),
			 imp->nnids > 1 ? " and the server's other NIDs" : "",
			 (unsigned int)(ns / NSEC_PER_SEC));
}

void import_no_server(const struct import *imp, char *text, size_t size)
{
	char nid[LNET_NIDSTR_SIZE];

	if (import_is_gone(imp))
		import_gone_for(imp, text, size);
	else if (imp->error)
		snprintf(text, size, "%s: %s",
			 lnet_nid_format(&imp->nids[imp->tried], nid,
					 sizeof(nid)),
			 strerror(-imp->error));
}

void import_try_again(struct import *imp)
{
	bool more = imp->untried && !imp->retry_after;

	nobody_count(imp);
	imports_use_nid(imp, (imp->nid + 1) % imp->nnids);
	if (more) {
		imp->untried--;
		disconnected(imp, 0);
		return;
	}
	imp->untried = imp->nnids - 1;
	disconnected(imp, imp->retry_after + import_pause(imp, imp->failures));
	imp->failures++;
	/* A pause that the server has asked for is not ended by a sign of life.
	 */
	if (!imp->retry_after)
		imp->waiting = true;
	imp->retry_after = 0;
}

void import_failed(struct import *imp)
{
	bool all = !imp->untried || imp->retry_after;

	imp->unreached = all;
	import_try_again(imp);
	if (all)
		import_each_client(imp, client_on_unreachable);
	if (all && import_is_gone(imp))
		import_each_client(imp, client_on_gone);
}

/* Called when the connection, in FULL or SUSPECT, is lost. */
static void import_lose(struct import *imp, const char *why)
{
	import_log(imp, why);
	stat_count(imp->shard, RPC_STAT_connections_lost);
	imp->untried = imp->nnids - 1;
	imp->probes = 0;
	imp->detect_within = 0;
}

/* The server is alive, so this tries the same NID again, after a pause. Signs
 * of life do not end the pause: the same answer to other calls in flight would
 * be such a sign. */
void import_lost(struct import *imp, uint32_t epoch)
{
	if (epoch != imp->epoch || !import_is_up(imp))
		return;
	import_lose(imp, "the server does not know the connection");
	disconnected(imp, import_pause(imp, imp->failures));
	imp->failures++;
}

void import_doubted(struct import *imp, const char *why)
{
	if (imp->fsm.state == IMPORT_CONNECTING) {
		import_try_again(imp);
	} else if (import_is_up(imp)) {
		import_lose(imp, why);
		disconnected(imp, import_pause(imp, imp->failures));
		imp->failures++;
	}
}

static void import_dead(struct import *imp)
{
	import_lose(imp, "no answer: the connection is given up");
	import_try_again(imp);
}

void import_on_sign(struct import *imp)
{
	if (imp->waiting)
		shard_arm(imp->shard, &imp->timer, shard_now(imp->shard));
}

/* ---- messages that were not delivered ---- */

static void import_on_pause_over(struct ulnet_timer *timer)
{
	import_each_client(container_of(timer, struct import, pause),
			   client_kick);
}

void import_undelivered(struct import *imp, uint32_t epoch, uint64_t sent)
{
	uint64_t now = shard_now(imp->shard);

	if (epoch != imp->epoch || !import_is_up(imp))
		return;
	if (sent >= imp->failed) {
		imp->failed = now;
		shard_arm(imp->shard, &imp->pause,
			  rpc_at(now, import_pause(imp, imp->failures++)));
	}
	import_suspect(imp, epoch);
}

void import_served(struct import *imp)
{
	imp->failures = 0;
	if (unlikely(lnet_timer_armed(&imp->pause))) {
		shard_cancel(imp->shard, &imp->pause);
		import_each_client(imp, client_kick);
	}
}

/* ---- connecting ---- */

/* Has the message of @ev found that nobody listens at the server's host? If the
 * next hop is a gateway, it may be the gateway's host that says so. */
static bool is_unheard(const struct ulnet_event *ev)
{
	return ev->status == -ECONNREFUSED &&
	       lnet_nid_eq(&ev->path_hop, &ev->path_peer);
}

static void on_connect_sent(struct shard *s, uint64_t id, uint64_t tag,
			    const struct ulnet_event *ev)
{
	struct import *imp = import_find(s, id);

	if (!imp || imp->epoch != (uint32_t)tag ||
	    imp->fsm.state != IMPORT_CONNECTING)
		return;
	imp->connect_sending = false;
	if (!ev->status)
		return;
	imp->away = ULRPC_CAUSE_OK;
	imp->error = ev->status;
	imp->unheard = is_unheard(ev);
	import_failed(imp);
}

static struct wire_control connect_message(const struct import *imp)
{
	struct wire_control m = {
		.kind = WIRE_CONNECT,
		.connect = {
			.client = imp->handle,
			.epoch = imp->epoch,
			.keepalive = imp->shard->rpc->conf.keepalive,
			.version_min = WIRE_VERSION,
			.version_max = WIRE_VERSION,
			.annexes = true,
			.limits = true,
			.reply_limit = fetch_limit(imp->shard->rpc, 0),
			.former = imp->knows_server ? imp->connection : 0,
		},
	};

	memcpy(m.connect.client_id, imp->name.id, RPC_ID_SIZE);
	return m;
}

static int connecting_send(struct import *imp, struct sealed *sd,
			   const struct wire_control *m)
{
	int rc = control_send_tracked(imp->shard, sd, LNET_NID_ANY,
				      import_target(imp), m, on_connect_sent,
				      imp->handle, imp->epoch);

	imp->connect_sending |= !rc;
	return rc;
}

/* What shake.send calls: the attempt ends if the message is not delivered. */
static int shake_message_send(struct import *imp, const struct wire_control *m)
{
	return connecting_send(imp, NULL, m);
}

void import_connect_send(struct import *imp)
{
	const struct wire_control m = connect_message(imp);
	int rc = -ENOMEM;

	if (!imp->secure || imp->sealed)
		rc = connecting_send(imp, imp->sealed, &m);
	else if (imp->shake)
		rc = shake_send(imp, true);
	if (!rc)
		return;
	/* Without a path to the server, the attempt ends at once. */
	imp->attempt_end = shard_now(imp->shard);
	imp->error = rc;
}

/* Sends Connect again, unless LNet still has the last one. */
static void connect_repeat(struct import *imp)
{
	if (!imp->connect_sending)
		import_connect_send(imp);
	shard_arm(imp->shard, &imp->timer,
		  MIN(imp->attempt_end, shard_now(imp->shard) + REPEAT_AFTER));
}

static void import_connect(struct import *imp)
{
	imp->waiting = false;
	import_move(imp, IMPORT_CONNECTING);
	stat_count(imp->shard, RPC_STAT_connections_begun);
	imp->tried = imp->nid;
	imp->error = -ETIMEDOUT;
	imp->unheard = false;
	imp->epoch++;
	imp->begun = shard_now(imp->shard);
	imp->attempt_end = rpc_at(
		imp->begun, rpc_ns(imp->shard->rpc->conf.connect_timeout));
	imp->connect_sending = false;
	sealed_past_add(&imp->past, imp->sealed);
	sealed_free(imp->sealed);
	imp->sealed = NULL;
	/* If there is no memory for the message, the attempt ends. */
	if (imp->secure)
		(void)shake_begin(imp, shake_message_send);
	connect_repeat(imp);
}

void import_want(struct import *imp)
{
	if (imp->fsm.state != IMPORT_IDLE)
		return;
	imp->untried = imp->nnids - 1;
	import_connect(imp);
}

/* ---- one more rail ---- */

static void on_join_sent(struct shard *s, uint64_t id, uint64_t tag,
			 const struct ulnet_event *ev)
{
	struct import *imp = import_find(s, id);

	if (imp && imp->epoch == (uint32_t)tag && ev->status)
		/* import_unknown() may send the Connect again */
		imp->join.asked = 0;
}

/* Sends the Connect of this connection again, over the rail from @local to
 * @target, which tells the server that @local is a NID of this node. */
static int join_send(struct import *imp, const struct ulnet_nid *local,
		     const struct ulnet_nid *target)
{
	const struct wire_control m = connect_message(imp);
	const struct ulnet_id to = { *target, imp->pid };

	imp->join.asked = shard_now(imp->shard);
	imp->join.n++;
	return control_send_tracked(imp->shard, NULL, *local, to, &m,
				    on_join_sent, imp->handle, imp->epoch);
}

/* Could the server know the connection, but not this rail? Not if messages are
 * sealed: the server then accepts any rail. */
static bool may_join(const struct import *imp, const struct ulnet_nid *local,
		     const struct ulnet_nid *target)
{
	return !imp->secure && !lnet_nid_is_any(local) &&
	       !lnet_nid_is_any(target) &&
	       !lnet_nid_eq(local, &imp->join.made) && imp->join.n < JOINS_MAX;
}

void import_unknown(struct import *imp, uint32_t epoch,
		    const struct ulnet_nid *local,
		    const struct ulnet_nid *target)
{
	uint64_t now = shard_now(imp->shard);

	if (epoch != imp->epoch || !import_is_up(imp))
		return;
	if (imp->join.asked && now < imp->join.asked + REPEAT_AFTER)
		/* not sent: the Connect of join_send() will be answered */
		return;
	if (!may_join(imp, local, target) || join_send(imp, local, target))
		import_lost(imp, epoch);
}

/* ---- round trips ---- */

uint64_t import_rtt(const struct import *imp)
{
	uint64_t rtt = mean_upto(&imp->rtt, 4);

	return rtt ? rtt : MAX(imp->connect_time, RTT_UNKNOWN);
}

uint64_t import_rtt_us(const struct import *imp)
{
	uint64_t rtt = mean_upto(&imp->rtt, 4);

	return (rtt ? rtt : imp->connect_time) / NSEC_PER_USEC;
}

/* ---- probes ---- */

/* Returns the ns between probes: at least a round trip, at most
 * PROBE_INTERVAL_MAX. */
static uint64_t probe_interval(const struct import *imp)
{
	uint64_t rtt = import_rtt_us(imp) * NSEC_PER_USEC;
	uint64_t want = imp->keepalive;

	if (imp->detect_within)
		want = MIN(want, imp->detect_within);
	want = MAX(want / 4, MAX(rtt, PROBE_INTERVAL_MIN));
	return MIN(want, PROBE_INTERVAL_MAX);
}

static void probes_end(struct import *imp)
{
	imp->probes = 0;
	imp->detect_within = 0;
	if (imp->fsm.state == IMPORT_SUSPECT)
		import_move_doubt(imp, IMPORT_FULL);
}

static void on_keepalive_sent(struct shard *s, uint64_t id, uint64_t tag,
			      const struct ulnet_event *ev);

static int keepalive_send(struct import *imp)
{
	struct wire_control m = {
		.kind = WIRE_KEEPALIVE,
		.keepalive = {
			.connection = imp->connection,
			.client = imp->handle,
			.epoch = imp->epoch,
			.sequence = ++imp->sequence,
			.acked = import_acked(imp),
			.rtt = import_rtt_us(imp),
		},
	};

	imp->asked_alive = shard_now(imp->shard);
	return control_send_tracked(imp->shard, imp->sealed, LNET_NID_ANY,
				    import_target(imp), &m, on_keepalive_sent,
				    imp->handle, imp->epoch);
}

static void disconnect_send(struct import *imp)
{
	struct wire_control m = {
		.kind = WIRE_DISCONNECT,
		.disconnect = {
			.connection = imp->connection,
			.client = imp->handle,
			.epoch = imp->epoch,
		},
	};

	/* If the message is lost, the server finds out that the client is
	 * silent. */
	(void)control_send(imp->shard, imp->sealed, LNET_NID_ANY,
			   import_target(imp), &m);
}

static uint64_t census_every(const struct import *imp)
{
	return imp->keepalive > TIME_NEVER / CENSUS_KEEPALIVES
		       ? TIME_NEVER
		       : imp->keepalive * CENSUS_KEEPALIVES;
}

/* Returns when (ns) import_look() has something to do. */
static uint64_t import_next_look(const struct import *imp)
{
	const struct ulrpc_conf *conf = &imp->shard->rpc->conf;
	uint64_t at = rpc_at(MIN(imp->heard, imp->sent), imp->keepalive);

	at = MIN(at, rpc_at(imp->probed, census_every(imp)));
	if (imp->ack_due)
		at = MIN(at, rpc_at(imp->sent, ACK_SOON));
	if (imp->probes && imp->heard < imp->probed)
		at = imp->probed + probe_interval(imp);
	if (!import_wanted(imp))
		at = MIN(at, rpc_at(imp->used, rpc_ns(conf->idle)));
	return at;
}

/* Arms the timer for the next look, at most one keepalive interval after the
 * last one. For the server's certificate may end while calls make no keepalive
 * due; and when a probe is answered, the next keepalive becomes due, but the
 * timer was armed for the probe. */
static void import_arm(struct import *imp)
{
	shard_arm(imp->shard, &imp->timer,
		  MIN(import_next_look(imp),
		      rpc_at(imp->looked, imp->keepalive)));
}

void import_answered(struct import *imp)
{
	import_heard(imp, shard_now(imp->shard));
	probes_end(imp);
	import_arm(imp);
}

/* Called in FULL or DISCONN when no call waits for the connection: the import
 * becomes IDLE. */
static void import_rest(struct import *imp)
{
	imp->waiting = false;
	imp->nobody = 0;
	reply_bufs_drop(imp);
	import_move(imp, IMPORT_IDLE);
}

/* Called when the last probe was not answered: tells LNet that its rail may
 * lose messages, so that the next probe takes another rail. */
static void probe_missed(struct import *imp)
{
	const struct ulnet_id peer = { imp->probe_target, imp->pid };

	conn_event_suspect(imp->shard, &imp->probe_local, &peer,
			   &imp->probe_hop);
	imp->probe_target = LNET_NID_ANY;
}

/* Sends a probe. If there is no memory for it, tries again later, and does not
 * count the probe as unanswered. */
static void import_probe(struct import *imp)
{
	int rc = keepalive_send(imp);

	if (rc && !rpc_is_short(rc)) {
		import_dead(imp);
		return;
	}
	imp->probed = shard_now(imp->shard);
	if (rc) {
		imp->probes = MAX(imp->probes, 1);
	} else {
		imp->probes++;
		imp->sent = imp->probed;
		imp->acked_sent = import_acked(imp);
	}
	import_arm(imp);
}

/* Called when a probe was sent or has failed. If the probe may be lost, repeats
 * it, as the server may be reached by another rail. */
static void on_keepalive_sent(struct shard *s, uint64_t id, uint64_t tag,
			      const struct ulnet_event *ev)
{
	struct import *imp = import_find(s, id);

	if (!imp || imp->epoch != (uint32_t)tag || !import_is_up(imp))
		return;
	imp->probe_local = ev->path_local;
	imp->probe_target = ev->path_peer;
	imp->probe_hop = ev->path_hop;
	if (!ev->status)
		return;
	if (ev->outcome != LNET_OUTCOME_NOT_DELIVERED &&
	    imp->heard >= imp->probed)
		return; /* the server was heard from since the probe */
	if (ev->outcome == LNET_OUTCOME_NOT_DELIVERED ||
	    imp->probes >= PROBES_MAX)
		import_dead(imp);
	else if (imp->fsm.state == IMPORT_FULL)
		import_suspect(imp, imp->epoch);
	else
		import_probe(imp);
}

/* Has the certificate of the server ended? */
static bool import_has_ended(const struct import *imp)
{
	const struct sealed *sd = imp->sealed;

	return sd && sd->who->until && sd->who->until <= time(NULL);
}

static void import_look(struct import *imp)
{
	uint64_t idle = rpc_ns(imp->shard->rpc->conf.idle);
	uint64_t now = shard_now(imp->shard);

	imp->looked = now;
	if (import_has_ended(imp)) {
		import_doubted(imp, "the server's certificate has ended");
		return;
	}
	if (imp->probes && imp->heard >= imp->probed)
		probes_end(imp);
	imports_renew_nid(imp);
	if (imp->acked_sent == import_acked(imp))
		imp->ack_due = false;
	if (!import_wanted(imp) && now >= rpc_at(imp->used, idle)) {
		disconnect_send(imp);
		shard_cancel(imp->shard, &imp->pause);
		import_rest(imp);
		return;
	}
	if (now >= import_next_look(imp)) {
		if (imp->probes >= PROBES_MAX) {
			import_dead(imp);
			return;
		}
		if (imp->probes && imp->fsm.state == IMPORT_FULL)
			import_move_doubt(imp, IMPORT_SUSPECT);
		if (imp->probes)
			probe_missed(imp);
		import_probe(imp);
		return;
	}
	import_arm(imp);
}

void import_ack_soon(struct import *imp)
{
	if (!import_is_up(imp))
		return;
	imp->ack_due = true;
	import_arm(imp);
}

void import_used(struct import *imp)
{
	uint64_t idle = rpc_ns(imp->shard->rpc->conf.idle);

	imp->used = shard_now(imp->shard);
	if (unlikely(idle < imp->keepalive) && import_is_up(imp))
		import_arm(imp);
}

void import_suspect(struct import *imp, uint32_t epoch)
{
	if (epoch != imp->epoch || imp->fsm.state != IMPORT_FULL)
		return;
	import_move_doubt(imp, IMPORT_SUSPECT);
	import_probe(imp);
}

void import_asked(struct import *imp, uint32_t epoch, uint64_t within)
{
	if (epoch != imp->epoch || !import_is_up(imp))
		return;
	imp->detect_within =
		imp->detect_within ? MIN(imp->detect_within, within) : within;
	if (!imp->probes) {
		imp->probes = 1;
		imp->probed = shard_now(imp->shard);
	}
	import_arm(imp);
}

static void import_on_timer(struct ulnet_timer *timer)
{
	struct import *imp = container_of(timer, struct import, timer);

	switch ((enum import_state)imp->fsm.state) {
	case IMPORT_CONNECTING:
		if (shard_now(imp->shard) < imp->attempt_end) {
			connect_repeat(imp);
			break;
		}
		imp->away = ULRPC_CAUSE_OK;
		if (rpc_is_short(
			    imp->error)) /* this says nothing of the server */
			import_try_again(imp);
		else
			import_failed(imp);
		break;
	case IMPORT_FULL:
	case IMPORT_SUSPECT:
		import_look(imp);
		break;
	case IMPORT_DISCONN:
		if (import_wanted(imp))
			import_connect(imp);
		else
			import_rest(imp);
		break;
	default:
		break;
	}
}

/* ---- messages of the server ---- */

void import_connected(struct import *imp, const struct wire_connected *m)
{
	uint64_t now = shard_now(imp->shard);
	struct ulrpc_client *c;
	bool restarted = imp->knows_server &&
			 memcmp(imp->server_id, m->server_id, RPC_ID_SIZE) != 0;
	/* If a late copy of an old Connect has made this connection, it has no
	 * records of the import's calls. */
	bool forgotten = restarted || !m->reconnected ||
			 m->connection != imp->connection;

	stat_count(imp->shard, RPC_STAT_connections_made);
	if (imp->knows_server)
		stat_count(imp->shard, RPC_STAT_connections_remade);
	if (restarted) {
		stat_count(imp->shard, RPC_STAT_servers_restarted);
		imp->backoff = 0;
		import_each_client(imp, client_forget_times);
	}
	imp->restarted = restarted;
	imp->absent = restarted ? 0 : rpc_ns(m->absent);
	imp->knows_server = true;
	imports_renew_nid(imp);
	memcpy(imp->server_id, m->server_id, RPC_ID_SIZE);
	imp->connection = m->connection;
	imp->keepalive = rpc_ns(m->keepalive ? m->keepalive
					     : imp->shard->rpc->conf.keepalive);
	imp->keepalive = MAX(imp->keepalive, KEEPALIVE_MIN);
	imp->server_clients = m->clients;
	imp->heard = imp->sent = imp->used = imp->probed = now;
	imp->looked = now;
	imp->since = now;
	imp->acked_sent = 0;
	imp->ack_due = true;
	imp->connect_time = now - imp->begun;
	imp->failed = 0;
	budget_begin(&imp->budget, imp->xid, now);
	imp->away = ULRPC_CAUSE_OK;
	imp->unreached = false;
	imp->error = 0;
	imp->nobody = 0;
	imp->refusal[0] = '\0';
	imp->probes = 0;
	imp->detect_within = 0;
	imp->untried = imp->nnids - 1;
	shake_end(imp);
	import_move(imp, IMPORT_FULL);
	if (restarted)
		import_log(imp, "the server has restarted");
	import_arm(imp);
	/* All clients are told of the loss before any of them sends: a callback
	 * may make a call of another client. */
	imp->annexes = m->annexes;
	naming_reset(imp, m->sets);
	slots_grant(&imp->slots, m->slots ? m->slots : WIRE_SLOTS_USUAL);
	if (forgotten)
		import_each_client(imp, client_unopen);
	else
		attempts_ask(imp, NULL);
	attempts_without_slot(imp);
	list_for_each_entry (c, &imp->clients, link)
		client_on_connected(c, forgotten);
	imp->absent = 0;
}

/* ---- life ---- */

struct import *import_new(struct shard *s, const struct ulnet_nid *nids,
			  unsigned int nnids, uint32_t pid, bool secure)
{
	struct import *imp = calloc(1, sizeof(*imp));

	if (!imp)
		return NULL;
	if (slots_init(&imp->slots)) {
		free(imp);
		return NULL;
	}
	imp->shard = s;
	imp->nnids = nnids;
	imp->pid = pid;
	imp->secure = secure;
	memcpy(imp->nids, nids, nnids * sizeof(nids[0]));
	imp->probe_local = imp->probe_target = imp->probe_hop = LNET_NID_ANY;
	imp->fsm.state = IMPORT_IDLE;
	list_init(&imp->link);
	list_init(&imp->clients);
	list_init(&imp->batches);
	list_init(&imp->reply_bufs);
	list_init(&imp->cancels.link);
	list_init(&imp->calls);
	lnet_timer_init(&imp->timer, import_on_timer);
	lnet_timer_init(&imp->pause, import_on_pause_over);
	lnet_timer_init(&imp->conn_loss.timer, NULL);
	return imp;
}

struct import *import_new_nameless(struct shard *s, bool secure)
{
	const struct ulnet_nid none = LNET_NID_ANY;
	struct import *imp = import_new(s, &none, 1, LNET_PID_ANY, secure);

	if (!imp)
		return NULL;
	imp->nameless = true;
	imp->fsm.state = IMPORT_CLOSED;
	list_add_tail(&s->imports->all, &imp->link);
	return imp;
}

void import_end(struct import *imp)
{
	shard_cancel(imp->shard, &imp->timer);
	shard_cancel(imp->shard, &imp->pause);
	shard_cancel(imp->shard, &imp->conn_loss.timer);
	imp->waiting = false;
	if (import_is_up(imp))
		disconnect_send(imp);
	if (imp->fsm.state != IMPORT_CLOSED)
		import_move(imp, IMPORT_CLOSED);
	reply_bufs_drop(imp);
}
