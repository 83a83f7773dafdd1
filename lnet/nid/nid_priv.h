/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What nid.c and nidlist.c share: the table of network types. Nobody else asks
 * for it.
 */
#ifndef LNET_NID_PRIV_H
#define LNET_NID_PRIV_H

#include "ulnet/nid.h"

#define LNET_NET_NUM_MAX UINT32_C(65535)

enum lnet_addr_kind {
	LNET_ADDR_NONE,	  /* no text: words in hex */
	LNET_ADDR_IP,	  /* IPv4 or IPv6 */
	LNET_ADDR_NUMBER, /* 32 bits */
};

struct lnet_net_type {
	uint32_t type; /* LNET_TYPE_* */
	enum lnet_addr_kind kind;
	const char *name; /* never NULL when there is a text form */
	bool numbered;	  /* may the text have a net number? */
};

/* The type with this number, or NULL. */
const struct lnet_net_type *lnet_net_type_find(uint32_t type);

/* The type whose name @text[0..len) begins with, or NULL. */
const struct lnet_net_type *lnet_net_type_prefix(const char *text, size_t len);

#endif
