/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/bulks.h"

#include <errno.h>

#include "rpc/bulk/bulk.h"
#include "rpc/client/client.h"
#include "rpc/flavour.h"
#include "rpc/sealed.h"

/* ---- before it is offered ---- */

int bulks_claim(struct ulrpc_call *call, const struct ulrpc_call_conf *conf)
{
	for (unsigned int i = 0; i < conf->nbulks; i++) {
		int rc = bulk_prepare(conf->bulks[i], call->client->rpc);

		if (rc) {
			while (i--)
				(void)bulk_release(conf->bulks[i]);
			return rc;
		}
		call->bulks[i] = conf->bulks[i];
	}
	return 0;
}

void bulks_give_back(struct ulrpc_call *call)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		(void)bulk_release(call->bulks[i]);
}

bool bulks_sum(struct ulrpc_call *call, uint64_t left)
{
	/* Seals take the place of checksums. */
	if (call->client->least > ULRPC_FLAVOUR_AUTH)
		return true;
	for (unsigned int i = 0; i < call->nbulks; i++)
		if (!bulk_sum(call->bulks[i], &left))
			return false;
	return true;
}

int bulks_cover(struct ulrpc_call *call, uint64_t *left)
{
	const struct ulrpc_client *c = call->client;
	const struct sealed *sd = c->imp->sealed;
	struct bulk_cover how = {
		.key = sd ? sd->bulk_out : NULL,
		.protection = flavour_protection(c->flavour),
	};
	int all = 1;

	if (how.protection && !how.key)
		return -EAGAIN;
	for (unsigned int i = 0; i < call->nbulks; i++) {
		int rc;

		how.index = i;
		rc = bulk_cover(call->bulks[i], call->shard, &how, left);
		if (rc < 0)
			return rc;
		all = MIN(all, rc);
	}
	return all;
}

unsigned int bulks_sealed(const struct ulrpc_call *call)
{
	unsigned int n = 0;

	if (!flavour_protection(call->client->flavour))
		return 0;
	for (unsigned int i = 0; i < call->nbulks; i++)
		n += bulk_segments(call->bulks[i]);
	return n;
}

bool bulks_seal(struct ulrpc_call *call, uint64_t left)
{
	return call->client->fsm.state != CLIENT_OPEN ||
	       bulks_cover(call, &left) != 0;
}

/* ---- when the server has replied ---- */

bool bulks_detach(struct ulrpc_call *call)
{
	bool idle = true;

	for (unsigned int i = 0; i < call->nbulks; i++) {
		bulk_on_idle_cancel(call->bulks[i]); /* in the state FENCE */
		bulk_detach(call->bulks[i]);
		idle = idle && bulk_idle(call->bulks[i]);
	}
	return idle;
}

static struct piece_key *key_of_epoch(const void *arg, uint32_t epoch)
{
	const struct import *imp = arg;

	return sealed_past_find(&imp->past, imp->sealed, epoch);
}

int bulks_check(struct ulrpc_call *call, const struct wire_reply *r)
{
	const struct bulk_keys keys = { key_of_epoch, call->client->imp };
	struct wire_view view = r->bulks.view;
	struct wire_moved_in m;
	/* a bit for each bulk, by its index: @r has a checksum for it */
	uint32_t said = 0;

	for (unsigned int i = 0; i < r->bulks.n; i++) {
		int rc;

		if (!wire_moved_next(&view, &m) || m.index >= call->nbulks)
			return -EPROTO;
		rc = bulk_check(call->bulks[m.index], &m, &keys);
		if (rc)
			return rc;
		said |= UINT32_C(1) << m.index;
	}
	for (unsigned int i = 0; i < call->nbulks; i++)
		if (!(said & UINT32_C(1) << i) && bulk_unproven(call->bulks[i]))
			return -EBADMSG;
	return 0;
}

bool bulks_owe_open(const struct ulrpc_call *call)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		if (bulk_owes_open(call->bulks[i]))
			return true;
	return false;
}

struct ulrpc_bulk *bulks_busy(const struct ulrpc_call *call)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		if (!bulk_idle(call->bulks[i]))
			return call->bulks[i];
	return NULL;
}

struct ulrpc_bulk *bulks_fenced(const struct ulrpc_call *call)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		if (bulk_is_fenced(call->bulks[i]))
			return call->bulks[i];
	return NULL;
}

int bulks_open(struct ulrpc_call *call, uint64_t *left)
{
	int all = 1;

	for (unsigned int i = 0; i < call->nbulks; i++) {
		int rc = bulk_open(call->bulks[i], left);

		all = MIN(all, rc);
	}
	return bulks_busy(call) ? 0 : all;
}
