/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/load.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* requests whose bytes the server verifies one by one */
#define VERIFIED 64

enum phase { PHASE_CONNECT, PHASE_WARM, PHASE_MEASURE, PHASE_OVER };

/* A request and its reply begin with a stamp: the request's number and slot. */
#define STAMP_SLOT_BITS 16

struct load_slot {
	uint64_t stamp; /* 0: no request under way */
	uint64_t began; /* ns: when the request began */
};

/* ---- the command line ---- */

static void usage(const char *why)
{
	fprintf(stderr,
		"%s: %s\nusage: %s [--size BYTES] [--depth N] [--time SECONDS] "
		"[--poll | --block] [--bulk read | --bulk write] "
		"[--keys DIR] [--flavour NAME]\n",
		program_invocation_short_name, why,
		program_invocation_short_name);
	exit(2);
}

static size_t number(const char *text, size_t min, size_t max, const char *why)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (*end || *text < '0' || *text > '9' || v < min || v > max)
		usage(why);
	return (size_t)v;
}

static void bulk(struct load *l, const char *text)
{
	if (!strcmp(text, "read"))
		l->request_size = LOAD_TOKEN;
	else if (!strcmp(text, "write"))
		l->reply_size = LOAD_TOKEN;
	else
		usage("--bulk takes read or write");
}

static void parse(struct load *l, int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "depth", required_argument, NULL, 'd' },
		{ "time", required_argument, NULL, 't' },
		{ "poll", no_argument, NULL, 'p' },
		{ "block", no_argument, NULL, 'b' },
		{ "bulk", required_argument, NULL, 'k' },
		{ "keys", required_argument, NULL, 'K' },
		{ "flavour", required_argument, NULL, 'f' },
		{ "shm", no_argument, NULL, 'm' },
		{ 0 },
	};
	const char *way = NULL;
	size_t size = 64;
	double s = 0.3;
	char *end;
	int c;

	l->depth = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			size = number(optarg, LOAD_TOKEN, 1u << 30,
				      "--size takes 16 to 2^30");
			break;
		case 'K':
			l->keys = optarg;
			break;
		case 'f':
			l->flavour = optarg;
			break;
		case 'm':
			l->shm = true;
			break;
		case 'd':
			l->depth = number(optarg, 1, LOAD_DEPTH_MAX,
					  "--depth takes 1 to 65536");
			break;
		case 't':
			s = strtod(optarg, &end);
			if (*end || !(s > 0 && s < 1e6))
				usage("--time takes seconds");
			break;
		case 'p':
		case 'b':
			l->block = c == 'b';
			break;
		case 'k':
			way = optarg;
			break;
		default:
			usage("what is that?");
		}
	if (optind < argc)
		usage("what is that?");
	l->ns = (uint64_t)(s * 1e9);
	l->request_size = l->reply_size = size;
	if (way)
		bulk(l, way);
}

/* Returns @n buffers of @size bytes, filled. */
static unsigned char *filled(size_t n, size_t size)
{
	unsigned char *p = duo_buffer(n * size);

	for (size_t i = 0; i < n; i++)
		duo_fill(p + i * size, size);
	return p;
}

