/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks munged (secure/munge.h) for handshakes. munged may take long, or hang,
 * so this is done by threads of their own, at most MUNGE_THREADS, which are
 * started with the first questions. The answer comes to the CPT that has asked.
 *
 * Questions are asked in the order in which they came, but those of strangers
 * (base/door.h) after all others, and by one thread at most, so that they keep
 * nobody else waiting. The number of waiting questions is bounded by those who
 * ask: a client has one for each connection that it makes; for servers see
 * session.h.
 */
#ifndef RPC_MUNGE_H
#define RPC_MUNGE_H

#include "base/door.h"
#include "rpc/rpc.h"
#include "secure/munge.h"

#define MUNGE_THREADS 2
/* ns: a question that has waited so long is not asked any more, because whoever
 * wanted to know has given up */
#define MUNGE_LIFE (10 * NSEC_PER_SEC)

struct keys;
struct quota;

struct munge_job {
	struct list link;
	struct ulnet_work work;
	struct shard *shard;
	/* the side whose on_munge() gets the answer */
	const struct rpc_side *side;
	/* the keys of the handshake: a reference */
	struct keys *keys;
	enum door_class class;
	uint64_t begun; /* ns: when the job was made */
	struct munge_question question;
	struct munge_answer answer;
	/* which handshake asks: the handle of an import or of a session */
	uint64_t handle;
	uint32_t epoch;
	/* of a server's job: where the answer to the client goes (from), up to
	 * which byte the client has this side's stream (seen), and what is
	 * charged until then (quota) */
	struct ulnet_event from;
	uint32_t seen;
	struct quota *quota;
};

/* Makes a job of @s; the caller fills in the rest, and owes munge_job_free() or
 * munge_ask(). Returns NULL if there is no memory. Owner. */
struct munge_job *munge_job_new(struct shard *s, const struct rpc_side *side,
				struct keys *keys);
void munge_job_free(struct munge_job *j);
/* Asks munged the question of @j, which belongs to this file from then on.
 * on_munge() of its side is called later, in any case. Returns 0; or
 * -ESHUTDOWN, -ENOMEM, or why no thread could be started: then @j is still the
 * caller's. Owner. */
int munge_ask(struct munge_job *j) must_check;

extern const struct rpc_part munge_part;

#endif
