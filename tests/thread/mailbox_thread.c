/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads put into one mailbox: nothing is lost, the order of each thread
 * is kept, and whenever the mailbox stops being empty one of them is told to
 * wake its reader. */
#include <pthread.h>
#include <sched.h>
#include "base/loop.h"

#define THREADS 4
#define ITEMS	50000

struct item {
	struct work work;
	unsigned int thread;
	unsigned int number;
};

static struct mailbox box;
static atomic_uint wakes;
static struct item items[THREADS][ITEMS];

static void *put_all(void *arg)
{
	struct item *i = arg;

	for (unsigned int n = 0; n < ITEMS; n++) {
		if (mailbox_put(&box, &i[n].work))
			atomic_fetch_add(&wakes, 1);
		if (n % 1000 == 0)
			sched_yield();
	}
	return NULL;
}

static bool check_batch(struct work *w, unsigned int *next, unsigned int *left)
{
	for (; w; w = w->next, --*left) {
		struct item *i = container_of(w, struct item, work);

		if (i->number != next[i->thread]++) {
			fprintf(stderr, "thread %u: item %u out of order\n",
				i->thread, i->number);
			return false;
		}
	}
	return true;
}

/* Takes only after a wake-up, so that a missing one is a hang. */
static bool take_all(unsigned int *batches)
{
	unsigned int next[THREADS] = { 0 };
	unsigned int left = THREADS * ITEMS;
	unsigned int seen = 0;

	while (left) {
		if (atomic_load(&wakes) == seen) {
			sched_yield();
			continue;
		}
		seen++;
		++*batches;
		if (!check_batch(mailbox_take(&box), next, &left))
			return false;
	}
	return true;
}

int main(void)
{
	pthread_t threads[THREADS];
	unsigned int batches = 0;
	bool ok;

	mailbox_init(&box);
	for (unsigned int t = 0; t < THREADS; t++) {
		for (unsigned int n = 0; n < ITEMS; n++)
			items[t][n] = (struct item){ .thread = t, .number = n };
		if (pthread_create(&threads[t], NULL, put_all, items[t]))
			return 1;
	}
	ok = take_all(&batches);
	for (unsigned int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	if (!ok)
		return 1;
	if (!mailbox_empty(&box) || atomic_load(&wakes) != batches) {
		fprintf(stderr, "%u wake-ups for %u batches\n",
			atomic_load(&wakes), batches);
		return 1;
	}
	return 0;
}
