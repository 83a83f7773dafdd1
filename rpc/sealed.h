/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed messages: those of a connection whose two sides have proved who they
 * are (secure/handshake.h). Each message of RPC is one record
 * (secure/record.h): its seal in front, and behind it the message as it would
 * be without. The seal also covers the portal, the match bits and the header
 * data, so that a message is worth nothing anywhere else.
 *
 * Both sides have a handle of the connection. A record names the receiver's, by
 * which the receiver finds the keys.
 *
 * Owner: the CPT of the connection, as of all that belongs to it.
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
	/* handles of the connection: this side's, and the other side's */
	uint64_t self, peer;
	struct identity *who; /* the identity that the other side has proved */
	uint64_t since;	      /* ns: when the handshake ended */
	/* keys of bulk: the one that this side seals with, and the one that it
	 * opens with */
	struct piece_key *bulk_out, *bulk_in;
	/* Control messages cannot be read: some client of the connection has
	 * ULRPC_FLAVOUR_PRIVACY, or the other side has sent such a message. */
	bool private;
};

/* What the keys are bound to: both sides have to name the same. */
struct sealed_between {
	uint8_t client_id[RPC_ID_SIZE], server_id[RPC_ID_SIZE];
	uint64_t client, session; /* the handles of both */
	uint32_t epoch;
};

/* Takes the keys from @h, which is done. @server: is this side the server?
 * NULL: no memory. */
struct sealed *sealed_new(const struct handshake *h,
			  const struct sealed_between *between, bool server,
			  uint64_t now);
/* Frees the keys. @sd may be NULL. */
void sealed_free(struct sealed *sd);
/* Called when probably nothing is sent or received for a while: frees what the
 * next message can make again (seal_rest()). */
void sealed_rest(struct sealed *sd);

/* Keys of earlier connections of a client to the same server, newest last: a
 * call may have bulk that was sealed before the client connected again. */
#define SEALED_PAST_MAX 16
struct sealed_past {
	struct piece_key *keys[SEALED_PAST_MAX];
	unsigned int n;
};

/* Keeps the key by which the bulk of @sd (NULL: nothing) is opened. */
void sealed_past_add(struct sealed_past *past, const struct sealed *sd);
void sealed_past_clear(struct sealed_past *past);
/* The key by which bulk of the connection of @epoch is opened: of @sd (may be
 * NULL), or an earlier one. NULL: there is none any more. Borrowed. */
struct piece_key *sealed_past_find(const struct sealed_past *past,
				   const struct sealed *sd, uint32_t epoch);
/* Describes the other side for statistics; free() frees it. @flavour: of calls.
 * NULL: no memory. */
struct stat_proof *sealed_proof(const struct sealed *sd,
				enum ulrpc_flavour flavour, uint64_t now);

/* Where a message goes, which its seal covers. */
struct sealed_to {
	unsigned int portal;
	uint64_t match;
	/* the header data that the message has without a seal */
	uint64_t hdr_data;
};

/* Makes the seal of the message in @iov, of @n fragments, which has to be sent
 * behind it, with the header data wire_hdr_sealed(). @out: where what nobody
 * can read goes, and is sent instead, if the message is to be private; it may
 * be where the message is if that is one fragment. NULL: the message is not
 * private. Returns 0, or -ENOMEM or -EIO: then what is in @out is nothing. */
int sealed_make(struct sealed *sd, const struct sealed_to *to,
		const struct iovec *iov, unsigned int n, uint64_t now,
		uint8_t head[SEAL_HEAD], uint8_t *out);

/* A message that was opened. */
struct opened {
	uint64_t hdr_data;
	uint8_t *payload; /* within the record */
	size_t length;
	bool private; /* it was encrypted */
};

/* Opens a record of @length bytes that has come with @ev. Returns 0 with @o
 * set; or -errno, which is counted: the record is forged, or a copy, or there
 * is no memory. */
int sealed_open(struct shard *s, struct sealed *sd,
		const struct ulnet_event *ev, void *record, size_t length,
		struct opened *o);

#endif