void load_args(struct load *l, int argc, char **argv)
{
	memset(l, 0, sizeof(*l));
	parse(l, argc, argv);
	/* Some libraries allocate each large message anew; on virtual machines
	 * page faults would take most of their time. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 64 << 20);
	mallopt(M_ARENA_MAX, 1);
	l->requests = filled(l->depth, l->request_size);
	l->replies = filled(l->depth, l->reply_size);
	l->slots = duo_buffer(l->depth * sizeof(*l->slots));
	l->times = duo_buffer(sizeof(*l->times));
}

/* ---- the processes ---- */

/* Ends the client with the server, since it would wait for replies for ever. */
static void on_child(int sig)
{
	static const char text[] = "the server has ended\n";

	(void)sig;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

void load_fork(struct load *l, void (*server)(void *arg, int ready), void *arg)
{
	l->server = duo_fork(server, arg);
	signal(SIGCHLD, on_child);
	/* the server may have ended before the handler was set */
	if (waitpid(l->server, NULL, WNOHANG))
		must(-ECHILD, "the server");
}

static uint64_t cpu_of(clockid_t clock)
{
	struct timespec ts;

	must_sys(clock_gettime(clock, &ts), "clock_gettime");
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns the processor time that both processes have used, ns. */
static uint64_t cpu(const struct load *l)
{
	clockid_t clock;

	must(-clock_getcpuclockid(l->server, &clock), "clock_getcpuclockid");
	return cpu_of(clock) + cpu_of(CLOCK_PROCESS_CPUTIME_ID);
}

void load_end(struct load *l)
{
	uint64_t took = l->until - l->since;
	int status;

	signal(SIGCHLD, SIG_DFL);
	must_sys(kill(l->server, SIGKILL), "kill");
	must_sys(waitpid(l->server, &status, 0), "waitpid");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		must(-ECHILD, "the server");
	printf("rate %.3f\n", (double)l->done * 1e9 / (double)took);
	printf("median %.3f\n", duo_times_median(l->times));
	printf("p99 %.3f\n", duo_times_percent(l->times, 99));
	printf("cpu %.3f\n", (double)l->cpu / (double)l->done / 1e3);
	free(l->times);
	free(l->slots);
	free(l->replies);
	free(l->requests);
}

/* ---- the client ---- */

unsigned char *load_request(struct load *l, size_t slot)
{
	unsigned char *p = l->requests + slot * l->request_size;
	struct load_slot *s = &l->slots[slot];

	if (s->stamp)
		must(-EBUSY, "slot");
	s->stamp = ++l->begun << STAMP_SLOT_BITS | slot;
	s->began = l->begun > l->depth ? l->now : duo_now();
	l->under_way++;
	memcpy(p, &s->stamp, sizeof(s->stamp));
	return p;
}

static void next_phase(struct load *l)
{
	switch (l->phase++) {
	case PHASE_CONNECT: /* the first reply */
		l->until = l->now + DUO_WARM_NS;
		break;
	case PHASE_WARM:
		l->since = l->now;
		l->until = l->now + l->ns;
		l->cpu = cpu(l);
		break;
	case PHASE_MEASURE:
		l->until = l->now;
		l->cpu = cpu(l) - l->cpu;
		break;
	}
}

long load_replied(struct load *l, const void *reply, size_t size)
{
	struct load_slot *s;
	uint64_t stamp;
	size_t slot;

	if (size != l->reply_size)
		must(-EMSGSIZE, "reply");
	memcpy(&stamp, reply, sizeof(stamp));
	slot = stamp & ((1u << STAMP_SLOT_BITS) - 1);
	s = &l->slots[slot];
	if (slot >= l->depth || s->stamp != stamp)
		must(-EBADMSG, "reply");
	l->now = duo_now();
	s->stamp = 0;
	l->under_way--;
	if (l->phase == PHASE_MEASURE) {
		duo_times_add(l->times, l->now - s->began);
		l->done++;
	}
	if (l->phase != PHASE_OVER && l->now >= l->until)
		next_phase(l);
	if (l->phase != PHASE_OVER)
		return (long)slot;
	duo_verify(reply, sizeof(stamp), size);
	return -1;
}

/* ---- the server ---- */

unsigned char *load_serve(struct load *l, const void *request, size_t size)
{
	unsigned char *p;
	uint64_t stamp;
	size_t slot;

	if (size != l->request_size)
		must(-EMSGSIZE, "request");
	memcpy(&stamp, request, sizeof(stamp));
	slot = stamp & ((1u << STAMP_SLOT_BITS) - 1);
	if (slot >= l->depth)
		must(-EBADMSG, "request");
	if (stamp >> STAMP_SLOT_BITS <= VERIFIED)
		duo_verify(request, sizeof(stamp), size);
	p = l->replies + slot * l->reply_size;
	memcpy(p, &stamp, sizeof(stamp));
	return p;
}
