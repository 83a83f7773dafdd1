/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated queue pairs for nodes with threads. The fabric (simqp.h) is one
 * thread's; a ferry keeps one of those, and its world, under a mutex, moves its
 * clock on with the real one, in a thread of its own, and is a backend
 * (verbs.h) itself: calls of any thread are made under the mutex, and events
 * are posted to the loop of the CPT whose they are.
 *
 * The mutex orders threads only where a device would: what the LND does between
 * its calls, it does without.
 */
#ifndef TESTS_THREAD_FERRY_H
#define TESTS_THREAD_FERRY_H

#include "lnd/o2iblnd/simqp/simqp.h"

struct ferry;

/* @conf: of the fabric; NULL: the defaults. Never returns NULL. */
struct ferry *ferry_new(const struct simqp_conf *conf);
/* To be called when all nodes are closed. Returns false if a port is still
 * open. */
bool ferry_free(struct ferry *f);
/* Returns the value for node_params.fabric. */
void *ferry_fabric(struct ferry *f);

/* Takes the mutex, on any thread that does not have it, and returns the fabric,
 * so that faults can be set, for example. */
struct simqp_fabric *ferry_take(struct ferry *f);
void ferry_give(struct ferry *f);

#endif
