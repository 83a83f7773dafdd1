/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a client believes: what it asks of its server, as the user says
 * (ulrpc_client_conf.flavour, .server), whether that server is the right one,
 * and what users are told if it is not, or if it does not believe the client.
 * How the server proves who it is stands in shake.h, and that each message is
 * the server's, in rpc/sealed.h.
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

/* Why a service is refused to a client, or by it. */
enum client_distrust {
	CLIENT_TRUSTS,
	/* the service demands a proof of who the client is */
	CLIENT_NOT_PROVED,
	CLIENT_WRONG_SERVER, /* the server has not proved client.server */
	/* one side is of an earlier release than the other, and does not know
	 * its flavour */
	CLIENT_OTHER_FLAVOUR,
};

/* Whose configuration a complaint is about: for conf_refuse(). Any thread. */
struct conf_owner client_conf_owner(const struct ulrpc_client_conf *conf);
/* 0; -EINVAL, -ENOKEY: what @conf asks for makes no sense, or RPC has no keys
 * for it. Any thread. */
int client_check_flavour(const struct ulrpc *rpc,
			 const struct ulrpc_client_conf *conf);
/* Has the server of this connection proved to be client.server, if that is set?
 */
bool client_server_is_right(const struct ulrpc_client *c);
/* Takes the flavour that the server names. Returns false if it is less than
 * this client has to have, or one that it does not know. */
bool client_agrees(struct ulrpc_client *c, const struct wire_opened *m);
/* The service refuses a call that does not have the flavour @wanted, as in
 * replies. Returns false if this client cannot have it; else the next opening
 * of the service agrees on it. */
bool client_raise(struct ulrpc_client *c, uint32_t wanted);
/* If nobody may read what @c sends, encrypts from now on the control messages
 * of its connection, too. */
void client_is_private(struct ulrpc_client *c);
/* Does a client of @imp demand that nobody can read what is sent? */
bool clients_want_privacy(const struct import *imp);
/* Writes to @text why the server, or this client, refuses calls; "": neither
 * does. */
void client_refusal(const struct ulrpc_client *c, char *text, size_t size);

#endif
