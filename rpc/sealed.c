/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/sealed.h"

#include <errno.h>

#include "base/buf.h"
#include "rpc/keys.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"
#include "secure/handshake.h"
#include "secure/identity.h"

#define BETWEEN_SIZE (2 * RPC_ID_SIZE + 8 + 8 + 4)
#define PLACE_SIZE   16

static void between_put(const struct sealed_between *b,
			uint8_t out[BETWEEN_SIZE])
{
	memcpy(out, b->client_id, RPC_ID_SIZE);
	memcpy(out + RPC_ID_SIZE, b->server_id, RPC_ID_SIZE);
	store_le64(out + 2 * RPC_ID_SIZE, b->client);
	store_le64(out + 2 * RPC_ID_SIZE + 8, b->session);
	store_le32(out + 2 * RPC_ID_SIZE + 16, b->epoch);
}

static int bulk_keys_take(struct sealed *sd, const struct handshake *h,
			  const uint8_t context[BETWEEN_SIZE], uint32_t epoch,
			  bool server, uint64_t now)
{
	uint8_t to_server[SEAL_SECRET], to_client[SEAL_SECRET];
	enum seal_cipher cipher = handshake_cipher(h);
	int rc = handshake_secrets(h, HANDSHAKE_PIECES, context, BETWEEN_SIZE,
				   to_server, to_client);

	if (rc)
		return rc;
	sd->bulk_out = piece_key_new(cipher, server ? to_client : to_server,
				     epoch, now);
	sd->bulk_in = piece_key_new(cipher, server ? to_server : to_client,
				    epoch, now);
	explicit_bzero(to_server, sizeof(to_server));
	explicit_bzero(to_client, sizeof(to_client));
	return sd->bulk_out && sd->bulk_in ? 0 : -ENOMEM;
}

static int keys_take(struct shard *s, struct sealed *sd,
		     const struct handshake *h,
		     const struct sealed_between *between, bool server)
{
	uint8_t to_server[SEAL_SECRET], to_client[SEAL_SECRET];
	uint8_t context[BETWEEN_SIZE];
	enum seal_cipher cipher = handshake_cipher(h);
	uint64_t now = sd->since;
	int rc;

	between_put(between, context);
	rc = bulk_keys_take(sd, h, context, between->epoch, server, now);
	if (!rc)
		rc = handshake_secrets(h, HANDSHAKE_RECORDS, context,
				       sizeof(context), to_server, to_client);
	if (!rc)
		rc = seal_open(&sd->out, s->seal_pool, cipher,
			       server ? to_client : to_server, now);
	if (!rc)
		rc = unseal_open(&sd->in, s->seal_pool, cipher,
				 server ? to_server : to_client);
	explicit_bzero(to_server, sizeof(to_server));
	explicit_bzero(to_client, sizeof(to_client));
	return rc;
}

static void sealed_shard_free(struct shard *s)
{
	seal_pool_fini(s->seal_pool);
}

const struct rpc_part sealed_part = {
	RPC_PART_STATE(struct seal_pool, seal_pool),
	.shard_free = sealed_shard_free,
};

struct sealed *sealed_new(struct shard *s, const struct handshake *h,
			  const struct sealed_between *between, bool server)
{
	struct sealed *sd = calloc(1, sizeof(*sd));

	if (!sd)
		return NULL;
	sd->self = server ? between->session : between->client;
	sd->peer = server ? between->client : between->session;
	sd->who = identity_ref(handshake_peer(h));
	sd->since = shard_now(s);
	if (!keys_take(s, sd, h, between, server))
		return sd;
	sealed_free(sd);
	return NULL;
}

void sealed_free(struct sealed *sd)
{
	if (!sd)
		return;
	seal_close(&sd->out);
	unseal_close(&sd->in);
	piece_key_put(sd->bulk_out);
	piece_key_put(sd->bulk_in);
	identity_put(sd->who);
	free(sd);
}

/* ---- earlier connections ---- */

void sealed_past_add(struct sealed_past *past, const struct sealed *sd)
{
	if (!sd)
		return;
	if (past->n == SEALED_PAST_MAX) {
		piece_key_put(past->keys[0]);
		memmove(past->keys, past->keys + 1,
			--past->n * sizeof(past->keys[0]));
	}
	past->keys[past->n++] = piece_key_ref(sd->bulk_in);
}

void sealed_past_clear(struct sealed_past *past)
{
	while (past->n)
		piece_key_put(past->keys[--past->n]);
}

struct piece_key *sealed_past_find(const struct sealed_past *past,
				   const struct sealed *sd, uint32_t epoch)
{
	if (sd && piece_key_epoch(sd->bulk_in) == epoch)
		return sd->bulk_in;
	for (unsigned int i = past->n; i--;)
		if (piece_key_epoch(past->keys[i]) == epoch)
			return past->keys[i];
	return NULL;
}

/* ---- statistics ---- */

struct stat_proof *sealed_proof(const struct sealed *sd,
				enum ulrpc_flavour flavour, uint64_t now)
{
	static const char *const ciphers[] = {
		[SEAL_AES_128_GCM] = "AES-128-GCM",
		[SEAL_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
	};
	struct stat_proof *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	peer_tell(sd->who, flavour, &p->peer);
	p->cipher = ciphers[sd->out.cipher];
	p->until = sd->who->until;
	p->renewals = (uint64_t)sd->out.generation + sd->in.generation;
	p->age = now - sd->since;
	return p;
}

/* ---- messages ---- */

/* Writes what the seal covers beside the message: where the message goes. */
static void place_put(unsigned int portal, uint64_t match, uint64_t hdr_data,
		      uint8_t out[PLACE_SIZE])
{
	store_le64(out, match);
	store_le32(out + 8, (uint32_t)(hdr_data >> 32));
	store_le32(out + 12, portal);
}

int sealed_make(struct sealed *sd, const struct sealed_to *to,
		const struct iovec *iov, unsigned int n, uint64_t now,
		uint8_t head[SEAL_HEAD], uint8_t *out)
{
	uint8_t bound[PLACE_SIZE];
	const struct seal_place place = { sd->peer, bound, sizeof(bound) };

	place_put(to->portal, to->match, wire_hdr_sealed(to->hdr_data), bound);
	return seal_record(&sd->out, out ? SEAL_PRIVACY : SEAL_INTEGRITY,
			   &place, iov, n, now, head, out);
}

int sealed_open(struct shard *s, struct sealed *sd,
		const struct ulnet_event *ev, void *record, size_t length,
		struct opened *o)
{
	uint8_t bound[PLACE_SIZE];
	const struct seal_place place = { sd->self, bound, sizeof(bound) };
	enum seal_protection protection;
	int rc;

	place_put(ev->portal, ev->match_bits, ev->hdr_data, bound);
	rc = unseal_record(&sd->in, record, length, &place, &protection);
	if (rc) {
		stat_count(s, rc == -EALREADY ? RPC_STAT_seals_repeated
					      : RPC_STAT_seals_broken);
		return rc;
	}
	o->payload = (uint8_t *)record + SEAL_HEAD;
	o->length = length - SEAL_HEAD;
	o->private = protection == SEAL_PRIVACY;
	sd->private |= o->private;
	o->hdr_data = wire_hdr_opened(ev->hdr_data, o->payload, o->length);
	return 0;
}
