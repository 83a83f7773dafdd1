/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/tls_rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"

struct tls_rule {
	struct ulnet_nidlist *nids;
	bool pattern; /* the name stands for several */
	struct ulnet_tls_rule text;
};

void lnd_tls_rules_init(struct lnd_tls_rules *rules)
{
	*rules = (struct lnd_tls_rules){ .n = 0 };
	pthread_mutex_init(&rules->lock, NULL);
}

static void rule_free(struct tls_rule *r)
{
	if (r)
		lnet_nidlist_free(r->nids);
	free(r);
}

void lnd_tls_rules_fini(struct lnd_tls_rules *rules)
{
	for (unsigned int i = 0; i < rules->n; i++)
		rule_free(rules->all[i]);
	free(rules->all);
	pthread_mutex_destroy(&rules->lock);
}

/* ---- texts ---- */

static int refuse(struct ulnet_text_error *err, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct ulnet_text_error *err, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (err)
		vsnprintf(err->what, sizeof(err->what), fmt, ap);
	va_end(ap);
	return rc;
}

static int name_check(const char *name, struct ulnet_text_error *err)
{
	if (!*name)
		return refuse(err, -EINVAL, "name: it is empty");
	if (strlen(name) >= LNET_TLS_NAME_SIZE)
		return refuse(err, -ENAMETOOLONG, "name: longer than %d bytes",
			      LNET_TLS_NAME_SIZE - 1);
	for (const char *c = name; *c; c++)
		if (!pattern_may_have((unsigned char)*c)) {
			if (err)
				err->offset = (size_t)(c - name);
			return refuse(err, -EINVAL,
				      "name: it has " PATTERN_CHARS);
		}
	return 0;
}

/* Reads the list, and writes it as users will see it. */
static int nids_read(struct tls_rule *r, const char *nids,
		     struct ulnet_text_error *err)
{
	struct ulnet_text_error why = { 0, "" };
	int rc = lnet_nidlist_parse(nids, &r->nids, &why);

	if (rc && err)
		err->offset = why.offset;
	if (rc)
		return rc == -EINVAL ? refuse(err, rc, "nids: %.80s", why.what)
				     : rc;
	if (lnet_nidlist_format(r->nids, r->text.nids, sizeof(r->text.nids)) >=
	    sizeof(r->text.nids))
		return refuse(err, -ENAMETOOLONG, "nids: longer than %zu bytes",
			      sizeof(r->text.nids) - 1);
	return 0;
}

static int rule_new(const char *name, const char *nids,
		    struct ulnet_text_error *err, struct tls_rule **r_p)
{
	int rc = name_check(name, err);
	struct tls_rule *r = rc ? NULL : calloc(1, sizeof(*r));

	if (!r)
		return rc ? rc : -ENOMEM;
	snprintf(r->text.name, sizeof(r->text.name), "%s", name);
	r->pattern = strpbrk(name, "*?");
	rc = nids_read(r, nids, err);
	if (rc)
		rule_free(r);
	else
		*r_p = r;
	return rc;
}

/* ---- the table; its lock is held ---- */

/* Returns the index of the rule with @name, or where one belongs. */
static unsigned int rules_at(const struct lnd_tls_rules *rules,
			     const char *name)
{
	unsigned int low = 0, high = rules->n;

	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (strcmp(rules->all[mid]->text.name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool has_at(const struct lnd_tls_rules *rules, unsigned int i,
		   const char *name)
{
	return i < rules->n && !strcmp(rules->all[i]->text.name, name);
}

static int make_room(struct lnd_tls_rules *rules)
{
	unsigned int room = MAX(2 * rules->room, 16);
	struct tls_rule **all;

	if (rules->n == LNET_TLS_RULES_MAX)
		return -ENOSPC;
	if (rules->n < rules->room)
		return 0;
	all = realloc(rules->all, room * sizeof(*all));
	if (!all)
		return -ENOMEM;
	rules->all = all;
	rules->room = room;
	return 0;
}

/* Takes *@r_p, and sets it to the rule that it replaces, or to NULL. On error
 * it is still the caller's. */
static int put(struct lnd_tls_rules *rules, struct tls_rule **r_p)
{
	unsigned int i = rules_at(rules, (*r_p)->text.name);
	struct tls_rule *before = NULL;
	int rc;

	if (has_at(rules, i, (*r_p)->text.name)) {
		before = rules->all[i];
	} else {
		rc = make_room(rules);
		if (rc)
			return rc;
		memmove(&rules->all[i + 1], &rules->all[i],
			(rules->n++ - i) * sizeof(*rules->all));
	}
	rules->all[i] = *r_p;
	*r_p = before;
	return 0;
}

int lnd_tls_rules_set(struct lnd_tls_rules *rules, const char *name,
		      const char *nids, bool *replaced_p,
		      struct ulnet_text_error *err)
{
	struct tls_rule *r;
	int rc;

	if (err)
		*err = (struct ulnet_text_error){ 0, "" };
	rc = rule_new(name, nids, err, &r);
	if (rc)
		return rc;
	pthread_mutex_lock(&rules->lock);
	rc = put(rules, &r);
	pthread_mutex_unlock(&rules->lock);
	*replaced_p = !rc && r;
	rule_free(r);
	return rc;
}

int lnd_tls_rules_del(struct lnd_tls_rules *rules, const char *name)
{
	struct tls_rule *r = NULL;
	unsigned int i;

	pthread_mutex_lock(&rules->lock);
	i = rules_at(rules, name);
	if (has_at(rules, i, name)) {
		r = rules->all[i];
		memmove(&rules->all[i], &rules->all[i + 1],
			(--rules->n - i) * sizeof(*rules->all));
	}
	pthread_mutex_unlock(&rules->lock);
	rule_free(r);
	return r ? 0 : -ENOENT;
}

/* ---- asking ---- */

bool lnd_tls_rules_allow(struct lnd_tls_rules *rules, const char *name,
			 const struct ulnet_nid *nid)
{
	bool may;
	unsigned int i;

	pthread_mutex_lock(&rules->lock);
	i = rules_at(rules, name);
	may = has_at(rules, i, name) &&
	      lnet_nidlist_match(rules->all[i]->nids, nid);
	for (i = 0; i < rules->n && !may; i++)
		may = rules->all[i]->pattern &&
		      pattern_fits(rules->all[i]->text.name, name) &&
		      lnet_nidlist_match(rules->all[i]->nids, nid);
	pthread_mutex_unlock(&rules->lock);
	return may;
}

int lnd_tls_rules_get(struct lnd_tls_rules *rules, const char *name,
		      struct ulnet_tls_rule *rule)
{
	unsigned int i;
	bool has;

	pthread_mutex_lock(&rules->lock);
	i = rules_at(rules, name);
	has = has_at(rules, i, name);
	if (has)
		*rule = rules->all[i]->text;
	pthread_mutex_unlock(&rules->lock);
	return has ? 0 : -ENOENT;
}

unsigned int lnd_tls_rules_list(struct lnd_tls_rules *rules,
				struct ulnet_tls_rule *all, unsigned int n)
{
	unsigned int have;

	pthread_mutex_lock(&rules->lock);
	have = rules->n;
	for (unsigned int i = 0; i < MIN(n, have); i++)
		all[i] = rules->all[i]->text;
	pthread_mutex_unlock(&rules->lock);
	return have;
}
