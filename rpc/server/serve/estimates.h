/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long requests may take here, by method, from what they took lately
 * (rpc/estimate.h): the time in the queue and in the handler, without the time
 * for which rules held them back. Clients are told the longest of all methods
 * when they open the service, and with replies: they use it for calls of
 * methods that they have not called lately.
 *
 * Requests are observed by the run (rpc/run.h), so that one costs nothing here.
 * Owner: the CPT.
 */
#ifndef RPC_SERVER_ESTIMATES_H
#define RPC_SERVER_ESTIMATES_H

#include "rpc/server/serve/service.h"

struct run;

/* -ENOMEM. */
int estimates_init(struct service_cpt *sc) must_check;
void estimates_fini(struct service_cpt *sc);

/* Tells @sum what is known. -ENOMEM. */
int estimates_gauge(struct service_cpt *sc, struct stat_shard *sum);
/* runs.learn, of requests. */
void estimates_learn(struct shard *s, const struct run *run);

void estimates_renew(struct service_cpt *sc, uint64_t now);
/* us, of the longest method; 0: not known. */
static inline uint64_t estimates_told(struct service_cpt *sc, uint64_t now)
{
	if (unlikely(now >= sc->estimates_until))
		estimates_renew(sc, now);
	return sc->estimate;
}

#endif
