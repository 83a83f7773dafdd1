/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load that every program makes whose numbers are compared: requests of one
 * size, DEPTH of them under way, a new one as soon as one is answered. The
 * programs share the command line, what is in requests and replies, and what is
 * printed; how bytes get to the other process is up to each program. Whatever
 * fails ends the process with a message. For one thread on each side.
 *
 *	PROGRAM [--size BYTES] [--depth N] [--time SECONDS] [--poll | --block]
 *		[--bulk read | --bulk write] [--keys DIR] [--flavour NAME]
 *		[--shm]
 *
 *	--size	of a request and of its reply (64)
 *	--depth	requests under way (1)
 *	--time	how long to measure, after DUO_WARM_NS of warm-up (0.3)
 *	--poll	both processes spin (the default); --block: both wait
 *	--bulk	read: requests have LOAD_TOKEN bytes, and replies --size of
 *		them; write: the other way round
 *	--keys	both sides prove who they are, by a.crt and a.key and
 *		authority.crt of this folder; for programs that can
 *	--flavour	that both sides ask for; for bench/rpc
 *	--shm	both processes talk through shared memory, not over TCP; for
 *		programs that can
 *
 * prints these lines:
 *
 *	rate N		replies per second
 *	median N	us from a request to its reply
 *	p99 N		the same, of the slowest hundredth
 *	cpu N		us of processor time for a request, of both processes
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
	/* what the command line asks for */
	bool block, shm;
	size_t depth, request_size, reply_size; /* bytes */
	uint64_t ns;
	const char *keys, *flavour; /* NULL: none */

	/* client: requests under way */
	size_t under_way;

	/* private to load.c */
	pid_t server;
	/* request_size, or reply_size, bytes for each slot */
	unsigned char *requests, *replies;
	struct load_slot *slots;
	struct duo_times *times;
	uint64_t begun, done;
	/* ns: of the last reply; begin and end of the phase */
	uint64_t now, since, until;
	uint64_t cpu; /* ns of processor time */
	int phase;
};

/* Sets up @l from the command line, before the server is forked. */
void load_args(struct load *l, int argc, char **argv);

/* Runs server() in a process of its own, as duo_fork() does. If the server
 * ends, so does the client. */
void load_fork(struct load *l, void (*server)(void *arg, int ready), void *arg);
/* Ends the server, and prints the results. No request may be under way. */
void load_end(struct load *l);

/*
 * Client: begins a request in @slot, 0 to depth - 1. Returns its request_size
 * bytes, which stay until it is answered.
 */
unsigned char *load_request(struct load *l, size_t slot);
/*
 * Client: takes a reply. Returns the slot that is free for another request, or
 * -1 when the time is over.
 */
long load_replied(struct load *l, const void *reply, size_t size);

/*
 * Server: takes a request. Returns the reply_size bytes to answer with, which
 * stay until the client has them.
 */
unsigned char *load_serve(struct load *l, const void *request, size_t size);

#ifdef __cplusplus
}
#endif

#endif
