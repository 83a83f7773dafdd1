/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The destinations of a client test of LNet's self-test, which its node fetches
 * with a GET: records of a NID in 64 bits and a pid, in the byte order of the
 * request. No record of the sender's memory lies in two pages of 4096 bytes,
 * but 12 bytes for each record are all that is moved: what is longer than a
 * page has lost its end.
 */
#ifndef SERVICES_LST_LIST_H
#define SERVICES_LST_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "ulnet/nid.h"

#define LST_RECORD_SIZE 12
#define LST_PAGE_SIZE	4096
#define LST_LIST_WHOLE	(LST_PAGE_SIZE / LST_RECORD_SIZE) /* loses nothing */

/* Writes @n * LST_RECORD_SIZE bytes, in this machine's byte order. -E2BIG: more
 * than LST_LIST_WHOLE; -EAFNOSUPPORT: a NID that has no form of 64 bits. Any
 * thread. */
int lst_list_encode(const struct ulnet_id *ids, size_t n, void *buf);

/*
 * Reads @n records of @len bytes. A pid that is missing is LNET_PID_LUSTRE.
 * -EMSGSIZE: a NID is missing; -EINVAL: one is no node's (ANY, 0@lo, no type).
 * @ids is undefined then. Any thread.
 */
int lst_list_decode(struct ulnet_id *ids, size_t n, const void *buf, size_t len,
		    bool swapped);

#endif
