/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/shake.h"

#include <errno.h>

#include "rpc/client/import.h"
#include "rpc/client/trust.h"
#include "rpc/keys.h"
#include "rpc/munge.h"
#include "rpc/sealed.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

int shake_begin(struct import *imp, shake_send_fn send)
{
	struct keys *keys = rpc_keys_get(imp->shard->rpc);
	struct shake *sh = calloc(1, sizeof(*sh));
	int rc = -ENOMEM;

	if (sh && keys)
		sh->h = handshake_new(HANDSHAKE_CLIENT, keys, &imp->ticket);
	if (sh && sh->h)
		rc = handshake_feed(sh->h, NULL, 0);
	if (rc) {
		if (sh)
			handshake_free(sh->h);
		keys_put(keys);
		free(sh);
		return -ENOMEM;
	}
	sh->send = send;
	sh->keys = keys;
	imp->shake = sh;
	stat_count(imp->shard, RPC_STAT_handshakes_begun);
	return 0;
}

void shake_end(struct import *imp)
{
	if (!imp->shake)
		return;
	handshake_free(imp->shake->h);
	keys_put(imp->shake->keys);
	free(imp->shake);
	imp->shake = NULL;
}

/* Sends the @n bytes of the client's stream that begin at @offset. */
static int piece_send(struct import *imp, const uint8_t *stream,
		      uint32_t offset, uint32_t n)
{
	const struct shake *sh = imp->shake;
	struct wire_control m = {
		.kind = WIRE_SHAKE,
		.shake = { .client = imp->handle,
			   .epoch = imp->epoch,
			   .session = sh->session,
			   .offset = offset,
			   .piece = { stream + offset, stream + offset + n },
			   .seen = sh->taken },
	};

	memcpy(m.shake.client_id, imp->name.id, RPC_ID_SIZE);
	return sh->send(imp, &m);
}

/* Asks munged, if the handshake has a question for it. If that fails, it is
 * tried again when the client repeats what it has sent. */
static void shake_ask(struct import *imp)
{
	struct shard *s = imp->shard;
	struct shake *sh = imp->shake;
	struct munge_job *j;

	if (sh->asked || !handshake_question(sh->h, NULL))
		return;
	j = munge_job_new(s, s->rpc->client, handshake_keys(sh->h));
	if (!j)
		return;
	j->handle = imp->handle;
	j->epoch = imp->epoch;
	sh->asked = handshake_question(sh->h, &j->question) && !munge_ask(j);
	if (!sh->asked)
		munge_job_free(j);
}

int shake_send(struct import *imp, bool again)
{
	struct shake *sh = imp->shake;
	size_t total;
	const uint8_t *stream = handshake_bytes(sh->h, &total);
	uint32_t at = again ? sh->had : MAX(sh->had, sh->sent);
	int rc = 0;

	shake_ask(imp);
	do {
		uint32_t n = MIN((uint32_t)total - at, WIRE_PIECE_MAX);

		rc = piece_send(imp, stream, at, n);
		at += n;
	} while (!rc && at < total);
	sh->sent = at;
	return rc;
}

/* ---- answers ---- */

static enum shake_result shake_refused(struct import *imp, const char **why_p)
{
	const char *why = handshake_error(imp->shake->h);

	stat_count(imp->shard, RPC_STAT_handshakes_refused);
	/* the handshake may succeed without the ticket */
	ticket_drop(&imp->ticket);
	*why_p = *why ? why : "the server refuses the handshake";
	return SHAKE_REFUSED;
}

/* Returns why the keys that the node has now do not believe the server; they
 * may be newer than the handshake. NULL: they do. */
static const char *shake_doubt(const struct import *imp)
{
	const struct shake *sh = imp->shake;
	struct keys *keys = rpc_keys_get(imp->shard->rpc);
	const char *why = NULL;

	if (keys != sh->keys)
		why = keys_doubt(keys, handshake_peer(sh->h));
	keys_put(keys);
	return why;
}

