/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and replies with bodies of many pieces, over TCP between two nodes,
 * without seals and with them: 20 MiB, and with ULNET_LONG up to more than
 * 2 GiB. All bytes are looked at.
 *
 * The bodies are one memory of PERIOD bytes, mapped again and again. PERIOD is
 * a prime number of pages: no two places of a body that are a number of
 * messages apart look the same.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "tests/thread/keys.h"
#include "ulnet/service.h"

#define PAGE	 4096u
#define PERIOD	 ((size_t)4099 * PAGE)
#define MIB	 (UINT32_C(1) << 20)
#define DEADLINE (UINT64_C(1000) * 1000000) /* us */

/* bytes of the bodies: with ULNET_LONG all, otherwise the first */
static const uint32_t lengths[] = { 20 * MIB + 1, 600 * MIB + 5, 1536 * MIB,
				    2048 * MIB + 4097 };

/* bytes of the longest request with seals (ulrpc_call(3)) */
#define SEALED_MAX (UINT32_C(1) << 30)

static const uint8_t *pattern; /* as long as the longest body */

/* ---- bodies ---- */

static size_t whole(size_t length)
{
	return (length + PERIOD - 1) / PERIOD * PERIOD;
}

/* Maps the pattern for bodies of up to @length bytes. */
static bool pattern_map(size_t length)
{
	int fd = memfd_create("bodies", 0);
	uint32_t value = 1;
	uint8_t *all, *one;

	if (fd < 0 || ftruncate(fd, PERIOD))
		return false;
	all = mmap(NULL, whole(length), PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return false;
	for (size_t at = 0; at < whole(length); at += PERIOD)
		if (mmap(all + at, PERIOD, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			return false;
	one = all;
	for (size_t i = 0; i < PERIOD; i += sizeof(value)) {
		value = value * 1664525 + 1013904223;
		memcpy(one + i, &value, sizeof(value));
	}
	close(fd);
	pattern = all;
	return true;
}

static bool is_pattern(const void *body, size_t length)
{
	return !memcmp(body, pattern, length);
}

/* ---- the service ---- */

/* Replies with as many bytes as the request says. */
static void give(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	uint32_t n = 0;

	(void)arg;
	if (check(length == sizeof(n)))
		memcpy(&n, body, sizeof(n));
	ulrpc_reply(r, pattern, n);
}

/* Replies with the request's length, if its bytes are right. */
static void take(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	const uint32_t n = is_pattern(body, length) ? (uint32_t)length : 0;

	(void)arg;
	ulrpc_reply(r, &n, sizeof(n));
}

static void service_start(struct ulrpc *rpc)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "give", .handler = give },
		{ .name = "take", .handler = take },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "bodies";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.request_limit = ULRPC_LENT_MAX;
	conf.reply_limit = ULRPC_REPLY_MAX;
	conf.queue_bytes_max = UINT64_C(8) << 30;
	check(ulrpc_service_start(rpc, &conf, &service) == 0);
}

/* ---- the client ---- */

struct end {
	sem_t there;
	uint32_t n; /* bytes that are to come, or 0: a number is to come */
	struct ulrpc_outcome outcome;
	bool right;
};

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct end *e = arg;

	e->outcome = *o;
	if (e->n)
		e->right = length == e->n && is_pattern(reply, length);
	else if (length == sizeof(e->n))
		memcpy(&e->n, reply, sizeof(e->n));
	sem_post(&e->there);
}

static void call(struct ulrpc_client *client, const char *method,
		 const void *body, size_t length, struct end *e)
{
	const struct ulrpc_call_conf conf = { .deadline = DEADLINE };

	sem_init(&e->there, 0, 0);
	if (!check(ulrpc_call(client, ulrpc_method(method), body, length, &conf,
			      on_end, e, NULL) == 0))
		return;
	while (sem_wait(&e->there))
		;
	sem_destroy(&e->there);
}

static bool is_ok(const struct end *e)
{
	if (e->outcome.cause != ULRPC_CAUSE_OK)
		printf("%s: %s\n", ulrpc_cause_name(e->outcome.cause),
		       e->outcome.text);
	return e->outcome.cause == ULRPC_CAUSE_OK;
}

