/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding and decoding of what o2ib nodes exchange: messages, of which some
 * are private data of connection requests and answers, and the private data of
 * rejects. Pure functions, without allocation. LNet's header, which some
 * messages contain, is not interpreted or changed.
 *
 * All is written in little endian, and read in either order: the magic of a
 * message tells its sender's order, and "swap" that it is not this machine's.
 * Cookies are returned to the peer byte for byte.
 *
 * Thread: any.
 */
#ifndef LND_O2IBLND_WIRE_H
#define LND_O2IBLND_WIRE_H

#include "base/buf.h"
#include "lnd/lnd.h"

enum {
	IB_VERSION_1 = 0x11,
	IB_VERSION_2 = 0x12, /* spoken by all nodes */
};

#define IB_MSG_SIZE_MAX 4096 /* bytes of the longest message, and of a buffer */
#define IB_HDR_SIZE	48   /* bytes of a header, and so of a NOOP */
/* Offsets of fields in the header, bytes. */
#define IB_TYPE_OFFSET	  6
#define IB_CREDITS_OFFSET 7
#define IB_NOB_OFFSET	  8

#define IB_CONN_SIZE	56 /* bytes of a CONNREQ or CONNACK */
#define IB_DONE_SIZE	60 /* bytes of a PUT_NAK, PUT_DONE or GET_DONE */
#define IB_PUT_REQ_SIZE 128
#define IB_FRAG_SIZE	12

/* Offsets, in bytes, of the LNet header (IMMEDIATE, PUT_REQ, GET_REQ) and of
 * the payload (IMMEDIATE). */
#define IB_LNET_OFFSET	  IB_HDR_SIZE
#define IB_PAYLOAD_OFFSET (IB_LNET_OFFSET + LNET_HDR_SIZE)

/* Most bytes of payload in an IMMEDIATE. */
#define IB_IMMEDIATE_MAX (IB_MSG_SIZE_MAX - IB_PAYLOAD_OFFSET)

/* Sizes in bytes with @n fragments, and the most fragments that fit. */
#define IB_PUT_ACK_SIZE(n) (IB_HDR_SIZE + 24 + IB_FRAG_SIZE * (size_t)(n))
#define IB_GET_REQ_SIZE(n) (IB_PUT_REQ_SIZE + 8 + IB_FRAG_SIZE * (size_t)(n))
#define IB_PUT_ACK_FRAGS   335
#define IB_GET_REQ_FRAGS   330
/* The most fragments of a connection; 256 with nodes before 2.15. */
#define IB_FRAGS_MAX 257

enum ib_msg_type {
	IB_MSG_CONNREQ = 0xc0, /* connection request */
	IB_MSG_CONNACK = 0xc1, /* acceptance */
	IB_MSG_NOOP = 0xd0,    /* returns credits; keepalive */
	IB_MSG_IMMEDIATE = 0xd1,
	IB_MSG_PUT_REQ = 0xd2,	/* source: announces a PUT */
	IB_MSG_PUT_NAK = 0xd3,	/* sink: does not want the PUT */
	IB_MSG_PUT_ACK = 0xd4,	/* sink: where to write the PUT */
	IB_MSG_PUT_DONE = 0xd5, /* source: the data was written */
	/* sink: asks for data, and says where to write it */
	IB_MSG_GET_REQ = 0xd6,
	IB_MSG_GET_DONE = 0xd7, /* source: the data was written */
};

/* ---- sender and receiver ---- */

/* An NI that is up, with its incarnation, which differs after each start. */
struct ib_end {
	struct ulnet_nid nid; /* a NID that has a 64-bit form */
	uint64_t stamp;	      /* incarnation; 0: unknown */
};

struct ib_envelope {
	uint16_t version; /* IB_VERSION_* */
	struct ib_end src;
	struct ib_end dst;
};

/* The header that all messages from one node to another have in common. Type,
 * credits, size and checksum are 0. */
struct ib_hdr {
	uint8_t bytes[IB_HDR_SIZE];
};

struct ib_hdr ib_hdr_of(const struct ib_envelope *env);

