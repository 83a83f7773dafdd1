/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stats/spans.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/misuse.h"
#include "rpc/stats/stat.h"
#include "rpc/text.h"
#include "ulnet/spans.h"

#define QUEUE	    4096u
#define QUEUE_MAX   (1u << 20)
#define LOOK_MS	    100		 /* how often the thread looks for spans */
#define LINE	    64u		 /* spans of a line, at most */
#define PATIENCE    NSEC_PER_SEC /* for whoever reads the socket */
#define TRIES	    5		 /* of reading two clocks at once */
#define MILLION	    1000000u
#define SOCKET_MARK "unix:"

_Static_assert(sizeof(((struct rpc_span *)0)->trace) == TRACE_LENGTH,
	       "all of it");

/* One producer, the CPT, and one consumer, the thread. */
struct spans_ring {
	uint32_t size; /* a power of two */
	/* In virtual time: who writes what is put, at once; else NULL. */
	struct ulrpc_spans *at_once;
	_Atomic uint32_t put, taken;
	_Atomic uint64_t dropped;
	struct rpc_span slots[];
};

struct ulrpc_spans {
	struct ulrpc *rpc;	   /* NULL: it is closed */
	struct spans_ring **rings; /* one for each CPT */
	unsigned int nrings;
	char *path, *name;
	bool threaded; /* @thread writes */
	pthread_t thread;
	pthread_mutex_t lock; /* of @stop */
	pthread_cond_t wake;
	bool stop;
	_Atomic bool reopen;
	_Atomic uint64_t written, lost;
	/* the thread's: */
	int fd;		   /* -1: not open */
	bool torn;	   /* a file that ends in half a line */
	uint64_t patience; /* ns to wait for whoever reads the socket */
	uint64_t offset;   /* ns from the node's clock to Unix's */
	struct rpc_span *line;
};

/* ---- which calls become spans ---- */

/* Mixes the bits of @x, so that numbers in a row look random. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Returns a number that nobody has got before. */
static uint64_t next_number(struct ulrpc *rpc)
{
	uint64_t n = atomic_fetch_add_explicit(&rpc->sampling.n, 1,
					       memory_order_relaxed);
	uint64_t x = mix(rpc->sampling.seed +
			 (n + 1) * UINT64_C(0x9e3779b97f4a7c15));

	return x ? x : 1;
}

bool spans_lot(struct shard *s)
{
	uint32_t share = atomic_load_explicit(&s->rpc->sampling.share,
					      memory_order_relaxed);

	return next_number(s->rpc) % MILLION < share;
}

static void put_number(uint8_t *to, uint64_t x)
{
	memcpy(to, &x, sizeof(x));
}

void spans_root(struct shard *s, uint8_t *trace)
{
	memset(trace, 0, TRACE_LENGTH);
	put_number(trace + 1, next_number(s->rpc));
	put_number(trace + 9, next_number(s->rpc));
	trace[TRACE_LENGTH - 1] = SPAN_SAMPLED;
}

bool spans_begin(struct shard *s, uint8_t *trace, uint8_t *room)
{
	uint8_t *id = trace + TRACE_LENGTH - 1 - SPAN_ID;

	room[SPAN_ID] = trace[TRACE_LENGTH - 1] & SPAN_SAMPLED &&
			atomic_load_explicit(&s->rpc->sampling.on,
					     memory_order_relaxed);
	if (!room[SPAN_ID])
		return false;
	memcpy(room, id, SPAN_ID);
	put_number(id, next_number(s->rpc));
	return true;
}

static void write_waiting(struct ulrpc_spans *sp, bool last);

void spans_add(struct shard *s, const struct rpc_span *span)
{
	struct spans_ring *r = s->spans;
	uint32_t put, most;

	if (!r || shard_is_mute(s))
		return;
	/* Peers decide how many requests are sampled: half of the ring is for
	 * the program's own calls. */
	most = span->is_server ? (r->size + 1) / 2 : r->size;
	put = atomic_load_explicit(&r->put, memory_order_relaxed);
	if (put - atomic_load_explicit(&r->taken, memory_order_acquire) >=
	    most) {
		atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed);
		stat_count(s, RPC_STAT_spans_dropped);
		return;
	}
	r->slots[put & (r->size - 1)] = *span;
	atomic_store_explicit(&r->put, put + 1, memory_order_release);
	stat_count(s, RPC_STAT_spans_made);
	if (r->at_once)
		write_waiting(r->at_once, false);
}

/* ---- OpenTelemetry's JSON ---- */

