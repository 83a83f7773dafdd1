/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's handshake with a server, before it connects (secure/handshake.h).
 * The bytes of each side are a stream, which travels in pieces in control
 * messages (Shake, Shaken). A client that proves itself by MUNGE asks munged
 * meanwhile (rpc/munge.h). The client sends again what the server has not
 * acknowledged. When both sides are done, the import has keys (import.sealed),
 * and sends Connect.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_SHAKE_H
#define RPC_SHAKE_H

#include "rpc/rpc.h"
#include "secure/handshake.h"

struct import;
struct munge_job;
struct wire_control;
struct wire_shaken;

/* Sends a message of this attempt to connect. Returns 0 or -errno. */
typedef int (*shake_send_fn)(struct import *imp, const struct wire_control *m);

struct shake {
	struct handshake *h;
	/* the keys that the node had when the handshake began */
	struct keys *keys;
	shake_send_fn send;
	/* the server's handle of the session; 0: not known yet */
	uint64_t session;
	uint8_t server_id[RPC_ID_SIZE];
	/* bytes of the client's stream that the server has acknowledged, and
	 * that were sent at least once */
	uint32_t had, sent;
	/* bytes of the server's stream that have come so far, without a gap */
	uint32_t taken;
	/* munged was asked for a credential, and has not answered yet */
	bool asked;
};

/* Begins the handshake of import.epoch, with the node's keys. Returns 0 or
 * -ENOMEM. */
int shake_begin(struct import *imp, shake_send_fn send);
/* Ends the handshake of @imp, if one is under way. Later answers of the server
 * are ignored. */
void shake_end(struct import *imp);
/* Sends the bytes of the client's stream that were not sent yet. @again: also
 * those that the server has not acknowledged. If there is nothing to send,
 * sends an empty piece, which asks the server for its bytes. Returns 0, or an
 * error of shake.send. */
int shake_send(struct import *imp, bool again);

enum shake_result {
	SHAKE_GOES_ON,
	SHAKE_DONE,    /* import.sealed is set */
	SHAKE_REFUSED, /* *@why_p is the reason, valid until shake_end() */
	/* this attempt to connect has failed, but a new one may succeed */
	SHAKE_AGAIN,
};

/* Called when munged has answered @j: goes on with the handshake that has
 * asked. */
enum shake_result shake_on_munge(struct import *imp, const struct munge_job *j,
				 const char **why_p);
/* Called when the server has answered with @m: goes on with the handshake. */
enum shake_result shake_on_answer(struct import *imp,
				  const struct wire_shaken *m,
				  const char **why_p);

#endif