/* Writes the header of a message of @nob bytes to @p. */
static inline void ib_hdr_put(const struct ib_hdr *hdr, enum ib_msg_type type,
			      size_t nob, uint8_t *p)
{
	memcpy(p, hdr->bytes, sizeof(hdr->bytes));
	p[IB_TYPE_OFFSET] = (uint8_t)type;
	store_le32(p + IB_NOB_OFFSET, (uint32_t)nob);
}

/* ---- contents of messages ---- */

/* The limits in a CONNREQ, a CONNACK or a reject. */
struct ib_conn_params {
	uint16_t queue_depth;
	uint16_t max_frags;
	uint32_t max_msg_size; /* IB_MSG_SIZE_MAX, or what the peer has said */
};

struct ib_frag {
	uint64_t addr;
	uint32_t nob;
};

/* Our memory, to which a peer may write. */
struct ib_sink {
	uint32_t key;
	unsigned int nfrags; /* number of fragments, at least 1 */
	const struct ib_frag *frags;
};

/* A peer's memory, as described in a message of the peer; see ib_rdma_frag().
 */
struct ib_rdma {
	uint32_t key;
	/* number of fragments, at least 1; the message has room for all of them
	 */
	uint32_t nfrags;
	const uint8_t *frags; /* the fragments, in the message */
	bool swap;
};

/* Reads fragment @i, below rdma->nfrags. Address and length are not checked. */
void ib_rdma_frag(const struct ib_rdma *rdma, unsigned int i, uint64_t *addr,
		  uint32_t *nob);
/* Returns the number of bytes in all fragments together. */
uint64_t ib_rdma_nob(const struct ib_rdma *rdma);

/* A decoded message. Members that its type does not have are 0. */
struct ib_msg {
	const uint8_t *hdr; /* the message itself */
	enum ib_msg_type type;
	uint32_t nob;	  /* bytes of the message; no more than were received */
	uint32_t cksum;	  /* checksum; 0: the message has none */
	uint16_t version; /* IB_VERSION_* */
	bool swap;	  /* the message is not in this machine's byte order */
	uint8_t credits;

	struct ib_conn_params params; /* CONNREQ, CONNACK: not checked */

	/* IMMEDIATE, PUT_REQ, GET_REQ: in the message; not checked */
	const uint8_t *lnet_hdr;
	/* IMMEDIATE: in the message; received completely, but perhaps beyond
	 * nob */
	const uint8_t *payload;
	uint32_t payload_len;

	/* PUT_REQ, GET_REQ: any value, chosen by the sender. Answers have the
	 * cookie of what they answer: PUT_ACK and PUT_NAK that of the PUT_REQ,
	 * PUT_DONE that of the PUT_ACK, GET_DONE that of the GET_REQ. */
	uint64_t cookie;
	uint64_t dst_cookie; /* PUT_ACK: chosen by the sender */
	/* PUT_NAK, PUT_DONE, GET_DONE: number of bytes, or a negative errno;
	 * not checked */
	int32_t status;
	struct ib_rdma rdma; /* PUT_ACK, GET_REQ */
};

/* ---- writing ---- */

/*
 * Each function writes a message, with credits and checksum 0, into @buf, and
 * returns its size, bytes. @buf has room for it; IB_MSG_SIZE_MAX bytes are
 * always enough. The caller writes LNet header and payload, before or after.
 */
/* Writes a CONNREQ or a CONNACK. */
size_t ib_conn_encode(const struct ib_hdr *hdr, enum ib_msg_type type,
		      const struct ib_conn_params *params, void *buf);
size_t ib_noop_encode(const struct ib_hdr *hdr, void *buf);
/* Writes an IMMEDIATE. @payload_len: bytes, at most IB_IMMEDIATE_MAX. */
static inline size_t ib_immediate_encode(const struct ib_hdr *hdr,
					 size_t payload_len, void *buf)
{
	size_t nob = IB_PAYLOAD_OFFSET + payload_len;

	BUG_ON(payload_len > IB_IMMEDIATE_MAX);
	ib_hdr_put(hdr, IB_MSG_IMMEDIATE, nob, buf);
	return nob;
}
size_t ib_put_req_encode(const struct ib_hdr *hdr, uint64_t cookie, void *buf);
/* Writes a PUT_ACK. @cookie: of the PUT_REQ. @sink has at most IB_PUT_ACK_FRAGS
 * fragments. */
