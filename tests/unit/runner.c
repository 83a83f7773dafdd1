/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the tests that are declared with criterion, each in a child of fork().
 * criterion's own runner starts the program anew for each test: that maps all
 * libraries again and starts the sanitizer again, 65 ms for each of thousands
 * of tests that take less than one. Of its library the texts of assertions
 * remain (include/criterion/criterion.h); what is printed looks the same.
 *
 * A test passes if it returns and its child exits with 0, or if that exits or
 * dies with the status or by the signal that was declared; and if no assertion
 * failed. A sanitizer that finds a leak when the child exits makes that status
 * another one.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum verdict { UNFINISHED, PASSED, FAILED, SKIPPED };

/* One run of a test. These are in memory that is shared with the children, each
 * of which writes the verdict of its own. */
struct run {
	const struct criterion_test *test;
	const struct criterion_test_extra_data *suite; /* or NULL */
	void *param;
	pid_t pid;
	double since; /* s, as now() tells */
	bool timed_out;
	enum verdict verdict;
};

struct runner {
	struct run *runs;
	unsigned int n_runs, started, ended;
	unsigned int failed, crashed, skipped;
	/* options */
	const char *filter;
	double timeout;	   /* s for a test, or 0 */
	unsigned int jobs; /* children at once */
	FILE *times;	   /* gets "SECONDS SUITE/TEST" of each run, or NULL */
};

/* What a child runs, and where its test is left when an assertion fails. */
static struct {
	struct run *run;
	jmp_buf end;
	bool stopped;
	pid_t thread;
	FILE *log; /* what stdout is unless the test redirects that */
} self;

/* The linker's names for the sections in which criterion declares. Programs
 * without suites have no section of them. */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[] __attribute__((weak));
extern struct criterion_suite *__stop_cr_sts[] __attribute__((weak));

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- in the child: what criterion's macros call ---- */

static __attribute__((noreturn)) void leave(void)
{
	if (gettid() != self.thread) {
		fflush(NULL);
		_exit(EXIT_SUCCESS);
	}
	self.stopped = true;
	longjmp(self.end, 1);
}

void criterion_abort_test(void)
{
	self.run->verdict = FAILED;
	leave();
}

void criterion_continue_test(void)
{
	self.run->verdict = FAILED;
}

void criterion_skip_test(const char *format, ...)
{
	const struct criterion_test *test = self.run->test;
	va_list args;

	printf("[SKIP] %s::%s: ", test->category, test->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	if (self.run->verdict != FAILED)
		self.run->verdict = SKIPPED;
	leave();
}

void unit_failed(const char *file, unsigned int line, char *said,
		 const char *format, ...)
{
	va_list args;

	flockfile(self.log);
	fprintf(self.log, "[----] %s:%u: Assertion Failed\n[----]   ", file,
		line);
	if (format[1]) {
		va_start(args, format);
		vfprintf(self.log, format + 1, args);
		va_end(args);
	} else {
		fprintf(self.log, "%s", said);
	}
	fprintf(self.log, "\n");
	funlockfile(self.log);
	cr_asprintf_free(said);
}

static void call(void (*fn)(void))
{
	if (fn && !self.stopped && setjmp(self.end) == 0)
		fn();
}

void criterion_internal_test_setup(void)
{
	if (self.run->suite)
		call(self.run->suite->init);
	call(self.run->test->data->init);
}

void criterion_internal_test_main(void (*fn)(void))
{
	if (self.stopped || setjmp(self.end) != 0)
		return;
	if (self.run->param)
		((void (*)(void *))fn)(self.run->param);
	else
		fn();
}

void criterion_internal_test_teardown(void)
{
	self.stopped = false;
	call(self.run->test->data->fini);
	self.stopped = false;
	if (self.run->suite)
		call(self.run->suite->fini);
}

/* What is written to @fd goes to a file in memory instead. */
static void redirect(int fd)
{
	int to = memfd_create("redirected", 0);

	fflush(NULL);
	if (to < 0 || dup2(to, fd) < 0)
		cr_assert_fail("%s", strerror(errno));
	close(to);
}

void cr_redirect_stdout(void)
{
	FILE *log = fdopen(dup(STDOUT_FILENO), "w");

	cr_assert(log);
	setvbuf(log, NULL, _IOLBF, 0);
	self.log = log;
	redirect(STDOUT_FILENO);
}

void cr_redirect_stderr(void)
{
	redirect(STDERR_FILENO);
}

int cr_stderr_match_str(const char *text)
{
	char buf[4096];
	ssize_t n = pread(STDERR_FILENO, buf, sizeof(buf) - 1, 0);

	buf[n < 0 ? 0 : n] = '\0';
	return strcmp(buf, text) == 0;
}

static __attribute__((noreturn)) void be_child(struct run *run)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	self.run = run;
	self.thread = gettid();
	self.log = stdout;
	run->test->test();
	fflush(NULL);
	/* A test that was left in its middle owns what it had not freed. */
	if (run->verdict != UNFINISHED)
		_exit(EXIT_SUCCESS);
	run->verdict = PASSED;
	exit(EXIT_SUCCESS);
}