static void print_hex(FILE *out, const char *name, const uint8_t *bytes,
		      unsigned int n)
{
	fprintf(out, "\"%s\":\"", name);
	for (unsigned int i = 0; i < n; i++)
		fprintf(out, "%02x", bytes[i]);
	fputs("\",", out);
}

/* Names are those of programs, but may be anything. */
static void print_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fputc('\\', out);
		fputc(c < ' ' || c > '~' ? '?' : c, out);
	}
}

static void print_string(FILE *out, const char *key, const char *value)
{
	fprintf(out, "{\"key\":\"%s\",\"value\":{\"stringValue\":\"", key);
	print_text(out, value);
	fputs("\"}},", out);
}

static void print_attributes(FILE *out, const struct rpc_span *s)
{
	char nid[LNET_NIDSTR_SIZE];

	fputs("\"attributes\":[", out);
	print_string(out, "rpc.system", "ulrpc");
	print_string(out, "rpc.service", s->service);
	print_string(out, "rpc.method", s->method);
	/* What was never sent has no NIDs. */
	if (s->attempts) {
		lnet_nid_format(&s->peer, nid, sizeof(nid));
		print_string(out, "net.peer.name", nid);
		lnet_nid_format(&s->local, nid, sizeof(nid));
		print_string(out, "lnet.nid", nid);
	}
	print_string(out, "rpc.ulrpc.status", s->status);
	if (s->cause)
		print_string(out, "rpc.ulrpc.cause", s->cause);
	print_string(out, "rpc.ulrpc.execution", s->execution);
	fprintf(out,
		"{\"key\":\"rpc.ulrpc.attempts\",\"value\":{\"intValue\":"
		"\"%" PRIu32 "\"}}],",
		s->attempts);
}

/* A client knows methods by their numbers. If somebody has declared the name,
 * as stubs do, takes that. */
static void name_method(struct ulrpc *rpc, struct rpc_span *s)
{
	const char *name = ulrpc_method_name(rpc, s->number);

	if (name)
		text_copy(s->method, sizeof(s->method), name);
	else
		snprintf(s->method, sizeof(s->method), "0x%08" PRIx32,
			 s->number);
}

static void print_span(FILE *out, const struct ulrpc_spans *sp,
		       struct rpc_span *s)
{
	static const uint8_t none[SPAN_ID];

	if (!*s->method)
		name_method(sp->rpc, s);
	fputc('{', out);
	print_hex(out, "traceId", s->trace + 1, 16);
	print_hex(out, "spanId", s->trace + 17, SPAN_ID);
	if (memcmp(s->parent, none, SPAN_ID) != 0)
		print_hex(out, "parentSpanId", s->parent, SPAN_ID);
	fputs("\"name\":\"", out);
	print_text(out, s->service);
	fputc('/', out);
	print_text(out, s->method);
	/* SPAN_KIND_SERVER, SPAN_KIND_CLIENT */
	fprintf(out,
		"\",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64
		"\",\"endTimeUnixNano\":\"%" PRIu64 "\",",
		s->is_server ? 2 : 3, s->begin + sp->offset,
		s->end + sp->offset);
	print_attributes(out, s);
	/* STATUS_CODE_ERROR */
	fprintf(out, "\"status\":{%s",
		s->failed ? "\"code\":2,\"message\":\"" : "");
	fprintf(out, "%s%s}}", s->failed ? s->status : "",
		s->failed ? "\"" : "");
}

/* An ExportTraceServiceRequest, and a newline. */
static void print_line(FILE *out, const struct ulrpc_spans *sp, uint32_t n)
{
	if (sp->torn)
		fputc('\n', out);
	fputs("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":"
	      "\"service.name\",\"value\":{\"stringValue\":\"",
	      out);
	print_text(out, sp->name);
	fprintf(out,
		"\"}},{\"key\":\"process.pid\",\"value\":{\"intValue\":\"%d\"}}"
		"]},\"scopeSpans\":[{\"scope\":{\"name\":\"ulnet\"},\"spans\":"
		"[",
		(int)getpid());
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			fputc(',', out);
		print_span(out, sp, &sp->line[i]);
	}
	fputs("]}]}]}\n", out);
}

/* ---- where they go ---- */

static uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Takes what has passed since @begin off the time that is left to wait. */
static void spend(struct ulrpc_spans *sp, uint64_t begin)
{
	sp->patience -= MIN(monotonic() - begin, sp->patience);
}

