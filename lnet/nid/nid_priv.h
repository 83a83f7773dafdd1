/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What nid.c and nidlist.c share: the table of network types. Nobody else asks
 * for it.
 */
#ifndef LNET_NID_PRIV_H
#define LNET_NID_PRIV_H

#include <endian.h>

#include "lnet/nid/range.h"

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

/* Steps over the name of a type, if one comes; else NULL. */
const struct lnet_net_type *lnet_net_type_take(struct lnet_text *t);

/* Sets the address of @nid to the IPv4 or IPv6 address that @text[0..len) says.
 * False: it says none. */
bool lnet_ip_parse(const char *text, size_t len, struct ulnet_nid *nid);
/* Prints an address of that kind. */
void lnet_ip_print(struct lnet_text_out *out, const struct ulnet_nid *nid);

/* 255.255.255.255@net, which stands for a whole net in rules: no end point. */
bool lnet_nid_is_net(const struct ulnet_nid *nid);

static inline void put_be32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint32_t get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

#endif
