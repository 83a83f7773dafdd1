/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints tables of how clients that fail at the same moment come back to their
 * server.
 *
 *	herd [CLIENTS]
 *
 * CLIENTS: 10,000 by default.
 */
#include <stdio.h>
#include <stdlib.h>
#include "bench/herd_law.h"

#define SEED 1
/* when the loss of a message is noticed */
#define LOSS_TIMEOUT NSEC_PER_SEC
#define LOSS_CAP     (30 * NSEC_PER_SEC)
/* Attempts to connect are spread over this much time for each client of the
 * server. */
#define CONNECT_EACH (100 * NSEC_PER_USEC)
#define CONNECT_MAX  NSEC_PER_SEC
#define AWAY	     (20 * NSEC_PER_SEC)

static const enum backoff_policy shown[] = { BACKOFF_NONE, BACKOFF_MAD,
					     BACKOFF_EQUAL, BACKOFF_FULL };

static void loss(unsigned int clients)
{
	struct herd_wave waves[ARRAY_SIZE(shown)][HERD_RETRIES + 1];

	for (unsigned int i = 0; i < ARRAY_SIZE(shown); i++) {
		bool mad = shown[i] == BACKOFF_MAD;
		const struct herd_conf conf = {
			.law = { .policy = shown[i],
				 .max = BACKOFF_NO_MAX,
				 .base = (mad ? 511 : 500) * NSEC_PER_MSEC,
				 .cap = LOSS_CAP },
			.clients = clients,
			.least = LOSS_TIMEOUT,
			.seed = SEED,
		};

		herd_lose(&conf, waves[i]);
	}
	printf("| retry |");
	for (unsigned int i = 0; i < ARRAY_SIZE(shown); i++)
		printf(" %s, peak | at, s |", backoff_names[shown[i]]);
	printf("\n| --- |");
	for (unsigned int i = 0; i < ARRAY_SIZE(shown); i++)
		printf(" --- | --- |");
	for (unsigned int n = 1; n <= HERD_RETRIES; n++) {
		printf("\n| %u |", n);
		for (unsigned int i = 0; i < ARRAY_SIZE(shown); i++)
			printf(" %u | %.1f |", waves[i][n].peak,
			       waves[i][n].mean);
	}
	printf("\n");
}

static void restart(unsigned int clients)
{
	uint64_t spread = MIN(clients * CONNECT_EACH, CONNECT_MAX);

	printf("| connecting | peak | on average after, s |\n"
	       "| --- | --- | --- |\n");
	for (unsigned int i = 0; i < ARRAY_SIZE(shown); i++) {
		bool full =
			shown[i] == BACKOFF_FULL || shown[i] == BACKOFF_EQUAL;
		const struct herd_conf conf = {
			.law = { .policy = shown[i],
				 .max = BACKOFF_NO_MAX,
				 .base = spread,
				 .cap = spread },
			.clients = clients,
			/* Clients would not wait by the other policies. */
			.least = full ? 0 : spread,
			.seed = SEED,
		};
		struct herd_wave w = herd_reconnect(&conf, AWAY);

		printf("| %s | %u | %.2f |\n", backoff_names[shown[i]], w.peak,
		       w.mean);
	}
}

int main(int argc, char **argv)
{
	unsigned long clients = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;

	if (argc > 2 || !clients || clients > UINT32_MAX) {
		fprintf(stderr, "usage: herd [CLIENTS]\n");
		return 2;
	}
	loss((unsigned int)clients);
	printf("\n");
	restart((unsigned int)clients);
	return 0;
}
