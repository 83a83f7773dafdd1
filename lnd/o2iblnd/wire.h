/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What o2ib nodes say to each other, between bytes and structures: messages,
 * which are also the private data of connection requests and their answers, and
 * the private data of rejects. Functions on bytes: they read and write nothing
 * else, and allocate nothing. LNet's header, which some messages carry, is
 * elsewhere, and none of its bytes is changed here.
 *
 * Everything is written in little endian, and read in either order: who is read
 * shows its own by its magic, and "swap" says that it is not this machine's.
 * Cookies are of no order: what a peer said is said again byte for byte.
 *
 * Thread: any.
 */
#ifndef LND_O2IBLND_WIRE_H
#define LND_O2IBLND_WIRE_H

#include "base/buf.h"
#include "lnd/lnd.h"

enum {
	IB_VERSION_1 = 0x11,
	IB_VERSION_2 = 0x12, /* what everybody speaks */
};

#define IB_MSG_SIZE_MAX 4096 /* of a message, and of each buffer for one */
#define IB_HDR_SIZE	48   /* of each message; also the size of a NOOP */
/* In that: */
#define IB_TYPE_OFFSET	  6
#define IB_CREDITS_OFFSET 7
#define IB_NOB_OFFSET	  8

#define IB_CONN_SIZE	56 /* CONNREQ, CONNACK */
#define IB_DONE_SIZE	60 /* PUT_NAK, PUT_DONE, GET_DONE */
#define IB_PUT_REQ_SIZE 128
#define IB_FRAG_SIZE	12

/* Of IMMEDIATE, PUT_REQ and GET_REQ; and of IMMEDIATE only. */
#define IB_LNET_OFFSET	  IB_HDR_SIZE
#define IB_PAYLOAD_OFFSET (IB_LNET_OFFSET + LNET_HDR_SIZE)

/* Payload of an IMMEDIATE. */
#define IB_IMMEDIATE_MAX (IB_MSG_SIZE_MAX - IB_PAYLOAD_OFFSET)

/* The size of a message with @n fragments, and the most that fit. */
#define IB_PUT_ACK_SIZE(n) (IB_HDR_SIZE + 24 + IB_FRAG_SIZE * (size_t)(n))
#define IB_GET_REQ_SIZE(n) (IB_PUT_REQ_SIZE + 8 + IB_FRAG_SIZE * (size_t)(n))
#define IB_PUT_ACK_FRAGS   335
#define IB_GET_REQ_FRAGS   330
/* What two nodes can agree upon at most; 256 with nodes before 2.15. */
#define IB_FRAGS_MAX 257

/* Private data as it is received, always as long as this: what the sender has
 * not filled is zero. In a request, what the CM needs for itself is in
 * front. */
#define IB_CM_REQ_SIZE 56
#define IB_CM_REP_SIZE 196
#define IB_CM_REJ_SIZE 148

enum ib_msg_type {
	IB_MSG_CONNREQ = 0xc0, /* connection request */
	IB_MSG_CONNACK = 0xc1, /* its answer */
	IB_MSG_NOOP = 0xd0,    /* credits, or a sign of life */
	IB_MSG_IMMEDIATE = 0xd1,
	IB_MSG_PUT_REQ = 0xd2,	/* source: what it would write */
	IB_MSG_PUT_NAK = 0xd3,	/* sink: nothing is to be written */
	IB_MSG_PUT_ACK = 0xd4,	/* sink: where to write it */
	IB_MSG_PUT_DONE = 0xd5, /* source: it is written */
	IB_MSG_GET_REQ = 0xd6,	/* sink: what it wants, and where */
	IB_MSG_GET_DONE = 0xd7, /* source: it is written */
};

/* Constant text. */
const char *ib_msg_name(enum ib_msg_type type);

/* ---- who speaks to whom ---- */

/* A local interface that is up: its incarnation is another one after each
 * start. */
struct ib_end {
	struct ulnet_nid nid; /* with a 64-bit form */
	uint64_t stamp;	      /* incarnation; 0: not known yet */
};

struct ib_envelope {
	uint16_t version; /* IB_VERSION_* */
	struct ib_end src;
	struct ib_end dst;
};

/* What all messages between the same two begin with, written once; but for
 * their type, credits, size and checksum. */
struct ib_hdr {
	uint8_t bytes[IB_HDR_SIZE];
};

