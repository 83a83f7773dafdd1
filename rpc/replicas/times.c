/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/replicas/times.h"

#include <stdlib.h>

/* Times are counted in buckets: four for each doubling, up to 2^31 us. */
#define STEPS	4u
#define BUCKETS (32u * STEPS)
/* After this many answers all counts are halved, so that old times fade. */
#define HALVE_AFTER 1000u
/* @most is computed anew after this many answers. */
#define LOOK_AFTER 16u
/* Each of the last answers counts for such a part of the usual time. */
#define USUAL_SAMPLES 16u

struct times_method {
	struct list link;
	uint32_t method;
	uint32_t n; /* sum of @counts */
	uint32_t counts[BUCKETS];
	uint64_t usual;	      /* ns: what times_usual() returns */
	unsigned int samples; /* of @usual: at most USUAL_SAMPLES */
	unsigned int unseen; /* answers since @most was computed */
	uint64_t most;	     /* ns: what times_most() returns */
	unsigned int hedges; /* see times_hedges() */
};

static unsigned int bucket_of(uint64_t us)
{
	unsigned int log;

	us = MIN(MAX(us, STEPS), (uint64_t)INT32_MAX);
	log = 63 - (unsigned int)__builtin_clzll(us);
	return log * STEPS + (unsigned int)(us >> (log - 2)) % STEPS;
}

/* Returns the time, in ns, that is above all times in @bucket. */
static uint64_t bucket_end(unsigned int bucket)
{
	unsigned int log = bucket / STEPS;

	return (UINT64_C(5) + bucket % STEPS) * (UINT64_C(1) << log) / STEPS *
	       NSEC_PER_USEC;
}

static struct times_method *times_find(const struct times *t, uint32_t method)
{
	struct times_method *m;

	list_for_each_entry (m, &t->methods, link)
		if (m->method == method)
			return m;
	return NULL;
}

static struct times_method *times_get(struct times *t, uint32_t method)
{
	struct times_method *m = times_find(t, method);

	if (m || t->n == TIMES_METHODS)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->method = method;
	m->most = TIME_NEVER;
	list_add_tail(&t->methods, &m->link);
	t->n++;
	return m;
}

static void method_look(struct times_method *m)
{
	uint32_t above = m->n / 20, n = 0;
	unsigned int i = BUCKETS;

	m->unseen = 0;
	while (i && n + m->counts[i - 1] <= above)
		n += m->counts[--i];
	m->most = i ? bucket_end(i - 1) : 0;
}

static void method_halve(struct times_method *m)
{
	m->n = 0;
	for (unsigned int i = 0; i < BUCKETS; i++)
		m->n += m->counts[i] /= 2;
}

static void method_count(struct times_method *m, uint64_t ns)
{
	m->counts[bucket_of(ns / NSEC_PER_USEC)]++;
	m->n++;
	m->unseen++;
	if (m->n == TIMES_MIN || (m->n > TIMES_MIN && m->unseen >= LOOK_AFTER))
		method_look(m);
	if (m->n >= HALVE_AFTER)
		method_halve(m);
}

bool times_add(struct times *t, uint32_t method, uint64_t ns, bool slower)
{
	struct times_method *m = times_get(t, method);

	if (!m)
		return false;
	m->samples += m->samples < USUAL_SAMPLES;
	if (m->samples == 1)
		m->usual = ns;
	else
		m->usual += ns / m->samples - m->usual / m->samples;
	if (!slower)
		method_count(m, ns);
	return m->samples == 1;
}

uint64_t times_most(const struct times *t, uint32_t method)
{
	const struct times_method *m = times_find(t, method);

	return m ? m->most : TIME_NEVER;
}

uint64_t times_usual(const struct times *t, uint32_t method)
{
	const struct times_method *m = times_find(t, method);

	return m ? m->usual : 0;
}

unsigned int *times_hedges(struct times *t, uint32_t method)
{
	struct times_method *m = times_find(t, method);

	return m ? &m->hedges : NULL;
}

void times_init(struct times *t)
{
	list_init(&t->methods);
	t->n = 0;
}

void times_free(struct times *t)
{
	struct times_method *m;

	while ((m = list_pop(&t->methods, struct times_method, link)))
		free(m);
	t->n = 0;
}
