/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes and decodes what socklnd sends over TCP: connection request, HELLO,
 * and the header in front of each message. (LNet's own header is not known
 * here.) All functions are pure, and allocate nothing.
 *
 * Numbers are written in little endian, and read in either order: the sender's
 * order is recognized by its magic, and "swap" says that it is not this
 * machine's.
 *
 * Thread: any.
 */
#ifndef LND_SOCKLND_PROTO_H
#define LND_SOCKLND_PROTO_H

#include "lnd/lnd.h"

/* Connection types, from the view of the end that names one. */
enum sock_type {
	SOCK_NONE = -1, /* in a HELLO: the connection is refused */
	SOCK_ANY,
	SOCK_CONTROL,
	SOCK_BULK_IN,
	SOCK_BULK_OUT,
};

/* Returns what the other end calls a connection of @type; SOCK_NONE if @type is
 * invalid. */
enum sock_type sock_type_invert(enum sock_type type);
/* Returns the name of @type, a constant. */
const char *sock_type_name(enum sock_type type);

/* ---- connection request: names the NID to be reached ---- */

/* The first bytes of a connection request or a HELLO, which show which of the
 * two it is, and how long. */
#define SOCK_START_SIZE 8

#define SOCK_REQUEST_SIZE 16 /* bytes of a request of version 1 */
/* bytes of a request of version 2, for NIDs without 64-bit form */
#define SOCK_REQUEST_LARGE_SIZE 28

/* Writes a request for @target: at most SOCK_REQUEST_LARGE_SIZE bytes. Returns
 * how many. */
size_t sock_request_encode(const struct ulnet_nid *target, void *buf);

/*
 * Returns the size of a request that begins with the SOCK_START_SIZE bytes at
 * @start. -EPROTO: this is no request, and the caller closes the connection.
 * -EPROTONOSUPPORT: it is of a future version or protocol; the caller sends
 * what sock_request_refuse() writes, and closes.
 */
int sock_request_size(const void *start);

/* Decodes a request of @len bytes, as sock_request_size() has said. Returns 0,
 * or -EPROTO: the target is invalid. */
int sock_request_decode(const void *buf, size_t len, struct ulnet_nid *target);

/* Writes the refusal of a request of an unknown version: SOCK_REQUEST_SIZE
 * bytes, which name version 1 as the one to use. */
void sock_request_refuse(void *buf);

/* ---- HELLO: both sides, once ---- */

#define SOCK_HELLO_SIZE	      56 /* bytes of a HELLO of version 2 or 3 */
#define SOCK_HELLO_LARGE_SIZE 80 /* bytes of a HELLO of version 4 */
#define SOCK_HELLO_IPS_MAX    16
#define SOCK_HELLO_IPS_SIZE   (4 * SOCK_HELLO_IPS_MAX)

struct sock_hello {
	uint32_t version; /* 2, 3 or 4 */
	/* of a decoded HELLO: the sender's byte order is not this machine's */
	bool swap;
	struct ulnet_nid src_nid;
	/* of a decoded HELLO: any bytes, because nothing validates it */
	struct ulnet_nid dst_nid;
	uint32_t src_pid;
	uint64_t src_incarnation;
	/* what the sender of the HELLO calls the connection */
	enum sock_type type;
	uint32_t nips; /* of a decoded HELLO: how many IPv4 addresses follow */
};

/* Writes a HELLO: at most SOCK_HELLO_LARGE_SIZE bytes. Returns how many. Writes
 * no addresses, whatever hello->nips is. In versions 2 and 3 both NIDs must
 * have a 64-bit form. */
size_t sock_hello_encode(const struct sock_hello *hello, void *buf);

/*
 * Returns the size, without addresses, of a HELLO that begins with the
 * SOCK_START_SIZE bytes at @start; fills in version and swap. -EPROTO: this is
 * no HELLO, and the caller closes the connection. -EPROTONOSUPPORT: its version
 * is unknown (as 1 is); the caller answers with SOCK_NONE in a HELLO of this
 * node's version, and closes.
 */
int sock_hello_size(struct sock_hello *hello, const void *start);

/*
 * Decodes a HELLO of @len bytes, after sock_hello_size() has returned @len for
 * its first bytes. Returns how many bytes of addresses follow: 0 to
 * SOCK_HELLO_IPS_SIZE. -EPROTO: an invalid sender or type, or too many
 * addresses.
 */
int sock_hello_decode(struct sock_hello *hello, const void *buf, size_t len);

/* Checks the addresses that follow a HELLO, which are not used. Returns 0 or
 * -EPROTO. */
int sock_hello_check_ips(const struct sock_hello *hello, const void *buf,
			 size_t len);

/* ---- the header in front of each message ---- */

#define SOCK_HDR_SIZE 24

enum {
	SOCK_MSG_NOOP = 0xc0, /* neither LNet's header nor payload follows */
	SOCK_MSG_LNET = 0xc1, /* LNet's header and payload follow */
};

/* In cookie[1] of a NOOP: the NOOP is a keepalive. Cookies of messages are
 * larger. */
#define SOCK_COOKIE_KEEPALIVE UINT64_C(1)

struct sock_hdr {
	uint32_t type; /* SOCK_MSG_* */
	uint32_t csum; /* 0: no checksum */
	/* of a SOCK_MSG_LNET: [0] asks for an acknowledgement by this cookie,
	 * [1] acknowledges the message with this cookie; 0: it does not */
	uint64_t cookie[2];
};

/* Writes a header: SOCK_HDR_SIZE bytes. */
void sock_hdr_encode(const struct sock_hdr *hdr, void *buf);
/* Sets the checksum of an encoded header to 0. */
void sock_hdr_clear_csum(void *buf);
/* Decodes a header of SOCK_HDR_SIZE bytes. @swap: that of the connection's
 * HELLO. Returns 0, or -EPROTO: its type is unknown. */
int sock_hdr_decode(struct sock_hdr *hdr, const void *buf, bool swap);

/* Does the header acknowledge payloads? */
static inline bool sock_hdr_acks(const struct sock_hdr *hdr)
{
	/* A NOOP has two cookies, of which the second may mean a keepalive.
	 * Another message can acknowledge only by the second. */
	return (hdr->type == SOCK_MSG_NOOP && hdr->cookie[0]) ||
	       hdr->cookie[1] > SOCK_COOKIE_KEEPALIVE;
}

/* ---- checksum ---- */

#define SOCK_CSUM_INIT UINT32_C(0xffffffff)

/* Returns the checksum of @len bytes. @csum: SOCK_CSUM_INIT, or the result for
 * the bytes in front of them. */
uint32_t sock_csum(uint32_t csum, const void *buf, size_t len);

#endif
