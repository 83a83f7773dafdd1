/* SPDX-License-Identifier: BSD-3-Clause */
/* How each back-off policy spreads the retries of many clients that fail at the
 * same moment. */
#include <criterion/criterion.h>
#include "bench/herd_law.h"

#define CLIENTS 10000
#define SEEDS	20

static struct herd_conf conf_of(enum backoff_policy policy, uint64_t seed)
{
	return (struct herd_conf){
		.law = { .policy = policy,
			 .max = BACKOFF_NO_MAX,
			 .base = (policy == BACKOFF_MAD ? 511 : 500) *
				 NSEC_PER_MSEC,
			 .cap = 30 * NSEC_PER_SEC },
		.clients = CLIENTS,
		.least = NSEC_PER_SEC,
		.seed = seed,
	};
}

/* Does @is differ from @wanted by at most @per_cent of it? */
static bool is_near(double is, double wanted, double per_cent)
{
	return is >= wanted * (1 - per_cent / 100) &&
	       is <= wanted * (1 + per_cent / 100);
}

Test(herd, full)
{
	static const unsigned int peak[] = { 0, 260, 150, 90, 55, 35, 20 };
	static const double mean[] = { 0,     1.25,  2.75,  4.75, 7.75,
				       12.75, 21.75, 37.75, 53.75 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct herd_conf conf = conf_of(BACKOFF_FULL, seed);
		struct herd_wave waves[HERD_RETRIES + 1];

		herd_lose(&conf, waves);
		for (uint32_t n = 1; n < ARRAY_SIZE(peak); n++)
			cr_expect_leq(waves[n].peak, peak[n], "%u, seed %lu", n,
				      seed);
		for (uint32_t n = 2; n < ARRAY_SIZE(peak); n++)
			cr_expect_lt(waves[n].peak, waves[n - 1].peak);
		for (uint32_t n = 1; n <= HERD_RETRIES; n++)
			cr_expect(is_near(waves[n].mean, mean[n], 2), "%u", n);
	}
}

/* Half of the window is not used, so peaks are twice as high. */
Test(herd, equal)
{
	struct herd_conf conf = conf_of(BACKOFF_EQUAL, 1);
	struct herd_wave waves[HERD_RETRIES + 1];

	herd_lose(&conf, waves);
	cr_expect_leq(waves[1].peak, 520);
	cr_expect_gt(waves[1].peak, 300);
	for (uint32_t n = 2; n <= 6; n++)
		cr_expect_lt(waves[n].peak, waves[n - 1].peak);
}

/* First retries come all at once, and later ones are not spread well. */
Test(herd, mad)
{
	static const double mean[] = { 0, 1.0, 2.26, 4.0, 6.8, 11.6, 20.6 };
	struct herd_conf conf = conf_of(BACKOFF_MAD, 1);
	struct herd_wave waves[HERD_RETRIES + 1];

	herd_lose(&conf, waves);
	cr_expect_eq(waves[1].peak, CLIENTS);
	for (uint32_t n = 2; n <= HERD_RETRIES; n++)
		cr_expect(waves[n].peak > 90 && waves[n].peak < 290, "%u: %u",
			  n, waves[n].peak);
	for (uint32_t n = 1; n < ARRAY_SIZE(mean); n++)
		cr_expect(is_near(waves[n].mean, mean[n], 2), "%u: %g", n,
			  waves[n].mean);
}

Test(herd, none)
{
	struct herd_conf conf = conf_of(BACKOFF_NONE, 1);
	struct herd_wave waves[HERD_RETRIES + 1];

	herd_lose(&conf, waves);
	for (uint32_t n = 1; n <= HERD_RETRIES; n++) {
		cr_expect_eq(waves[n].peak, CLIENTS);
		cr_expect(is_near(waves[n].mean, n, 0.001));
	}
}

/* With a window of a second, all clients come back within a second. */
Test(herd, reconnecting)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct herd_conf conf = conf_of(BACKOFF_FULL, seed);
		struct herd_wave wave;

		conf.law.base = conf.law.cap = NSEC_PER_SEC;
		conf.least = 0;
		wave = herd_reconnect(&conf, 20 * NSEC_PER_SEC);
		cr_expect_eq(wave.n, CLIENTS);
		cr_expect_leq(wave.peak, 260);
		cr_expect(is_near(wave.mean, 1.0 / 3, 5), "%g", wave.mean);
	}
}
