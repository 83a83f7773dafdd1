/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of what goes over the wire: wire.proto, ulrpc_protocol(7). Pure: it
 * knows bytes and values, allocates nothing, keeps nothing; any thread.
 *
 * What is decoded was sent by strangers. Every *_decode*() returns
 *   -EPROTONOSUPPORT  another version of the protocol,
 *   -EBADMSG          the head is not what its checksum says,
 *   -EPROTO           anything else that is not well-formed,
 * and has then left nothing to look at. Unknown fields are skipped, absent ones
 * are 0, of a field that is there several times the last one holds. What the
 * values mean is for the caller to check: statuses, accesses and lengths
 * may be any.
 *
 * What is encoded is our own: a broken limit is a bug.
 */
#ifndef RPC_WIRE_H
#define RPC_WIRE_H

#include <string.h>

#include "base/util.h"
#include "ulnet/rpc.h"

#define WIRE_VERSION   1
#define WIRE_HEAD_MAX  65535u
#define WIRE_CALLS_MAX 256u /* or replies, in one message; ULRPC_BATCH_MAX */
#define WIRE_ID_SIZE   16u

/* ---- header data: version, kind, length of the head, its CRC32C ---- */

enum wire_kind {
	WIRE_REQUESTS = 1,
	WIRE_REPLIES = 2,
	WIRE_CONTROL = 3,
};

/* Of the finished head, which has at most WIRE_HEAD_MAX bytes. */
uint64_t wire_hdr_data(enum wire_kind kind, const void *head, size_t length);

/* What a message with these header data speaks; nothing else is to be believed
 * of one that speaks another than WIRE_VERSION. */
static inline unsigned int wire_hdr_version(uint64_t hdr_data)
{
	return (unsigned int)(hdr_data >> 56);
}

/* ---- values ---- */

enum wire_status {
	WIRE_OK = 0,
	WIRE_FAILED = 1,
	WIRE_NO_SERVICE = 2,
	WIRE_NO_METHOD = 3,
	WIRE_OVERLOADED = 4,
	WIRE_EXPIRED = 5,
	WIRE_NOT_CONNECTED = 6,
	WIRE_STALE_EPOCH = 7,
	WIRE_SHUTTING_DOWN = 8,
	WIRE_BAD_REQUEST = 9,
	WIRE_REFUSED = 10,
	WIRE_TOO_LONG = 11,
	WIRE_BULK_FAILED = 12,
	WIRE_VERSION_UNKNOWN = 13,
	WIRE_DOUBTFUL = 14,
	WIRE_UNKNOWN_CALL = 15,
	WIRE_HELD = 16,
	WIRE_STALLED = 17,
	WIRE_STATUSES
};

enum wire_call_flags {
	WIRE_CALL_RESENT = 1,
	WIRE_CALL_REPLAY = 2,
	WIRE_CALL_NEW_XID = 4,
	WIRE_CALL_QUERY = 8,
};

enum wire_access {
	WIRE_ACCESS_SOURCE = 1,
	WIRE_ACCESS_SINK = 2,
};

/* Bytes of a decoded message, inside of it and as long there as it is. Consumed
 * by the *_next() functions: walk a copy to be able to walk again. */
struct wire_view {
	const uint8_t *p;
	const uint8_t *end;
};

/* ---- requests ---- */

struct wire_requests {
	uint64_t connection;
	uint64_t client;
	uint64_t acked;
	uint32_t epoch;
	uint32_t ncalls; /* decoded only: at most WIRE_CALLS_MAX */
};

/* A bulk, to be encoded. */
struct wire_segments {
	uint64_t match; /* of segment 0 */
	uint32_t access;
	bool checked;
	uint32_t n;		  /* at most ULRPC_SEGMENTS_MAX */
	const uint32_t *length;	  /* n of them */
	const uint32_t *checksum; /* n of them; NULL: none */
};

