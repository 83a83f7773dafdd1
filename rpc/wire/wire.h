/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes and decodes the messages of wire.proto: see ulrpc_protocol(7). The
 * codec allocates nothing and keeps nothing. Any thread.
 *
 * Decoding does not trust the sender. Every *_decode*() returns 0 or
 *   -EPROTONOSUPPORT  another version of the protocol,
 *   -EBADMSG          the head, or the bodies, do not match their checksum,
 *   -EPROTO           anything else that is not well-formed,
 * and what it has set after an error is undefined. Unknown fields are skipped,
 * missing fields are 0, and if a field comes several times the last one counts.
 * The caller checks the values: statuses, accesses and lengths may have any.
 *
 * Encoding trusts its caller: to exceed a limit is a bug.
 *
 * wire_messages.h lists the fields of all messages in macros. The structures
 * below, and straight-line code for each message, are made from these lists;
 * hot messages are split into parts by hand. No existing tool is used, because
 *   - protobuf-c, which stubs use, allocates each nested message;
 *   - nanopb (0.4.7) interprets descriptors, and encodes each nested message
 *     twice to know its length: with it a call takes 33,300 instructions, both
 *     ways and on both sides, instead of 1,250;
 *   - a generator for wire.proto would need what wire.proto does not say:
 *     lengths of bytes and strings, numbers of entries, which fields are hot.
 * Tests compare the lists with wire.proto: names, numbers, types, and the bytes
 * of random messages.
 */
#ifndef RPC_WIRE_H
#define RPC_WIRE_H

#include <string.h>

#include "base/util.h"
#include "rpc/wire/wire_messages.h"
#include "ulnet/rpc.h"

#define WIRE_VERSION 1
/* The version in the header data of a sealed message (rpc/sealed.h). */
#define WIRE_SEALED   2
#define WIRE_HEAD_MAX 65535u
/* Calls or replies in one message, at most: ULRPC_BATCH_MAX */
#define WIRE_CALLS_MAX 256u
#define WIRE_ID_SIZE   16u

/* ---- header data: version, kind, length of the head, its CRC32C ---- */

enum wire_kind {
	WIRE_REQUESTS = 1,
	WIRE_REPLIES = 2,
	WIRE_CONTROL = 3,
};

/* Returns the header data for @head, whose @length is at most WIRE_HEAD_MAX
 * bytes. */
uint64_t wire_hdr_data(enum wire_kind kind, const void *head, size_t length);

/* The header data of a sealed message are those of the message inside, but with
 * the version WIRE_SEALED, and without the CRC32C, which the seal makes
 * unnecessary. */
static inline bool wire_is_sealed(uint64_t hdr_data)
{
	return hdr_data >> 56 == WIRE_SEALED;
}

static inline uint64_t wire_hdr_sealed(uint64_t hdr_data)
{
	return (uint64_t)WIRE_SEALED << 56 |
	       (hdr_data & UINT64_C(0x00ffffff00000000));
}

/* Reverses wire_hdr_sealed(): returns the header data of the message @payload,
 * of @length bytes, that was sealed. Returns 0, which no decoder accepts, if
 * the message is shorter than its head. */
uint64_t wire_hdr_opened(uint64_t hdr_data, const void *payload, size_t length);

/* Returns the checksum of bodies, which is never 0, from their CRC32C. */
static inline uint64_t wire_checksum(uint32_t crc)
{
	return UINT64_C(1) << 32 | crc;
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
	WIRE_ANNEXED = 18,
	WIRE_HELD_ANNEXED = 19,
	WIRE_UNKNOWN_SET = 20,
	WIRE_STATUSES
};

enum wire_call_flags {
	WIRE_CALL_RESENT = 1,
	WIRE_CALL_QUERY = 8,
	WIRE_CALL_ANNEX = 16,
};

enum wire_flavour {
	WIRE_FLAVOUR_NONE = 0,
	WIRE_FLAVOUR_AUTH = 1,
	WIRE_FLAVOUR_INTEGRITY = 2,
	WIRE_FLAVOUR_PRIVACY = 3,
};

/* how bulk is sealed */
enum wire_protection {
	WIRE_PROTECTION_NONE = 0,
	WIRE_PROTECTION_INTEGRITY = 1,
	WIRE_PROTECTION_PRIVACY = 2,
	WIRE_PROTECTIONS
};

/* bytes of the seal of one segment */
#define WIRE_SEAL 32u

enum wire_access {
	WIRE_ACCESS_SOURCE = 1,
	WIRE_ACCESS_SINK = 2,
	/* as a source: the body of the request, or a part of it */
	WIRE_ACCESS_BODY = 3,
};

/* A range of bytes within a decoded message, valid as long as the message. The
 * *_next() functions advance a view: to walk it more than once, pass copies. */
