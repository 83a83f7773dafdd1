/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/session.h"

#include <errno.h>
#include <time.h>

#include "rpc/control.h"
#include "rpc/keys.h"
#include "rpc/munge.h"
#include "rpc/server/session/client_ids.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"
#include "secure/handshake.h"
#include "secure/identity.h"

/* us: how long a client is asked to wait if it comes beyond the limits */
#define WAIT_US UINT64_C(500000)

struct session *session_find(const struct sessions *ss, uint64_t handle)
{
	struct session *se = id_slot_obj(&ss->table, (uint32_t)handle);

	return se && se->handle == handle ? se : NULL;
}

/* ---- life ---- */

static uint64_t client_hash(const struct sessions *ss,
			    const uint8_t client_id[RPC_ID_SIZE])
{
	return hash_bytes(client_id, RPC_ID_SIZE, ss->seed);
}

/* Takes @se off the lists of sessions without an export. */
static void session_grown(struct sessions *ss, struct session *se)
{
	if (!se->quota)
		return;
	list_del(&se->link);
	hash_del(&ss->by_client, &se->by_client);
	quota_put(&ss->quotas[se->class], se->quota, 1);
	se->quota = NULL;
}

void session_drop(struct sessions *ss, struct session *se)
{
	session_grown(ss, se);
	id_free(&ss->table, se->id);
	handshake_free(se->h);
	sealed_free(se->sealed);
	free(se);
}

void sessions_on_keys(struct sessions *ss, const struct keys *keys)
{
	struct session *se, *next;

	list_for_each_entry_safe (se, next, &ss->young, link)
		if (se->sealed && keys_doubt(keys, se->sealed->who))
			session_drop(ss, se);
}

void session_give(struct sessions *ss, struct session *se, struct export *e)
{
	session_grown(ss, se);
	se->export = e;
}

/* Are there so many sessions without an export that shares may soon be used up?
 * Then such sessions are dropped earlier. */
static bool is_crowded(const struct sessions *ss)
{
	bool crowded = false;

	for (unsigned int i = 0; i < DOOR_CLASSES; i++)
		crowded |= ss->quotas[i].used > SESSIONS_MAX / 2;
	return crowded;
}

static void drop_old(struct sessions *ss, uint64_t now)
{
	uint64_t life = is_crowded(ss) ? SESSION_LIFE_CROWDED : SESSION_LIFE;

	while (!list_empty(&ss->young)) {
		struct session *se =
			list_first(&ss->young, struct session, link);

		if (now < se->begun + life)
			return;
		session_drop(ss, se);
	}
}

static void session_name(struct session *se, const struct wire_shake *m)
{
	memcpy(se->client_id, m->client_id, RPC_ID_SIZE);
	se->client = m->client;
	se->epoch = m->epoch;
}

/* Adds @se to the sessions without an export. Returns 0 or -ENOMEM. */
static int session_add(struct sessions *ss, struct session *se)
{
	int rc = id_alloc(&ss->table, se, &se->id);

	if (rc)
		return rc;
	rc = hash_add(&ss->by_client, &se->by_client,
		      client_hash(ss, se->client_id));
	if (rc) {
		id_free(&ss->table, se->id);
		return rc;
	}
	se->handle = shard_handle(ss->shard, se->id);
	list_add_tail(&ss->young, &se->link);
	stat_count(ss->shard, RPC_STAT_handshakes_begun);
	return 0;
}

static int session_fill(struct sessions *ss, struct session *se,
			const struct ulnet_event *ev,
			const struct wire_shake *m)
{
	struct keys *keys = rpc_keys_get(ss->shard->rpc);

	se->begun = shard_now(ss->shard);
	session_name(se, m);
	se->place = ev->initiator;
	se->quota =
		quota_take(&ss->quotas[se->class], &ev->source, 1, se->begun);
	if (se->quota)
		se->h = handshake_new(HANDSHAKE_SERVER, keys, NULL);
	keys_put(keys);
	return se->h ? session_add(ss, se) : -ENOMEM;
}

/* Makes a session. Returns NULL if there is no memory, or the sender's host has
 * used up its share. */
static struct session *session_new(struct sessions *ss,
				   const struct ulnet_event *ev,
				   const struct wire_shake *m,
				   enum door_class class)
{
	struct session *se = calloc(1, sizeof(*se));

	if (!se)
		return NULL;
	list_init(&se->link);
	se->class = class;
	if (!session_fill(ss, se, ev, m))
		return se;
	handshake_free(se->h);
	if (se->quota)
		quota_put(&ss->quotas[se->class], se->quota, 1);
	free(se);
	return NULL;
}

/* Returns the session that @m is for; NULL: none. A client that does not know
 * the handle yet repeats its first message, so a session is found by the
 * client's id, too. */
