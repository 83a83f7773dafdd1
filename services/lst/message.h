/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes and decodes the messages of LNet's self-test. All messages have the
 * same length. They are in the byte order of their sender, which the magic
 * number shows. Decoding does not check the values of fields.
 */
#ifndef SERVICES_LST_MESSAGE_H
#define SERVICES_LST_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ulnet/nid.h"

#define LST_MSG_SIZE  160
#define LST_VERSION   1
#define LST_NAME_SIZE 32 /* bytes, with the 0 at the end */

/* Portals. The match bits of a request are the number of its service. */
#define LST_PORTAL_TEST	 50 /* brw, ping */
#define LST_PORTAL_FRAME 51 /* all other requests */
/* replies and bulk data, whose match bits are ids in the request */
#define LST_PORTAL_REPLY 52

#define LST_PING_MAGIC UINT32_C(0xbabeface)

/* Features: */
#define LST_BYTES 1u /* lengths of brw tests are in bytes, not in pages */

/* The type of a reply is the type of its request plus 1. */
enum lst_type {
	LST_MAKE = 0,
	LST_MAKE_REPLY,
	LST_REMOVE = 2,
	LST_REMOVE_REPLY,
	LST_BATCH = 4,
	LST_BATCH_REPLY,
	LST_STAT = 6,
	LST_STAT_REPLY,
	LST_TEST = 8,
	LST_TEST_REPLY,
	LST_DEBUG = 10,
	LST_DEBUG_REPLY,
	LST_BRW = 12,
	LST_BRW_REPLY,
	LST_PING = 14,
	LST_PING_REPLY,
	LST_JOIN = 16,
	LST_JOIN_REPLY,
	LST_TYPES
};

enum lst_service {
	LST_SERVICE_DEBUG = 0,
	LST_SERVICE_MAKE = 1,
	LST_SERVICE_REMOVE = 2,
	LST_SERVICE_BATCH = 3,
	LST_SERVICE_TEST = 4,
	LST_SERVICE_STAT = 5,
	LST_SERVICE_JOIN = 6,
	LST_SERVICE_BRW = 11,
	LST_SERVICE_PING = 12,
};

enum lst_batch_op { LST_RUN = 1, LST_STOP = 2, LST_QUERY = 3 };
enum lst_brw_op { LST_READ = 1, LST_WRITE = 2 };
enum lst_check { LST_CHECK_NONE = 1, LST_CHECK_SIMPLE, LST_CHECK_FULL };

/* A session, by the NID of its console in 64 bits, and the time at which it was
 * made. */
struct lst_session_id {
	uint64_t console;
	int64_t stamp;
};
#define LST_SESSION_NONE ((struct lst_session_id){ UINT64_MAX, -1 })

static inline bool lst_session_eq(const struct lst_session_id *a,
				  const struct lst_session_id *b)
{
	return a->console == b->console && a->stamp == b->stamp;
}

/* The parameters of a brw test. With LST_BYTES, pages is not used; without it,
 * length and offset are not. */
struct lst_brw_params {
	uint32_t opcode; /* enum lst_brw_op */
	uint32_t flags;	 /* enum lst_check */
	uint32_t length, offset;
	uint32_t pages; /* number of pages of 4096 bytes */
};

struct lst_counters {
	uint32_t running_ms;
	uint32_t active_batches, zombie_sessions, brw_errors, ping_errors;
	/* Of the self-test, counted since the node was opened: */
	uint32_t errors, rpcs_sent, rpcs_received, rpcs_dropped, rpcs_expired;
	/* bytes of bulk that it has moved as a server */
	uint64_t bulk_got, bulk_put;
	/* Of LNet, counted since the node was opened: */
	uint32_t msgs_alloc, msgs_max, msgs_errors;
	uint32_t send_count, recv_count, route_count, drop_count;
	uint64_t send_length, recv_length, route_length, drop_length;
};