struct wire_view {
	const uint8_t *p;
	const uint8_t *end;
};

static inline size_t view_length(struct wire_view view)
{
	return (size_t)(view.end - view.p);
}

/* A repeated field of nested messages. */
struct wire_entries {
	size_t n; /* at most WIRE_MAX_MESSAGE */
	union {
		/* when encoding: an array of n entries, borrowed until the
		 * function returns */
		const void *list;
		/* when decoding: the bytes of the entries, for wire_*_next() */
		struct wire_view view;
	};
};

/* Extensions, or calls that are gone, in one message, at most. */
#define WIRE_ENTRIES_MAX 64u

enum {
	WIRE_MAX_segments = ULRPC_BULKS_MAX,
	WIRE_MAX_moved = ULRPC_BULKS_MAX,
	WIRE_MAX_extension = WIRE_ENTRIES_MAX,
	WIRE_MAX_gone = WIRE_ENTRIES_MAX,
};

/* For decoding a packed field: its numbers are counted, and copied to @out if
 * that is not NULL. It is an error if there are more than @max. */
struct wire_numbers {
	uint32_t *out;
	uint32_t max;
	uint32_t n;
};

/* A member for each field of a list in wire_messages.h, wide members first, so
 * that the structure has no gaps. */
#define WIRE_WIDE(number, type, member) WIRE_WIDE_##type(member)
#define WIRE_WIDE_varint(member)	uint64_t member;
#define WIRE_WIDE_fixed64(member)	uint64_t member;
#define WIRE_WIDE_checksum(member)	uint64_t member;
#define WIRE_WIDE_varint32(member)
#define WIRE_WIDE_fixed32(member)
#define WIRE_WIDE_flag(member)
#define WIRE_WIDE_bytes(member)		  struct wire_view member;
#define WIRE_WIDE_id(member)		  uint8_t member[WIRE_ID_SIZE];
#define WIRE_WIDE_name(member)		  char member[ULRPC_SERVICE_NAME];
#define WIRE_NARROW(number, type, member) WIRE_NARROW_##type(member)
#define WIRE_NARROW_varint(member)
#define WIRE_NARROW_fixed64(member)
#define WIRE_NARROW_checksum(member)
#define WIRE_NARROW_varint32(member) uint32_t member;
#define WIRE_NARROW_fixed32(member)  uint32_t member;
#define WIRE_NARROW_flag(member)     bool member;
#define WIRE_NARROW_bytes(member)
#define WIRE_NARROW_id(member)
#define WIRE_NARROW_name(member)
#define WIRE_LIST(number, message, member)  struct wire_entries member;
#define WIRE_TABLE(number, type, member)    const uint32_t *member;
#define WIRE_TABLE_IN(number, type, member) struct wire_numbers member;
#define WIRE_NO_MEMBER(number, type, member)

#define WIRE_MEMBERS(fields, table)         \
	fields(WIRE_WIDE, WIRE_LIST, table) \
		fields(WIRE_NARROW, WIRE_NO_MEMBER, WIRE_NO_MEMBER)

/* ---- requests ---- */

struct wire_requests {
	WIRE_MEMBERS(WIRE_REQUESTS_FIELDS, WIRE_TABLE)
	/* set by decoding only */
	uint16_t ncalls; /* at most WIRE_CALLS_MAX */
	bool checked;	 /* the bodies have a checksum */
	uint8_t flavour; /* enum wire_flavour; a peer may send any number */
	/* the number of the service, if services share the portal; 0: none */
	uint32_t service;
};

/* The segments of one bulk, to be encoded. Each packed field is an array of n
 * numbers, or NULL. */
struct wire_segments {
	WIRE_MEMBERS(WIRE_SEGMENTS_FIELDS, WIRE_TABLE)
	uint32_t n; /* at most ULRPC_SEGMENTS_MAX */
};

struct wire_call {
	WIRE_MEMBERS(WIRE_CALL_FIELDS, WIRE_TABLE)
	/* set by decoding only: @length bytes in the message */
	const uint8_t *body;
};

/* The common fields (wire_messages.h) of the call that was decoded last, and
 * their encoded form. Most calls have the same bytes there as the call before,
 * in the same message or in another: then the values are copied instead of
 * decoded again. All 0: no call was decoded. */
#define WIRE_COMMON_MAX 64u
struct wire_common {
	WIRE_MEMBERS(WIRE_CALL_COMMON, WIRE_TABLE)
	/* bytes of the encoded form; 0: there is no call to compare with */
	uint8_t nbytes;
	uint8_t bytes[WIRE_COMMON_MAX];
};

/* Clears a structure in two parts, because compilers make one memset() a string
 * instruction, which is slow for so few bytes. */