static struct session *session_of(const struct sessions *ss,
				  const struct wire_shake *m)
{
	struct session *se;

	if (m->session) {
		se = session_find(ss, m->session);
		return se && se->client == m->client && se->epoch == m->epoch
			       ? se
			       : NULL;
	}
	hash_for_each_equal (se, &ss->by_client, client_hash(ss, m->client_id),
			     by_client)
		if (se->client == m->client && se->epoch == m->epoch &&
		    !memcmp(se->client_id, m->client_id, RPC_ID_SIZE))
			return se;
	return NULL;
}

/* ---- answers ---- */

static void shaken_send(struct shard *s, const struct ulnet_event *ev,
			struct wire_shaken *out)
{
	const struct ulnet_id to = { ev->source, ev->initiator.pid };
	struct wire_control m = { .kind = WIRE_SHAKEN };

	memcpy(out->server_id, s->rpc->server_id, RPC_ID_SIZE);
	m.shaken = *out;
	/* If the answer cannot be sent, the client repeats its message. */
	(void)control_send(s, NULL, ev->target.nid, to, &m);
}

/* Sends the bytes of the server's stream from @seen on, which the client has
 * not acknowledged. */
static void session_answer(struct sessions *ss, const struct session *se,
			   const struct ulnet_event *ev, uint32_t seen)
{
	size_t total;
	const uint8_t *stream = handshake_bytes(se->h, &total);
	uint32_t at = MIN(seen, (uint32_t)total);

	do {
		uint32_t n = MIN((uint32_t)total - at, WIRE_PIECE_MAX);
		struct wire_shaken out = {
			.client = se->client,
			.epoch = se->epoch,
			.session = se->handle,
			.offset = at,
			.piece = { stream + at, stream + at + n },
			.seen = se->taken,
			.status = se->refused ? WIRE_REFUSED : WIRE_OK,
		};

		shaken_send(ss->shard, ev, &out);
		at += n;
	} while (at < total);
}

/* Tells the sender of @ev that this CPT has no session @handle. */
static void session_deny(struct shard *s, const struct ulnet_event *ev,
			 uint64_t handle)
{
	const struct ulnet_id to = { ev->source, ev->initiator.pid };
	const struct wire_control m = { .kind = WIRE_LOST,
					.lost = { .session = handle } };

	(void)control_send(s, NULL, ev->target.nid, to, &m);
}

void session_lost(struct shard *s, const struct ulnet_event *ev,
		  uint64_t handle)
{
	stat_count(s, RPC_STAT_seals_broken);
	session_deny(s, ev, handle);
}

void session_mislead(struct sessions *ss, struct session *se,
		     const struct ulnet_event *ev)
{
	stat_count(ss->shard, RPC_STAT_handshakes_misled);
	session_deny(ss->shard, ev, se->handle);
	session_drop(ss, se);
}

/* Answers a message of @se. */
static void session_reply(struct sessions *ss, struct session *se,
			  const struct ulnet_event *ev, uint32_t seen)
{
	if (likely(!se->misled)) {
		session_answer(ss, se, ev, seen);
		return;
	}
	session_mislead(ss, se, ev);
}

static void shake_refuse(struct sessions *ss, const struct ulnet_event *ev,
			 const struct wire_shake *m, uint32_t status)
{
	struct wire_shaken out = { .client = m->client,
				   .epoch = m->epoch,
				   .status = status };

	if (status == WIRE_OVERLOADED)
		out.retry_after = WAIT_US;
	stat_count(ss->shard, RPC_STAT_clients_refused);
	shaken_send(ss->shard, ev, &out);
}

/* ---- the handshake ---- */

static void session_refuse(struct sessions *ss, struct session *se,
			   const struct ulnet_event *ev, const char *why)
{
	char nid[LNET_NIDSTR_SIZE];

	se->refused = true;
	stat_count(ss->shard, RPC_STAT_handshakes_refused);
	if (log_share_may(&ss->logged, &ev->source, shard_now(ss->shard)))
		lnet_log(LNET_LOG_WARN, "rpc", "client %s is refused: %s",
			 lnet_nid_format(&ev->source, nid, sizeof(nid)), why);
}

/* Returns why the client of @se, which has proved who it is, is not believed by
 * the keys that the node has now; they may have come after the handshake began.
 * NULL: the client is believed. */
static const char *session_doubt(const struct sessions *ss,
				 const struct session *se)
{
	struct keys *keys = rpc_keys_get(ss->shard->rpc);
	const char *why = keys_doubt(keys, handshake_peer(se->h));

	keys_put(keys);
	return why;
}

/* Makes the keys of the connection, because the client has proved who it is.
 * If another CPT has the client's export, there are none, and the client begins
 * anew. Without memory there are none either: the client's messages cannot be
 * opened, and it begins anew. */