static int open_socket(struct ulrpc_spans *sp, const char *path)
{
	/* 0 would be for ever. */
	const struct timeval most = {
		.tv_sec = (time_t)(sp->patience / NSEC_PER_SEC),
		.tv_usec = (suseconds_t)(sp->patience % NSEC_PER_SEC /
					 NSEC_PER_USEC) |
			   1,
	};
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	uint64_t begin = monotonic();
	int fd, rc = 0;

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		rc = -errno;
	spend(sp, begin);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* What is no file could let the thread wait for ever, as a FIFO does. */
static int open_file(struct ulrpc_spans *sp)
{
	int fd = open(sp->path,
		      O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY |
			      O_CLOEXEC,
		      0640);
	struct stat st;

	if (fd < 0)
		return errno == ENXIO ? -EINVAL : -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	if (!st.st_size)
		sp->torn = false;
	return fd;
}

static bool is_socket(const struct ulrpc_spans *sp)
{
	return !strncmp(sp->path, SOCKET_MARK, strlen(SOCKET_MARK));
}

static int spans_open(struct ulrpc_spans *sp)
{
	int fd = is_socket(sp) ? open_socket(sp, sp->path + strlen(SOCKET_MARK))
			       : open_file(sp);

	sp->fd = MAX(fd, -1);
	return MIN(fd, 0);
}

static void spans_close(struct ulrpc_spans *sp)
{
	if (sp->fd >= 0)
		close(sp->fd);
	sp->fd = -1;
}

/* Waits until the socket has room. Returns false if it takes too long. */
static bool wait_for_room(struct ulrpc_spans *sp)
{
	struct pollfd p = { .fd = sp->fd, .events = POLLOUT };
	uint64_t begin = monotonic();

	if (!sp->patience)
		return false;
	(void)poll(&p, 1, (int)(sp->patience / NSEC_PER_MSEC) + 1);
	spend(sp, begin);
	return true;
}

static bool write_all(struct ulrpc_spans *sp, const char *text, size_t n)
{
	const int how = MSG_NOSIGNAL | MSG_DONTWAIT;
	size_t left = n;

	while (left) {
		ssize_t done = is_socket(sp) ? send(sp->fd, text, left, how)
					     : write(sp->fd, text, left);

		if (done < 0 &&
		    (errno == EINTR || (errno == EAGAIN && wait_for_room(sp))))
			continue;
		if (done <= 0)
			break;
		text += done;
		left -= (size_t)done;
	}
	/* What was torn before stays so if nothing could be written. */
	if (!is_socket(sp) && left < n)
		sp->torn = left;
	return !left;
}

/* Writes the first @n spans of sp->line, as a line. Returns whether that went
 * well. */
static bool write_line(struct ulrpc_spans *sp, uint32_t n)
{
	bool good = sp->fd >= 0 || !spans_open(sp);
	char *text = NULL;
	size_t length = 0;
	FILE *out = good ? open_memstream(&text, &length) : NULL;

	if (out) {
		print_line(out, sp, n);
		good = !fclose(out);
	}
	good = good && out && write_all(sp, text, length);
	/* Half a line would spoil the next one: a new connection has none. */
	if (!good)
		spans_close(sp);
	atomic_fetch_add(good ? &sp->written : &sp->lost, n);
	free(text);
	return good;
}

/* Spans of one trace are compared with each other, so the node's clock is
 * compared with Unix's only once, and well. */
static void take_offset(struct ulrpc_spans *sp)
{
	uint64_t best = UINT64_MAX;

	if (sp->rpc->is_virtual)
		return;
	for (unsigned int i = 0; i < TRIES; i++) {
		uint64_t begin = lnet_clock(sp->rpc->node, 0), took;
		struct timespec real;

		clock_gettime(CLOCK_REALTIME, &real);
		took = lnet_clock(sp->rpc->node, 0) - begin;
		if (took >= best)
			continue;
		best = took;
		sp->offset = (uint64_t)real.tv_sec * NSEC_PER_SEC +
			     (uint64_t)real.tv_nsec - begin - took / 2;
	}
}

/* Takes up to LINE spans from @r. Returns how many. */
static uint32_t ring_take(struct spans_ring *r, struct rpc_span *to)
{
	uint32_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed);
	uint32_t n =
		atomic_load_explicit(&r->put, memory_order_acquire) - taken;

	n = MIN(n, LINE);
	for (uint32_t i = 0; i < n; i++)
		to[i] = r->slots[(taken + i) & (r->size - 1)];
	atomic_store_explicit(&r->taken, taken + n, memory_order_release);
	return n;
}

static bool is_stopping(struct ulrpc_spans *sp)
{
	bool stop;

	pthread_mutex_lock(&sp->lock);
	stop = sp->stop;
	pthread_mutex_unlock(&sp->lock);
	return stop;
}

