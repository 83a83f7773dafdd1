/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fields of the messages of wire.proto, which says what they mean: a line
 * for each field, in the order of their numbers. The structures (wire.h), the
 * encoder (wire_put.h, wire.c) and the decoder (wire.c) are made from these
 * lines.
 *
 *   F(number, type, member)     a value; wire_field.h has the types
 *   A(number, type, member)     a packed field of numbers
 *   L(number, message, member)  nested messages: struct wire_entries
 *
 * A message that is encoded or decoded in parts has a list for each part.
 */
#ifndef RPC_WIRE_MESSAGES_H
#define RPC_WIRE_MESSAGES_H

/* All fields but 5 (call), 6 (checksum), 7 (flavour), 8 (service) and 15
 * (bodies). */
#define WIRE_REQUESTS_FIELDS(F, L, A) \
	F(1, fixed64, connection)     \
	F(2, fixed64, client)         \
	F(3, varint32, epoch)         \
	F(4, varint, acked)

/* Fields that are mostly the same in all calls of a client. The encoder keeps
 * their bytes for the calls that follow, in the same message or in another, and
 * copies them (wire_call_rest). The decoder reads these fields, and "attempt",
 * anew only for a call whose bytes differ from those of the call before (struct
 * wire_common). */
#define WIRE_CALL_SAME(F, L, A)  \
	F(3, fixed32, method)    \
	F(4, varint32, length)   \
	F(5, varint, timeout)    \
	F(6, varint, remaining)  \
	F(7, varint32, flags)    \
	F(8, varint32, priority) \
	F(9, varint32, reply_max)
#define WIRE_CALL_END(F, L, A)     \
	F(11, varint32, semantics) \
	L(12, segments, bulks)     \
	F(13, bytes, trace)        \
	F(14, varint32, reply_limit)
#define WIRE_CALL_COMMON(F, L, A) \
	F(2, varint32, attempt)   \
	WIRE_CALL_SAME(F, L, A)
#define WIRE_CALL_FIELDS(F, L, A) \
	F(1, varint, xid)         \
	WIRE_CALL_COMMON(F, L, A) \
	F(10, varint32, slot)     \
	WIRE_CALL_END(F, L, A)

#define WIRE_SEGMENTS_FIELDS(F, L, A) \
	F(1, fixed64, match)          \
	F(2, varint32, access)        \
	A(3, varint32, length)        \
	A(4, fixed32, checksum)       \
	F(5, flag, checked)           \
	F(6, varint32, protection)    \
	F(7, bytes, seals)

/* All fields but 4 (reply), 5 (estimate), 6 (checksum) and 15 (bodies). */
#define WIRE_REPLIES_FIELDS(F, L, A) \
	F(1, fixed64, client)        \
	F(2, varint32, epoch)        \
	F(3, varint32, window)

#define WIRE_REPLY_USUAL(F, L, A) \
	F(1, varint, xid)         \
	F(2, varint32, attempt)   \
	F(3, varint32, status)    \
	F(4, varint32, error)     \
	F(5, varint32, length)    \
	F(6, varint, queue)       \
	F(7, varint, service)
#define WIRE_REPLY_RARE(F, L, A)  \
	F(8, varint, retry_after) \
	L(9, moved, bulks)        \
	F(10, varint, throttled)  \
	F(11, varint32, needed)   \
	F(12, varint, absent)     \
	F(13, fixed64, held)      \
	F(14, flag, unexecuted)   \
	F(15, checksum, checksum)
#define WIRE_REPLY_FIELDS(F, L, A) \
	WIRE_REPLY_USUAL(F, L, A)  \
	WIRE_REPLY_RARE(F, L, A)

#define WIRE_MOVED_FIELDS(F, L, A) \
	F(1, varint32, index)      \
	A(2, fixed32, checksum)    \
	A(3, varint32, length)     \
	F(4, bytes, seals)

/* ---- control: number, kind, member of struct wire_control ---- */

#define WIRE_CONTROLS(C)                 \
	C(1, CONNECT, connect)           \
	C(2, CONNECTED, connected)       \
	C(3, OPEN, open)                 \
	C(4, OPENED, opened)             \
	C(5, DISCONNECT, disconnect)     \
	C(6, DISCONNECTED, disconnected) \
	C(7, KEEPALIVE, keepalive)       \
	C(8, ALIVE, alive)               \
	C(9, EXTEND, extend)             \
	C(10, CANCEL, cancel)            \
	C(11, GOODBYE, goodbye)          \
	C(12, SHAKE, shake)              \
	C(13, SHAKEN, shaken)            \
	C(14, LOST, lost)