struct ib_hdr ib_hdr_of(const struct ib_envelope *env);

/* Begins a message of @nob bytes. */
static inline void ib_hdr_put(const struct ib_hdr *hdr, enum ib_msg_type type,
			      size_t nob, uint8_t *p)
{
	memcpy(p, hdr->bytes, sizeof(hdr->bytes));
	p[IB_TYPE_OFFSET] = (uint8_t)type;
	store_le32(p + IB_NOB_OFFSET, (uint32_t)nob);
}

/* ---- what is in messages ---- */

/* Of CONNREQ and CONNACK; and what a reject says that would do. */
struct ib_conn_params {
	uint16_t queue_depth;
	uint16_t max_frags;
	uint32_t max_msg_size; /* IB_MSG_SIZE_MAX */
};

struct ib_frag {
	uint64_t addr;
	uint32_t nob;
};

/* Memory of ours that a peer may write to. */
struct ib_sink {
	uint32_t key;
	unsigned int nfrags; /* > 0 */
	const struct ib_frag *frags;
};

/* Memory of a peer, as its message describes it: ib_rdma_frag(). */
struct ib_rdma {
	uint32_t key;
	uint32_t nfrags;      /* > 0: as many as the message has room for */
	const uint8_t *frags; /* in the message */
	bool swap;
};

/* Fragment @i, below rdma->nfrags. Nothing about it was checked: any address
 * and any length, 0 too. */
void ib_rdma_frag(const struct ib_rdma *rdma, unsigned int i, uint64_t *addr,
		  uint32_t *nob);
/* Bytes in all fragments. */
uint64_t ib_rdma_nob(const struct ib_rdma *rdma);

/* A message that was received. What is not of its type is 0. */
struct ib_msg {
	const uint8_t *hdr; /* the message: ib_msg_env() */
	enum ib_msg_type type;
	uint32_t nob;	  /* its own bytes: IB_HDR_SIZE to what was received */
	uint32_t cksum;	  /* 0: none */
	uint16_t version; /* IB_VERSION_* */
	bool swap;	  /* not in this machine's byte order */
	uint8_t credits;

	struct ib_conn_params params; /* CONNREQ, CONNACK: anything */

	/* In the message. IMMEDIATE, PUT_REQ, GET_REQ; a header as of any
	 * stranger, which lnet_parse() checks. */
	const uint8_t *lnet_hdr;
	/* In the message. IMMEDIATE: as the LNet header says, and all there,
	 * but perhaps beyond nob. */
	const uint8_t *payload;
	uint32_t payload_len;

	/* PUT_REQ, GET_REQ: chosen by the sender. Others: that of the PUT_REQ
	 * (PUT_ACK, PUT_NAK), the PUT_ACK (PUT_DONE) or the GET_REQ. 0 is as
	 * good as any. */
	uint64_t cookie;
	uint64_t dst_cookie; /* PUT_ACK: chosen by the sender */
	/* PUT_NAK, PUT_DONE, GET_DONE. Bytes, or below 0: anything. */
	int32_t status;
	struct ib_rdma rdma; /* PUT_ACK, GET_REQ */
};

/* ---- writing ---- */

/*
 * Each writes a message without credits and checksum into @buf, which has room
 * for it (IB_MSG_SIZE_MAX bytes always do), and returns its size. LNet's
 * header, at IB_LNET_OFFSET, and the payload, at IB_PAYLOAD_OFFSET, are the
 * caller's to write, before or after.
 */
/* CONNREQ or CONNACK. */
size_t ib_conn_encode(const struct ib_hdr *hdr, enum ib_msg_type type,
		      const struct ib_conn_params *params, void *buf);
size_t ib_noop_encode(const struct ib_hdr *hdr, void *buf);
/* @payload_len: at most IB_IMMEDIATE_MAX. */
static inline size_t ib_immediate_encode(const struct ib_hdr *hdr,
					 size_t payload_len, void *buf)
{
	size_t nob = IB_PAYLOAD_OFFSET + payload_len;

	BUG_ON(payload_len > IB_IMMEDIATE_MAX);
	ib_hdr_put(hdr, IB_MSG_IMMEDIATE, nob, buf);
	return nob;
}
size_t ib_put_req_encode(const struct ib_hdr *hdr, uint64_t cookie, void *buf);
/* @cookie: of the PUT_REQ. At most IB_PUT_ACK_FRAGS fragments. */
size_t ib_put_ack_encode(const struct ib_hdr *hdr, uint64_t cookie,
			 uint64_t dst_cookie, const struct ib_sink *sink,
			 void *buf);
