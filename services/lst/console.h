/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The console's side of the self-test: asks many nodes at once, and waits. For
 * a program with a node of LNET_RUN_POLL, on the thread that drives it.
 */
#ifndef SERVICES_LST_CONSOLE_H
#define SERVICES_LST_CONSOLE_H

#include "call.h"

/* A question to one node. */
struct lst_ask {
	struct ulnet_id to;
	struct lst_msg msg;   /* the request; ids are filled in */
	struct lst_bulk bulk; /* op 0: none */
	/* The answer: 0, or a negative errno: there is none. */
	int status;
	struct lst_msg reply;
	/* Its own: */
	struct lst_call call;
	unsigned int *pending;
};

/* Returns when each of the @n has its answer, or @seconds are over. */
void lst_ask_all(struct lst_calls *calls, struct lst_ask *asks, unsigned int n,
		 uint32_t seconds);
/* Lets time pass; the node goes on. */
void lst_ask_wait(struct lst_calls *calls, uint64_t us);

#endif
