/* SPDX-License-Identifier: BSD-3-Clause */
/* What import.c (the states of an import, and what it sends) provides for
 * import_control.c (what its server says). Owner: the CPT of the import. */
#ifndef RPC_IMPORT_PRIV_H
#define RPC_IMPORT_PRIV_H

#include "rpc/client/import.h"

struct wire_connected;

/* Logs what has become of the connection: @what. */
void import_log(const struct import *imp, const char *what);
/* In CONNECTING: sends what comes next in this attempt: a message of the
 * handshake, or Connect. */
void import_connect_send(struct import *imp);
/* Called when the attempt to connect has failed, or the connection is lost:
 * tries the other NIDs at once, one after the other, and after a pause all of
 * them again. The pause is at least import.retry_after. */
void import_try_again(struct import *imp);
/* In CONNECTING: called when the attempt to connect has failed, because nobody
 * has answered, or because the server wants no connections now. As
 * import_try_again(); and if all NIDs have failed, tells the clients. The
 * caller has set import.away and .error. */
void import_failed(struct import *imp);
/* In CONNECTING: called when the server has accepted the connection by @m. */
void import_connected(struct import *imp, const struct wire_connected *m);
/* In FULL or SUSPECT: called when the server has answered a probe. */
void import_answered(struct import *imp);

#endif
