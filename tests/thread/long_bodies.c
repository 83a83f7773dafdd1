/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and replies with bodies of many pieces, over TCP between two nodes:
 * 20 MiB, and with ULNET_LONG up to more than 2 GiB. All bytes are looked at.
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
#include "ulnet/service.h"

#define PAGE	 4096u
#define PERIOD	 ((size_t)4099 * PAGE)
#define MIB	 (UINT32_C(1) << 20)
#define DEADLINE (UINT64_C(1000) * 1000000) /* us */

/* bytes of the bodies: with ULNET_LONG all, otherwise the first */
static const uint32_t lengths[] = { 20 * MIB + 1, 600 * MIB + 5, 1536 * MIB,
				    2048 * MIB + 4097 };

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
	if (!check(e->outcome.cause == ULRPC_CAUSE_OK))
		printf("%s: %s: %s\n", method,
		       ulrpc_cause_name(e->outcome.cause), e->outcome.text);
	sem_destroy(&e->there);
}

static void both_ways(struct ulrpc_client *client, uint32_t length)
{
	struct end taken = { .n = 0 }, given = { .n = length };

	call(client, "take", pattern, length, &taken);
	check(taken.n == length);
	call(client, "give", &length, sizeof(length), &given);
	check(given.right);
	printf("%u bytes: request %.1f s, reply %.1f s\n", length,
	       (double)taken.outcome.total / 1e6,
	       (double)given.outcome.total / 1e6);
}

/* ---- nodes ---- */

static struct ulrpc *node_open(const char *nids, uint16_t port)
{
	struct ulnet_conf conf;
	struct lnet *node;
	struct ulrpc *rpc;

	lnet_conf_init(&conf);
	conf.nids = nids;
	conf.port = port;
	conf.accept = LNET_ACCEPT_ALL;
	if (!check(lnet_open(&conf, &node) == 0) ||
	    !check(ulrpc_open(node, NULL, &rpc) == 0))
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

int main(void)
{
	unsigned int n = getenv("ULNET_LONG") ? ARRAY_SIZE(lengths) : 1;
	uint32_t left_out = 0;
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;
	struct ulrpc *here, *there;
	uint16_t port = free_port();

	if (!port) {
		printf("no TCP on the loopback interface\n");
		return 77;
	}
	if (!check(pattern_map(lengths[n - 1])))
		return 1;
	there = node_open("127.0.0.2@tcp", port);
	here = node_open("127.0.0.3@tcp", port);
	service_start(there);
	ulrpc_client_conf_init(&conf);
	conf.target = "127.0.0.2@tcp";
	conf.service = "bodies";
	if (!check(ulrpc_client_open(here, &conf, &client) == 0))
		return 1;
	for (unsigned int i = 0; i < n; i++) {
		if (has_room(lengths[i]))
			both_ways(client, lengths[i]);
		else
			left_out = lengths[i];
		fflush(stdout);
	}
	ulrpc_client_close(client);
	lnet_close(ulrpc_node(here));
	lnet_close(ulrpc_node(there));
	if (atomic_load(&failures))
		return 1;
	if (left_out)
		printf("%u bytes: not enough memory here\n", left_out);
	return left_out ? 77 : 0;
}