#define WIRE_CONNECT_FIELDS(F, L, A) \
	F(1, id, client_id)          \
	F(2, fixed64, client)        \
	F(3, varint32, epoch)        \
	F(4, varint, keepalive)      \
	F(5, varint32, version_min)  \
	F(6, varint32, version_max)  \
	F(7, flag, annexes)          \
	F(8, flag, limits)           \
	F(9, varint32, reply_limit)  \
	F(10, fixed64, former)

#define WIRE_CONNECTED_FIELDS(F, L, A) \
	F(1, fixed64, client)          \
	F(2, varint32, epoch)          \
	F(3, varint32, status)         \
	F(4, id, server_id)            \
	F(5, fixed64, connection)      \
	F(6, flag, reconnected)        \
	F(7, varint, keepalive)        \
	F(8, varint, lease)            \
	F(9, varint32, version)        \
	F(10, varint, retry_after)     \
	F(11, varint32, clients)       \
	F(12, varint32, slots)         \
	F(13, flag, annexes)           \
	F(14, varint32, sets)          \
	F(15, varint, absent)

#define WIRE_OPEN_FIELDS(F, L, A) \
	F(1, fixed64, connection) \
	F(2, fixed64, client)     \
	F(3, varint32, epoch)     \
	F(4, fixed64, tag)        \
	F(5, name, service)       \
	F(6, varint, rtt)         \
	F(7, varint32, flavour)   \
	F(8, flag, numbers)

#define WIRE_OPENED_FIELDS(F, L, A) \
	F(1, fixed64, client)       \
	F(2, varint32, epoch)       \
	F(3, fixed64, tag)          \
	F(4, varint32, status)      \
	F(5, varint32, portal)      \
	F(6, varint32, request_max) \
	F(7, varint32, window)      \
	F(8, varint32, message_max) \
	F(9, id, incarnation)       \
	F(10, flag, durable)        \
	F(11, varint, estimate)     \
	F(12, varint32, begin)      \
	F(13, flag, checked)        \
	F(14, varint32, flavour)    \
	F(15, varint32, number)     \
	F(16, varint32, request_limit)

#define WIRE_DISCONNECT_FIELDS(F, L, A) \
	F(1, fixed64, connection)       \
	F(2, fixed64, client)           \
	F(3, varint32, epoch)

#define WIRE_DISCONNECTED_FIELDS(F, L, A) \
	F(1, fixed64, client)             \
	F(2, varint32, epoch)

#define WIRE_KEEPALIVE_FIELDS(F, L, A) \
	F(1, fixed64, connection)      \
	F(2, fixed64, client)          \
	F(3, varint32, epoch)          \
	F(4, varint, sequence)         \
	F(5, varint, acked)            \
	F(6, varint, rtt)

#define WIRE_ALIVE_FIELDS(F, L, A) \
	F(1, fixed64, client)      \
	F(2, varint32, epoch)      \
	F(3, varint, sequence)     \
	F(4, varint32, status)     \
	F(5, varint32, clients)

#define WIRE_EXTEND_FIELDS(F, L, A) \
	F(1, fixed64, client)       \
	F(2, varint32, epoch)       \
	L(3, extension, extensions)

#define WIRE_EXTENSION_FIELDS(F, L, A) \
	F(1, varint, xid)              \
	F(2, varint32, slot)           \
	F(3, varint32, attempt)        \
	F(4, varint, extend)           \
	F(5, varint32, state)          \
	F(6, varint32, position)       \
	F(7, varint32, progress)

#define WIRE_CANCEL_FIELDS(F, L, A) \
	F(1, fixed64, connection)   \
	F(2, fixed64, client)       \
	F(3, varint32, epoch)       \
	L(4, gone, gone)

#define WIRE_GONE_FIELDS(F, L, A) \
	F(1, varint, xid)         \
	F(2, varint32, slot)

#define WIRE_GOODBYE_FIELDS(F, L, A) \
	F(1, fixed64, client)        \
	F(2, varint32, epoch)        \
	F(3, varint32, status)       \
	F(4, fixed64, connection)    \
	F(5, varint, unexecuted)

#define WIRE_SHAKE_FIELDS(F, L, A) \
	F(1, fixed64, client)      \
	F(2, varint32, epoch)      \
	F(3, fixed64, session)     \
	F(4, varint32, offset)     \
	F(5, bytes, piece)         \
	F(6, varint32, seen)       \
	F(7, id, client_id)

#define WIRE_SHAKEN_FIELDS(F, L, A) \
	F(1, fixed64, client)       \
	F(2, varint32, epoch)       \
	F(3, fixed64, session)      \
	F(4, varint32, offset)      \
	F(5, bytes, piece)          \
	F(6, varint32, seen)        \
	F(7, varint32, status)      \
	F(8, id, server_id)         \
	F(9, varint, retry_after)

#define WIRE_LOST_FIELDS(F, L, A) \
	F(1, fixed64, client)     \
	F(2, varint32, epoch)     \
	F(3, fixed64, session)

#endif
