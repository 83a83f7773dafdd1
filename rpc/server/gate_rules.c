/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of token buckets, from their text. */
#include "rpc/server/gate_rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ulnet/rpc.h"

#define RULES_MAX 256
#define DEPTH	  3
#define RATE_MAX  1000000000u
#define DEPTH_MAX 1000000u

/* An item of a rule: both parts are in the text. */
struct gate_word {
	const char *name, *value;
	int name_length, value_length;
};

struct gate_parser {
	const char *text, *at;
	unsigned int rule; /* that is being read; the first one is 1 */
	struct ulnet_text_error *err;
};

/* ---- errors ---- */

static int __attribute__((format(printf, 3, 4)))
gate_error(const struct gate_parser *p, const char *where, const char *fmt, ...)
{
	char what[64];
	va_list args;

	if (!p->err)
		return -EINVAL;
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	p->err->offset = (size_t)(where - p->text);
	snprintf(p->err->what, sizeof(p->err->what), "rule %u: %s", p->rule,
		 what);
	return -EINVAL;
}

static int word_error(const struct gate_parser *p, const struct gate_word *w,
		      const char *what)
{
	return gate_error(p, w->name, "%.*s: %s", MIN(w->name_length, 16),
			  w->name, what);
}

/* ---- words ---- */

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

static bool is_item(const char *s)
{
	size_t n = strcspn(s, " \t;=");

	return n && s[n] == '=';
}

static bool word_is(const char *s, int length, const char *name)
{
	return (size_t)length == strlen(name) &&
	       !strncmp(s, name, (size_t)length);
}

/* A list of NIDs has blanks: it goes on until the next item. */
static int list_length(const char *value)
{
	const char *s = value, *end = value;

	while (*s && *s != ';' && !is_item(s)) {
		s += strcspn(s, " \t;");
		end = s;
		s = skip_blanks(s);
	}
	return (int)(end - value);
}

/* 1; 0: the rule ends here; -EINVAL. */
static int next_word(struct gate_parser *p, struct gate_word *w)
{
	p->at = skip_blanks(p->at);
	if (!*p->at || *p->at == ';')
		return 0;
	w->name = p->at;
	w->name_length = (int)strcspn(p->at, " \t;=");
	if (!is_item(p->at))
		return word_error(p, w, "is to be name=value");
	w->value = w->name + w->name_length + 1;
	w->value_length = word_is(w->name, w->name_length, "nid")
				  ? list_length(w->value)
				  : (int)strcspn(w->value, " \t;");
	p->at = w->value + w->value_length;
	return w->value_length ? 1 : word_error(p, w, "has no value");
}

/* ---- items ---- */

static int take_count(const struct gate_parser *p, const struct gate_word *w,
		      uint32_t min, uint32_t max, uint32_t *n_p)
{
	uint64_t n = 0;

	for (int i = 0; i < w->value_length; i++) {
		if (!isdigit((unsigned char)w->value[i]))
			return word_error(p, w, "not a number");
		n = MIN(n * 10 + (uint64_t)(w->value[i] - '0'), UINT32_MAX);
	}
	if (n < min || n > max)
		return gate_error(p, w->value, "%.*s: not from %u to %u",
				  w->name_length, w->name, min, max);
	*n_p = (uint32_t)n;
	return 0;
}

static int take_nids(struct gate_parser *p, const struct gate_word *w,
		     struct gate_rule *r)
{
	struct ulnet_text_error err;
	char *text = strndup(w->value, (size_t)w->value_length);
	int rc = text ? lnet_nidlist_parse(text, &r->nids, &err) : -ENOMEM;

	free(text);
	return rc == -EINVAL ? gate_error(p, w->value + err.offset, "nid: %s",
					  err.what)
			     : rc;
}

static int take_method(struct gate_rule *r, const struct gate_word *w)
{
	char *name = strndup(w->value, (size_t)w->value_length);

	if (!name)
		return -ENOMEM;
	r->one_method = true;
	r->method = ulrpc_method(name);
	free(name);
	return 0;
}

