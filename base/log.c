/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/text.h"

#define LINE_BYTES 1024

const char *const log_subsystems[LOG_SUBSYSTEMS + 1] = {
	"config", "control", "discovery", "fault",   "limits",
	"link",	  "loop",    "names",	  "ni",	     "o2iblnd",
	"open",	  "parse",   "ping",	  "portal",  "route",
	"rpc",	  "setting", "shmlnd",	  "socklnd", "store",
};

int log_level_now = LOG_WARN;
bool log_environment_read;

/* The levels in force: element 0 is that of lines of no subsystem of the
 * library, element i + 1 that of log_subsystems[i]. Each is read without a
 * lock; sink_lock is held while they are set. */
static uint8_t levels_now[1 + LOG_SUBSYSTEMS] = {
	[0 ... LOG_SUBSYSTEMS] = LOG_WARN,
};

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static log_sink_fn sink_now;
static void *sink_arg;

void log_setup(enum log_level level, log_sink_fn sink, void *arg)
{
	pthread_mutex_lock(&sink_lock);
	sink_now = sink;
	sink_arg = arg;
	pthread_mutex_unlock(&sink_lock);
	log_level_set(level);
}

void log_level_set(enum log_level level)
{
	struct log_levels l = { .all = (uint8_t)level };

	memset(l.of, (int)level, sizeof(l.of));
	log_levels_set(&l);
}

static enum log_level level_at(unsigned int i)
{
	return (enum log_level)__atomic_load_n(&levels_now[i],
					       __ATOMIC_RELAXED);
}

static void level_put(unsigned int i, uint8_t level)
{
	__atomic_store_n(&levels_now[i], level, __ATOMIC_RELAXED);
}

struct log_levels log_levels(void)
{
	struct log_levels l = { .all = (uint8_t)level_at(0) };

	for (unsigned int i = 0; i < LOG_SUBSYSTEMS; i++)
		l.of[i] = (uint8_t)level_at(i + 1);
	return l;
}

void log_levels_set(const struct log_levels *l)
{
	int most = l->all;

	pthread_mutex_lock(&sink_lock);
	level_put(0, l->all);
	for (unsigned int i = 0; i < LOG_SUBSYSTEMS; i++) {
		level_put(i + 1, l->of[i]);
		most = MAX(most, (int)l->of[i]);
	}
	__atomic_store_n(&log_level_now, most, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&sink_lock);
}

bool log_wants(enum log_level level, const char *subsystem)
{
	unsigned int i = 0;

	if (!log_on(level))
		return false;
	while (i < LOG_SUBSYSTEMS && strcmp(log_subsystems[i], subsystem) != 0)
		i++;
	return level <= level_at(i < LOG_SUBSYSTEMS ? i + 1 : 0);
}

const char *log_level_name(int level)
{
	static const char *const names[] = {
		[LOG_ERR] = "err",
		[LOG_WARN] = "warn",
		[LOG_INFO] = "info",
		[LOG_DEBUG] = "debug",
	};

	return level < 0 || (size_t)level >= ARRAY_SIZE(names) ? NULL
							       : names[level];
}

/* ---- stamps ---- */

static pthread_mutex_t node_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list nodes = { &nodes, &nodes }; /* of log_node.link */

void log_node_add(struct log_node *n)
{
	*n->name = 0;
	pthread_mutex_lock(&node_lock);
	list_add_tail(&nodes, &n->link);
	pthread_mutex_unlock(&node_lock);
}

void log_node_del(struct log_node *n)
{
	pthread_mutex_lock(&node_lock);
	list_del(&n->link);
	pthread_mutex_unlock(&node_lock);
}

void log_node_leave(struct log_node *n)
{
	/* A thread that the child does not have may have held the lock. */
	pthread_mutex_init(&node_lock, NULL);
	list_del(&n->link);
}

void log_node_rename(struct log_node *n, const char *name)
{
	pthread_mutex_lock(&node_lock);
	snprintf(n->name, sizeof(n->name), "%s", name);
	pthread_mutex_unlock(&node_lock);
}

