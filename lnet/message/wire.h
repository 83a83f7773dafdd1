/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes the headers of LNet messages: little endian on the wire,
 * except handles and hdr_data, whose bytes are copied as they are. */
#ifndef LNET_WIRE_H
#define LNET_WIRE_H

#include "lnd/lnd.h"

/* The name of an operation, made by the node that began it; answers carry it
 * back. */
struct lnet_wire_handle {
	uint64_t node;	 /* incarnation of that node */
	uint64_t object; /* id of the operation */
};

#define LNET_WIRE_NONE ((struct lnet_wire_handle){ UINT64_MAX, UINT64_MAX })

static inline bool wire_handle_is_none(const struct lnet_wire_handle *h)
{
	return h->node == UINT64_MAX && h->object == UINT64_MAX;
}

/* The portal and the match bits to which pings and pushes go. */
#define PING_PORTAL	0
#define PING_MATCH_BITS UINT64_C(0x8000000000000000)

struct lnet_hdr {
	struct ulnet_nid dest_nid;
	struct ulnet_nid src_nid;
	uint32_t dest_pid;
	uint32_t src_pid;
	uint32_t type; /* enum ulnet_msg_type; decoding has checked it */
	uint32_t payload_length;
	/* Each is in the headers of the types named: */
	/* PUT: handle for the ACK; GET: handle for the REPLY; ACK, REPLY:
	 * handle of the operation */
	struct lnet_wire_handle wmd;
	uint64_t match_bits; /* PUT, GET, ACK */
	uint64_t hdr_data;   /* PUT */
	uint32_t portal;     /* PUT, GET */
	uint32_t offset;     /* PUT, GET */
	/* bytes; GET: length asked for; ACK: length moved */
	uint32_t length;
};

/* @len: LNET_HDR_SIZE or LNET_HDR_LARGE_SIZE. */
void hdr_encode(const struct lnet_hdr *hdr, void *buf, size_t len);

/* Returns 0; -EPROTO: the size is wrong, the type is unknown, a large NID is
 * malformed, or the payload is longer than the type or LNET_MTU allows. */
int hdr_decode(struct lnet_hdr *hdr, const void *buf, size_t len);

#endif