static int take_per(const struct gate_parser *p, struct gate_rule *r,
		    const struct gate_word *w)
{
	static const char *const names[] = {
		[GATE_PER_HOST] = "host",
		[GATE_PER_CLIENT] = "client",
		[GATE_PER_RULE] = "rule",
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (word_is(w->value, w->value_length, names[i])) {
			r->per = (enum gate_per)i;
			return 0;
		}
	return word_error(p, w, "is to be host, client or rule");
}

enum gate_item {
	ITEM_NID,
	ITEM_PID,
	ITEM_METHOD,
	ITEM_RATE,
	ITEM_DEPTH,
	ITEM_PER,
	ITEMS
};

static const char *const item_names[ITEMS] = {
	[ITEM_NID] = "nid",   [ITEM_PID] = "pid",     [ITEM_METHOD] = "method",
	[ITEM_RATE] = "rate", [ITEM_DEPTH] = "depth", [ITEM_PER] = "per",
};

static int take_item(struct gate_parser *p, struct gate_rule *r,
		     const struct gate_word *w, enum gate_item item)
{
	switch (item) {
	case ITEM_NID:
		return take_nids(p, w, r);
	case ITEM_PID:
		r->one_pid = true;
		return take_count(p, w, 0, UINT32_MAX, &r->pid);
	case ITEM_METHOD:
		return take_method(r, w);
	case ITEM_RATE:
		return take_count(p, w, 1, RATE_MAX, &r->rate);
	case ITEM_DEPTH:
		return take_count(p, w, 1, DEPTH_MAX, &r->depth);
	default:
		return take_per(p, r, w);
	}
}

/* ---- rules ---- */

static int take_word(struct gate_parser *p, struct gate_rule *r,
		     const struct gate_word *w, unsigned int *seen)
{
	for (unsigned int i = 0; i < ITEMS; i++) {
		if (!word_is(w->name, w->name_length, item_names[i]))
			continue;
		if (*seen & 1u << i)
			return word_error(p, w, "there twice");
		*seen |= 1u << i;
		return take_item(p, r, w, (enum gate_item)i);
	}
	return word_error(p, w, "there is no such item");
}

static int take_rule(struct gate_parser *p, struct gate_rule *r)
{
	const char *begin = skip_blanks(p->at);
	unsigned int seen = 0;
	struct gate_word w;
	int rc;

	*r = (struct gate_rule){ .depth = DEPTH };
	while ((rc = next_word(p, &w)) > 0) {
		rc = take_word(p, r, &w, &seen);
		if (rc)
			return rc;
	}
	if (!rc && !r->rate)
		return gate_error(p, begin, "has no rate");
	return rc;
}

static bool rule_takes_all(const struct gate_rule *r)
{
	return !r->nids && !r->one_pid && !r->one_method;
}

static int take_rules(struct gate_parser *p, struct gate_rules *rules,
		      unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct gate_rule *r = &rules->rule[i];
		int rc;

		p->rule = i + 1;
		if (i && rule_takes_all(r - 1))
			return gate_error(p, p->at,
					  "never reached: rule %u is for all",
					  i);
		rc = take_rule(p, r);
		rules->n++;
		if (rc)
			return rc;
		p->at += *p->at == ';';
	}
	return 0;
}

static unsigned int rules_count(const char *text)
{
	unsigned int n = 1;

	while ((text = strchr(text, ';'))) {
		text = skip_blanks(text + 1);
		n += *text != 0; /* one may end with ';' */
	}
	return n;
}

int gate_rules_parse(const char *text, struct gate_rules **rules_p,
		     struct ulnet_text_error *err)
{
	struct gate_parser p = {
		.text = text, .at = text, .rule = 1, .err = err
	};
	unsigned int n = rules_count(text);
	struct gate_rules *rules;
	int rc;

	if (n > RULES_MAX)
		return gate_error(&p, text, "there are more than %u",
				  RULES_MAX);
	rules = calloc(1, sizeof(*rules) + n * sizeof(rules->rule[0]));
	if (!rules)
		return -ENOMEM;
	rc = take_rules(&p, rules, n);
	if (rc) {
		gate_rules_free(rules);
		return rc;
	}
	*rules_p = rules;
	return 0;
}

void gate_rules_free(struct gate_rules *rules)
{
	for (unsigned int i = 0; rules && i < rules->n; i++)
		lnet_nidlist_free(rules->rule[i].nids);
	free(rules);
}

unsigned int gate_rules_match(const struct gate_rules *rules,
			      const struct sched_item *item)
{
	const struct sched_client *c = item->client;
	unsigned int i;

	for (i = 0; i < rules->n; i++) {
		const struct gate_rule *r = &rules->rule[i];

		if (r->one_method && r->method != item->method)
			continue;
		if (r->one_pid && r->pid != c->pid)
			continue;
		if (!r->nids || lnet_nidlist_match(r->nids, c->host->nid))
			break;
	}
	return i;
}
