/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/stream.h"

#include <errno.h>
#include <openssl/err.h>

#include "secure/handshake_priv.h"

#define PROTOCOL "ulnet-stream"
#define RECORD	 16384 /* bytes of a record of TLS */

struct stream {
	struct handshake *h;
	bool ended;  /* the network has ended: no more bytes come */
	bool closed; /* this side writes no more */
	/* TLS records written with the current keys, and after how many new
	 * keys are made */
	uint64_t records, renewal;
};

/* ---- life ---- */

struct stream *stream_new(enum handshake_side side, struct keys *keys)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->renewal = STREAM_RENEWAL;
	s->h = handshake_begin(side, keys, NULL, PROTOCOL);
	/* No ticket is given. Nobody would use it, but it would count among the
	 * TICKETS_MAX that the server keeps: the ticket of a client of RPC
	 * might be forgotten for it. */
	if (s->h && side == HANDSHAKE_SERVER)
		SSL_set_num_tickets(s->h->ssl, 0);
	if (s->h && (side == HANDSHAKE_SERVER || !handshake_shake(s->h)))
		return s;
	stream_free(s);
	return NULL;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	handshake_free(s->h);
	free(s);
}

void stream_renew_after(struct stream *s, uint64_t records)
{
	s->renewal = records;
}

static void say_closed(struct stream *s)
{
	ERR_clear_error();
	(void)SSL_shutdown(s->h->ssl);
	ERR_clear_error();
}

/* ---- the network's side ---- */

static size_t waiting(const struct stream *s)
{
	return BIO_ctrl_pending(s->h->out);
}

size_t stream_room(const struct stream *s)
{
	size_t n = BIO_ctrl_pending(s->h->in);

	return s->h->rc || s->ended || n > STREAM_ROOM ? 0 : STREAM_ROOM - n;
}

int stream_take(struct stream *s, const void *bytes, size_t n)
{
	struct handshake *h = s->h;

	if (h->rc)
		return h->rc;
	BUG_ON(n > stream_room(s));
	if (!h->done && n > HANDSHAKE_MAX - h->fed)
		return handshake_fail(h, -EMSGSIZE,
				      "the peer's handshake is too long");
	if (n && BIO_write(h->in, bytes, (int)n) != (int)n)
		return handshake_fail(h, -ENOMEM, "no memory");
	if (h->done)
		return 0;
	h->fed += n;
	if (handshake_shake(h))
		return h->rc;
	if (h->done && s->closed)
		say_closed(s);
	return 0;
}

void stream_end(struct stream *s)
{
	s->ended = true;
}

const uint8_t *stream_bytes(const struct stream *s, size_t *n_p)
{
	return handshake_bytes(s->h, n_p);
}

void stream_sent(struct stream *s, size_t n)
{
	uint8_t gone[4096];

	BUG_ON(n > waiting(s));
	/* OpenSSL drops bytes from a memory BIO only when they are read. */
	for (int did; n; n -= (size_t)did) {
		did = BIO_read(s->h->out, gone, (int)MIN(n, sizeof(gone)));
		BUG_ON(did <= 0);
	}
}

/* ---- the user's side ---- */

bool stream_is_up(const struct stream *s)
{
	return handshake_is_done(s->h);
}

struct identity *stream_peer(const struct stream *s)
{
	return handshake_peer(s->h);
}

/* Do so many bytes wait to be sent that only the peer can have asked for them,
 * for instance by key updates? */
static bool is_flooded(const struct stream *s)
{
	return waiting(s) > 2 * STREAM_ROOM + 2 * RECORD;
}

static ssize_t nothing_to_read(struct stream *s)
{
	if (!s->ended)
		return -EAGAIN;
	return handshake_fail(s->h, -ECONNRESET,
			      "the connection has ended, and the peer has not "
			      "closed it");
}

ssize_t stream_read(struct stream *s, void *to, size_t n)
{
	struct handshake *h = s->h;
	int did;

	if (h->rc)
		return h->rc;
	if (!h->done)
		return nothing_to_read(s);
	ERR_clear_error();
	did = SSL_read(h->ssl, to, (int)MIN(n, (size_t)INT32_MAX));
	if (is_flooded(s))
		return handshake_fail(h, -EMSGSIZE,
				      "the peer asks for more than it takes");
	if (did > 0)
		return did;
	switch (SSL_get_error(h->ssl, did)) {
	case SSL_ERROR_WANT_READ:
		return nothing_to_read(s);
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		return handshake_give_up(h);
	}
}

/* Makes new keys for what this side writes, if it is time. The message that
 * tells the peer goes in front of the next record. */
static bool renewed(struct stream *s)
{
	if (s->records++ < s->renewal)
		return true;
	s->records = 1;
	return SSL_key_update(s->h->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
}

ssize_t stream_write(struct stream *s, const void *from, size_t n)
{
	struct handshake *h = s->h;
	size_t did = 0;

	if (h->rc)
		return h->rc;
	if (s->closed)
		return -EPIPE;
	if (!h->done)
		return -EAGAIN;
	ERR_clear_error();
	/* Writes one TLS record at a time, so that its bytes count as waiting
	 * before the next one is made. */
	while (did < n && waiting(s) < STREAM_ROOM) {
		size_t piece = MIN(n - did, (size_t)RECORD);

		if (!renewed(s))
			return handshake_give_up(h);
		if (SSL_write(h->ssl, (const uint8_t *)from + did,
			      (int)piece) != (int)piece)
			return handshake_give_up(h);
		did += piece;
	}
	return did ? (ssize_t)did : -EAGAIN;
}

void stream_close(struct stream *s)
{
	if (s->closed || s->h->rc)
		return;
	s->closed = true;
	if (s->h->done)
		say_closed(s);
}

const char *stream_error(const struct stream *s)
{
	return handshake_error(s->h);
}
