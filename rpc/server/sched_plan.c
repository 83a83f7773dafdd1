/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of a service, from its text. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "rpc/server/gate.h"

#define QUANTUM_MAX 65536

/* The first one is the default. */
static const struct sched_ops *const policies[] = {
	&sched_fair,
	&sched_rr,
	&sched_fifo,
	&sched_edf,
};

static int __attribute__((format(printf, 4, 5)))
plan_error(struct ulnet_text_error *err, size_t offset, int rc, const char *fmt,
	   ...)
{
	va_list args;

	if (!err)
		return rc;
	err->offset = offset;
	va_start(args, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, args);
	va_end(args);
	return rc;
}

static size_t blanks(const char *s)
{
	return strspn(s, " \t");
}

static size_t word(const char *s)
{
	return strcspn(s, " \t;");
}

static bool is_word(const char *s, const char *name)
{
	size_t n = word(s);

	return n == strlen(name) && !strncmp(s, name, n);
}

/* "quantum=N", at text[*at_p], if it is there. */
static int plan_quantum(const char *text, size_t *at_p, struct sched_plan *plan,
			struct ulnet_text_error *err)
{
	static const char name[] = "quantum=";
	const char *s = text + *at_p;
	unsigned long n;
	char *end;

	if (strncmp(s, name, strlen(name)) != 0)
		return 0;
	if (!plan->ops->quantum)
		return plan_error(err, *at_p, -EINVAL, "%s has no quantum",
				  plan->ops->name);
	s += strlen(name);
	n = isdigit((unsigned char)*s) ? strtoul(s, &end, 10) : 0;
	if (!n || n > QUANTUM_MAX || end != s + word(s))
		return plan_error(err, *at_p, -EINVAL,
				  "quantum: not from 1 to %d", QUANTUM_MAX);
	plan->quantum = (unsigned int)n;
	*at_p = (size_t)(end - text);
	*at_p += blanks(text + *at_p);
	return 0;
}

static int plan_order(const char *text, size_t *at_p, struct sched_plan *plan,
		      struct ulnet_text_error *err)
{
	const char *s = text + *at_p;

	plan->ops = policies[0];
	if (is_word(s, "tbf"))
		return 0;
	plan->ops = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (is_word(s, policies[i]->name))
			plan->ops = policies[i];
	if (!plan->ops)
		return plan_error(err, *at_p, -EOPNOTSUPP,
				  "'%.*s' is no policy: fair, rr, fifo, edf or "
				  "tbf is expected",
				  (int)word(s), s);
	*at_p += word(s);
	*at_p += blanks(text + *at_p);
	return plan_quantum(text, at_p, plan, err);
}

static int plan_rules(const char *text, size_t at, struct sched_plan *plan,
		      struct ulnet_text_error *err)
{
	int rc;

	if (!text[at])
		return 0;
	if (!is_word(text + at, "tbf"))
		return plan_error(err, at, -EINVAL, "%.*s: what is that?",
				  (int)MIN(word(text + at), 32u), text + at);
	at += word(text + at);
	at += blanks(text + at);
	rc = gate_rules_parse(text + at, &plan->rules, err);
	if (rc == -EINVAL && err)
		err->offset += at;
	return rc;
}

int sched_plan_parse(const char *text, struct sched_plan *plan,
		     struct ulnet_text_error *err)
{
	size_t at;
	int rc;

	*plan = (struct sched_plan){ .ops = policies[0] };
	if (!text)
		return 0;
	at = blanks(text);
	rc = plan_order(text, &at, plan, err);
	return rc ? rc : plan_rules(text, at, plan, err);
}

void sched_plan_free(struct sched_plan *plan)
{
	gate_rules_free(plan->rules);
	plan->rules = NULL;
}
