/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/herd_law.h"

#include "base/env.h"

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct herd_wave wave_of(uint64_t *at, unsigned int n)
{
	struct herd_wave w = { .n = n };
	unsigned int first = 0;

	qsort(at, n, sizeof(*at), by_time);
	for (unsigned int i = 0; i < n; i++) {
		if (at[i] / HERD_BIN != at[first] / HERD_BIN)
			first = i;
		w.peak = MAX(w.peak, i + 1 - first);
		w.mean += (double)at[i] / (double)NSEC_PER_SEC / n;
	}
	return w;
}

/* Returns when a client tries again whose attempt of @now has failed. */
static uint64_t herd_next(struct backoff *b, const struct herd_conf *conf,
			  uint64_t now, struct rng *rng)
{
	const struct backoff_failure f = { .now = now,
					   .least = conf->least,
					   .random = rng_next(rng) };
	uint64_t at = TIME_NEVER;

	(void)backoff_next(b, &conf->law, &f, &at);
	return at;
}

static uint64_t *times_new(unsigned int n)
{
	uint64_t *at = calloc(n, sizeof(*at));

	BUG_ON(!at);
	return at;
}

void herd_lose(const struct herd_conf *conf,
	       struct herd_wave waves[HERD_RETRIES + 1])
{
	uint64_t *at = times_new(conf->clients);
	uint64_t *sorted = times_new(conf->clients);
	struct rng rng;

	rng_seed(&rng, conf->seed);
	for (uint32_t n = 1; n <= HERD_RETRIES; n++) {
		for (unsigned int i = 0; i < conf->clients; i++) {
			struct backoff b = { n - 1, TIME_NEVER };

			at[i] = herd_next(&b, conf, at[i], &rng);
		}
		memcpy(sorted, at, conf->clients * sizeof(*at));
		waves[n] = wave_of(sorted, conf->clients);
	}
	free(sorted);
	free(at);
}

struct herd_wave herd_reconnect(const struct herd_conf *conf, uint64_t back)
{
	uint64_t *at = times_new(conf->clients);
	struct herd_wave wave;
	struct rng rng;

	rng_seed(&rng, conf->seed);
	for (unsigned int i = 0; i < conf->clients; i++) {
		struct backoff b;

		backoff_begin(&b, TIME_NEVER);
		do
			at[i] = herd_next(&b, conf, at[i], &rng);
		while (at[i] < back);
		at[i] -= back;
	}
	wave = wave_of(at, conf->clients);
	free(at);
	return wave;
}
