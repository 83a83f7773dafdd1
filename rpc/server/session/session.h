/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sessions of a server with clients that have keys: first a handshake, then
 * the keys of a connection. Sealed messages name the session by its handle.
 *
 *	Shake, Shake, ...	the handshake goes on
 *	a credential of MUNGE	munged is asked what it says (rpc/munge.h)
 *	the client is proved	@sealed is set; the first sealed message frees
 *				what the handshake needed
 *	on the wrong CPT	another CPT has the client's export
 *				(client_ids.h): the client is told that there is
 *				no such session, and makes another handshake
 *	sealed Connect		the session belongs to an export, and ends with
 *				it, or when the client's next session takes over
 *
 * The client drives the handshake, and a session has no timer: a session
 * without an export is dropped when it is older than SESSION_LIFE and another
 * one begins.
 *
 * What strangers can use up is bounded. Each host has its share of SESSIONS_MAX
 * sessions without an export, and base/door.h bounds the processor time. Known
 * hosts and strangers have shares apart. A client beyond these limits that
 * begins a handshake is asked to wait. One that is in the midst of a handshake
 * gets no answer, as if its message were lost, and repeats it; the same happens
 * when too many clients already wait for munged.
 *
 * The time that munged takes keeps nobody else waiting: an answer of munged is
 * charged as one step of processor time.
 *
 * Owner: the CPT that has the client's export, or else the one that owns the
 * NID from which the first Shake came.
 */
#ifndef RPC_SESSION_H
#define RPC_SESSION_H

#include "base/door.h"
#include "base/id.h"
#include "base/list.h"
#include "rpc/log_share.h"
#include "rpc/quota.h"
#include "rpc/rpc.h"
#include "rpc/sealed.h"

struct export;
struct handshake;
struct munge_job;
struct wire_shake;

/* sessions without an export of known hosts, and of strangers, on a CPT, at
 * most */
#define SESSIONS_MAX 1024
/* ns: how old a session without an export gets, usually, and while there are
 * many such sessions. A handshake takes two round trips */
#define SESSION_LIFE	     (10 * NSEC_PER_SEC)
#define SESSION_LIFE_CROWDED NSEC_PER_SEC
/* Tag of sessions' handles; the number of the CPT is added to it. */
#define SESSION_TAG 0x80
/* ns: a step that gets a handshake further is charged at least this, because in
 * virtual time no processor time passes */
#define SESSION_STEP (100 * NSEC_PER_USEC)
/* sessions of known hosts, and of strangers, that wait for munged at a time, on
 * a CPT, at most */
#define SESSIONS_ASK	       64
#define SESSIONS_ASK_STRANGERS 16

struct session {
	uint64_t id;	 /* number in sessions.table */
	uint64_t handle; /* handle on the wire: shard_handle(id) */
	/* node in sessions.young, while the session has no export */
	struct list link;
	/* node in sessions.by_client, while the session has no export */
	struct hash_node by_client;
	/* what is charged in sessions.quotas, while the session has no export
	 */
	struct quota *quota;
	struct handshake *h; /* the handshake; NULL: it is over */
	/* the keys of the connection; NULL: the client has not proved yet who
	 * it is */
	struct sealed *sealed;
	struct export *export; /* NULL: the client has not connected yet */
	/* the id that the client has given in its first Shake */
	uint8_t client_id[RPC_ID_SIZE];
	/* the client's id as in client_id.id; valid if @sealed is set */
	uint8_t own_id[RPC_ID_SIZE];
	uint64_t client;
	uint32_t epoch;
	struct ulnet_id place; /* where its first Shake came from */
	/* bytes of the client's stream that the handshake has taken so far */
	uint32_t taken;
	uint64_t begun; /* ns: when the session began */
	bool refused;	/* the client is not believed */
	bool misled;	/* another CPT has the client's export */
	/* munged was asked about the client's credential, and has not answered
	 * yet */
	bool asked;
	enum door_class class;
};

struct sessions {
	struct shard *shard;
	struct id_table table;
	/* of session.link: sessions without an export, the oldest first */
	struct list young;
	/* of session.by_client: the sessions in @young */
	struct hash by_client;
	/* how many sessions are in @young, by class and NID */
	struct quotas quotas[DOOR_CLASSES];
	/* how many sessions wait for munged, by class and NID */
	struct quotas asked[DOOR_CLASSES];
	struct door door;
	uint64_t seed;
	struct log_share logged; /* limits the log of refused handshakes */
};

void sessions_init(struct sessions *ss, struct shard *s, uint64_t seed);
/* Frees all sessions. None of them has an export any more. */
void sessions_fini(struct sessions *ss);

/* Returns the session with @handle on the wire; NULL: there is none. */
struct session *session_find(const struct sessions *ss, uint64_t handle);
/* Called when a Shake has come: begins a handshake or goes on with one, and
 * answers. */
void session_on_shake(struct sessions *ss, const struct ulnet_event *ev,
		      const struct wire_shake *m);
/* Called when munged has answered: goes on with the handshake that has asked,
 * if it is still under way. */
void session_on_munge(struct sessions *ss, struct munge_job *j);
/* Opens a sealed message that has come in @se. Returns 0 with @o set; or
 * -errno, and the failure was counted. */
int session_open(struct sessions *ss, struct session *se,
		 const struct ulnet_event *ev, void *record, size_t length,
		 struct opened *o);
/* Drops the sessions without an export whose clients @keys do not believe. */
void sessions_on_keys(struct sessions *ss, const struct keys *keys);
/* Gives the session @se, which had no export, to @e. */
void session_give(struct sessions *ss, struct session *se, struct export *e);
/* Called when @ev has come in @se, whose client has its export on another CPT:
 * ends @se, so that the client makes another handshake, which is led to that
 * CPT. */
void session_mislead(struct sessions *ss, struct session *se,
		     const struct ulnet_event *ev);
/* Frees the session and its keys. */
void session_drop(struct sessions *ss, struct session *se);
/* Tells the sender of @ev that this node does not know the session @handle.
 * Otherwise the client would have to find out by silence. */
void session_lost(struct shard *s, const struct ulnet_event *ev,
		  uint64_t handle);

#endif
