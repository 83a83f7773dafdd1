/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of received messages that are not wanted: nobody is told but the
 * counters. All functions are for the CPT that received the message.
 */
#ifndef LNET_DROP_H
#define LNET_DROP_H

#include "lnet/core/stat.h"

struct lnet_cpt;
struct lnet_msg;
struct lnet_ni;

/* Before a message was made of what the LND calls @rx. */
void drop_rx(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why);

/* The LND throws the payload away; @msg is freed. */
void drop_msg(struct lnet_msg *msg, enum lnet_stat why);

#endif