/* Writes what is in the rings. If it does not get on, the rest waits for the
 * next time; the @last time it is lost. */
static void write_waiting(struct ulrpc_spans *sp, bool last)
{
	bool good = true;

	sp->patience = PATIENCE;
	if (atomic_exchange(&sp->reopen, false)) {
		spans_close(sp);
		take_offset(sp);
		(void)spans_open(sp); /* or before the next line */
	}
	for (unsigned int i = 0; i < sp->nrings; i++) {
		uint32_t n, left = sp->rings[i]->size / LINE + 1;

		while (left-- && (n = ring_take(sp->rings[i], sp->line))) {
			if (!good) {
				atomic_fetch_add(&sp->lost, n);
				continue;
			}
			good = write_line(sp, n);
			if (!last && (!good || is_stopping(sp)))
				return;
			if (!last)
				sp->patience = PATIENCE;
		}
	}
}

/* Waits for LOOK_MS. Returns false if the thread is to end. */
static bool wait_a_while(struct ulrpc_spans *sp)
{
	struct timespec at;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += LOOK_MS * NSEC_PER_MSEC;
	at.tv_sec += at.tv_nsec / (long)NSEC_PER_SEC;
	at.tv_nsec %= (long)NSEC_PER_SEC;
	pthread_mutex_lock(&sp->lock);
	while (!sp->stop && !pthread_cond_timedwait(&sp->wake, &sp->lock, &at))
		;
	stop = sp->stop;
	pthread_mutex_unlock(&sp->lock);
	return !stop;
}

static void *spans_thread(void *arg)
{
	struct ulrpc_spans *sp = arg;

	while (wait_a_while(sp))
		write_waiting(sp, false);
	write_waiting(sp, true);
	return NULL;
}

/* ---- beginning and end ---- */

struct cpt_change {
	struct shard *shard;
	struct spans_ring *ring;
};

static int cpt_set(void *arg)
{
	struct cpt_change *c = arg;
	struct ulrpc *rpc = c->shard->rpc;
	bool samples = c->ring && atomic_load(&rpc->sampling.share) > 0;

	/* Once: other threads may still look at it when spans begin again. In
	 * virtual time, spans must not change what else a seed makes. */
	if (!c->shard->cpt && !rpc->sampling.seed && rpc->is_virtual)
		rpc->sampling.seed = mix(rpc->seed);
	else if (!c->shard->cpt && !rpc->sampling.seed)
		lnet_random(c->shard->node, 0, &rpc->sampling.seed,
			    sizeof(rpc->sampling.seed));
	c->shard->spans = c->ring;
	atomic_store(&c->shard->samples, samples);
	return 0;
}

/* Gives each CPT its ring, or takes it away, after which no CPT uses it.
 * Returns 0 or -errno. */
static int cpts_set(struct ulrpc_spans *sp, bool on)
{
	struct ulrpc *rpc = sp->rpc;
	int rc = 0;

	for (unsigned int i = 0; i < rpc->ncpts && !rc; i++) {
		struct cpt_change c = { &rpc->shards[i],
					on ? sp->rings[i] : NULL };

		rc = lnet_call(rpc->node, i, cpt_set, &c);
	}
	return rc;
}

static void spans_free(struct ulrpc_spans *sp)
{
	for (unsigned int i = 0; sp->rings && i < sp->nrings; i++)
		free(sp->rings[i]);
	spans_close(sp);
	free(sp->rings);
	free(sp->line);
	free(sp->path);
	free(sp->name);
	free(sp);
}

static void spans_destroy(struct ulrpc_spans *sp)
{
	pthread_mutex_destroy(&sp->lock);
	pthread_cond_destroy(&sp->wake);
	spans_free(sp);
}

static struct spans_ring *ring_new(uint32_t queue)
{
	struct spans_ring *r;
	uint32_t size = 1;

	while (size < queue)
		size *= 2;
	r = calloc(1, sizeof(*r) + size * sizeof(r->slots[0]));
	if (r)
		r->size = size;
	return r;
}

