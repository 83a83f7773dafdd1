/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's handshake with a server, before it connects (secure/handshake.h):
 * each side's bytes are a stream that travels in pieces, in control messages.
 * The client repeats what the server does not say it has. When both sides are
 * done, the import has keys (import.sealed), and sends Connect.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_SHAKE_H
#define RPC_SHAKE_H

#include "rpc/rpc.h"
#include "secure/handshake.h"

struct import;
struct wire_control;
struct wire_shaken;

/* Sends a message of the attempt to connect. Returns 0 or -errno. */
typedef int (*shake_send_fn)(struct import *imp, const struct wire_control *m);

struct shake {
	struct handshake *h;
	shake_send_fn send;
	uint64_t session; /* the server's handle; 0: not known */
	uint8_t server_id[RPC_ID_SIZE];
	/* bytes of the client's stream: those that the server has, and those
	 * that were sent since the last repetition */
	uint32_t had, sent;
	uint32_t taken; /* bytes of the server's stream */
};

/* Begins the handshake for import.epoch, with the node's keys. Returns 0 or
 * -ENOMEM. */
int shake_begin(struct import *imp, shake_send_fn send);
/* Ends it, if there is one. */
void shake_end(struct import *imp);
/* Sends what the server does not have, or asks for what it has sent. @again:
 * also what was sent before. Returns 0, or an error of shake.send. */
int shake_send(struct import *imp, bool again);

enum shake_result {
	SHAKE_GOES_ON,
	SHAKE_DONE,    /* import.sealed is set */
	SHAKE_REFUSED, /* *@why_p says why; valid until shake_end() */
	SHAKE_AGAIN,   /* this attempt comes to nothing; another may not */
};

/* The server has answered. */
enum shake_result shake_on_answer(struct import *imp,
				  const struct wire_shaken *m,
				  const char **why_p);

#endif