/* Sets @name to the name of the process's node; "": there is none, or not one
 * only. */
static void only_name(char name[LOG_NAME])
{
	*name = 0;
	pthread_mutex_lock(&node_lock);
	if (!list_empty(&nodes) && nodes.next == nodes.prev)
		memcpy(name, list_first(&nodes, struct log_node, link)->name,
		       LOG_NAME);
	pthread_mutex_unlock(&node_lock);
}

/* Is stderr systemd's journal? JOURNAL_STREAM names the stream that the service
 * was started with; stderr may have been redirected since. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device, inode;
	struct stat st;

	return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
	       st.st_ino == inode;
}

static bool stamps_are_wanted(void)
{
	const char *text = getenv(LOG_STAMP_VARIABLE);

	return text && *text && strcmp(text, "0") != 0 && !is_journal();
}

static const char *stamp_name(char name[LOG_NAME])
{
	const struct loop *here = loop_current();

	if (here && *here->name)
		memcpy(name, here->name, LOG_NAME);
	else
		only_name(name);
	return *name ? name : "-";
}

const char *log_stamp(char *text, size_t size)
{
	char at[32], name[LOG_NAME];
	struct timespec now;
	struct tm tm;

	*text = 0;
	if (!stamps_are_wanted())
		return text;
	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &tm) &&
	    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &tm))
		snprintf(text, size, "%s.%06ldZ %s ", at, now.tv_nsec / 1000,
			 stamp_name(name));
	return text;
}

/* ---- lines ---- */

static void to_stderr(enum log_level level, const char *line)
{
	static const char *const names[] = {
		[LOG_ERR] = "error",
		[LOG_WARN] = "warning",
		[LOG_INFO] = "info",
		[LOG_DEBUG] = "debug",
	};

	char stamp[LOG_STAMP];

	fprintf(stderr, "%s%s: %s\n", log_stamp(stamp, sizeof(stamp)),
		names[level], line);
}

void log_vwrite(enum log_level level, const char *subsystem, const char *fmt,
		va_list args)
{
	char line[LINE_BYTES];
	int len;

	if (!log_wants(level, subsystem))
		return;
	len = snprintf(line, sizeof(line), "%s: ", subsystem);
	if (len >= 0 && (size_t)len < sizeof(line))
		vsnprintf(line + len, sizeof(line) - (size_t)len, fmt, args);
	/* It may contain what a peer or a file said, which must not look like
	 * further lines of the log, nor control a terminal. */
	text_clean(line);
	pthread_mutex_lock(&sink_lock);
	if (sink_now)
		sink_now(level, line, sink_arg);
	else
		to_stderr(level, line);
	pthread_mutex_unlock(&sink_lock);
}

void log_write(enum log_level level, const char *subsystem, const char *fmt,
	       ...)
{
	va_list args;

	va_start(args, fmt);
	log_vwrite(level, subsystem, fmt, args);
	va_end(args);
}

bool log_limit_pass(struct log_limit *l, const char *subsystem, uint64_t now)
{
	if (!log_wants(LOG_WARN, subsystem))
		return false;
	if (now >= l->until) {
		if (l->left_out)
			log_write(LOG_WARN, subsystem, "%u lines left out",
				  l->left_out);
		*l = (struct log_limit){ .until = now + NSEC_PER_SEC };
	}
	if (l->lines == LOG_LIMIT_LINES) {
		l->left_out++;
		return false;
	}
	l->lines++;
	return true;
}

const char *code_name(code_fn fn, char name[CODE_NAME])
{
	uintptr_t at = (uintptr_t)fn;
	Dl_info info;

	if (!dladdr((void *)at, &info) || !info.dli_fname)
		snprintf(name, CODE_NAME, "at 0x%" PRIxPTR, at);
	else
		snprintf(name, CODE_NAME, "%s%s%s+0x%" PRIxPTR,
			 info.dli_sname ? info.dli_sname : "",
			 info.dli_sname ? ", " : "", info.dli_fname,
			 at - (uintptr_t)info.dli_fbase);
	return name;
}