static void session_prove(struct sessions *ss, struct session *se)
{
	const struct shard *s = ss->shard;
	struct sealed_between between = { .client = se->client,
					  .session = se->handle,
					  .epoch = se->epoch };
	uint8_t digest[DIGEST_SIZE];

	if (identity_digest(handshake_peer(se->h), se->client_id, RPC_ID_SIZE,
			    digest))
		return;
	memcpy(se->own_id, digest, RPC_ID_SIZE);
	se->misled =
		client_ids_proved(s->rpc->client_ids, se->client_id, se->own_id,
				  &se->place, s->cpt) != s->cpt;
	if (se->misled)
		return;
	memcpy(between.client_id, se->client_id, RPC_ID_SIZE);
	memcpy(between.server_id, s->rpc->server_id, RPC_ID_SIZE);
	se->sealed = sealed_new(ss->shard, se->h, &between, true);
}

/* Called when the handshake has got so far that the client has proved who it
 * is. */
static void session_end(struct sessions *ss, struct session *se,
			const struct ulnet_event *ev)
{
	const char *why = session_doubt(ss, se);

	door_proved(&ss->door, &ev->source);
	if (handshake_was_resumed(se->h))
		stat_count(ss->shard, RPC_STAT_handshakes_resumed);
	if (why)
		session_refuse(ss, se, ev, why);
	else
		session_prove(ss, se);
}

/* Gives the bytes in @m to the handshake. */
static void session_feed(struct sessions *ss, struct session *se,
			 const struct ulnet_event *ev,
			 const struct wire_shake *m)
{
	size_t n = view_length(m->piece);

	se->taken += (uint32_t)n;
	if (handshake_feed(se->h, m->piece.p, n)) {
		session_refuse(ss, se, ev, handshake_error(se->h));
	} else if (handshake_is_done(se->h) && !se->sealed) {
		session_end(ss, se, ev);
	}
}

/* ---- MUNGE ---- */

/* Makes the question that munged is to be asked about the client of @se.
 * Returns NULL if there is no memory, or the client's host has used up its
 * share. */
static struct munge_job *question_new(struct sessions *ss,
				      const struct session *se,
				      const struct ulnet_event *ev,
				      const struct wire_shake *m)
{
	struct shard *s = ss->shard;
	struct munge_job *j =
		munge_job_new(s, s->rpc->server, handshake_keys(se->h));

	if (!j)
		return NULL;
	j->handle = se->handle;
	j->class = se->class;
	j->from.source = ev->source;
	j->from.initiator.pid = ev->initiator.pid;
	j->from.target.nid = ev->target.nid;
	j->seen = m->seen;
	if (handshake_question(se->h, &j->question))
		j->quota = quota_take(&ss->asked[se->class], &ev->source, 1,
				      shard_now(s));
	if (j->quota)
		return j;
	munge_job_free(j);
	return NULL;
}

/* Asks munged, if the handshake has a question for it. If munged cannot be
 * asked now, the client's next message tries again. */
static void session_ask(struct sessions *ss, struct session *se,
			const struct ulnet_event *ev,
			const struct wire_shake *m)
{
	struct munge_job *j;

	if (se->asked || se->refused || !handshake_question(se->h, NULL))
		return;
	j = question_new(ss, se, ev, m);
	if (j && !munge_ask(j)) {
		se->asked = true;
		return;
	}
	stat_count(ss->shard, RPC_STAT_handshakes_deferred);
	if (j) {
		quota_put(&ss->asked[se->class], j->quota, 1);
		munge_job_free(j);
	}
}

void session_on_munge(struct sessions *ss, struct munge_job *j)
{
	struct session *se = session_find(ss, j->handle);

	quota_put(&ss->asked[j->class], j->quota, 1);
	/* However long munged took, this CPT has spent no time on it: clients
	 * without MUNGE do not wait for those with it. */
	door_take(&ss->door, &j->from.source, j->class, SESSION_STEP,
		  shard_now(ss->shard));
	if (!se || !se->h || se->refused)
		return;
	if (handshake_answer(se->h, &j->answer))
		session_refuse(ss, se, &j->from, handshake_error(se->h));
	else
		session_end(ss, se, &j->from);
	session_reply(ss, se, &j->from, j->seen);
}

/* ---- a client's messages ---- */

/* Returns the processor time, in ns, that this thread has used; 0 if time is
 * virtual. */
