/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes LNet message headers: little endian on the wire, handles
 * and hdr_data opaque. */
#ifndef LNET_WIRE_H
#define LNET_WIRE_H

#include "lnd/lnd.h"

/* Names an operation of the node that made it; answers return it. */
struct lnet_wire_handle {
	uint64_t node;	 /* the node's incarnation */
	uint64_t object; /* the operation's id */
};

#define LNET_WIRE_NONE ((struct lnet_wire_handle){ UINT64_MAX, UINT64_MAX })

static inline bool wire_handle_is_none(const struct lnet_wire_handle *h)
{
	return h->node == UINT64_MAX && h->object == UINT64_MAX;
}

/* The portal and match bits of pings and pushes. */
#define PING_PORTAL	0
#define PING_MATCH_BITS UINT64_C(0x8000000000000000)

struct lnet_hdr {
	struct ulnet_nid dest_nid;
	struct ulnet_nid src_nid;
	uint32_t dest_pid;
	uint32_t src_pid;
	uint32_t type; /* enum ulnet_msg_type, once checked */
	uint32_t payload_length;
	/* Types that have the field: */
	struct lnet_wire_handle wmd; /* PUT ack, GET return, ACK, REPLY dest */
	uint64_t match_bits;	     /* PUT, GET, ACK */
	uint64_t hdr_data;	     /* PUT */
	uint32_t portal;	     /* PUT, GET */
	uint32_t offset;	     /* PUT, GET */
	uint32_t length;	     /* GET: sink length; ACK: mlength */
};

/* @len: LNET_HDR_SIZE or LNET_HDR_LARGE_SIZE. */
void hdr_encode(const struct lnet_hdr *hdr, void *buf, size_t len);

/* 0; -EPROTO: wrong size, unknown type, malformed large NID, or a payload that
 * is longer than the type or LNET_MTU allows. */
int hdr_decode(struct lnet_hdr *hdr, const void *buf, size_t len);

#endif