/* @most: bytes of the longest request: what is longer is refused. */
static void both_ways(struct ulrpc_client *client, uint32_t length,
		      uint32_t most)
{
	struct end taken = { .n = 0 }, given = { .n = length };

	call(client, "take", pattern, length, &taken);
	if (length <= most)
		check(is_ok(&taken) && taken.n == length);
	else
		check(taken.outcome.cause == ULRPC_CAUSE_BAD_REQUEST &&
		      taken.outcome.execution == ULRPC_NOT_EXECUTED);
	call(client, "give", &length, sizeof(length), &given);
	check(is_ok(&given) && given.right);
	printf("%u bytes: request %.1f s, reply %.1f s\n", length,
	       (double)taken.outcome.total / 1e6,
	       (double)given.outcome.total / 1e6);
}

/* ---- nodes ---- */

static struct ulrpc *node_open(const char *nids, uint16_t port,
			       struct ulrpc_keys *keys)
{
	struct ulrpc_conf rconf;
	struct ulnet_conf conf;
	struct lnet *node;
	struct ulrpc *rpc;

	lnet_conf_init(&conf);
	conf.nids = nids;
	conf.port = port;
	conf.accept = LNET_ACCEPT_ALL;
	ulrpc_conf_init(&rconf);
	rconf.keys = keys;
	if (!check(lnet_open(&conf, &node) == 0) ||
	    !check(ulrpc_open(node, &rconf, &rpc) == 0))
		exit(1);
	return rpc;
}

/* Is there as much memory as a body of @length bytes takes? The caller's copy,
 * and the service's, and as much again for others. */
static bool has_room(uint32_t length)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024 >= 4ull * length;
}

/* Returns the longest length of the first @n for which there was no memory; 0:
 * there was enough. */
static uint32_t call_all(struct ulrpc_client *client, unsigned int n,
			 uint32_t most)
{
	uint32_t left_out = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (has_room(lengths[i]))
			both_ways(client, lengths[i], most);
		else
			left_out = lengths[i];
		fflush(stdout);
	}
	return left_out;
}

/* Calls from one node to another. @keys: NULL: without seals. Returns what
 * call_all() does. */
static uint32_t run(unsigned int n, uint16_t port, struct ulrpc_keys *keys)
{
	struct ulrpc *there = node_open("127.0.0.2@tcp", port, keys);
	struct ulrpc *here = node_open("127.0.0.3@tcp", port, keys);
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;
	uint32_t left_out;

	service_start(there);
	ulrpc_client_conf_init(&conf);
	conf.target = "127.0.0.2@tcp";
	conf.service = "bodies";
	conf.flavour = keys ? ULRPC_FLAVOUR_PRIVACY : ULRPC_FLAVOUR_NONE;
	if (!check(ulrpc_client_open(here, &conf, &client) == 0))
		exit(1);
	left_out = call_all(client, n, keys ? SEALED_MAX : UINT32_MAX);
	ulrpc_client_close(client);
	lnet_close(ulrpc_node(here));
	lnet_close(ulrpc_node(there));
	return left_out;
}

int main(void)
{
	unsigned int n = getenv("ULNET_LONG") ? ARRAY_SIZE(lengths) : 1;
	struct ulrpc_keys *keys = cluster_keys();
	uint16_t port = free_port();
	uint32_t left_out, sealed_out = 0;

	if (!port) {
		printf("no TCP on the loopback interface\n");
		return 77;
	}
	if (!check(pattern_map(lengths[n - 1])))
		return 1;
	left_out = run(n, port, NULL);
	if (keys) {
		printf("with seals:\n");
		sealed_out = run(n, port, keys);
		left_out = MAX(left_out, sealed_out);
		ulrpc_keys_put(keys);
	}
	if (atomic_load(&failures))
		return 1;
	if (left_out)
		printf("%u bytes: not enough memory here\n", left_out);
	return left_out ? 77 : 0;
}
