/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of bytes between two who have proved each other: TLS 1.3 of OpenSSL,
 * through memory. It does not touch the network: whoever uses it gives it the
 * bytes that come, in pieces of any size, and sends those that it makes. What
 * is read is what the peer has written, in order and unaltered, up to its end
 * or to an error, which is for good.
 *
 * Certificates and keys are as with handshakes (handshake.h). There are no
 * tickets: each stream begins with a full handshake.
 *
 * Memory is bounded, whatever the peer does: STREAM_ROOM bytes that have come,
 * and a little more than twice as many that wait to be sent.
 *
 * Owner: one thread at a time.
 */
#ifndef SECURE_STREAM_H
#define SECURE_STREAM_H

#include <sys/types.h>
#include "secure/handshake.h"

#define STREAM_ROOM 65536
/* Records after which a side takes new keys: AES-GCM bears 2^24 long ones (RFC
 * 8446, 5.5). */
#define STREAM_RENEWAL (UINT64_C(1) << 22)

struct stream;

/* As handshake_new(). A client has bytes for the peer at once. */
struct stream *stream_new(enum handshake_side side, struct keys *keys);
/* Frees @s, and tells the peer nothing: see stream_close(). @s may be NULL. */
void stream_free(struct stream *s);
/* Takes new keys after @records, and not after STREAM_RENEWAL. */
void stream_renew_after(struct stream *s, uint64_t records);

/* ---- the network's side ---- */

/* Returns how many bytes stream_take() takes now; 0: none before some were
 * read, or never again. */
size_t stream_room(const struct stream *s);
/* Takes @n bytes, at most stream_room(), which are copied. Returns 0, or an
 * error as handshake_feed(); then there may still be bytes for the peer, which
 * tell it why. */
int stream_take(struct stream *s, const void *bytes, size_t n) must_check;
/* The network has ended: no more bytes will come. */
void stream_end(struct stream *s);
/* stream_bytes() returns the bytes that wait for the peer, valid until the next
 * call of another function. stream_sent() drops the first @n of them, which
 * were sent. */
const uint8_t *stream_bytes(const struct stream *s, size_t *n_p);
void stream_sent(struct stream *s, size_t n);

/* ---- the user's side ---- */

/* Is the peer proved? From then on stream_peer() says who it is. A client's
 * server may still refuse it: until something was read, nothing is sure but who
 * the server is. */
bool stream_is_up(const struct stream *s);
/* Returns who the peer is. Borrowed. */
struct identity *stream_peer(const struct stream *s);
/* Reads up to @n > 0 bytes. Returns how many; 0: the peer has closed, and that
 * was all; -EAGAIN: none yet; -ECONNRESET: the network has ended before the
 * peer has closed, so that something may be missing; or an error as of
 * stream_take(). */
ssize_t stream_read(struct stream *s, void *to, size_t n) must_check;
/* Writes up to @n > 0 bytes. Returns how many; -EAGAIN: none, since it is not
 * up yet, or since STREAM_ROOM bytes wait to be sent; -EPIPE: after
 * stream_close(); or an error as of stream_take(). */
ssize_t stream_write(struct stream *s, const void *from, size_t n) must_check;
/* Ends this side's data: nothing more can be written, and the peer is told so.
 * What the peer has written can still be read. */
void stream_close(struct stream *s);
/* As handshake_error(). */
const char *stream_error(const struct stream *s);

#endif
