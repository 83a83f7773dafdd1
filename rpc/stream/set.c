/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stream/set.h"

#include <string.h>

#include "rpc/stream/called.h"
#include "rpc/stream/serving.h"
#include "rpc/stream/streams.h"

/* ---- services ---- */

/* Returns the service @name, locked; NULL: no such one has streams. The caller
 * holds the node's lock. */
static struct ulrpc_stream_service *service_enter(struct streams_node *n,
						  const char *name)
{
	struct ulrpc_stream_service *svc;

	list_for_each_entry (svc, &n->services, of_node)
		if (!strcmp(svc->name, name)) {
			pthread_mutex_lock(&svc->lock);
			return svc;
		}
	return NULL;
}

void streams_tell_service(struct shard *s, struct service_set *set)
{
	struct streams_node *n = s->rpc->streams;
	struct ulrpc_stream_service *svc;
	uint64_t now[SERVICE_SET_ITEMS];

	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	svc = service_enter(n, set->service);
	set->has_streams = svc;
	if (svc) {
		now[SERVICE_SET_window_messages] = svc->grant.messages;
		now[SERVICE_SET_window_bytes] = svc->grant.bytes;
		now[SERVICE_SET_streams_max] = svc->quotas.max;
		pthread_mutex_unlock(&svc->lock);
	}
	pthread_mutex_unlock(&n->lock);
	for (unsigned int i = SERVICE_SET_window_messages;
	     i <= SERVICE_SET_streams_max && svc; i++)
		if (!(set->given & 1u << i))
			set->values[i] = now[i];
}

void streams_set_service(struct shard *s, const struct service_set *set)
{
	struct streams_node *n = s->rpc->streams;
	struct ulrpc_stream_service *svc;

	if (!n || !set->has_streams)
		return;
	pthread_mutex_lock(&n->lock);
	svc = service_enter(n, set->service);
	if (svc) {
		svc->grant.messages = set->values[SERVICE_SET_window_messages];
		svc->grant.bytes = set->values[SERVICE_SET_window_bytes];
		svc->quotas.max =
			(uint32_t)set->values[SERVICE_SET_streams_max];
		pthread_mutex_unlock(&svc->lock);
	}
	pthread_mutex_unlock(&n->lock);
}

void streams_served(struct shard *s, rpc_streams_fn fn, void *arg)
{
	struct streams_node *n = s->rpc->streams;
	struct ulrpc_stream_service *svc;

	/* They are counted for all CPTs together. */
	if (!n || s->cpt)
		return;
	pthread_mutex_lock(&n->lock);
	list_for_each_entry (svc, &n->services, of_node) {
		pthread_mutex_lock(&svc->lock);
		fn(arg, svc->name, svc->nstreams);
		pthread_mutex_unlock(&svc->lock);
	}
	pthread_mutex_unlock(&n->lock);
}

/* ---- clients ---- */

static void caller_change(struct ulrpc_streams *st,
			  const struct client_set *set)
{
	const uint64_t *v = set->values;

	if (client_set_has(set, CLIENT_SET_window_messages))
		atomic_store(&st->window_messages,
			     (uint32_t)v[CLIENT_SET_window_messages]);
	if (client_set_has(set, CLIENT_SET_window_bytes))
		atomic_store(&st->window_bytes,
			     (uint32_t)v[CLIENT_SET_window_bytes]);
	if (client_set_has(set, CLIENT_SET_patience))
		atomic_store(&st->patience,
			     patience_limit(v[CLIENT_SET_patience]));
}

static void caller_tell(struct ulrpc_streams *st, struct client_set *set)
{
	const uint64_t now[CLIENT_SET_ITEMS] = {
		[CLIENT_SET_window_messages] =
			atomic_load(&st->window_messages),
		[CLIENT_SET_window_bytes] = atomic_load(&st->window_bytes),
		[CLIENT_SET_patience] = atomic_load(&st->patience),
	};

	set->streams++;
	client_set_tell(set, now);
}

void streams_set_clients(struct shard *s, struct client_set *set)
{
	struct streams_node *n = s->rpc->streams;
	struct ulrpc_streams *st;

	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	list_for_each_entry (st, &n->callers, of_node) {
		if (st->shard != s || strcmp(st->service, set->service))
			continue;
		caller_change(st, set);
		caller_tell(st, set);
	}
	pthread_mutex_unlock(&n->lock);
}

void streams_of_clients(struct shard *s, rpc_streams_fn fn, void *arg)
{
	struct streams_node *n = s->rpc->streams;
	const struct ulrpc_streams *st;

	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	list_for_each_entry (st, &n->callers, of_node)
		if (st->shard == s)
			fn(arg, st->service, atomic_load(&st->open));
	pthread_mutex_unlock(&n->lock);
}
