/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of the nodes of random clusters, which wear out soon. */
#ifndef TESTS_SIM_SIM_KEYS_H
#define TESTS_SIM_SIM_KEYS_H

#include <ulnet/keys.h>
#include <ulnet/sim.h>

struct ulrpc;

/* Returns a cluster's key, with which all connections of a run have keys; NULL:
 * this was built without TLS. */
struct ulrpc_keys *sim_keys_new(struct lnet_sim *sim);
/* From now on the process of @rpc renews the keys that it seals with after
 * 100 ms. Returns how many connections have renewed theirs. To be called
 * between turns. @rpc may be NULL. */
unsigned int sim_keys_wear(const struct ulrpc *rpc);

#endif
