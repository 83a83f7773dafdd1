/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of a client that was given a name: which servers the name stands
 * for, and which of them the client calls.
 *
 * The client calls one server at a time: the first one that can be connected
 * to, in the order of the answer (servers of equal priority in random order, by
 * their weights). It goes to the next server when it cannot connect to its own,
 * and to the servers of a new answer when its own is not among them. It goes
 * only when no call is under way that may have been executed, because another
 * server would not know of it. Calls that were certainly not executed go along.
 *
 * Until a name is known, the client belongs to an import that never connects
 * (import_new_nameless()).
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_TARGET_H
#define RPC_TARGET_H

#include "rpc/rpc.h"
#include "ulnet/names.h"

/* ns: pauses when none of the servers could be connected to: the shortest and
 * the longest */
#define TARGET_PAUSE_MIN (100 * NSEC_PER_MSEC)
#define TARGET_PAUSE_MAX (5 * NSEC_PER_SEC)

/* What the client does for its target. Called by the owner. */
struct target_ops {
	/* Moves the client to the server with the NID @nid, unless it is there.
	 * Returns 0; -ENOMEM or -ENOSPC: the client stays where it is. */
	int (*go)(struct ulrpc_client *c, const struct ulnet_nid *nid,
		  uint32_t pid);
	/* Called when the name has no address. */
	void (*no_address)(struct ulrpc_client *c);
};

struct client_target {
	struct ulrpc_client *client;
	const struct target_ops *ops;
	struct ulnet_name *name; /* NULL: the name is not open */
	char *text;		 /* text of the name */
	uint32_t pid;
	bool no_address; /* the last answer had no address */
	/* why there is no address; "": there are addresses */
	char why[LNET_NAME_WHY];
	/* @n addresses, in the order in which they are tried; NULL: none are
	 * known */
	struct ulnet_address *addresses;
	/* @at: index of the address in use, or of the next one to use; equal to
	 * @n: none of them is in use */
	unsigned int n, at;
	bool wanted; /* the client is to go to @at as soon as it may */
	bool pinned; /* target_pin() was called: it goes nowhere */
	/* how many servers in a row could not be connected to */
	unsigned int failed;
	struct ulnet_timer timer; /* fires at the end of a pause */
	struct ulnet_work work;	  /* makes the client go to @at, if it may */
	bool given;		  /* is @work posted? */
};

/* Makes the target of a client that is not attached yet. Returns NULL if there
 * is no memory. Any thread. */
struct client_target *target_new(struct ulrpc_client *c, const char *text,
				 uint32_t pid, const struct target_ops *ops);
/* Begins to look the name up. Returns 0 or -errno. */
int target_open(struct client_target *t) must_check;
/* Ends looking the name up: the client stays where it is. */
void target_stop(struct client_target *t);
void target_free(struct client_target *t);
/* The client stays where it is, whatever happens, until target_unpin(). */
void target_pin(struct client_target *t);
void target_unpin(struct client_target *t);
static inline bool target_is_pinned(const struct client_target *t)
{
	return t->pinned;
}
/* Is the client's server none of the last answer? */
bool target_is_astray(const struct client_target *t);

/* Called when the client's server is connected. */
void target_on_up(struct client_target *t);
/* Called when the connection was lost, or could not be made. */
void target_on_down(struct client_target *t);
/* Called when all calls of the client have ended, or a call is to be sent
 * again. */
void target_on_quiet(struct client_target *t);
/* Called when the client's server cannot be connected to: is the client about
 * to go to another one, which was not tried since the last pause? */
bool target_has_more(const struct client_target *t);

/* Sorts servers of the same priority at random: each comes first as often as
 * its weight says. Where all weights are 0, the order stays. @random returns a
 * number below @below. */
void target_order(struct ulnet_address *a, unsigned int n,
		  uint64_t (*random)(void *arg, uint64_t below), void *arg);

#endif