size_t ib_put_ack_encode(const struct ib_hdr *hdr, uint64_t cookie,
			 uint64_t dst_cookie, const struct ib_sink *sink,
			 void *buf);
/* Writes a GET_REQ. @sink has at most IB_GET_REQ_FRAGS fragments. */
size_t ib_get_req_encode(const struct ib_hdr *hdr, uint64_t cookie,
			 const struct ib_sink *sink, void *buf);
/* Writes a PUT_NAK, a PUT_DONE or a GET_DONE. */
size_t ib_done_encode(const struct ib_hdr *hdr, enum ib_msg_type type,
		      uint64_t cookie, int32_t status, void *buf);

/* Sets the credits that the message in @buf returns. To be called before
 * ib_msg_set_cksum(). */
static inline void ib_msg_set_credits(void *buf, uint8_t credits)
{
	((uint8_t *)buf)[IB_CREDITS_OFFSET] = credits;
}

/* Sets the checksum of the message in @buf, when all else is written. */
void ib_msg_set_cksum(void *buf);

/* ---- reading ---- */

/*
 * Decodes @len received bytes at @buf, which are borrowed as long as the
 * pointers in @msg are used. Bytes behind the message are ignored.
 *
 * Returns 0; sender, receiver and incarnations are not checked. -EPROTO: not a
 * valid message, for the reason *@why, constant text; @msg is undefined.
 */
int ib_msg_decode(const void *buf, size_t len, struct ib_msg *msg,
		  const char **why);

/* The sender and the receiver of a decoded message. src.nid is never
 * LNET_NID_ANY. */
struct ib_envelope ib_msg_env(const struct ib_msg *msg);

/*
 * Decodes as ib_msg_decode(), for a connection whose messages have the header
 * @hdr: the message must be of version 2, and neither CONNREQ nor CONNACK.
 * -ESTALE: it is of another connection, or of another incarnation of either
 * node.
 */
int ib_msg_decode_on(const struct ib_hdr *hdr, const void *buf, size_t len,
		     struct ib_msg *msg, const char **why);

/* ---- rejects ---- */

#define IB_REJECT_SIZE 24
/* bytes of a reject of version 1 that ends after the reason */
#define IB_REJECT_SHORT_SIZE 7

enum ib_reject_reason {
	/* the sender of the reject is connecting, too */
	IB_REJECT_RACE = 1,
	IB_REJECT_RESOURCES,	/* out of memory, or share used up */
	IB_REJECT_FATAL,	/* any other reason */
	IB_REJECT_INCOMPATIBLE, /* other version; never sent */
	/* an incarnation in the request is not the present one */
	IB_REJECT_STALE,
	IB_REJECT_FRAGS,   /* the sender allows fewer fragments */
	IB_REJECT_DEPTH,   /* the sender allows a shorter queue */
	IB_REJECT_SERVICE, /* no such service; never sent */
	IB_REJECT_EARLY,   /* the sender is starting */
};

/* Returns the name of @reason, constant text; for unknown reasons as well. */
const char *ib_reject_name(unsigned int reason);

struct ib_reject {
	uint16_t version; /* IB_VERSION_* */
	/* IB_REJECT_*; when decoded, perhaps an unknown one */
	uint8_t reason;
	/* when decoded: the reject has version 2 and full length */
	bool full;
	uint64_t stamp; /* incarnation; 0: unknown */
	struct ib_conn_params params;
};

/* Writes IB_REJECT_SIZE bytes to @buf, and returns that number. */
size_t ib_reject_encode(const struct ib_reject *reject, void *buf);
/* Decodes a reject of @len bytes. Returns 0; or -EPROTO, with constant text in
 * *@why: it is malformed, or of an unknown version. */
int ib_reject_decode(const void *buf, size_t len, struct ib_reject *reject,
		     const char **why);

/* ---- checksum ---- */

/*
 * Adds @len bytes at @buf to the checksum @sum, which begins as 0. A final sum
 * of 0 is written as 1. Nodes differ in whether bytes of 0x80 and above are
 * signed (@negative): both are accepted, and unsigned is sent.
 */
uint32_t ib_cksum(uint32_t sum, const void *buf, size_t len, bool negative);

#endif
