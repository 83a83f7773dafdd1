/* SPDX-License-Identifier: BSD-3-Clause */
/* What nid.c and nidlist.c share: the table of network types, and addresses. */
#ifndef LNET_NID_PRIV_H
#define LNET_NID_PRIV_H

#include <endian.h>

#include "lnet/nid/range.h"

#define LNET_NET_NUM_MAX UINT32_C(65535)

enum lnet_addr_kind {
	LNET_ADDR_NONE,	  /* hexadecimal words: no other form is known */
	LNET_ADDR_IP,	  /* IPv4 or IPv6 */
	LNET_ADDR_NUMBER, /* one number of 32 bits */
};

struct lnet_net_type {
	uint32_t type; /* LNET_TYPE_* */
	enum lnet_addr_kind kind;
	const char *name; /* NULL only with LNET_ADDR_NONE */
	bool numbered;	  /* a net number may follow the name */
};

/* Returns the type with this number, or NULL. */
const struct lnet_net_type *lnet_net_type_find(uint32_t type);

/* Takes the name of a type if the text continues with one. Otherwise returns
 * NULL. */
const struct lnet_net_type *lnet_net_type_take(struct lnet_text *t);

/* Parses the IPv4 or IPv6 address @text[0..len) into the size and address of
 * @nid. Returns false if the text is no address. */
bool lnet_ip_parse(const char *text, size_t len, struct ulnet_nid *nid);
/* Prints the IPv4 or IPv6 address of @nid. */
void lnet_ip_print(struct lnet_text_out *out, const struct ulnet_nid *nid);

/* Is @nid 255.255.255.255@net? No interface has that NID; in rules it stands
 * for all NIDs of the net. */
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
