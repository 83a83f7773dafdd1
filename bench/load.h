/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load that every program put beside the others makes: requests of one
 * size, DEPTH of them under way, a new one as soon as one is answered. Here is
 * what they share: the command line, what is in requests and replies, and what
 * is printed. How bytes come to the other process is the program's. Whatever
 * fails ends the process with a message. For one thread on each side.
 *
 *	PROGRAM [--size BYTES] [--depth N] [--time SECONDS] [--poll | --block]
 *		[--bulk read | --bulk write]
 *
 *	--size	of a request and of its reply (64)
 *	--depth	requests under way (1)
 *	--time	how long to measure, after DUO_WARM_NS of warm-up (0.3)
 *	--poll	both processes spin (the default); --block: both wait
 *	--bulk	read: requests have LOAD_TOKEN bytes, and replies --size of
 *		them; write: the other way round
 *
 * prints these lines:
 *
 *	rate N		replies per second
 *	median N	us from a request to its reply
 *	p99 N		the same, of the slowest hundredth
 *	cpu N		us of processor time for each, of both processes
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "bench/duo.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOAD_TOKEN     16 /* bytes */
#define LOAD_DEPTH_MAX 65536

struct load_slot;

struct load {
	/* What is asked for. */
	bool block;
	size_t depth, request_size, reply_size; /* bytes */
	uint64_t ns;

	/* The client's: requests under way, of those that it has begun. */
	size_t under_way;

	/* The rest is load.c's. */
	pid_t server;
	unsigned char *requests, *replies; /* of each slot */
	struct load_slot *slots;
	struct duo_times *times;
	uint64_t begun, done;
	uint64_t now, since, until; /* ns; of the last reply, the phase */
	uint64_t cpu;		    /* ns */
	int phase;
};

/* Sets up @l, for the server that is forked then, too. */
void load_args(struct load *l, int argc, char **argv);

/* Runs server(), as duo_fork() does. The process ends if the server does. */
void load_fork(struct load *l, void (*server)(void *arg, int ready), void *arg);
/* When no request is under way any more: ends the server, and prints. */
void load_end(struct load *l);

/*
 * Client: begins a request of @slot, 0 to depth - 1. Returns its bytes,
 * request_size, which stay until it is answered.
 */
unsigned char *load_request(struct load *l, size_t slot);
/*
 * Client: a reply came. Returns the slot that is free now, for another
 * request; or -1: time is over.
 */
long load_replied(struct load *l, const void *reply, size_t size);

/*
 * Server: a request came. Returns what to answer, reply_size bytes, which stay
 * until the client has it.
 */
unsigned char *load_serve(struct load *l, const void *request, size_t size);

#ifdef __cplusplus
}
#endif

#endif