struct lst_msg {
	uint32_t type; /* enum lst_type */
	uint32_t features;
	bool swapped; /* the sender has the other byte order; set by decoding */
	/* In requests: the match bits of the reply, and those of the bulk data,
	 * if there are any. */
	uint64_t reply_id, bulk_id;
	/* In replies: 0 or a positive errno. */
	uint32_t status;
	/* In all messages but those of BRW and PING: */
	struct lst_session_id session;
	/* The rest depends on the type. A name has the same meaning in all
	 * types. */
	char name[LST_NAME_SIZE]; /* name of the session; in JOIN: of a group */
	/* s: time-out of the session; in replies to MAKE, DEBUG and JOIN */
	uint32_t timeout;
	union {
		struct {
			uint32_t force;
		} make;
		struct {
			uint64_t id;
			uint32_t op; /* enum lst_batch_op */
			/* the number of a test, from 1; 0: the whole batch */
			uint32_t index;
			uint32_t arg;	 /* RUN: time-out, s; STOP: 1: force */
			uint32_t active; /* reply: tests or units that run */
		} batch;
		struct {
			uint64_t batch;
			uint32_t service; /* LST_SERVICE_BRW or _PING */
			uint32_t loop;
			uint32_t concurrency;
			uint8_t is_client, stop_on_error;
			uint32_t targets;
			/* parameters of LST_SERVICE_BRW */
			struct lst_brw_params brw;
		} test;
		struct {
			uint32_t magic;
			uint32_t sequence;
			/* in the request: the sender's time */
			uint64_t sec, nsec;
		} ping;
		struct lst_brw_params brw; /* only opcode, length and flags */
		struct lst_counters stat;
	};
};

/* Writes LST_MSG_SIZE bytes to @buf, in this machine's byte order; bytes that
 * belong to no field of the message's type are 0. Returns 0; -EINVAL: there is
 * no such type, a name has no 0 at its end, or a number is too large for its
 * field; then @buf is undefined. Any thread. */
int lst_msg_encode(const struct lst_msg *msg, uint8_t *buf);

/*
 * Returns 0; -EBADMSG: length, magic number or type are not those of this
 * protocol, and @msg is unchanged; -EPROTONOSUPPORT: it is another version of
 * it, and only type, swapped and, in a request, reply_id are set. A name
 * without a 0 at its end loses its last byte. Any thread.
 */
int lst_msg_decode(struct lst_msg *msg, const void *buf, size_t len);

static inline bool lst_msg_is_reply(uint32_t type)
{
	return type & 1;
}

/* Return the portal, and the match bits, for requests of @type. */
unsigned int lst_request_portal(uint32_t type);
uint64_t lst_request_bits(uint32_t type);

/* ---- lists of destinations ---- */

/*
 * The destinations of a client test, which the node that runs the test fetches
 * by GET. They are records of a NID in 64 bits and a pid, in the byte order of
 * the request. In the sender's memory each page of 4096 bytes holds as many
 * whole records as fit, and the rest of the page is empty. But the length that
 * is moved counts only 12 bytes for each record. So the end of a list of more
 * than one page is missing.
 */
#define LST_RECORD_SIZE 12
#define LST_PAGE_SIZE	4096
/* the most records of which nothing is missing */
#define LST_LIST_WHOLE (LST_PAGE_SIZE / LST_RECORD_SIZE)

/* Writes @n * LST_RECORD_SIZE bytes to @buf, in this machine's byte order.
 * Returns 0; -E2BIG: @n is more than LST_LIST_WHOLE; -EAFNOSUPPORT: a NID has
 * no form of 64 bits. Any thread. */
int lst_list_encode(const struct ulnet_id *ids, size_t n, void *buf);

/*
 * Reads @n records from the @len bytes at @buf. If a pid is missing, it is
 * LNET_PID_LUSTRE. Returns 0; -EMSGSIZE: a NID is missing; -EINVAL: a NID is
 * not that of a node (ANY, 0@lo, or without a type). On an error @ids is
 * undefined. Any thread.
 */
int lst_list_decode(struct ulnet_id *ids, size_t n, const void *buf, size_t len,
		    bool swapped);

/* ---- bulk data of brw tests ---- */

/* Lengths and offsets are multiples of LST_WORD, unless the check is
 * LST_CHECK_NONE. Any thread. */
#define LST_WORD 8 /* bytes of a word */

/* May a test or a request move such data? @length has to be 1 to LNET_MTU
 * bytes. */
bool lst_data_valid(uint32_t opcode, uint32_t check, uint64_t length);
/* Writes the contents that a receiver checks with @check. The data begin at
 * @offset of a page. */
void lst_data_fill(void *data, uint32_t length, uint32_t offset,
		   enum lst_check check);
/* Writes other contents than lst_data_fill(), so that lst_data_good() notices
 * data that never arrive. */
void lst_data_poison(void *data, uint32_t length, uint32_t offset,
		     enum lst_check check);
/* Are the contents those that lst_data_fill() writes? @swapped: on a node of
 * the other byte order. */
bool lst_data_good(const void *data, uint32_t length, uint32_t offset,
		   enum lst_check check, bool swapped);

#endif
