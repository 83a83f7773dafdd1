/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handshakes ask munged (secure/munge.h). Munged may take long, or hang,
 * so threads of their own ask it, at most MUNGE_THREADS, which exist once there
 * was a question. The answer comes to the CPT that has asked.
 *
 * Questions are asked in their order, those of strangers (base/door.h) behind
 * all others, and by one thread at most, so that they hold up nobody else. How
 * many wait is up to who asks: a client has one for each connection that it
 * makes, and for a server's see session.h.
 */
#ifndef RPC_MUNGE_H
#define RPC_MUNGE_H

#include "base/door.h"
#include "rpc/rpc.h"
#include "secure/munge.h"

#define MUNGE_THREADS 2
/* ns: a question that is older when its turn comes is not asked: whoever wanted
 * to know has given up */
#define MUNGE_LIFE (10 * NSEC_PER_SEC)

struct keys;
struct quota;

struct munge_job {
	struct list link;
	struct ulnet_work work;
	struct shard *shard;
	const struct rpc_side *side; /* on_munge() gets the answer */
	struct keys *keys;	     /* of the handshake; a reference */
	enum door_class class;
	uint64_t begun; /* ns */
	struct munge_question question;
	struct munge_answer answer;
	/* whose question it is: the handle of an import or of a session */
	uint64_t handle;
	uint32_t epoch;
	/* a server's: whom to answer, up to where the client has this side's
	 * stream, and what is given back then */
	struct ulnet_event from;
	uint32_t seen;
	struct quota *quota;
};

/* A job of @s. NULL: no memory. The caller fills in the rest, and owes
 * munge_job_free(), or munge_ask(). Owner. */
struct munge_job *munge_job_new(struct shard *s, const struct rpc_side *side,
				struct keys *keys);
void munge_job_free(struct munge_job *j);
/* Has @j asked. From then on it belongs to this file. Its side's on_munge() is
 * called later, in any case. Returns 0; -ESHUTDOWN; -ENOMEM, or whatever keeps
 * a thread from being started. Owner. */
int munge_ask(struct munge_job *j) must_check;

extern const struct rpc_part munge_part;

#endif
