/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a server keeps of clients that may come back by a ticket of TLS 1.3: the
 * secret of the ticket, and the client's identity. This replaces two other ways
 * of TLS. OpenSSL's own cache keeps the client's parsed certificate, which
 * takes 6 to 7 KiB. A ticket that carries everything would be parsed by the
 * server again, which takes longer than the rest of the handshake.
 *
 * A ticket is forgotten after TICKET_SECONDS, when it has been used, or when
 * TICKETS_MAX others have been given since. The identity is shared with the
 * connection, and with the next ticket of the same client.
 *
 * Any thread.
 */
#ifndef SECURE_TICKETS_H
#define SECURE_TICKETS_H

#include "base/util.h"

#define TICKET_SECONDS 3600
#define TICKETS_MAX    65536u

struct identity;
struct ssl_ctx_st;
struct ssl_st;
struct tickets;

/* Returns NULL if there is no memory. */
struct tickets *tickets_new(void);
/* Frees @ts, which may be NULL. No context may use it any more. */
void tickets_free(struct tickets *ts);
/* Makes the server's context @ctx keep its tickets in @ts, which it borrows.
 * SSL_get_app_data() of each handshake of @ctx has to be a struct keys_user. */
void tickets_serve(struct tickets *ts, struct ssl_ctx_st *ctx);
/* Returns the client whose ticket the server has accepted in the handshake of
 * @ssl, which is done; NULL: the client has shown none that was accepted.
 * Borrowed: it is keys_user.known. */
struct identity *tickets_known(const struct ssl_st *ssl);

#endif