/* ---- in the parent ---- */

static void say_end(const struct run *run, const char *tag, const char *what,
		    double took)
{
	printf("[%s] %s::%s: %s(%.2fs)\n", tag, run->test->category,
	       run->test->name, what, took);
}

static void crashed(struct runner *r, const struct run *run, int status,
		    double took)
{
	char what[64];

	if (run->verdict == UNFINISHED && status == 0)
		snprintf(what, sizeof(what), "ended the program ");
	else if (WIFSIGNALED(status))
		snprintf(what, sizeof(what), "CRASH! %s ",
			 strsignal(WTERMSIG(status)));
	else
		snprintf(what, sizeof(what), "exit status %d ",
			 WEXITSTATUS(status));
	r->crashed++;
	say_end(run, "FAIL", what, took);
}

static void ended(struct runner *r, struct run *run, int status)
{
	const struct criterion_test_extra_data *data = run->test->data;
	int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	bool meant = signal == data->signal && code == data->exit_code;
	double took = now() - run->since;

	run->pid = 0;
	r->ended++;
	if (r->times)
		fprintf(r->times, "%.1f %s/%s\n", took, run->test->category,
			run->test->name);
	if (run->timed_out) {
		r->failed++;
		say_end(run, "FAIL", "Timed out. ", took);
	} else if (run->verdict == FAILED) {
		r->failed++;
		say_end(run, "FAIL", "", took);
	} else if (run->verdict == SKIPPED) {
		r->skipped++;
	} else if (!meant || (status == 0 && run->verdict != PASSED)) {
		crashed(r, run, status, took);
	}
}

static void start(struct runner *r)
{
	struct run *run = &r->runs[r->started++];
	pid_t pid;

	if (run->test->data->disabled || (run->suite && run->suite->disabled)) {
		r->ended++;
		r->skipped++;
		say_end(run, "SKIP", "Test is disabled ", 0);
		return;
	}
	fflush(NULL); /* or the child has it, too */
	run->since = now();
	pid = fork();
	if (pid == 0)
		be_child(run);
	if (pid < 0) {
		fprintf(stderr, "fork: %s\n", strerror(errno));
		exit(EXIT_FAILURE);
	}
	run->pid = pid;
}

/* s that a run may take. */
static double limit(const struct runner *r, const struct run *run)
{
	double own = run->test->data->timeout;

	if (own == 0 && run->suite)
		own = run->suite->timeout;
	if (own == 0)
		own = r->timeout;
	return own == 0 ? INFINITY : own;
}

static void kill_late(struct runner *r)
{
	struct run *run;

	for (run = r->runs; run < r->runs + r->started; run++) {
		if (run->pid == 0 || now() - run->since < limit(r, run))
			continue;
		run->timed_out = true;
		kill(run->pid, SIGKILL);
	}
}

/* Waits until a child has ended, or a second: deadlines are that coarse. */
static void await(struct runner *r, const sigset_t *child)
{
	const struct timespec second = { .tv_sec = 1 };
	struct run *run;
	int status;
	pid_t pid;

	pid = waitpid(-1, &status, WNOHANG);
	if (pid == 0) {
		kill_late(r);
		sigtimedwait(child, NULL, &second);
		return;
	}
	if (pid < 0) {
		fprintf(stderr, "waitpid: %s\n", strerror(errno));
		exit(EXIT_FAILURE);
	}
	/* Others' orphans may be children of ours, too. */
	for (run = r->runs; run < r->runs + r->started; run++)
		if (run->pid == pid)
			ended(r, run, status);
}

static void run_all(struct runner *r)
{
	sigset_t child;

	/* It must not be lost between waitpid() and sigtimedwait(). */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	while (r->ended < r->n_runs)
		if (r->started < r->n_runs && r->started - r->ended < r->jobs)
			start(r);
		else
			await(r, &child);
}

/* ---- which tests ---- */

static const struct criterion_test_extra_data *suite_of(const char *name)
{
	struct criterion_suite **suite;

	for (suite = __start_cr_sts; suite < __stop_cr_sts; suite++)
		if (*suite && strcmp((*suite)->name, name) == 0)
			return (*suite)->data;
	return NULL;
}

static bool is_meant(const struct runner *r, const struct criterion_test *test)
{
	char name[256];

	if (!test)
		return false;
	snprintf(name, sizeof(name), "%s/%s", test->category, test->name);
	return !r->filter || fnmatch(r->filter, name, FNM_EXTMATCH) == 0;
}

