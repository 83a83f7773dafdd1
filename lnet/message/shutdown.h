/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of an NI on a CPT, for the messages there. */
#ifndef LNET_SHUTDOWN_H
#define LNET_SHUTDOWN_H

struct lnet_cpt;
struct lnet_ni;

/* CPT: no message goes out through @ni any more; those that wait take another
 * path, or end with -ESHUTDOWN if they have none; then the LND is told. */
void shutdown_ni(struct lnet_ni *ni, struct lnet_cpt *cpt);

#endif
