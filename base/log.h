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

/* The names of the library's subsystems, one of which each line of its log has;
 * in alphabetical order, NULL at the end. tests/log_check.sh compares them with
 * the calls. */
#define LOG_SUBSYSTEMS 20
extern const char *const log_subsystems[LOG_SUBSYSTEMS + 1];

/* Which lines are logged: the highest level of each subsystem. */
struct log_levels {
	/* for lines of no subsystem of the library: those of programs */
	uint8_t all;
	uint8_t of[LOG_SUBSYSTEMS];
};

/* The highest of all levels. Only for log_on(), and for the functions that set
 * levels. */
extern int log_level_now;
/* Have the levels in the environment variable been set? This is done once, so
 * that it does not undo a later change of the levels. Any thread. */
extern bool log_environment_read;

/* Are lines of @level logged for one subsystem at least? log_write() looks at
 * the subsystem of the line. */
static inline bool log_on(enum log_level level)
{
	return (int)level <= __atomic_load_n(&log_level_now, __ATOMIC_RELAXED);
}

/* Sets level and sink; by default LOG_WARN, and stderr. @sink NULL: stderr.
 * @sink must be callable from any thread, one call at a time; it gets
 * "subsystem: text" without a newline and must not log. Control characters in
 * the text, and bytes that are not UTF-8, become '?'. */
void log_setup(enum log_level level, log_sink_fn sink, void *arg);

/* ---- stamps ---- */

/* Begins the lines on stderr with the time and the node if the environment
 * variable LOG_STAMP_VARIABLE asks for it, and stderr is not systemd's journal,
 * which knows the time. */
#define LOG_STAMP_VARIABLE "ULNET_LOG_STAMP"
#define LOG_STAMP	   128
/* Fills @text with such a stamp and a space behind it, or with "". Returns
 * @text. The node in the stamp is that of the loop in whose turn the thread is
 * (loop.name). If the thread is in no turn, or that loop has no name, it is the
 * process's only node; "-" if the process has several. */
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
/* Returns "err", "warn", "info" or "debug". NULL: there is no such level. */
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
	uint64_t until; /* ns: when the present second ends */
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

#define CODE_NAME 192 /* bytes of a name, with its terminator */

/* Fills @name with the name of a function of the user's program, for log lines:
 * "on_put, /usr/bin/depot+0x2f10", which is its symbol, if the program exports
 * that, and an address for addr2line(1). Returns @name. Allocates nothing. */
const char *code_name(code_fn fn, char name[CODE_NAME]);

#endif
