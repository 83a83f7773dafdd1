/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log for operators. Each call is one line: the object, what happened, the text
 * of the errno. err: an operator must act; warn: degraded, recovers by itself;
 * info: the configuration changed; debug: costs one test when off.
 *
 * Levels, sink and the nodes' names are process-wide. They and each thread's
 * loop pointer are the only mutable globals of base/ (but for base/fork.h). Any
 * thread.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include "base/list.h"

enum log_level { LOG_ERR, LOG_WARN, LOG_INFO, LOG_DEBUG };

typedef void (*log_sink_fn)(int level, const char *line, void *arg);

/* The names of the library's subsystems, of which lines are, in the order of
 * the alphabet; NULL at the end. tests/log_check.sh compares them with the
 * calls. */
#define LOG_SUBSYSTEMS 18
extern const char *const log_subsystems[LOG_SUBSYSTEMS + 1];

/* What is logged. */
struct log_levels {
	uint8_t all; /* of lines of none of these subsystems: programs have some
		      */
	uint8_t of[LOG_SUBSYSTEMS];
};

/* The highest of all levels. log_on() reads it, and only log_levels_set() and
 * its brothers set it. */
extern int log_level_now;
/* The levels of the environment were set: once, so that others which are set
 * later stay. Any thread. */
extern bool log_environment_read;

/* Are lines of @level logged, by one subsystem at least? log_write() tells by
 * which. */
static inline bool log_on(enum log_level level)
{
	return (int)level <= __atomic_load_n(&log_level_now, __ATOMIC_RELAXED);
}

/* Sets level and sink; by default LOG_WARN, and stderr. @sink NULL: stderr.
 * @sink must be callable from any thread, one call at a time; it gets
 * "subsystem: text" without a newline and must not log. Control characters in
 * the text become '?'. */
void log_setup(enum log_level level, log_sink_fn sink, void *arg);

/* ---- stamps ---- */

/* Begins the lines on stderr with the time and the node if the environment
 * variable LOG_STAMP_VARIABLE asks for it, and stderr is not systemd's journal,
 * which knows the time. */
#define LOG_STAMP_VARIABLE "ULNET_LOG_STAMP"
#define LOG_STAMP	   128
/* Fills @text with such a stamp, with a space behind it, or with "". Returns
 * @text. The node is that of the loop in whose turn the thread is (loop.name).
 * Otherwise, or if that has no name, it is the process's: none ("-") if the
 * process has several. */
const char *log_stamp(char *text, size_t size);

#define LOG_NAME 64

/* A node of the process. */
struct log_node {
	struct list link;
	char name[LOG_NAME]; /* "": it has none yet */
};

/* Borrows @n until log_node_del(), or log_node_leave() in a child of fork()
 * that has no other thread yet. */
void log_node_add(struct log_node *n);
void log_node_del(struct log_node *n);
void log_node_leave(struct log_node *n);
void log_node_rename(struct log_node *n, const char *name);

/* Sets the level alone, of all subsystems. */
void log_level_set(enum log_level level);
struct log_levels log_levels(void);
void log_levels_set(const struct log_levels *levels);
/* Are lines of @level logged by @subsystem, which may be a program's own? */
bool log_wants(enum log_level level, const char *subsystem);
/* "err", "warn", "info", "debug". NULL: there is no such level. */
const char *log_level_name(int level);

void log_write(enum log_level level, const char *subsystem, const char *fmt,
	       ...) __attribute__((format(printf, 3, 4)));
void log_vwrite(enum log_level level, const char *subsystem, const char *fmt,
		va_list args) __attribute__((format(printf, 3, 0)));

/* For warnings that strangers can cause at will: at most LOG_LIMIT_LINES are
 * logged in a second, and then the number of those left out. Owner: whoever
 * embeds it. All zero at first. */
#define LOG_LIMIT_LINES 10
struct log_limit {
	uint64_t until; /* ns: end of this second */
	unsigned int lines, left_out;
};
/* May one more line be logged at @now (ns)? */
bool log_limit_pass(struct log_limit *l, const char *subsystem, uint64_t now);

#define log_warn_limited(limit, now, sub, ...)                 \
	do {                                                   \
		if (log_limit_pass(limit, sub, now))           \
			log_write(LOG_WARN, sub, __VA_ARGS__); \
	} while (0)

#define log_at(level, sub, ...)                             \
	do {                                                \
		if (log_on(level))                          \
			log_write(level, sub, __VA_ARGS__); \
	} while (0)
#define log_err(sub, ...)   log_at(LOG_ERR, sub, __VA_ARGS__)
#define log_warn(sub, ...)  log_at(LOG_WARN, sub, __VA_ARGS__)
#define log_info(sub, ...)  log_at(LOG_INFO, sub, __VA_ARGS__)
#define log_debug(sub, ...) log_at(LOG_DEBUG, sub, __VA_ARGS__)

typedef void (*code_fn)(void);

#define CODE_NAME 192 /* bytes */

/* The name of a function of the user's program, for log lines: "on_put,
 * /usr/bin/depot+0x2f10", which is its symbol, if the program exports that, and
 * an address for addr2line(1). Returns @name. Allocates nothing. */
const char *code_name(code_fn fn, char name[CODE_NAME]);

#endif
