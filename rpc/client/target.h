/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of a client that was given a name: which servers the name stands
 * for, and which of them the client calls.
 *
 * That is one server at a time, the first that answers, in the order of the
 * answer (servers of equal priority by chance, as their weights say). The
 * client goes to the next one when its server cannot be connected to, and to
 * those of a new answer when its server is not among them; but only when no
 * call is under way that may have been executed, since another server does not
 * know of it. Calls that certainly were not go with the client.
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

/* Pauses, ns, when none of the servers could be connected to: from, and to. */
#define TARGET_PAUSE_MIN (100 * NSEC_PER_MSEC)
#define TARGET_PAUSE_MAX (5 * NSEC_PER_SEC)

/* What the client does for its target; owner. */
struct target_ops {
	/* Goes to the server with this NID, if it is not there. -ENOMEM,
	 * -ENOSPC: it stays where it is. */
	int (*go)(struct ulrpc_client *c, const struct ulnet_nid *nid,
		  uint32_t pid);
	/* The name has no address. */
	void (*no_address)(struct ulrpc_client *c);
};

struct client_target {
	struct ulrpc_client *client;
	const struct target_ops *ops;
	struct ulnet_name *name; /* NULL: not opened, or closed */
	char *text;		 /* of the name */
	uint32_t pid;
	bool no_address; /* as far as is known */
	/* why there is no address */
	char why[LNET_NAME_WHY];
	/* in the order in which they are tried; NULL: none are known */
	struct ulnet_address *addresses;
	/* @at: the one in use, or that is to be used next; @n: none */
	unsigned int n, at;
	bool wanted; /* the client is to go to @at */
	/* how many could not be connected to, in a row */
	unsigned int failed;
	struct ulnet_timer timer; /* ends a pause */
	struct ulnet_work work;	  /* goes there */
	bool given;		  /* work has been given */
};

/* Makes the target of a client that was not attached yet. NULL: no memory. Any
 * thread. */
struct client_target *target_new(struct ulrpc_client *c, const char *text,
				 uint32_t pid, const struct target_ops *ops);
/* Begins to look the name up; -errno. */
int target_open(struct client_target *t) must_check;
/* Ends that: the client stays where it is. */
void target_stop(struct client_target *t);
void target_free(struct client_target *t);

/* The client's server is connected. */
void target_on_up(struct client_target *t);
/* Its connection was lost, or could not be made. */
void target_on_down(struct client_target *t);
/* All calls of the client have ended, or one is to be sent again. */
void target_on_quiet(struct client_target *t);

/* Sorts servers of the same priority by chance: each comes first as often as
 * its weight says, except that those without any weights stay in their order.
 * @random returns a number below its argument. */
void target_order(struct ulnet_address *a, unsigned int n,
		  uint64_t (*random)(void *arg, uint64_t below), void *arg);

#endif
