/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed messages: the messages of a connection whose two sides have proved who
 * they are (secure/handshake.h). Each of them is one record (secure/record.h):
 * its seal in front, and behind it the message in its usual form. The seal also
 * covers the portal, the match bits and the header data, so that a message
 * cannot be used anywhere else.
 *
 * Each side has a handle of the connection. A record names the receiver's
 * handle, by which the receiver finds the keys.
 *
 * Owner: the CPT of the connection, as of everything that belongs to it.
 */
#ifndef RPC_SEALED_H
#define RPC_SEALED_H

#include "rpc/rpc.h"
#include "secure/piece.h"
#include "secure/record.h"

struct handshake;
struct identity;
struct stat_proof;

struct sealed {
	struct seal out;
	struct unseal in;
	/* handles of the connection: the one of this side, and the one of the
	 * other side */
	uint64_t self, peer;
	struct identity *who; /* the identity that the other side has proved */
	uint64_t since;	      /* ns: when the handshake ended */
	/* keys of bulk: the one with which this side seals, and the one with
	 * which it opens */
	struct piece_key *bulk_out, *bulk_in;
	/* Control messages are encrypted, because a client of the connection
	 * has ULRPC_FLAVOUR_PRIVACY, or because the other side has encrypted
	 * one. */
	bool private;
};

/* What the keys are bound to: both sides have the same keys only if all of this
 * is the same. */
struct sealed_between {
	uint8_t client_id[RPC_ID_SIZE], server_id[RPC_ID_SIZE];
	/* handles of the connection: the client's, and the server's */
	uint64_t client, session;
	uint32_t epoch;
};

/* Connections of a CPT have the contexts of ciphers in turn: shard.seal_pool.
 */
extern const struct rpc_part sealed_part;

/* Makes the keys from @h, which is done. @server: is this side the server?
 * Returns NULL if there is no memory. */
struct sealed *sealed_new(struct shard *s, const struct handshake *h,
			  const struct sealed_between *between, bool server);
/* Frees the keys. @sd may be NULL. */
void sealed_free(struct sealed *sd);

/* Keys of a client's earlier connections to the same server, the newest last: a
 * call may have bulk that was sealed before the client connected again. */
#define SEALED_PAST_MAX 16
struct sealed_past {
	struct piece_key *keys[SEALED_PAST_MAX];
	unsigned int n;
};

/* Keeps the key with which the bulk of @sd is opened. @sd may be NULL: keeps
 * nothing. */
void sealed_past_add(struct sealed_past *past, const struct sealed *sd);
void sealed_past_clear(struct sealed_past *past);
/* Returns the key with which bulk of the connection with @epoch is opened,
 * borrowed: that of @sd (may be NULL), or of an earlier connection. NULL: there
 * is none any more. */
struct piece_key *sealed_past_find(const struct sealed_past *past,
				   const struct sealed *sd, uint32_t epoch);
/* Describes the other side for statistics, to be freed by free(). @flavour:
 * that of calls. Returns NULL if there is no memory. */
struct stat_proof *sealed_proof(const struct sealed *sd,
				enum ulrpc_flavour flavour, uint64_t now);

/* Where a message goes: its seal covers this. */
struct sealed_to {
	unsigned int portal;
	uint64_t match;
	/* the header data that the message would have without a seal */
	uint64_t hdr_data;
};

/* Makes the seal of the message in @iov, of @n fragments. The seal is sent in
 * front of the message, with the header data wire_hdr_sealed(). @out: NULL: the
 * message is not encrypted. Otherwise the encrypted message is written to @out,
 * and sent instead; @out may be the message itself if that is one fragment.
 * Returns 0, or -ENOMEM or -EIO: then the content of @out is undefined. */
int sealed_make(struct sealed *sd, const struct sealed_to *to,
		const struct iovec *iov, unsigned int n, uint64_t now,
		uint8_t head[SEAL_HEAD], uint8_t *out);

/* A message that was opened. */
struct opened {
	uint64_t hdr_data;
	uint8_t *payload; /* points into the record */
	size_t length;
	bool private; /* the message was encrypted */
};

/* Opens a record of @length bytes that has come with @ev. Returns 0 with @o
 * set; or -errno, which was counted: the record is forged or a copy, or there
 * is no memory. */
int sealed_open(struct shard *s, struct sealed *sd,
		const struct ulnet_event *ev, void *record, size_t length,
		struct opened *o);

#endif
