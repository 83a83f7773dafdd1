/* SPDX-License-Identifier: BSD-3-Clause */
/* What the topics share: tables of wrong numbers, and random bytes. */
#include "tests/lnd/hostile.h"

#include <time.h>
#include <unistd.h>

void say_which(struct fx *fx, unsigned int failures_before, const char *name)
{
	if (atomic_load(&fx->failures) != failures_before)
		printf("  with: %s\n", name);
}

void each_patch(struct fx *fx, struct raw_peer *s, const struct patch *list,
		unsigned int n, patch_fn *try)
{
	for (unsigned int i = 0; i < n; i++)
		for (int swap = 0; swap < 2; swap++) {
			unsigned int before = fx->failures;

			s->swap = swap;
			try(fx, s, &list[i]);
			say_which(fx, before, list[i].name);
		}
}

void say_slowly(int fd, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		say(fd, bytes + i, 1);
		usleep(100);
	}
}

/* ---- chance ---- */

uint32_t hostile_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x >> 32);
}

void fill_randomly(uint64_t *state, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)hostile_random(state);
}

void turn_bits(uint64_t *state, uint8_t *bytes, size_t n, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		size_t at = hostile_random(state) % n;

		bytes[at] ^= 1u << hostile_random(state) % 8;
	}
}

static uint64_t some_seed(void)
{
	const char *text = getenv("HOSTILE_SEED");
	struct timespec ts;

	if (text)
		return strtoull(text, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec << 20 ^ (uint64_t)ts.tv_nsec;
}

uint64_t each_random(struct fx *fx, struct raw_peer *s, unsigned int rounds,
		     random_fn *try)
{
	uint64_t seed = some_seed(), state = seed;

	for (unsigned int k = 0; k < rounds; k++)
		if (!try(fx, s, k, &state))
			break;
	return seed;
}

void say_seed(struct fx *fx, uint64_t seed)
{
	if (atomic_load(&fx->failures))
		printf("  again with: HOSTILE_SEED=%llu\n",
		       (unsigned long long)seed);
}
