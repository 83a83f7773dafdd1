/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/keys.h"

#include <errno.h>

#include "rpc/rpc.h"

/* To users, struct ulrpc_keys is opaque: it is a struct keys. */
static struct keys *keys_of(struct ulrpc_keys *keys)
{
	return (struct keys *)keys;
}

int ulrpc_keys_load(const struct ulrpc_keys_conf *conf,
		    struct ulrpc_keys **keys_p, char *why, size_t size)
{
	const struct keys_conf files = { .certificate = conf->certificate,
					 .key = conf->key,
					 .authority = conf->authority,
					 .revoked = conf->revoked,
					 .cluster = conf->cluster,
					 .munge_take = conf->munge_take,
					 .munge_show = conf->munge_show,
					 .munge_socket = conf->munge_socket };
	struct keys_error err = { "" };
	struct keys *keys;
	int rc = keys_load(&files, &keys, &err);

	if (!rc)
		*keys_p = (struct ulrpc_keys *)keys;
	else if (size)
		text_copy(why, size, err.text);
	return rc;
}

void ulrpc_keys_put(struct ulrpc_keys *keys)
{
	keys_put(keys_of(keys));
}

static void on_keys_work(struct ulnet_work *w)
{
	struct shard *s = container_of(w, struct shard, keys_work);
	struct keys *keys;

	/* Cleared before the keys are read: if they change after that, this
	 * work is posted again. */
	atomic_store(&s->keys_posted, false);
	keys = rpc_keys_get(s->rpc);
	s->rpc->server->on_keys(s, keys);
	s->rpc->client->on_keys(s, keys);
	keys_put(keys);
	shard_taken(s);
}

int ulrpc_use_keys(struct ulrpc *rpc, struct ulrpc_keys *keys)
{
	struct keys *before;

	if (!rpc_has_keys(rpc))
		return -ENOKEY;
	pthread_mutex_lock(&rpc->wait.lock);
	before = rpc->keys;
	rpc->keys = keys_ref(keys_of(keys));
	pthread_mutex_unlock(&rpc->wait.lock);
	keys_put(before);
	for (unsigned int i = 0; i < rpc->ncpts; i++) {
		struct shard *s = &rpc->shards[i];

		if (atomic_exchange(&s->keys_posted, true))
			continue;
		s->keys_work.fn = on_keys_work;
		shard_give(s, &s->keys_work);
	}
	return 0;
}

struct keys *rpc_keys_get(struct ulrpc *rpc)
{
	struct keys *keys;

	pthread_mutex_lock(&rpc->wait.lock);
	keys = rpc->keys ? keys_ref(rpc->keys) : NULL;
	pthread_mutex_unlock(&rpc->wait.lock);
	return keys;
}

bool rpc_has_keys(const struct ulrpc *rpc)
{
	return rpc->conf.keys != NULL;
}

enum ulrpc_peer_kind peer_kind(const struct identity *who)
{
	static const enum ulrpc_peer_kind kinds[] = {
		[IDENTITY_CERTIFICATE] = ULRPC_PEER_CERTIFICATE,
		[IDENTITY_CLUSTER_KEY] = ULRPC_PEER_CLUSTER,
		[IDENTITY_MUNGE] = ULRPC_PEER_MUNGE,
	};

	return who ? kinds[who->kind] : ULRPC_PEER_UNKNOWN;
}

const char *peer_kind_name(enum ulrpc_peer_kind kind)
{
	static const char *const names[] = {
		[ULRPC_PEER_UNKNOWN] = "unknown",
		[ULRPC_PEER_CERTIFICATE] = "certificate",
		[ULRPC_PEER_CLUSTER] = "cluster",
		[ULRPC_PEER_MUNGE] = "munge",
	};

	return names[kind];
}

void peer_tell(const struct identity *who, enum ulrpc_flavour flavour,
	       struct ulrpc_peer *peer)
{
	*peer = (struct ulrpc_peer){ .flavour = ULRPC_FLAVOUR_NONE };
	if (!who)
		return;
	peer->kind = peer_kind(who);
	peer->flavour = flavour;
	text_copy(peer->name, sizeof(peer->name), who->name);
	text_copy(peer->issuer, sizeof(peer->issuer), who->issuer);
	if (who->kind != IDENTITY_MUNGE)
		return;
	peer->uid = who->uid;
	peer->gid = who->gid;
	text_copy(peer->group, sizeof(peer->group), who->group);
}
