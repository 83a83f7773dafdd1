/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/import_control.h"

#include <errno.h>
#include <string.h>

#include "rpc/client/attempt.h"
#include "rpc/client/client.h"
#include "rpc/client/import_priv.h"
#include "rpc/client/shake.h"
#include "rpc/munge.h"
#include "rpc/sealed.h"
#include "rpc/text.h"
#include "rpc/wire/wire.h"

/* ---- Connected ---- */

/* Handles the answer to join_send(). If it names another connection than the
 * import's, the server has forgotten the import. Otherwise it also answers the
 * probe, if that was sent over a rail that the server did not know. */
static void import_joined(struct import *imp, const struct wire_connected *m)
{
	imp->join.asked = 0;
	if (m->status != WIRE_OK || m->connection != imp->connection) {
		import_lost(imp, imp->epoch);
		return;
	}
	import_answered(imp);
	import_each_client(imp, client_on_joined);
}

/* Is it useless to try again? Not if the server has had this client before: as
 * long as it believes in the old connection, which has the same id, it refuses
 * a new one, for up to two keepalives. */
static bool import_is_final(const struct import *imp,
			    const struct wire_connected *m)
{
	return m->status == WIRE_OK || m->status == WIRE_VERSION_UNKNOWN ||
	       (m->status == WIRE_REFUSED && !imp->knows_server);
}

/* Returns what the server says of itself by the status of a Connected. */
static enum ulrpc_cause import_away(uint32_t status)
{
	switch (status) {
	case WIRE_OK: /* WIRE_OK here means that the version is unknown */
	case WIRE_VERSION_UNKNOWN:
	case WIRE_REFUSED:
		return ULRPC_CAUSE_REFUSED;
	case WIRE_SHUTTING_DOWN:
		return ULRPC_CAUSE_SHUTDOWN;
	case WIRE_OVERLOADED:
		return ULRPC_CAUSE_OVERLOADED;
	default:
		return ULRPC_CAUSE_OK;
	}
}

/* Called when one side wants no connection with the other, for the reason @why.
 */
static void import_refused(struct import *imp, const char *why)
{
	import_log(imp, why);
	import_each_client(imp, client_on_refused);
	/* The pause that the server asked for is not kept: calls that waited
	 * have ended as refused, and calls that are made from now on ask the
	 * server again. */
	imp->retry_after = 0;
	imp->untried = 0;
}

static void import_on_connected(struct import *imp,
				const struct ulnet_event *ev,
				const struct wire_connected *m)
{
	if (import_is_up(imp) && imp->join.asked)
		import_joined(imp, m);
	if (imp->fsm.state != IMPORT_CONNECTING)
		return;
	if (m->status == WIRE_OK && m->version == WIRE_VERSION) {
		imp->join.made = ev->target.nid;
		imp->join.to = ev->source;
		imp->join.asked = 0;
		imp->join.n = 0;
		import_connected(imp, m);
		return;
	}
	stat_count(imp->shard, RPC_STAT_connections_refused);
	imp->retry_after = retry_after_ns(m->retry_after);
	imp->away = import_away(m->status);
	imp->error = 0;
	if (import_is_final(imp, m)) {
		import_refused(imp, "the server refuses the connection");
		import_try_again(imp);
	} else {
		import_failed(imp);
	}
}

/* ---- handshakes ---- */

/* Called when the server has proved to be another one than before. What the
 * former server knew is gone, and calls that were sent to it take no answers
 * any more. */
static void import_other_server(struct import *imp)
{
	import_log(imp, "the server has proved to be another one than before");
	imp->restarted = true;
	import_each_client(imp, client_unopen);
	import_each_client(imp, client_forgotten);
}

static void shake_done(struct import *imp)
{
	if (imp->who && !identity_same(imp->who, imp->sealed->who))
		import_other_server(imp);
	identity_put(imp->who);
	imp->who = identity_ref(imp->sealed->who);
	import_connect_send(imp);
}

static bool is_shaking(const struct import *imp)
{
	return imp->fsm.state == IMPORT_CONNECTING && imp->shake &&
	       !imp->sealed;
}

/* Called when the handshake has got to @result. @m: the server's answer that
 * has led to that; NULL: it was munged's answer. */
