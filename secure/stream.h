/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of bytes between two peers that have proved who they are: TLS 1.3 of
 * OpenSSL, through memory. It does not touch the network. Its user gives it the
 * bytes that come, in pieces of any size, and sends the bytes that it makes.
 * What is read is what the peer has written, in order and unaltered, up to the
 * end or to an error. After an error the stream cannot be used again.
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

/* Begins a stream. @side and @keys as of handshake_new(). A client's stream has
 * bytes for the peer at once. Returns NULL if there is no memory. */
struct stream *stream_new(enum handshake_side side, struct keys *keys);
/* Frees @s, which may be NULL, without telling the peer: stream_close() does
 * that. */
void stream_free(struct stream *s);
/* Makes new keys after @records TLS records instead of STREAM_RENEWAL. */
void stream_renew_after(struct stream *s, uint64_t records);

/* ---- the network's side ---- */

/* Returns how many bytes stream_take() accepts now. 0: none, until some were
 * read or sent, or for good if the stream has failed. */
size_t stream_room(const struct stream *s);
/* Takes @n bytes from the network, at most stream_room(), which are copied.
 * Returns 0, or an error of handshake_feed(); then there may still be bytes for
 * the peer, which tell it the reason. */
int stream_take(struct stream *s, const void *bytes, size_t n) must_check;
/* Tells the stream that the network has ended: no more bytes will come. */
void stream_end(struct stream *s);
/* stream_bytes() returns the bytes that wait to be sent, and sets *@n_p to
 * their number; they are valid until the next call of another function.
 * stream_sent() drops the first @n of them, which were sent. */
const uint8_t *stream_bytes(const struct stream *s, size_t *n_p);
void stream_sent(struct stream *s, size_t n);

/* ---- the user's side ---- */

/* Has the peer proved who it is? From then on stream_peer() is valid. A client
 * does not know yet whether the server accepts it: it knows when it has read
 * something. */
bool stream_is_up(const struct stream *s);
/* Returns who the peer is. Borrowed. */
struct identity *stream_peer(const struct stream *s);
/* Reads up to @n > 0 bytes. Returns how many; 0: the peer has closed, and
 * everything was read; -EAGAIN: none yet; -ECONNRESET: the network has ended
 * before the peer closed, so data may be missing; or an error of stream_take().
 */
ssize_t stream_read(struct stream *s, void *to, size_t n) must_check;
/* Writes up to @n > 0 bytes. Returns how many; -EAGAIN: none, because the
 * stream is not up yet, or because STREAM_ROOM bytes wait to be sent; -EPIPE:
 * after stream_close(); or an error of stream_take(). */
ssize_t stream_write(struct stream *s, const void *from, size_t n) must_check;
/* Ends this side's data: nothing more can be written, and the peer is told so.
 * What the peer has written can still be read. */
void stream_close(struct stream *s);
/* Returns why the stream has failed; "" if it has not. */
const char *stream_error(const struct stream *s);

#endif