struct wire_call {
	uint64_t xid;
	uint64_t timeout;   /* us */
	uint64_t remaining; /* us */
	uint32_t attempt;
	uint32_t method;
	uint32_t length; /* of the body */
	uint32_t flags;
	uint32_t priority;
	uint32_t reply_max;
	uint32_t slot;
	uint32_t semantics;
	uint32_t nbulks; /* at most ULRPC_BULKS_MAX */
	uint32_t trace_length;
	union {
		/* to be encoded: nbulks of them, borrowed until the return */
		const struct wire_segments *bulk;
		/* decoded: for wire_segments_next() */
		struct wire_view bulks;
	};
	const uint8_t *trace; /* borrowed; decoded: inside of the message */
	const uint8_t *body;  /* decoded only: @length bytes in the message */
};

/* In parts: the whole would be cleared by a string instruction, which for so
 * few bytes is slow. The same for replies. */
static inline void wire_call_clear(struct wire_call *c)
{
	memset(c, 0, offsetof(struct wire_call, bulks));
	c->bulks = (struct wire_view){ NULL, NULL };
	c->trace = c->body = NULL;
}

/*
 * Encoding: the envelope, then up to WIRE_CALLS_MAX calls, then the bodies'
 * tag; that is the head, and the bodies follow it in the order of their calls.
 * Each function puts bytes to @p and returns their end. The room at @p is at
 * least what the bound says, which for a call without bulks is WIRE_CALL_BOUND
 * + trace_length.
 */
#define WIRE_REQUESTS_BOUND 35u
#define WIRE_CALL_BOUND	    96u
#define WIRE_BODIES_BOUND   8u

uint8_t *wire_requests_put(uint8_t *p, const struct wire_requests *m);
size_t wire_call_bound(const struct wire_call *call);
/* wire_call_put(): rpc/wire/wire_call.h */
/* @length: of all bodies together. Without any there is nothing to put. Also of
 * replies. */
uint8_t *wire_bodies_put(uint8_t *p, uint32_t length);

/*
 * Decoding: the calls are the first m->ncalls of @calls, in the order of the
 * message. What they point to is inside of @payload, which is borrowed as long
 * as they are used. A message is taken as a whole or not at all: *@m is set on
 * success only, and otherwise @calls means nothing.
 */
int wire_requests_decode(struct wire_requests *m,
			 struct wire_call calls[WIRE_CALLS_MAX],
			 uint64_t hdr_data, const void *payload,
			 size_t length) must_check;
/* The same for a message that may be cut off within its bodies: the calls have
 * no bodies, only their lengths. */
int wire_requests_decode_heads(struct wire_requests *m,
			       struct wire_call calls[WIRE_CALLS_MAX],
			       uint64_t hdr_data, const void *payload,
			       size_t length) must_check;

/* A bulk that was decoded. */
struct wire_segments_in {
	uint64_t match;
	uint32_t access;
	bool checked;
	bool has_checksums; /* one for each segment */
	uint32_t n;	    /* at most ULRPC_SEGMENTS_MAX; may be 0 */
	struct wire_view view;
};

/* The next of call.bulks; there are call.nbulks. */
bool wire_segments_next(struct wire_view *bulks, struct wire_segments_in *s);
/* Copy all lengths, or checksums, to @out, which has room for s->n of them.
 * Without checksums: zeroes. */
void wire_segments_lengths(const struct wire_segments_in *s, uint32_t *out);
void wire_segments_checksums(const struct wire_segments_in *s, uint32_t *out);

/* ---- replies ---- */

struct wire_replies {
	uint64_t client;
	uint32_t epoch;
	uint32_t window;
	/* decoded only: */
	uint64_t estimate; /* us */
	uint32_t nreplies; /* at most WIRE_CALLS_MAX */
};

/* What was put into a sink, to be encoded. */
struct wire_moved {
	uint32_t index;
	uint32_t n;		  /* at most ULRPC_SEGMENTS_MAX */
	const uint32_t *checksum; /* n of them */
	const uint32_t *length;	  /* n of them; NULL: all of each segment */
};

