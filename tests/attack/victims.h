/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Those whom an attacker between them tries to deceive: a server, and clients,
 * each a process of its own. What they do is counted in memory that they share
 * with the test: how often each call was executed, what its caller was told,
 * and all that came altered.
 */
#ifndef TESTS_ATTACK_VICTIMS_H
#define TESTS_ATTACK_VICTIMS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/util.h"
#include "ulnet/rpc.h"

struct ulrpc_keys;

#define CLIENTS	  2
#define CALLS_MAX (1u << 18) /* of a client */
#define ADDRESSES 10
#define SERVER	  2 /* 127.0.0.2 */

/* What a body, or bulk, of the calls has in it, for whoever reads on the way.
 */
#define MARKER "words that only two may know"

/* What was told of a call: 1 + enum ulrpc_execution; GOOD: its reply came. */
#define TOLD_NOTHING 0
#define TOLD_GOOD    (1 + ULRPC_EXECUTION_UNKNOWN + 1)

struct tally {
	atomic_bool over;	/* clients make their last calls, and end */
	atomic_uint session;	/* calls of a client's connection */
	atomic_uint forged;	/* what nobody has sent, or not so */
	atomic_uint seals;	/* records that were refused */
	uint8_t cpt[ADDRESSES]; /* of the server, of client 127.0.0.x */
	struct {
		atomic_uint made, good;
		atomic_uchar executed[CALLS_MAX], told[CALLS_MAX];
	} client[CLIENTS];
};

struct victims {
	struct tally *tally;
	enum ulrpc_flavour flavour;
	bool tls;	     /* the net is tls: required */
	uint16_t at, behind; /* ports: of the attacker, of the server */
	uint8_t address[CLIENTS];
	struct ulrpc_keys *keys[CLIENTS + 1]; /* the server's are last */
	const char *name[CLIENTS];	      /* as their keys prove it */
	pid_t pid[CLIENTS + 1];
	int life[CLIENTS + 1]; /* a pipe that ends with the process */
};

/* Each makes a process; the server's first. The test has one thread. The server
 * listens when the function returns. */
void victims_serve(struct victims *v);
void victims_call(struct victims *v, unsigned int client);
/* Ends the server at once, as if its machine had failed. */
void victims_kill_server(struct victims *v);
/* Waits for a process, and returns whether it found all in order. */
bool victims_end(struct victims *v, unsigned int i);

/* What may not be, after all have ended. */
unsigned int victims_audit(const struct tally *t);

#endif
