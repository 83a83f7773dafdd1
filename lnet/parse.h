/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes in: checks, matching, offers between CPTs, lazy portals
 * (lnet_parse() itself is declared in lnd.h).
 */
#ifndef LNET_PARSE_H
#define LNET_PARSE_H

struct lnet_cpt;
struct lnet_msg;
struct lnet_ni;

/* A buffer was attached to the portal on @cpt: messages held there, or by other
 * CPTs, are tried again, in order of arrival, soon. */
void parse_retry_held(struct lnet_cpt *cpt, unsigned int portal);

/* The portal is not lazy any more: what it holds on @cpt is dropped. */
void parse_drop_held(struct lnet_cpt *cpt, unsigned int portal);

/* What is held on @cpt, received through @ni (NULL: any), is dropped. */
void parse_discard_held(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* It has been held for too long. */
void parse_held_late(struct lnet_msg *msg);

#endif