static uint64_t spent(const struct sessions *ss)
{
	struct timespec t = { 0 };

	if (!ss->shard->rpc->is_virtual)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static void session_step(struct sessions *ss, struct session *se,
			 const struct ulnet_event *ev,
			 const struct wire_shake *m)
{
	uint64_t before = spent(ss), took;
	size_t had, has;

	(void)handshake_bytes(se->h, &had);
	session_feed(ss, se, ev, m);
	(void)handshake_bytes(se->h, &has);
	took = spent(ss) - before;
	/* A step that completes no message of TLS costs next to nothing. */
	if (has != had || se->refused)
		took = MAX(took, SESSION_STEP);
	door_take(&ss->door, &ev->source, se->class, took,
		  shard_now(ss->shard));
	ss->shard->stats->counts[RPC_STAT_handshakes_us] +=
		took / NSEC_PER_USEC;
}

/* Handles @m of a session whose handshake is under way. Returns false if the
 * message gets no answer, and has to come again. */
static bool session_take(struct sessions *ss, struct session *se,
			 const struct ulnet_event *ev,
			 const struct wire_shake *m)
{
	uint64_t now = shard_now(ss->shard);

	if (!view_length(m->piece) || m->offset != se->taken || se->refused) {
		session_ask(ss, se, ev, m);
		return door_answer(&ss->door, &ev->source, now);
	}
	if (!door_go_on(&ss->door, se->class, now)) {
		stat_count(ss->shard, RPC_STAT_handshakes_deferred);
		return false;
	}
	session_step(ss, se, ev, m);
	session_ask(ss, se, ev, m);
	return true;
}

/* Is a handshake with a client of the host @nid under way? */
static bool is_busy(const struct sessions *ss, const struct ulnet_nid *nid)
{
	return quota_used(&ss->quotas[DOOR_KNOWN], nid) ||
	       quota_used(&ss->quotas[DOOR_STRANGER], nid);
}

/* Returns the session that begins with @m. NULL: none does; @ev was answered,
 * or is dropped. */
static struct session *session_begin(struct sessions *ss,
				     const struct ulnet_event *ev,
				     const struct wire_shake *m)
{
	uint64_t now = shard_now(ss->shard);
	struct session *se = NULL;
	enum door_class class;

	drop_old(ss, now);
	if (!rpc_has_keys(ss->shard->rpc)) {
		shake_refuse(ss, ev, m, WIRE_REFUSED);
		return NULL;
	}
	if (door_begin(&ss->door, &ev->source, is_busy(ss, &ev->source),
		       is_crowded(ss), now, &class))
		se = session_new(ss, ev, m, class);
	if (!se) {
		stat_count(ss->shard, RPC_STAT_handshakes_deferred);
		if (door_answer(&ss->door, &ev->source, now))
			shake_refuse(ss, ev, m, WIRE_OVERLOADED);
	}
	return se;
}

void session_on_shake(struct sessions *ss, const struct ulnet_event *ev,
		      const struct wire_shake *m)
{
	struct session *se = session_of(ss, m);

	if (!se && m->session) {
		session_lost(ss->shard, ev, m->session);
		return;
	}
	if (!se)
		se = session_begin(ss, ev, m);
	if (!se || !se->h)
		return;
	if (session_take(ss, se, ev, m))
		session_reply(ss, se, ev, m->seen);
}

/* ---- sealed messages ---- */

int session_open(struct sessions *ss, struct session *se,
		 const struct ulnet_event *ev, void *record, size_t length,
		 struct opened *o)
{
	int rc = -ENOENT;

	if (se->sealed)
		rc = sealed_open(ss->shard, se->sealed, ev, record, length, o);
	if (rc || likely(!se->h))
		return rc;
	/* A client that seals needs nothing more of the handshake. */
	handshake_free(se->h);
	se->h = NULL;
	return 0;
}

/* ---- all of a CPT ---- */

void sessions_init(struct sessions *ss, struct shard *s, uint64_t seed)
{
	ss->shard = s;
	ss->seed = seed;
	id_table_init(&ss->table, (uint8_t)(SESSION_TAG + s->cpt));
	list_init(&ss->young);
	hash_init(&ss->by_client);
	quotas_init(&ss->quotas[DOOR_KNOWN], "handshakes of known hosts",
		    SESSIONS_MAX, seed);
	quotas_init(&ss->quotas[DOOR_STRANGER], "handshakes of strangers",
		    SESSIONS_MAX, seed);
	quotas_init(&ss->asked[DOOR_KNOWN], "questions to munged", SESSIONS_ASK,
		    seed);
	quotas_init(&ss->asked[DOOR_STRANGER],
		    "questions to munged for strangers", SESSIONS_ASK_STRANGERS,
		    seed);
	door_init(&ss->door, sizeof(struct ulnet_nid), seed, shard_now(s));
}

void sessions_fini(struct sessions *ss)
{
	while (!list_empty(&ss->young))
		session_drop(ss, list_first(&ss->young, struct session, link));
	id_table_fini(&ss->table);
	hash_fini(&ss->by_client);
	door_fini(&ss->door);
	for (unsigned int i = 0; i < DOOR_CLASSES; i++) {
		quotas_fini(&ss->quotas[i]);
		quotas_fini(&ss->asked[i]);
	}
}
