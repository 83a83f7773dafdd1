/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a client believes: what the user demands of the server
 * (ulrpc_client_conf.flavour, .server), whether the server is the right one,
 * and what users are told if it is not, or if it does not believe the client.
 * How the server proves who it is, is in shake.h; that each message is the
 * server's, in rpc/sealed.h.
 *
 * Owner: the CPT of the client, unless a comment says "any thread".
 */
#ifndef RPC_TRUST_H
#define RPC_TRUST_H

#include "rpc/rpc.h"

struct conf_owner;
struct import;
struct ulrpc_client;
struct wire_opened;

/* Why a client and a service do not trust each other. */
enum client_distrust {
	CLIENT_TRUSTS,
	/* the service demands a proof of who the client is */
	CLIENT_NOT_PROVED,
	CLIENT_WRONG_SERVER, /* the server has not proved to be client.server */
	/* one side is of an earlier release than the other, and does not know
	 * its flavour */
	CLIENT_OTHER_FLAVOUR,
};

/* Returns whose configuration a complaint is about, for conf_refuse(). Any
 * thread. */
struct conf_owner client_conf_owner(const struct ulrpc_client_conf *conf);
/* Checks the flavour of @conf. Returns 0; -EINVAL: there is no such flavour;
 * -ENOKEY: it needs keys, and RPC has none. Any thread. */
int client_check_flavour(const struct ulrpc *rpc,
			 const struct ulrpc_client_conf *conf);
/* Has the server of this connection proved to be client.server? True if that is
 * not set. */
bool client_server_is_right(const struct ulrpc_client *c);
/* Takes the flavour that the server names in @m. Returns false if it is less
 * than this client demands, or unknown to it. */
bool client_agrees(struct ulrpc_client *c, const struct wire_opened *m);
/* Called when the service refuses a call because it does not have the flavour
 * @wanted, a number on the wire. Returns false if this client cannot have that
 * flavour; else the next opening of the service agrees on it. */
bool client_raise(struct ulrpc_client *c, uint32_t wanted);
/* If what @c sends has to be encrypted, encrypts from now on the control
 * messages of its connection, too. */
void client_is_private(struct ulrpc_client *c);
/* Does a client of @imp demand that nobody can read what is sent? */
bool clients_want_privacy(const struct import *imp);
/* Writes to @text why the server, or this client, refuses calls; "": neither
 * does. */
void client_refusal(const struct ulrpc_client *c, char *text, size_t size);

#endif