struct wire_reply {
	uint64_t xid;
	uint64_t queue;	      /* us */
	uint64_t service;     /* us */
	uint64_t retry_after; /* us */
	uint64_t throttled;   /* us */
	uint64_t absent;      /* us */
	uint64_t held;	      /* match value */
	uint32_t attempt;
	uint32_t status;
	uint32_t error;
	uint32_t length; /* of the body */
	uint32_t needed;
	uint16_t nbulks; /* at most ULRPC_BULKS_MAX */
	bool unexecuted;
	union {
		/* to be encoded: nbulks of them, borrowed until the return */
		const struct wire_moved *bulk;
		/* decoded: for wire_moved_next() */
		struct wire_view bulks;
	};
	const uint8_t *body; /* decoded only: @length bytes in the message */
};

static inline void wire_reply_clear(struct wire_reply *r)
{
	memset(r, 0, offsetof(struct wire_reply, bulks));
	r->bulks = (struct wire_view){ NULL, NULL };
	r->body = NULL;
}

/* As for requests, with an estimate, or none, before the first reply. The bound
 * of a reply without bulks is WIRE_REPLY_BOUND; that of the estimate is in
 * WIRE_REPLIES_BOUND. */
#define WIRE_REPLIES_BOUND 32u
#define WIRE_REPLY_BOUND   115u

uint8_t *wire_replies_put(uint8_t *p, const struct wire_replies *m);
uint8_t *wire_estimate_put(uint8_t *p, uint64_t estimate);
size_t wire_reply_bound(const struct wire_reply *reply);
/* wire_reply_put(): rpc/wire/wire_reply.h */

/* Decodes all of it: the replies to @reply, which has room for WIRE_CALLS_MAX
 * of them, in the order of the message. @payload is borrowed as long as they
 * are used. *@m is set on success only; after an error @reply holds nothing
 * that is to be looked at. */
int wire_replies_decode(struct wire_replies *m, struct wire_reply *reply,
			uint64_t hdr_data, const void *payload, size_t length);

struct wire_moved_in {
	uint32_t index;
	bool has_lengths; /* one for each segment */
	uint32_t n;	  /* at most ULRPC_SEGMENTS_MAX */
	struct wire_view view;
};

bool wire_moved_next(struct wire_view *bulks, struct wire_moved_in *m);
/* @out has room for m->n of them. */
void wire_moved_checksums(const struct wire_moved_in *m, uint32_t *out);
/* Only if it has any. */
void wire_moved_lengths(const struct wire_moved_in *m, uint32_t *out);

/* ---- control ---- */

/* The numbers of their fields. */
enum wire_control_kind {
	WIRE_CONTROL_UNKNOWN = 0, /* decoded: nothing that this version knows */
	WIRE_CONNECT = 1,
	WIRE_CONNECTED = 2,
	WIRE_OPEN = 3,
	WIRE_OPENED = 4,
	WIRE_DISCONNECT = 5,
	WIRE_DISCONNECTED = 6,
	WIRE_KEEPALIVE = 7,
	WIRE_ALIVE = 8,
	WIRE_EXTEND = 9,
	WIRE_CANCEL = 10,
	WIRE_GOODBYE = 11,
};

struct wire_connect {
	uint8_t client_id[WIRE_ID_SIZE]; /* absent: all 0 */
	uint64_t client;
	uint64_t keepalive;
	uint32_t epoch;
	uint32_t version_min;
	uint32_t version_max;
};

struct wire_connected {
	uint8_t server_id[WIRE_ID_SIZE]; /* absent: all 0 */
	uint64_t client;
	uint64_t connection;
	uint64_t keepalive;
	uint64_t lease;
	uint64_t retry_after;
	uint32_t epoch;
	uint32_t status;
	uint32_t version;
	uint32_t clients;
	uint32_t slots; /* 0: WIRE_SLOTS_USUAL */
	bool reconnected;
};

#define WIRE_SLOTS_USUAL 1024u

struct wire_open {
	uint64_t connection;
	uint64_t client;
	uint64_t tag;
	uint64_t rtt; /* us; 0: not known */
	uint32_t epoch;
	/* Terminated; decoded: has no other 0 byte, a longer one is -EPROTO. */
	char service[ULRPC_SERVICE_NAME];
};

