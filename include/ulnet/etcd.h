/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Servers that keep themselves alive in etcd, and clients that find them there:
 * targets of the form etcd://host:port/prefix. In a library of its own,
 * libulnetetcd, so that only programs that want it load libcurl. Manual:
 * lnet_etcd_open(3).
 */
#ifndef ULNET_ETCD_H
#define ULNET_ETCD_H

#include "ulnet/names.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lets names of @node begin with "etcd://", and "etcds://" for an etcd that is
 * asked over TLS; further calls change nothing. Threads as for
 * lnet_layer_add(3). -EOPNOTSUPP: the time of @node is virtual; -EEXIST: the
 * program has such a scheme of its own; -ENOMEM, -errno. */
ULNET_EXPORT int lnet_etcd_open(struct lnet *node);

/*
 * Reads from the file at @path how names that begin with "etcds://" are asked
 * for from now on: lines "ca: FILE", "cert: FILE", "key: FILE", "user: NAME"
 * and "password: TEXT", of which each may be missing. -EACCES: it has a
 * password, and others may read it; -EINVAL; with both *@err, unless @err is
 * NULL, says why; -ENXIO: lnet_etcd_open() was not called; -ENOMEM, -errno.
 * Reads a file, so not in a turn.
 */
ULNET_EXPORT int lnet_etcd_settings(struct lnet *node, const char *path,
				    struct ulnet_text_error *err);

#define LNET_ETCD_TTL_MIN 2u /* s */
#define LNET_ETCD_TTL_MAX 3600u

struct ulnet_etcd_entry; /* a server that is registered */

/*
 * Registers the server at @address under @text, "etcd://host:port/prefix" (or
 * "etcds://..."), and
 * keeps it there until lnet_etcd_withdraw(): with a lease of @ttl s, so that it
 * is gone so long after this process at the latest. Does not wait; while etcd
 * does not answer, it is tried again. @address->port 0: it is not told. 0;
 * -EINVAL: *@err, unless @err is NULL, says what is wrong with the text, or
 * @ttl is out of bounds; -ENXIO: lnet_etcd_open() was not called; -ENOMEM,
 * -errno. Any thread.
 */
ULNET_EXPORT int lnet_etcd_register(struct lnet *node, const char *text,
				    const struct ulnet_address *address,
				    unsigned int ttl,
				    struct ulnet_etcd_entry **entry_p,
				    struct ulnet_text_error *err);
/* Waits until the server is registered, at most @timeout us. 0; -ETIMEDOUT.
 * Not in a turn. */
ULNET_EXPORT int lnet_etcd_wait(struct ulnet_etcd_entry *entry,
				uint64_t timeout);
/* Revokes the lease: clients hear at once that the server is gone. Waits for
 * etcd, at most some seconds; frees @entry, which may be NULL. Not in a turn,
 * and before lnet_close(). */
ULNET_EXPORT void lnet_etcd_withdraw(struct ulnet_etcd_entry *entry);

#ifdef __cplusplus
}
#endif

#endif
