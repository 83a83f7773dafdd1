/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the random scenario for many seeds.
 *
 *	campaign [--long] [--seeds N] [--seed S] [--until-failure] [--trace]
 *		 [--verbose]
 *
 * Runs N seeds from seed 1 on, and those that have once found a defect. With S
 * and N, it runs N seeds from S on; with S alone, only that one. It stops at
 * the first violation with --until-failure. --verbose says which events the
 * runs have had, how often, and in how many runs. With SEEDS or more from seed
 * 1 on, events that must happen may not be in too few of them.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/sim_priv.h"
#include "tests/sim/cluster.h"
#include "tests/sim/scenario.h"

#define SEEDS	    200
#define TWICE_EVERY 10
/* messages of a run: nodes ask or answer each other without a pause. A run has
 * some thousands, or, if 150 nodes are connected and keepalives are sent each
 * 30 ms, more than a million. */
#define STORM 4000000

struct result {
	unsigned int violations;
	bool repeats;
	uint64_t digest;
	uint64_t operations, messages, faults, events;
};

#define TOLD_MAX 512
#define MUST_OF	 20 /* SCENARIO_MUST: in one of so many runs */

/* Which events the runs have had, how often, and in how many runs. */
static struct told {
	const char *kind, *what;
	uint64_t n, runs;
} told[TOLD_MAX];
static uint64_t told_runs; /* the runs that have told of theirs */
static bool verbose;

static int passed, failed;
/* the name of this program, for the line that says how to repeat a run */
static const char *program;

static void tell(void *arg, const char *kind, const char *what, uint64_t n)
{
	struct told *t = told;

	(void)arg;
	while (t->what &&
	       (strcmp(t->kind, kind) != 0 || strcmp(t->what, what) != 0))
		if (++t == told + TOLD_MAX)
			abort();
	t->kind = kind;
	t->what = what;
	t->n += n;
	t->runs += n != 0;
}

static void tell_all(const struct run *r, const struct lnet_sim *sim)
{
	for (unsigned int i = 0; i < SIM_FATES; i++)
		tell(NULL, "message ", audit_fates[i], sim->fates[i]);
	scenario_tell(r, tell, NULL);
	told_runs++;
}

static void told_print(void)
{
	for (const struct told *t = told; t->what; t++)
		printf("%10" PRIu64 " in %4" PRIu64 " runs: %s%s\n", t->n,
		       t->runs, t->kind, t->what);
}

/* Fails if too few of the runs have had what must happen. */
static void told_check(void)
{
	for (const struct told *t = told; t->what; t++) {
		if (strcmp(t->kind, SCENARIO_MUST) != 0 ||
		    t->runs * MUST_OF >= told_runs)
			continue;
		fprintf(stderr,
			"campaign: tests too little: '%s' in only %" PRIu64
			" of %" PRIu64 " runs\n",
			t->what, t->runs, told_runs);
		failed++;
	}
}

static int run(uint64_t seed, const char *command, FILE *trace,
	       struct result *result)
{
	struct ulnet_sim_stats stats;
	struct lnet_sim *sim;
	struct run *r;
	int rc = lnet_sim_new(seed, 1 + (unsigned int)(seed % 3), &sim);

	if (rc)
		return rc;
	lnet_log_set(trace ? LNET_LOG_DEBUG : LNET_LOG_ERR, NULL, NULL);
	lnet_sim_set_command(sim, command);
	lnet_sim_trace(sim, trace);
	cluster_push(sim);
	r = scenario_new(sim);
	rc = scenario_play(r);
	lnet_sim_check(sim);
	lnet_sim_stats(sim, &stats);
	result->digest = lnet_sim_digest(sim);
	result->operations = stats.operations;
	result->messages = stats.messages;
	result->faults = stats.faults;
	result->events = stats.events;
	tell_all(r, sim);
	result->repeats = scenario_repeats(r);
	result->violations = lnet_sim_free(sim);
	result->violations += scenario_free(r);
	return rc;
}

static void run_seed(uint64_t seed, FILE *trace, struct result *sum,
		     struct result *last)
{
	struct result r = { 0 };
	char command[256];

	snprintf(command, sizeof(command), "%s --seed %" PRIu64, program, seed);
	if (run(seed, command, trace, &r)) {
		fprintf(stderr, "seed %" PRIu64 ": could not be set up\n",
			seed);
		r.violations++;
	}
	if (r.messages > STORM) {
		fprintf(stderr,
			"seed %" PRIu64 ": a storm of %" PRIu64 " messages\n",
			seed, r.messages);
		r.violations++;
	}
	*last = r;
	sum->violations += r.violations;
	sum->operations += r.operations;
	sum->messages += r.messages;
	sum->faults += r.faults;
	sum->events += r.events;
}

