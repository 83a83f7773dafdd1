/* SPDX-License-Identifier: BSD-3-Clause */
/* What import.c (the states of an import, and what it sends) gives to
 * import_control.c (what its server says). Owner: the CPT of the import. */
#ifndef RPC_IMPORT_PRIV_H
#define RPC_IMPORT_PRIV_H

#include "rpc/client/import.h"

struct wire_connected;

/* Logs @what has become of the connection. */
void import_log(const struct import *imp, const char *what);
/* CONNECTING: sends what comes next in this attempt: the handshake, or Connect.
 */
void import_connect_send(struct import *imp);
/* The attempt to connect has failed, or the connection is lost: tries the other
 * NIDs at once, one after the other, and after a pause all again. The pause is
 * at least import.retry_after. */
void import_try_again(struct import *imp);
/* CONNECTING: the server has accepted the connection by @m. */
void import_connected(struct import *imp, const struct wire_connected *m);
/* FULL or SUSPECT: the server has answered a probe. */
void import_answered(struct import *imp);

#endif
