/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is on a TCP connection, between bytes and structures: connection
 * request, HELLO, the header in front of each message. Functions on bytes: they
 * read and write nothing else, and allocate nothing. What LNet has on the wire
 * (its header, ping information) is elsewhere.
 *
 * Everything is written in little endian, and read in either order: who is read
 * shows its own by its magic, and "swap" says that it is not this machine's.
 *
 * Thread: any.
 */
#ifndef LND_SOCKLND_PROTO_H
#define LND_SOCKLND_PROTO_H

#include "lnd/lnd.h"

/* Connection types, as who states one sees it. */
enum sock_type {
	SOCK_NONE = -1, /* no connection: a refusal */
	SOCK_ANY,
	SOCK_CONTROL,
	SOCK_BULK_IN,
	SOCK_BULK_OUT,
};

/* The same connection, as the other end sees it. SOCK_NONE for what is no type
 * of a connection. */
enum sock_type sock_type_invert(enum sock_type type);
/* Constant text. */
const char *sock_type_name(enum sock_type type);

/* ---- connection request: whom the connecting side wants to reach ---- */

/* A request and a HELLO can be told apart, and their size is known, once this
 * many bytes of them are there. */
#define SOCK_START_SIZE 8

#define SOCK_REQUEST_SIZE	16 /* version 1 */
#define SOCK_REQUEST_LARGE_SIZE 28 /* version 2: NIDs without 64-bit form */

/* Writes at most SOCK_REQUEST_LARGE_SIZE bytes; returns how many. */
size_t sock_request_encode(const struct ulnet_nid *target, void *buf);

/*
 * The size of a request that begins with the SOCK_START_SIZE bytes at @start.
 * -EPROTO: it is none, close. -EPROTONOSUPPORT: a version, or a protocol, that
 * may come to be: send what sock_request_refuse() writes and close.
 */
int sock_request_size(const void *start);

/* @len: what sock_request_size() said. -EPROTO: the target is nobody. */
int sock_request_decode(const void *buf, size_t len, struct ulnet_nid *target);

/* "Version 1 is what is spoken here": SOCK_REQUEST_SIZE bytes. */
void sock_request_refuse(void *buf);

/* ---- HELLO: both sides, once ---- */

#define SOCK_HELLO_SIZE	      56 /* versions 2 and 3 */
#define SOCK_HELLO_LARGE_SIZE 80 /* version 4 */
#define SOCK_HELLO_IPS_MAX    16
#define SOCK_HELLO_IPS_SIZE   (4 * SOCK_HELLO_IPS_MAX)

struct sock_hello {
	uint32_t version; /* 2, 3, 4 */
	bool swap;	  /* decoded: not in this machine's byte order */
	struct ulnet_nid src_nid;
	struct ulnet_nid dst_nid; /* decoded: anything */
	uint32_t src_pid;
	uint64_t src_incarnation;
	enum sock_type type; /* as the sender sees it */
	uint32_t nips;	     /* decoded: IPv4 addresses behind it */
};

/* Writes at most SOCK_HELLO_LARGE_SIZE bytes; returns how many. No addresses:
 * hello->nips is not looked at. Versions 2 and 3: both NIDs have the 64-bit
 * form. */
size_t sock_hello_encode(const struct sock_hello *hello, void *buf);

/*
 * The size, without the addresses, of a HELLO that begins with the
 * SOCK_START_SIZE bytes at @start; fills in version and swap. -EPROTO: it is
 * none, close. -EPROTONOSUPPORT: a version not known here (1 is one, too):
 * answer with SOCK_NONE in a HELLO of one's own version, and close.
 */
int sock_hello_size(struct sock_hello *hello, const void *start);

/*
 * @len: what sock_hello_size() said, which must have seen the first bytes of
 * @buf. Returns how many bytes of addresses follow: 0 to SOCK_HELLO_IPS_SIZE.
 * -EPROTO: a sender that nobody can be, a type that is none, too many
 * addresses.
 */
int sock_hello_decode(struct sock_hello *hello, const void *buf, size_t len);

/* The addresses. They are of no use here, but must be ones: 0, or -EPROTO. */
int sock_hello_check_ips(const struct sock_hello *hello, const void *buf,
			 size_t len);

/* ---- the header in front of each message ---- */

#define SOCK_HDR_SIZE 24

enum {
	SOCK_MSG_NOOP = 0xc0, /* nothing behind it */
	SOCK_MSG_LNET = 0xc1, /* LNet's header and payload behind it */
};

/* Cookies below are none: 0, and 1, which in cookie[1] of a NOOP says that
 * the sender is alive. */
#define SOCK_COOKIE_KEEPALIVE UINT64_C(1)

struct sock_hdr {
	uint32_t type;	    /* SOCK_MSG_* */
	uint32_t csum;	    /* 0: none */
	uint64_t cookie[2]; /* LNET: [0] asks for an acknowledgement */
};

/* SOCK_HDR_SIZE bytes at @buf. */
void sock_hdr_encode(const struct sock_hdr *hdr, void *buf);
/* Of an encoded one: as if there were no checksum. */
void sock_hdr_clear_csum(void *buf);
/* @swap: of the connection's HELLO. -EPROTO: unknown type. */
int sock_hdr_decode(struct sock_hdr *hdr, const void *buf, bool swap);

/* Does a message acknowledge payloads of the one whom it is sent to? */
bool sock_hdr_acks(const struct sock_hdr *hdr);

/* ---- checksum ---- */

#define SOCK_CSUM_INIT UINT32_C(0xffffffff)

/* @csum: SOCK_CSUM_INIT, or that of the bytes before. */
uint32_t sock_csum(uint32_t csum, const void *buf, size_t len);

#endif
