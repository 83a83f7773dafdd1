/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the behaviours, in the order in which an LND learns them. */
#include "tests/lnd/conformance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lnd/behaviour.h"

struct sum {
	unsigned int passed, failed, skipped;
	FILE *complaints; /* the lines of failures, said again at the end */
};

static const char *why_not(const struct lnd_rig *rig, const struct behaviour *b)
{
	if (b->needs & TWO && rig->can & RIG_ONE_NODE)
		return "needs two nodes";
	if (b->needs & RIG_KILL & ~rig->can)
		return "the peer cannot be killed";
	if (b->needs & RIG_LOSE & ~rig->can)
		return "nothing can be lost";
	return NULL;
}

static void skipped(const struct lnd_rig *rig, const char *what,
		    const char *why, struct sum *sum)
{
	printf("SKIP %s: %s: %s\n", rig->name, what, why);
	sum->skipped++;
}

static void run_one(struct lnd_rig *rig, const struct behaviour *b,
		    struct sum *sum)
{
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const char *why = why_not(rig, b);
	int rc = 0;

	rig->hasty = b->needs & HASTY;
	if (!why)
		rc = fx_up(&fx, rig);
	if (rc == -ENOTSUP)
		why = rig->why;
	if (why) {
		skipped(rig, b->name, why, sum);
		return;
	}
	if (expect(&fx, rc == 0)) {
		b->fn(&fx);
		fx_down(&fx);
	}
	if (atomic_load(&fx.failures)) {
		printf("FAIL %s: %s (%u)\n", rig->name, b->name,
		       atomic_load(&fx.failures));
		fprintf(sum->complaints, "FAIL %s: %s\n", rig->name, b->name);
		sum->failed++;
	} else if (fx.skipped) {
		skipped(rig, b->name, fx.skipped, sum);
	} else {
		printf("PASS %s: %s\n", rig->name, b->name);
		sum->passed++;
	}
}

static bool wanted(int argc, char **argv, const struct lnd_rig *rig,
		   const struct behaviour *b)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", rig->name, b->name);
	for (int i = 1; i < argc; i++)
		if (strstr(text, argv[i]))
			return true;
	return argc < 2;
}

int behaviours_main(int argc, char **argv, struct lnd_rig *rigs, unsigned int n,
		    const struct topic *const *topics, unsigned int ntopics)
{
	struct sum sum = { 0 };
	char *complaints = NULL;
	size_t size;

	sum.complaints = open_memstream(&complaints, &size);
	BUG_ON(!sum.complaints);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int r = 0; r < n; r++)
		for (unsigned int t = 0; t < ntopics; t++)
			for (unsigned int i = 0; i < topics[t]->n; i++) {
				const struct behaviour *b = &topics[t]->list[i];

				if (wanted(argc, argv, &rigs[r], b))
					run_one(&rigs[r], b, &sum);
			}
	BUG_ON(fclose(sum.complaints));
	fputs(complaints, stdout);
	free(complaints);
	/* in the words of criterion, which ./check counts */
	printf("Tested: %u | Passing: %u\n", sum.passed + sum.failed,
	       sum.passed);
	printf("%u passed, %u failed, %u skipped\n", sum.passed, sum.failed,
	       sum.skipped);
	if (sum.failed)
		return 1;
	return sum.passed ? 0 : 77;
}

int conformance_main(int argc, char **argv, struct lnd_rig *rigs,
		     unsigned int n)
{
	static const struct topic *const topics[] = { &topic_message,
						      &topic_stream,
						      &topic_ending };

	return behaviours_main(argc, argv, rigs, n, topics, ARRAY_SIZE(topics));
}