/* At most IB_GET_REQ_FRAGS fragments. */
size_t ib_get_req_encode(const struct ib_hdr *hdr, uint64_t cookie,
			 const struct ib_sink *sink, void *buf);
/* PUT_NAK, PUT_DONE or GET_DONE. */
size_t ib_done_encode(const struct ib_hdr *hdr, enum ib_msg_type type,
		      uint64_t cookie, int32_t status, void *buf);

/* How many credits the message at @buf gives back: known when it is its turn to
 * be sent, but before it has a checksum. */
static inline void ib_msg_set_credits(void *buf, uint8_t credits)
{
	((uint8_t *)buf)[IB_CREDITS_OFFSET] = credits;
}

/* Last of all: the checksum of the message at @buf, whose payload, if any, is
 * behind it. */
void ib_msg_set_cksum(void *buf);

/* ---- reading ---- */

/*
 * A message of which @len bytes were received, at @buf, borrowed as long as the
 * pointers in @msg are used. Bytes behind the message are ignored, as those of
 * private data are: IB_CM_REQ_SIZE, IB_CM_REP_SIZE.
 *
 * 0: it is one; who sent it, to whom and when in its life is to be checked.
 * -EBADMSG: an IMMEDIATE that differs from its checksum, as those of nodes that
 * compute it of another payload do; @msg is filled in as for 0. -EPROTO: it is
 * none, and @msg says nothing. With both, *@why is constant text for the log.
 */
int ib_msg_decode(const void *buf, size_t len, struct ib_msg *msg,
		  const char **why);

/* Who it is from, and to whom; ->src.nid is not LNET_NID_ANY. */
struct ib_envelope ib_msg_env(const struct ib_msg *msg);

/*
 * The same, on a connection whose messages of version 2 begin with @hdr. No
 * others are one then, nor are CONNREQ and CONNACK. -ESTALE: it is of another
 * connection, or an earlier life of either end; *@why says so.
 */
int ib_msg_decode_on(const struct ib_hdr *hdr, const void *buf, size_t len,
		     struct ib_msg *msg, const char **why);

/* ---- rejects: private data of who does not accept a connection ---- */

#define IB_REJECT_SIZE	     24
#define IB_REJECT_SHORT_SIZE 7 /* version 1 may end there */

enum ib_reject_reason {
	IB_REJECT_RACE = 1,	/* we are connecting to you */
	IB_REJECT_RESOURCES,	/* no memory */
	IB_REJECT_FATAL,	/* anything else */
	IB_REJECT_INCOMPATIBLE, /* another version; never sent */
	IB_REJECT_STALE,	/* you take us for what we were before */
	IB_REJECT_FRAGS,	/* fewer fragments, please */
	IB_REJECT_DEPTH,	/* a shorter queue, please */
	IB_REJECT_SERVICE,	/* not this service; never sent */
	IB_REJECT_EARLY,	/* we are not up yet */
};

/* Constant text, also for what is no reason. */
const char *ib_reject_name(unsigned int reason);

struct ib_reject {
	uint16_t version; /* IB_VERSION_* */
	uint8_t reason;	  /* decoded: perhaps none of the above */
	/* Decoded: has it what follows? Version 2 of full length. If not, that
	 * is 0. */
	bool full;
	uint64_t stamp; /* 0: no interface of the sender is meant */
	struct ib_conn_params params;
};

/* Writes IB_REJECT_SIZE bytes, whatever ->full says, and returns that. */
size_t ib_reject_encode(const struct ib_reject *reject, void *buf);
/* 0, or -EPROTO and constant text in *@why: it is none, or of a version that
 * nobody knows. */
int ib_reject_decode(const void *buf, size_t len, struct ib_reject *reject,
		     const char **why);

/* ---- checksum ---- */

/*
 * Of the @len bytes at @buf, which begin with @sum: 0, or what it was for the
 * bytes before them. A sum of 0 in the end is written as 1. Nodes disagree
 * about bytes of 0x80 and above, which some take for negative (@negative); both
 * are accepted, and unsigned ones are sent.
 */
uint32_t ib_cksum(uint32_t sum, const void *buf, size_t len, bool negative);

#endif
