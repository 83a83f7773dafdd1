/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a call lends to one server after another. When the call leaves a server,
 * LNet may still be busy with its memory, for as long as it takes until LNet
 * gives up a dead peer. A source is then lent to the next server all the same:
 * what is still sent to the old one harms nobody. A sink has to be waited for,
 * because the old server could write to it. For the same reason two servers may
 * read a source at a time, while a call is hedged, and none shares a sink.
 *
 * So the call has a claim on the user's bulks until its end, and each attempt
 * lends twins of them.
 */
#include "rpc/bulk/bulk.h"
#include "rpc/replicas/call.h"

int replicas_bulks_take(struct ulrpc_replicas_call *call,
			const struct ulrpc_call_conf *conf)
{
	for (unsigned int i = 0; i < conf->nbulks; i++) {
		int rc = bulk_prepare(conf->bulks[i], call->all->rpc);

		if (rc) {
			(void)replicas_bulks_release(call);
			return rc;
		}
		call->bulks[call->nbulks++] = conf->bulks[i];
	}
	return 0;
}

bool replicas_bulks_are_sources(const struct ulrpc_replicas_call *call)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		if (bulk_is_sink(call->bulks[i]))
			return false;
	return true;
}

bool replicas_bulks_release(struct ulrpc_replicas_call *call)
{
	bool unused = true;

	while (call->nbulks) {
		struct ulrpc_bulk *b = call->bulks[--call->nbulks];

		unused = unused && !bulk_has_twins(b);
		(void)bulk_release(b);
	}
	return unused;
}

int replicas_bulks_lend(const struct ulrpc_replicas_call *call,
			struct ulrpc_bulk **lent)
{
	for (unsigned int i = 0; i < call->nbulks; i++) {
		int rc = bulk_twin(call->bulks[i], &lent[i]);

		if (rc) {
			replicas_bulks_lent(lent, i);
			return rc;
		}
	}
	return 0;
}

void replicas_bulks_lent(struct ulrpc_bulk *const *lent, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		ulrpc_bulk_close(lent[i], NULL, NULL);
}