/* Adds the runs of @test, one for each parameter, and counts them. With no
 * memory yet, only counts. */
static void add_runs(struct runner *r, const struct criterion_test *test)
{
	struct criterion_test_params params = { .length = 1 };
	size_t i;

	if (test->data->kind_ == CR_TEST_PARAMETERIZED)
		params = test->data->param_();
	for (i = 0; i < params.length; i++, r->n_runs++) {
		if (!r->runs)
			continue;
		r->runs[r->n_runs].test = test;
		r->runs[r->n_runs].suite = suite_of(test->category);
		if (params.params)
			r->runs[r->n_runs].param =
				(char *)params.params + i * params.size;
	}
}

static void collect(struct runner *r)
{
	struct criterion_test **test;

	r->n_runs = 0;
	for (test = __start_cr_tst; test < __stop_cr_tst; test++)
		if (is_meant(r, *test))
			add_runs(r, *test);
}

/* ---- the command line ---- */

static const char usage[] =
	"usage: %s [--filter PATTERN] [--timeout SECONDS] [--jobs N] [--list]\n"
	"Runs its unit tests, those SUITE/TEST that match PATTERN (as a "
	"file's\n"
	"name, with @(a|b)), N at a time: by default one for each processor,\n"
	"or $UNIT_JOBS. $UNIT_TIMES is a file for the seconds that each "
	"took.\n";

static void list(const struct runner *r)
{
	unsigned int i;

	for (i = 0; i < r->n_runs; i++)
		printf("%s/%s\n", r->runs[i].test->category,
		       r->runs[i].test->name);
}

/* A number above 0, or the program ends. */
static double number(const char *what, const char *text)
{
	char *end;
	double d = strtod(text, &end);

	if (*text && !*end && d > 0 && d < 1e9)
		return d;
	fprintf(stderr, "%s: \"%s\" is not a number above 0\n", what, text);
	exit(2);
}

static unsigned int count(const char *what, const char *text)
{
	double d = number(what, text);

	return d < 1 ? 1 : (unsigned int)d;
}

static unsigned int default_jobs(void)
{
	const char *jobs = getenv("UNIT_JOBS");
	cpu_set_t cpus;

	if (jobs)
		return count("$UNIT_JOBS", jobs);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 1;
	return (unsigned int)CPU_COUNT(&cpus);
}

/* Whether the tests are to be listed only. */
static bool take_options(struct runner *r, int argc, char **argv)
{
	static const struct option options[] = {
		{ "filter", required_argument, NULL, 'f' },
		{ "timeout", required_argument, NULL, 't' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool listed = false;
	int c;

	while ((c = getopt_long(argc, argv, "f:t:j:lh", options, NULL)) != -1) {
		if (c == 'f')
			r->filter = optarg;
		else if (c == 't')
			r->timeout = number("--timeout", optarg);
		else if (c == 'j')
			r->jobs = count("--jobs", optarg);
		else if (c == 'l')
			listed = true;
		else
			fprintf(c == 'h' ? stdout : stderr, usage, argv[0]);
		if (c == 'h' || c == '?')
			exit(c == 'h' ? 0 : 2);
	}
	if (optind < argc) {
		fprintf(stderr, "%s: what is \"%s\"?\n", argv[0], argv[optind]);
		exit(2);
	}
	return listed;
}

static void find_tests(struct runner *r)
{
	size_t size;

	collect(r);
	if (r->n_runs == 0) {
		fprintf(stderr, "no test is called \"%s\"\n",
			r->filter ? r->filter : "*");
		exit(2);
	}
	size = r->n_runs * sizeof(*r->runs);
	r->runs = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->runs == MAP_FAILED) {
		fprintf(stderr, "%zu bytes: %s\n", size, strerror(errno));
		exit(EXIT_FAILURE);
	}
	collect(r);
}

int main(int argc, char **argv)
{
	struct runner r = { .jobs = default_jobs() };
	const char *times = getenv("UNIT_TIMES");
	unsigned int tested;

	setvbuf(stdout, NULL, _IOLBF, 0); /* children write it, too */
	if (take_options(&r, argc, argv)) {
		find_tests(&r);
		list(&r);
		return 0;
	}
	find_tests(&r);
	if (times && !(r.times = fopen(times, "we"))) {
		fprintf(stderr, "%s: %s\n", times, strerror(errno));
		return EXIT_FAILURE;
	}
	run_all(&r);
	if (r.times)
		fclose(r.times);
	tested = r.n_runs - r.skipped;
	printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | "
	       "Crashing: %u\n",
	       tested, tested - r.failed - r.crashed, r.failed, r.crashed);
	return r.failed || r.crashed ? EXIT_FAILURE : 0;
}