static inline void wire_clear(void *m, size_t size)
{
	memset(m, 0, MIN(size, 64));
	if (size > 64)
		memset((char *)m + 64, 0, size - 64);
}

/*
 * To encode a message: wire_requests_put(), then wire_call_put() (wire_put.h)
 * for up to WIRE_CALLS_MAX calls, then wire_bodies_put(), in front of which
 * wire_checksum_put(), wire_flavour_put() and wire_service_put() may come. That
 * makes the head; the caller puts the bodies behind it, in the order of their
 * calls. Each function writes at @p and returns the end of what it wrote. The
 * caller provides as much room as WIRE_*_BOUND or wire_*_bound() says: for a
 * call without bulks that is WIRE_CALL_BOUND and the bytes of its trace.
 */
#define WIRE_REQUESTS_BOUND 35u
#define WIRE_CALL_BOUND	    96u
#define WIRE_BODIES_BOUND   8u
#define WIRE_CHECKSUM_BOUND 9u
#define WIRE_FLAVOUR_BOUND  2u
#define WIRE_SERVICE_BOUND  6u

uint8_t *wire_requests_put(uint8_t *p, const struct wire_requests *m);
size_t wire_call_bound(const struct wire_call *call);
/* Writes the length of all bodies (of calls, or of replies) together; writes
 * nothing if @length is 0. */
uint8_t *wire_bodies_put(uint8_t *p, uint32_t length);
/* Writes the checksum of all bodies (of calls, or of replies) together. @crc:
 * their CRC32C. */
uint8_t *wire_checksum_put(uint8_t *p, uint32_t crc);
uint8_t *wire_flavour_put(uint8_t *p, enum wire_flavour flavour);
uint8_t *wire_service_put(uint8_t *p, uint32_t number);

/* Decodes a whole message: sets the first m->ncalls of @calls, in the order of
 * the message. They point into @payload, which is borrowed as long as they are
 * used. After an error *@m and @calls are undefined. @common: what was decoded
 * before, by the same thread; whatever it is, the result is the same. */
int wire_requests_decode(struct wire_requests *m,
			 struct wire_call calls[WIRE_CALLS_MAX],
			 struct wire_common *common, uint64_t hdr_data,
			 const void *payload, size_t length) must_check;
/* Does what wire_requests_decode() does for a message that may be cut off
 * within its bodies: sets the lengths of bodies, but not the bodies. */
int wire_requests_decode_heads(struct wire_requests *m,
			       struct wire_call calls[WIRE_CALLS_MAX],
			       uint64_t hdr_data, const void *payload,
			       size_t length) must_check;

/* The segments of one bulk, decoded. */
struct wire_segments_in {
	WIRE_MEMBERS(WIRE_SEGMENTS_FIELDS, WIRE_TABLE_IN)
	bool has_checksums; /* is there a checksum for each segment? */
	/* number of segments, at most ULRPC_SEGMENTS_MAX; may be 0. There is a
	 * seal for each segment, or none at all. */
	uint32_t n;
	struct wire_view view;
};

/* Decodes the next bulk of a call, and advances @bulks, which begins as a copy
 * of call.bulks.view. Returns false if there is no next one. */
bool wire_segments_next(struct wire_view *bulks, struct wire_segments_in *s);
/* Copy all lengths, or all checksums, to @out, which has room for s->n numbers.
 * If the message has no checksums, sets all to 0. */
void wire_segments_lengths(const struct wire_segments_in *s, uint32_t *out);
void wire_segments_checksums(const struct wire_segments_in *s, uint32_t *out);

/* ---- replies ---- */

struct wire_replies {
	WIRE_MEMBERS(WIRE_REPLIES_FIELDS, WIRE_TABLE)
	/* set by decoding only */
	uint64_t estimate; /* us; 0: none came */
	uint32_t nreplies; /* at most WIRE_CALLS_MAX */
	bool checked;	   /* the bodies have a checksum */
};

/* What the server has put to a sink (WIRE_ACCESS_SINK); for encoding. */
struct wire_moved {
	/* checksum may be NULL if there are seals; length may always be NULL */
	WIRE_MEMBERS(WIRE_MOVED_FIELDS, WIRE_TABLE)
	uint32_t n; /* at most ULRPC_SEGMENTS_MAX */
};

struct wire_reply {
	WIRE_MEMBERS(WIRE_REPLY_FIELDS, WIRE_TABLE)
	/* set by decoding only: @length bytes in the message */
	const uint8_t *body;
};

/* To encode a message, as requests are encoded. wire_estimate_put() may come
 * before the first wire_reply_put() (wire_put.h). WIRE_REPLY_BOUND is for a
 * reply without bulks; WIRE_REPLIES_BOUND includes the estimate. */