static void shake_got(struct import *imp, enum shake_result result,
		      const char *why, const struct wire_shaken *m)
{
	switch (result) {
	case SHAKE_GOES_ON:
		break;
	case SHAKE_DONE:
		shake_done(imp);
		break;
	case SHAKE_REFUSED:
		stat_count(imp->shard, RPC_STAT_connections_refused);
		imp->away = ULRPC_CAUSE_REFUSED;
		text_copy(imp->refusal, sizeof(imp->refusal), why);
		/* Anybody could have broken off the handshake. A server that
		 * has believed this client before is asked again until the
		 * calls' deadlines. */
		if (!imp->knows_server)
			import_refused(imp, why);
		import_try_again(imp);
		break;
	case SHAKE_AGAIN:
		/* Nothing proves that the server has said so. */
		imp->retry_after =
			MIN(retry_after_ns(m->retry_after), NSEC_PER_SEC);
		imp->away = import_away(m->status);
		imp->error = 0;
		import_failed(imp);
		break;
	}
}

static void import_on_shaken(struct import *imp, const struct wire_shaken *m)
{
	enum shake_result result;
	const char *why = "";

	if (!is_shaking(imp))
		return;
	result = shake_on_answer(imp, m, &why);
	shake_got(imp, result, why, m);
}

/* ---- whose messages these are ---- */

/* Is @nid one of the import's server, as far as LNet knows? */
static bool import_has_nid(const struct import *imp,
			   const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < imp->nnids; i++)
		if (shard_same_peer(imp->shard, &imp->nids[i], nid))
			return true;
	return false;
}

/* Does @m come from the server of @imp? On a connection with keys, the seal
 * shows it. */
static bool control_is_of(const struct import *imp,
			  const struct ulnet_event *ev,
			  const struct wire_control *m)
{
	if (imp->secure && m->kind != WIRE_SHAKEN) {
		if (imp->shard->imports->proved == imp)
			return true;
		stat_count(imp->shard, RPC_STAT_seals_missing);
		return false;
	}
	return imp->pid == ev->initiator.pid &&
	       import_has_nid(imp, &ev->initiator.nid);
}

/* Returns the import that @m is for; NULL: there is none, or @m does not come
 * from its server. */
static struct import *control_import(struct shard *s,
				     const struct ulnet_event *ev,
				     const struct wire_control *m)
{
	struct import *imp = import_find(s, wire_control_client(m));

	if (imp && imp->epoch == wire_control_epoch(m) &&
	    control_is_of(imp, ev, m))
		return imp;
	stat_count(s, RPC_STAT_control_unexpected);
	return NULL;
}

/* ---- the other messages of a server ---- */

static bool has_session(const struct import *imp, uint64_t session)
{
	return (imp->sealed && imp->sealed->peer == session) ||
	       (imp->shake && imp->shake->session == session && session);
}

/* Called when someone says that the server at @ev->source does not know the
 * session that @m names: connects again, which shows whether that is true. */
static void imports_on_lost(struct shard *s, const struct ulnet_event *ev,
			    const struct wire_lost *m)
{
	struct import *imp;

	list_for_each_entry (imp, &s->imports->all, link) {
		if (!has_session(imp, m->session) ||
		    !import_has_nid(imp, &ev->initiator.nid))
			continue;
		if (imp->fsm.state == IMPORT_CONNECTING)
			import_try_again(imp);
		else
			import_lost(imp, imp->epoch);
		return;
	}
}

/* Returns the client whose Open has this tag; NULL: it does not wait any more.
 */
static struct ulrpc_client *client_of_open(const struct import *imp,
					   uint64_t tag)
{
	struct ulrpc_client *c;

	list_for_each_entry (c, &imp->clients, link)
		if (c->open_awaited && c->tag == tag)
			return c;
	return NULL;
}

static void on_opened(struct import *imp, const struct ulnet_event *ev,
		      const struct wire_opened *m)
{
	struct ulrpc_client *c;

	if (!import_is_up(imp))
		return;
	import_heard(imp, shard_now(imp->shard));
	c = client_of_open(imp, m->tag);
	if (m->status == WIRE_NOT_CONNECTED || m->status == WIRE_STALE_EPOCH) {
		if (c)
			c->unknown_rail = true;
		import_unknown(imp, imp->epoch, &ev->target.nid, &ev->source);
	} else if (c) {
		client_on_opened(c, m);
	}
}