struct wire_opened {
	uint64_t client;
	uint64_t tag;
	uint32_t epoch;
	uint32_t status;
	uint32_t portal;
	uint32_t request_max;
	uint32_t window;
	uint32_t message_max;
	uint8_t incarnation[WIRE_ID_SIZE]; /* absent: all 0 */
	uint64_t estimate;		   /* us */
	bool durable;
};

struct wire_disconnect {
	uint64_t connection;
	uint64_t client;
	uint32_t epoch;
};

struct wire_disconnected {
	uint64_t client;
	uint32_t epoch;
};

struct wire_keepalive {
	uint64_t connection;
	uint64_t client;
	uint64_t sequence;
	uint64_t acked;
	uint64_t rtt; /* us; 0: not known */
	uint32_t epoch;
};

struct wire_alive {
	uint64_t client;
	uint64_t sequence;
	uint32_t epoch;
	uint32_t status;
	uint32_t clients;
};

enum wire_extension_state {
	WIRE_QUEUED = 0,
	WIRE_THROTTLED = 1,
	WIRE_RUNNING = 2,
	WIRE_BULK = 3,
};

struct wire_extension {
	uint64_t xid;
	uint64_t extend; /* us */
	uint32_t slot;
	uint32_t attempt;
	uint32_t state;	   /* enum wire_extension_state */
	uint32_t position; /* QUEUED: so many are before it */
	uint32_t progress; /* permille */
};

struct wire_gone {
	uint64_t xid;
	uint32_t slot;
};

#define WIRE_ENTRIES_MAX 64u /* extensions, or calls that are gone */

/* The entries of a control message. */
struct wire_entries {
	uint32_t n; /* at most WIRE_ENTRIES_MAX */
	union {
		/* to be encoded: n of them, borrowed until the return */
		const void *list;
		/* decoded: inside of the message; for wire_*_next() */
		struct wire_view view;
	};
};

struct wire_extend {
	uint64_t client;
	uint32_t epoch;
	struct wire_entries extensions; /* struct wire_extension */
};

struct wire_cancel {
	uint64_t connection;
	uint64_t client;
	uint32_t epoch;
	struct wire_entries gone; /* struct wire_gone */
};

struct wire_goodbye {
	uint64_t client;
	uint64_t connection;
	uint32_t epoch;
	uint32_t status;
};

/* Borrows nothing, but for entries: these from the message. */
struct wire_control {
	enum wire_control_kind kind;
	union {
		struct wire_connect connect;
		struct wire_connected connected;
		struct wire_open open;
		struct wire_opened opened;
		struct wire_disconnect disconnect;
		struct wire_disconnected disconnected;
		struct wire_keepalive keepalive;
		struct wire_alive alive;
		struct wire_extend extend;
		struct wire_cancel cancel;
		struct wire_goodbye goodbye;
	};
};

/* The room that a control message takes: without entries WIRE_CONTROL_BOUND,
 * and never more than WIRE_CONTROL_MAX. */
#define WIRE_CONTROL_BOUND 128u
#define WIRE_ENTRY_BOUND   56u
#define WIRE_CONTROL_MAX \
	(WIRE_CONTROL_BOUND + WIRE_ENTRIES_MAX * WIRE_ENTRY_BOUND)

size_t wire_control_bound(const struct wire_control *m);
/* Puts it to @buf, which has room for wire_control_bound() bytes, sets
 * *@hdr_data and returns how many bytes it has. */
size_t wire_control_encode(const struct wire_control *m, uint8_t *buf,
			   uint64_t *hdr_data);
/* Two messages in one are -EPROTO, and so are more than WIRE_ENTRIES_MAX
 * entries, or entries of a message that comes in several parts. *@m is set on
 * success only. */
int wire_control_decode(struct wire_control *m, uint64_t hdr_data,
			const void *payload, size_t length);

/* The next of the entries, of which there are entries->n: @view is a copy of
 * theirs. */
bool wire_extension_next(struct wire_view *view, struct wire_extension *e);
bool wire_gone_next(struct wire_view *view, struct wire_gone *g);

#endif