static void try_seed(uint64_t seed, struct result *sum)
{
	struct result once, again, ignored = { 0 };
	bool ok;

	run_seed(seed, NULL, sum, &once);
	ok = once.violations == 0;
	if (seed % TWICE_EVERY == 0 && once.repeats) {
		run_seed(seed, NULL, &ignored, &again);
		if (again.digest != once.digest) {
			fprintf(stderr, "seed %" PRIu64 ": two runs differ\n",
				seed);
			ok = false;
		}
	}
	passed += ok;
	failed += !ok;
}

static void campaign_end(uint64_t n, const struct result *sum)
{
	printf("campaign: %" PRIu64 " seeds, %" PRIu64 " operations, %" PRIu64
	       " messages, %" PRIu64 " faults, %" PRIu64 " events\n",
	       n, sum->operations, sum->messages, sum->faults, sum->events);
}

/* Runs @n seeds from @first on and, if @kept, those of scenario_kept. */
static void campaign(uint64_t first, uint64_t n, bool kept)
{
	struct result sum = { 0 };
	uint64_t more = 0;

	for (uint64_t seed = first; seed < first + n; seed++)
		try_seed(seed, &sum);
	for (const uint64_t *seed = scenario_kept; kept && *seed; seed++)
		if (*seed >= first + n) {
			try_seed(*seed, &sum);
			more++;
		}
	campaign_end(n + more, &sum);
	if (kept && n >= SEEDS)
		told_check();
}

/* A report ends with a line that begins so, and says how to repeat the run. */
#define REPEAT "sim: to repeat: "

/* Copies the report of a run from @fd to stderr. Returns whether it contains a
 * violation. */
static bool hears_violation(int fd)
{
	FILE *said = fdopen(fd, "r");
	char line[512];
	bool found = false;

	if (!said)
		abort();
	while (!found && fgets(line, sizeof(line), said)) {
		fputs(line, stderr);
		found = strncmp(line, REPEAT, strlen(REPEAT)) == 0;
	}
	fclose(said);
	return found;
}

/* Runs one seed in a process of its own, which is killed at the first
 * violation: after a violation a run may never end by itself. Returns false if
 * it had one, or crashed. */
static bool try_alone(uint64_t seed)
{
	struct result sum = { 0 }, last;
	bool violated;
	int said[2], status = 0;
	pid_t pid;

	fflush(NULL);
	if (pipe(said) || (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		dup2(said[1], STDERR_FILENO);
		close(said[0]);
		close(said[1]);
		run_seed(seed, NULL, &sum, &last);
		_exit(sum.violations ? 1 : 0);
	}
	close(said[1]);
	violated = hears_violation(said[0]);
	if (violated)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!violated && !WIFEXITED(status)) {
		fprintf(stderr, "seed %" PRIu64 ": signal %d\n", seed,
			WTERMSIG(status));
		return false;
	}
	if (violated || WEXITSTATUS(status))
		failed++;
	else
		passed++;
	return true;
}

/* Runs @n seeds from @first on, up to the first one that fails. */
static bool campaign_until_failure(uint64_t first, uint64_t n)
{
	for (uint64_t seed = first; seed < first + n && !failed; seed++)
		if (!try_alone(seed))
			return false;
	return true;
}

static int usage(void)
{
	fprintf(stderr, "usage: campaign [--long] [--seeds N] [--seed S] "
			"[--until-failure] [--trace] [--verbose]\n");
	return 2;
}

/* Parses the number in @text. Returns false, with a message, if it is none. */
static bool number(const char *option, const char *text, uint64_t *n_p)
{
	char *end;

	*n_p = strtoull(text, &end, 0);
	if (*text >= '0' && *text <= '9' && !*end)
		return true;
	fprintf(stderr, "campaign: --%s: '%s' is not a number\n", option, text);
	return false;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "long", no_argument, NULL, 'l' },
		{ "seeds", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "until-failure", no_argument, NULL, 'u' },
		{ NULL, 0, NULL, 0 },
	};
	struct result sum = { 0 }, last;
	uint64_t seeds = SEEDS, seed = 0;
	bool one = false, many = false, until = false, trace = false;
	int c;

	program = argv[0];
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			seeds = scenario_seeds_long;
			break;
		case 'n':
			if (!number("seeds", optarg, &seeds))
				return usage();
			many = true;
			break;
		case 's':
			if (!number("seed", optarg, &seed))
				return usage();
			one = true;
			break;
		case 't':
			trace = true;
			break;
		case 'v':
			verbose = true;
			break;
		case 'u':
			until = true;
			break;
		default:
			return usage();
		}
	}
	if (until) {
		if (!campaign_until_failure(one ? seed : 1,
					    one && !many ? 1 : seeds))
			return 2;
	} else if (one && !many) {
		run_seed(seed, trace ? stdout : NULL, &sum, &last);
		printf("seed %" PRIu64 ": digest %016" PRIx64 "\n", seed,
		       last.digest);
		last.violations ? failed++ : passed++;
	} else {
		campaign(one ? seed : 1, seeds, !one);
	}
	if (verbose)
		told_print();
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