static void on_alive(struct import *imp, const struct ulnet_event *ev,
		     const struct wire_alive *m)
{
	uint64_t now = shard_now(imp->shard);

	if (!import_is_up(imp))
		return;
	if (m->status != WIRE_OK) {
		import_unknown(imp, imp->epoch, &ev->target.nid, &ev->source);
		return;
	}
	if (m->sequence == imp->sequence &&
	    import_is_prompt(imp, imp->asked_alive, now))
		imp->prompt = imp->asked_alive;
	if (m->clients)
		imp->server_clients = m->clients;
	import_answered(imp);
	if (m->sequence == imp->sequence)
		attempts_overtaken(imp, imp->asked_alive, &imp->probe_local,
				   &imp->probe_hop);
}

/* Called when the server shuts down, and has sent its last reply. Calls under
 * way that it has not executed are made again when there is a server; the
 * others are treated as if the server had restarted. A message of an earlier
 * connection is ignored. */
static void on_goodbye(struct import *imp, const struct wire_goodbye *m)
{
	if (!import_is_up(imp) || m->connection != imp->connection)
		return;
	imp->away = m->status == WIRE_SHUTTING_DOWN ? ULRPC_CAUSE_SHUTDOWN
						    : ULRPC_CAUSE_OK;
	import_lost(imp, imp->epoch);
	imp->restarted = true;
	import_each_client(imp, client_unopen);
	imp->unexecuted = m->unexecuted;
	import_each_client(imp, client_forgotten);
	imp->unexecuted = 0;
}

/* ---- arrival ---- */

unsigned int import_handle_cpt(uint64_t handle)
{
	return (uint8_t)(id_tag(handle) - IMPORT_TAG);
}

unsigned int import_control_cpt(const struct shard *s,
				const struct ulnet_event *ev,
				const struct wire_control *m)
{
	(void)ev;
	switch (m->kind) {
	case WIRE_CONNECTED:
	case WIRE_OPENED:
	case WIRE_ALIVE:
	case WIRE_EXTEND:
	case WIRE_GOODBYE:
	case WIRE_SHAKEN:
		return import_handle_cpt(wire_control_client(m));
	case WIRE_LOST:
		return s->cpt;
	default: /* Disconnected: nothing waits for it */
		return UINT_MAX;
	}
}

int import_unseal(struct shard *s, uint64_t handle,
		  const struct ulnet_event *ev, void *record, size_t length,
		  struct opened *o)
{
	struct import *imp = s->imports ? import_find(s, handle) : NULL;
	int rc;

	if (!imp || !imp->sealed) {
		stat_count(s, RPC_STAT_seals_broken);
		return -ENOENT;
	}
	rc = sealed_open(s, imp->sealed, ev, record, length, o);
	if (!rc)
		s->imports->proved = imp;
	return rc;
}

void import_unsealed(struct shard *s)
{
	s->imports->proved = NULL;
}

void import_on_munge(struct shard *s, struct munge_job *j)
{
	const struct wire_shaken none = { .status = WIRE_OK };
	struct import *imp = s->imports ? import_find(s, j->handle) : NULL;
	enum shake_result result;
	const char *why = "";

	if (!imp || imp->epoch != j->epoch || !is_shaking(imp))
		return;
	result = shake_on_munge(imp, j, &why);
	shake_got(imp, result, why, &none);
}

void import_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m)
{
	struct import *imp;

	if (m->kind == WIRE_LOST && s->imports)
		imports_on_lost(s, ev, &m->lost);
	if (m->kind == WIRE_LOST || m->kind == WIRE_DISCONNECTED ||
	    !(imp = control_import(s, ev, m)))
		return;
	switch (m->kind) {
	case WIRE_SHAKEN:
		import_on_shaken(imp, &m->shaken);
		break;
	case WIRE_CONNECTED:
		import_on_connected(imp, ev, &m->connected);
		break;
	case WIRE_OPENED:
		on_opened(imp, ev, &m->opened);
		break;
	case WIRE_ALIVE:
		on_alive(imp, ev, &m->alive);
		break;
	case WIRE_EXTEND:
		attempts_on_extend(imp, ev, &m->extend);
		break;
	default:
		on_goodbye(imp, &m->goodbye);
	}
}
