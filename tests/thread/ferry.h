/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated queue pairs for nodes with threads. Only one thread may use a
 * fabric (simqp.h). A ferry keeps a fabric and its simulated world under a
 * mutex, and has a thread that moves the world's clock on with the real one. It
 * is a backend (verbs.h) itself: any thread may call it, which takes the mutex,
 * and an event is posted to the loop of the CPT that it is for.
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