static enum shake_result shake_doubted(struct import *imp, const char *why,
				       const char **why_p)
{
	bool resumed = handshake_was_resumed(imp->shake->h);

	stat_count(imp->shard, RPC_STAT_handshakes_refused);
	ticket_drop(&imp->ticket);
	*why_p = why;
	/* After a handshake with a ticket the new keys may just not know the
	 * server's authority, which it did not show. It shows it in a full one.
	 */
	return resumed ? SHAKE_AGAIN : SHAKE_REFUSED;
}

/* Called when both sides are done: takes the keys. */
static enum shake_result shake_finish(struct import *imp, const char **why_p)
{
	const struct shake *sh = imp->shake;
	struct sealed_between between = { .client = imp->handle,
					  .session = sh->session,
					  .epoch = imp->epoch };
	const char *why = shake_doubt(imp);

	if (why)
		return shake_doubted(imp, why, why_p);
	memcpy(between.client_id, imp->name.id, RPC_ID_SIZE);
	memcpy(between.server_id, sh->server_id, RPC_ID_SIZE);
	imp->sealed = sealed_new(imp->shard, sh->h, &between, false);
	if (!imp->sealed)
		return SHAKE_AGAIN;
	/* The ticket is dropped only now: otherwise an outage, in which no
	 * attempt reaches the server, would cost each client its ticket. */
	ticket_drop(&imp->ticket);
	imp->sealed->private = clients_want_privacy(imp);
	(void)handshake_ticket(sh->h, &imp->ticket);
	return SHAKE_DONE;
}

enum shake_result shake_on_munge(struct import *imp, const struct munge_job *j,
				 const char **why_p)
{
	int rc = handshake_answer(imp->shake->h, &j->answer);

	/* After a failure there are bytes for the server, too. */
	(void)shake_send(imp, false);
	return rc ? shake_refused(imp, why_p) : SHAKE_GOES_ON;
}

/* Does the answer come from the server, and for the session, that this
 * handshake began with? The first answer decides which these are. */
static bool is_same(struct shake *sh, const struct wire_shaken *m)
{
	if (!sh->session) {
		sh->session = m->session;
		memcpy(sh->server_id, m->server_id, RPC_ID_SIZE);
	}
	return m->session && m->session == sh->session &&
	       !memcmp(m->server_id, sh->server_id, RPC_ID_SIZE);
}

enum shake_result shake_on_answer(struct import *imp,
				  const struct wire_shaken *m,
				  const char **why_p)
{
	struct shake *sh = imp->shake;
	size_t total, n = view_length(m->piece);

	if (!m->session && sh->session)
		/* an answer without a session is not from the server that has
		 * answered before */
		return SHAKE_GOES_ON;
	if (m->status == WIRE_OVERLOADED || m->status == WIRE_SHUTTING_DOWN)
		return SHAKE_AGAIN;
	if (m->status == WIRE_REFUSED && !m->session)
		return shake_refused(imp, why_p);
	if (!is_same(sh, m))
		return SHAKE_GOES_ON;
	if (n && m->offset == sh->taken) {
		sh->taken += (uint32_t)n;
		/* After a failure there are bytes for the server, which tell it
		 * the reason. */
		if (handshake_feed(sh->h, m->piece.p, n)) {
			(void)shake_send(imp, false);
			return shake_refused(imp, why_p);
		}
	}
	if (m->status != WIRE_OK)
		return shake_refused(imp, why_p);
	(void)handshake_bytes(sh->h, &total);
	if (m->seen > sh->had && m->seen <= total)
		sh->had = m->seen;
	if (handshake_is_done(sh->h) && sh->had == total)
		return shake_finish(imp, why_p);
	if (sh->sent < total)
		(void)shake_send(imp, false);
	else
		shake_ask(imp);
	return SHAKE_GOES_ON;
}