#define WIRE_REPLIES_BOUND 32u
#define WIRE_REPLY_BOUND   118u

uint8_t *wire_replies_put(uint8_t *p, const struct wire_replies *m);
uint8_t *wire_estimate_put(uint8_t *p, uint64_t estimate);
size_t wire_reply_bound(const struct wire_reply *reply);

/* Does for replies what wire_requests_decode() does for requests. @reply has
 * room for WIRE_CALLS_MAX replies. */
int wire_replies_decode(struct wire_replies *m, struct wire_reply *reply,
			uint64_t hdr_data, const void *payload, size_t length);

struct wire_moved_in {
	WIRE_MEMBERS(WIRE_MOVED_FIELDS, WIRE_TABLE_IN)
	bool has_lengths; /* is there a length for each segment? */
	/* number of segments, at most ULRPC_SEGMENTS_MAX. There are n
	 * checksums, or n seals. */
	uint32_t n;
	struct wire_view view;
};

bool wire_moved_next(struct wire_view *bulks, struct wire_moved_in *m);
/* Copy all checksums, or all lengths, to @out, which has room for m->n numbers.
 * If the message has no lengths, sets all to 0. */
void wire_moved_checksums(const struct wire_moved_in *m, uint32_t *out);
void wire_moved_lengths(const struct wire_moved_in *m, uint32_t *out);

/* ---- control ---- */

/* A kind is the number of its field in the message Control. */
#define WIRE_CONTROL_KIND(number, kind, member) WIRE_##kind = number,
enum wire_control_kind {
	/* when decoded: the kind is of a later version of the protocol */
	WIRE_CONTROL_UNKNOWN = 0,
	WIRE_CONTROLS(WIRE_CONTROL_KIND)
};

/* In these structures, a client_id, server_id or incarnation that is not known
 * is all 0. The name of a service is terminated by a 0 byte, and has no other.
 */
#define WIRE_CONTROL_STRUCT(number, kind, member)              \
	struct wire_##member {                                 \
		WIRE_MEMBERS(WIRE_##kind##_FIELDS, WIRE_TABLE) \
	};
WIRE_CONTROLS(WIRE_CONTROL_STRUCT)

/* slots that a server grants if wire_connected.slots is 0 */
#define WIRE_SLOTS_USUAL 1024u

enum wire_extension_state {
	WIRE_QUEUED = 0,
	WIRE_THROTTLED = 1,
	WIRE_RUNNING = 2,
	WIRE_BULK = 3,
};

struct wire_extension {
	WIRE_MEMBERS(WIRE_EXTENSION_FIELDS, WIRE_TABLE)
};

struct wire_gone {
	WIRE_MEMBERS(WIRE_GONE_FIELDS, WIRE_TABLE)
};

/* A control message. A decoded one owns all its values, except for entries and
 * pieces, which point into the payload. */
#define WIRE_CONTROL_MEMBER(number, kind, member) struct wire_##member member;
struct wire_control {
	enum wire_control_kind kind;
	union {
		WIRE_CONTROLS(WIRE_CONTROL_MEMBER)
	};
};

/* Bytes of a handshake in one message, at most. */
#define WIRE_PIECE_MAX 3072u
/* Bytes of a control message, at most: WIRE_CONTROL_BOUND without entries and
 * piece, WIRE_CONTROL_MAX with as many as there can be. */
#define WIRE_CONTROL_BOUND 128u
#define WIRE_ENTRY_BOUND   56u
#define WIRE_CONTROL_MAX \
	(WIRE_CONTROL_BOUND + WIRE_ENTRIES_MAX * WIRE_ENTRY_BOUND)

/* Return two fields that every kind of control message has: the client's
 * handle, and the epoch. They are 0 for WIRE_CONTROL_UNKNOWN. */
uint64_t wire_control_client(const struct wire_control *m);
uint32_t wire_control_epoch(const struct wire_control *m);

size_t wire_control_bound(const struct wire_control *m);
/* Encodes @m into @buf, which has room for wire_control_bound() bytes, and sets
 * *@hdr_data. Returns the length of the message. */
size_t wire_control_encode(const struct wire_control *m, uint8_t *buf,
			   uint64_t *hdr_data);
/* Decodes a control message. Returns 0; or an error, and *@m is unchanged. Also
 * -EPROTO: the message has two kinds, more than WIRE_ENTRIES_MAX entries, or
 * entries that are spread over several occurrences of a field. */
int wire_control_decode(struct wire_control *m, uint64_t hdr_data,
			const void *payload, size_t length);

/* Decode the next entry, and advance @view, which begins as a copy of
 * entries->view. They return false if there is no next entry. */
bool wire_extension_next(struct wire_view *view, struct wire_extension *e);
bool wire_gone_next(struct wire_view *view, struct wire_gone *g);

#endif
