/* SPDX-License-Identifier: BSD-3-Clause */
/* The public side of the library's log: lnet_log_set(3). */
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

#include "ulnet/lnet.h"

_Static_assert(LNET_LOG_ERR == (int)LOG_ERR && LNET_LOG_DEBUG == (int)LOG_DEBUG,
	       "levels are the same, inside and outside");

void lnet_log_set(enum ulnet_log_level level, ulnet_log_fn fn, void *arg)
{
	log_setup((enum log_level)level, fn, arg);
}

enum ulnet_log_level lnet_log_level(void)
{
	return (enum ulnet_log_level)log_levels().all;
}

void lnet_log_level_set(enum ulnet_log_level level)
{
	log_level_set((enum log_level)level);
}

const char *lnet_log_level_name(enum ulnet_log_level level)
{
	return log_level_name((int)level);
}

int lnet_log_level_parse(const char *name, enum ulnet_log_level *level_p)
{
	const char *one;

	for (int i = 0; (one = log_level_name(i)); i++) {
		if (strcmp(one, name) != 0)
			continue;
		*level_p = (enum ulnet_log_level)i;
		return 0;
	}
	return -EINVAL;
}

/* ---- levels as a text ---- */

#define LEVELS_EXPECTED "err, warn, info or debug is expected"

/* A text that is being read. */
struct levels_text {
	const char *at;
	struct log_levels levels;
	/* subsystems that were named: bit i is for log_subsystems[i] */
	uint32_t seen;
	struct ulnet_conf_error err;
};

static int __attribute__((format(printf, 2, 3)))
levels_wrong(struct levels_text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(t->err.what, sizeof(t->err.what), fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Sets *@level_p to the level whose name the @n bytes are. */
static bool level_named(const char *name, size_t n, uint8_t *level_p)
{
	const char *one;

	for (int i = 0; (one = log_level_name(i)); i++) {
		if (strlen(one) != n || strncmp(one, name, n) != 0)
			continue;
		*level_p = (uint8_t)i;
		return true;
	}
	return false;
}

static int no_subsystem(struct levels_text *t, const char *name, size_t n)
{
	size_t room = sizeof(t->err.what), len;

	levels_wrong(t, "'%.*s' is no subsystem: there are", (int)MIN(n, 32u),
		     name);
	for (unsigned int i = 0; i < LOG_SUBSYSTEMS; i++) {
		len = strlen(t->err.what);
		snprintf(t->err.what + len, room - len, "%s %s", i ? "," : "",
			 log_subsystems[i]);
	}
	return -EINVAL;
}

/* Reads the @n bytes at t->at: "route=debug". @eq: where the '=' is in them. */
static int levels_one(struct levels_text *t, size_t n, size_t eq)
{
	const char *level = t->at + eq + 1;
	const char *name;

	for (unsigned int i = 0; (name = log_subsystems[i]); i++) {
		if (strlen(name) != eq || strncmp(name, t->at, eq) != 0)
			continue;
		if (t->seen & UINT32_C(1) << i)
			return levels_wrong(t, "%s comes twice", name);
		t->seen |= UINT32_C(1) << i;
		if (level_named(level, n - eq - 1, &t->levels.of[i]))
			return 0;
		return levels_wrong(t, "%s: " LEVELS_EXPECTED, name);
	}
	return no_subsystem(t, t->at, eq);
}

/* Reads the levels in @text into @t, which has those that are in force. */
static int levels_read(struct levels_text *t, const char *text)
{
	for (t->at = text;; t->at++) {
		size_t n = strcspn(t->at, ","), eq = strcspn(t->at, ",=");
		int rc = 0;

		if (eq < n)
			rc = levels_one(t, n, eq);
		else if (!level_named(t->at, n, &t->levels.all))
			rc = levels_wrong(t, LEVELS_EXPECTED);
		else if (t->at != text)
			rc = levels_wrong(t,
					  "'%.*s': a level for all comes "
					  "first",
					  (int)n, t->at);
		else
			memset(t->levels.of, t->levels.all,
			       sizeof(t->levels.of));
		t->at += n;
		if (rc || !*t->at)
			return rc;
	}
}

static int levels_take(const char *text, bool set, struct ulnet_conf_error *err)
{
	struct levels_text t = { .levels = log_levels() };
	int rc = levels_read(&t, text);

	if (rc && err)
		*err = t.err;
	if (!rc && set)
		log_levels_set(&t.levels);
	return rc;
}

int lnet_log_levels_set(const char *text, struct ulnet_conf_error *err)
{
	return levels_take(text, true, err);
}

int lnet_log_levels_check(const char *text, struct ulnet_conf_error *err)
{
	return levels_take(text, false, err);
}

void lnet_text_clean(char *text)
{
	text_clean(text);
}

const char *lnet_log_levels(char *text, size_t size)
{
	struct log_levels l = log_levels();

	snprintf(text, size, "%s", log_level_name(l.all));
	for (unsigned int i = 0; i < LOG_SUBSYSTEMS; i++) {
		size_t len = strlen(text);

		if (l.of[i] != l.all)
			snprintf(text + len, size - len, ",%s=%s",
				 log_subsystems[i], log_level_name(l.of[i]));
	}
	return text;
}

/* ---- lines ---- */

_Static_assert(LNET_LOG_STAMP == LOG_STAMP, "the same, inside and outside");

const char *lnet_log_stamp(char *text, size_t size)
{
	return log_stamp(text, size);
}

bool lnet_log_on(enum ulnet_log_level level)
{
	return level <= lnet_log_level();
}

bool lnet_log_on_for(enum ulnet_log_level level, const char *subsystem)
{
	return log_wants((enum log_level)level, subsystem);
}

void lnet_log(enum ulnet_log_level level, const char *subsystem,
	      const char *fmt, ...)
{
	va_list args;

	if (!log_on((enum log_level)level))
		return;
	va_start(args, fmt);
	log_vwrite((enum log_level)level, subsystem, fmt, args);
	va_end(args);
}