static struct ulrpc_spans *spans_new(struct ulrpc *rpc,
				     const struct ulrpc_spans_conf *conf)
{
	const char *name =
		conf->name ? conf->name : program_invocation_short_name;
	struct ulrpc_spans *sp = calloc(1, sizeof(*sp));
	bool good = sp;

	if (!sp)
		return NULL;
	sp->rpc = rpc;
	sp->fd = -1;
	sp->patience = PATIENCE;
	take_offset(sp);
	sp->path = strdup(conf->path);
	sp->name = strdup(name);
	sp->line = calloc(LINE, sizeof(*sp->line));
	sp->nrings = rpc->ncpts;
	sp->rings = calloc(rpc->ncpts, sizeof(*sp->rings));
	good = sp->path && sp->name && sp->line && sp->rings;
	for (unsigned int i = 0; good && i < rpc->ncpts; i++) {
		sp->rings[i] = ring_new(conf->queue ? conf->queue : QUEUE);
		good = sp->rings[i];
		if (good && rpc->is_virtual)
			sp->rings[i]->at_once = sp;
	}
	if (good)
		return sp;
	spans_free(sp);
	return NULL;
}

static void lock_init(struct ulrpc_spans *sp)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&sp->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sp->wake, &attr);
	pthread_condattr_destroy(&attr);
}

/* Starts the thread, which gets no signals. 0 or -errno. */
static int spans_run(struct ulrpc_spans *sp)
{
	sigset_t all, before;
	int rc;

	if (sp->rpc->is_virtual)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&sp->thread, NULL, spans_thread, sp);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sp->threaded = !rc;
	return rc;
}

/* Writes what is left. CPTs do not add spans any more. */
static void spans_end(struct ulrpc_spans *sp)
{
	if (sp->threaded) {
		pthread_mutex_lock(&sp->lock);
		sp->stop = true;
		pthread_cond_signal(&sp->wake);
		pthread_mutex_unlock(&sp->lock);
		pthread_join(sp->thread, NULL);
	} else {
		write_waiting(sp, true);
	}
	spans_forget(sp->rpc);
}

void spans_forget(struct ulrpc *rpc)
{
	struct ulrpc_spans *sp = rpc->sampling.spans;

	if (sp)
		sp->rpc = NULL;
	rpc->sampling.spans = NULL;
}

static void span_on_close(struct ulrpc *rpc)
{
	if (rpc->sampling.spans)
		spans_end(rpc->sampling.spans);
}

const struct rpc_part span_part = { .free = span_on_close };

int ulrpc_spans_start(struct ulrpc *rpc, const struct ulrpc_spans_conf *conf,
		      struct ulrpc_spans **spans_p)
{
	struct ulrpc_spans *sp;
	int rc;

	if (!conf->path || !*conf->path || conf->share > MILLION ||
	    conf->queue > QUEUE_MAX)
		return -EINVAL;
	if (!rpc_may_manage(rpc->node))
		return -EDEADLK;
	if (lnet_is_forked(rpc->node))
		return -ESHUTDOWN;
	sp = spans_new(rpc, conf);
	if (!sp)
		return -ENOMEM;
	rc = spans_open(sp);
	if (!rc && atomic_exchange(&rpc->sampling.taken, true))
		rc = -EALREADY;
	if (rc) {
		spans_free(sp);
		return rc;
	}
	lock_init(sp);
	rc = spans_run(sp);
	if (rc) {
		atomic_store(&rpc->sampling.taken, false);
		spans_free(sp);
		return rc;
	}
	rpc->sampling.spans = sp;
	atomic_store(&rpc->sampling.share, conf->share);
	rc = cpts_set(sp, true);
	if (rc) {
		ulrpc_spans_stop(sp);
		return rc;
	}
	atomic_store(&rpc->sampling.on, true);
	*spans_p = sp;
	return 0;
}

void ulrpc_spans_reopen(struct ulrpc_spans *spans)
{
	atomic_store(&spans->reopen, true);
}

void ulrpc_spans_stats(struct ulrpc_spans *spans,
		       struct ulrpc_spans_stats *stats)
{
	stats->written = atomic_load(&spans->written);
	stats->dropped = atomic_load(&spans->lost);
	for (unsigned int i = 0; i < spans->nrings; i++)
		stats->dropped += atomic_load(&spans->rings[i]->dropped);
}

void ulrpc_spans_stop(struct ulrpc_spans *spans)
{
	struct ulrpc *rpc = spans ? spans->rpc : NULL;
	int rc = -EDEADLK;

	if (!rpc) {
		if (spans)
			spans_destroy(spans);
		return;
	}
	/* In a child of fork() there is no thread. */
	if (lnet_is_forked(rpc->node)) {
		spans_forget(rpc);
		spans_free(spans);
		return;
	}
	if (rpc_may_manage(rpc->node)) {
		atomic_store(&rpc->sampling.on, false);
		rc = cpts_set(spans, false);
	}
	MISUSE_IF(rc, "ulrpc_spans_stop(): called in a turn of a CPT");
	spans_end(spans);
	atomic_store(&rpc->sampling.taken, false);
	spans_destroy(spans);
}
