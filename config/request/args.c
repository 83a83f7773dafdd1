/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments and failures that many requests have in common. */
#include "config/request/request.h"

#include <errno.h>
#include <string.h>

void request_down(struct request *r)
{
	answer_error(r->answer, &r->scope.subject, -ENETDOWN,
		     "LNet is not configured: %s", strerror(ENETDOWN));
}

int scope_net(const struct scope *s, const struct tree *t, uint32_t *net_p)
{
	const char *text = NULL, *at;
	int rc = scope_text(s, t, &text);
	uint32_t meant;

	if (!text || !lnet_net_parse(text, net_p))
		return rc;
	at = strchr(text, '@');
	if (at && !lnet_net_parse(at + 1, &meant))
		return scope_fail(
			s, t, -ENOENT,
			"cannot parse net '%s': it is a NID on net '%s'", text,
			at + 1);
	return scope_fail(s, t, -ENOENT, "cannot parse net '%s'", text);
}

int scope_nid(const struct scope *s, const struct tree *t,
	      struct ulnet_nid *nid_p)
{
	const char *text = NULL;
	int rc = scope_text(s, t, &text);

	if (text && (lnet_nid_parse(text, nid_p) || lnet_nid_is_any(nid_p)))
		rc = scope_fail(s, t, -EINVAL, "cannot parse NID '%s'", text);
	return rc;
}

/* ---- lists of NIDs ---- */

/* The length of the first of several NIDs with commas between them. Commas in
 * brackets are parts of a range. */
static size_t nid_span(const char *text)
{
	bool inside = false;
	size_t len = 0;

	for (; text[len] && (inside || text[len] != ','); len++)
		inside = text[len] == '[' || (inside && text[len] != ']');
	return len;
}

static bool nids_grow(struct nids *list, unsigned int more)
{
	struct ulnet_nid *nids;

	if (list->n + more <= list->room)
		return true;
	more = MAX(list->n * 2, list->n + more);
	nids = realloc(list->nids, more * sizeof(*nids));
	if (!nids)
		return false;
	list->nids = nids;
	list->room = more;
	return true;
}

/* Adds the NIDs of a range. An address alone is on net tcp, as in a NID. */
static int nids_add_range(const struct scope *s, const struct tree *t,
			  const char *range, struct nids *list)
{
	bool alone = strchr(range, '.') && !strchr(range, '@');
	unsigned int left = NIDS_RANGED_MAX - list->ranged;
	struct ulnet_nidlist *nids;
	char *text;
	size_t n = 0;
	int rc;

	if (!nids_grow(list, left) ||
	    asprintf(&text, "%s%s", range, alone ? "@tcp" : "") < 0)
		return scope_fail(s, t, -ENOMEM, "no memory");
	rc = lnet_nidlist_parse(text, &nids, NULL);
	free(text);
	if (rc)
		return scope_fail(s, t, rc, "cannot parse NID '%s'", range);
	rc = lnet_nidlist_expand(nids, &list->nids[list->n], left, &n);
	lnet_nidlist_free(nids);
	if (rc)
		return scope_fail(s, t, rc, "'%s': ranges of more than %d NIDs",
				  range, NIDS_RANGED_MAX);
	list->n += (unsigned int)n;
	list->ranged += (unsigned int)n;
	return 0;
}

static int nids_add(const struct scope *s, const struct tree *t,
		    const char *text, struct nids *list)
{
	struct ulnet_nid nid;

	if (strpbrk(text, "[*"))
		return nids_add_range(s, t, text, list);
	if (lnet_nid_parse(text, &nid) || lnet_nid_is_any(&nid))
		return scope_fail(s, t, -EINVAL, "cannot parse NID '%s'", text);
	if (!nids_grow(list, 1))
		return scope_fail(s, t, -ENOMEM, "no memory");
	list->nids[list->n++] = nid;
	return 0;
}

int scope_nids(const struct scope *s, const struct tree *t, struct nids *list)
{
	const char *text = NULL;
	int rc;

	if (t->kind != TREE_SCALAR && !tree_get(t, "nid"))
		return scope_misread(s, t, "nid is missing");
	rc = scope_text(s, t->kind == TREE_SCALAR ? t : tree_get(t, "nid"),
			&text);
	while (!rc) {
		size_t len = nid_span(text);
		char *one = strndup(text, len);

		rc = one ? nids_add(s, t, one + strspn(one, " "), list)
			 : scope_fail(s, t, -ENOMEM, "no memory");
		free(one);
		text += len;
		if (*text++ != ',')
			break;
	}
	return rc;
}

/* ---- others ---- */

int read_verbose(const struct scope *s, const struct tree *args, int *verbose_p)
{
	int64_t v = 0;
	int rc = scope_number(s, tree_get(args, "verbose"), 0, INT32_MAX, &v);

	*verbose_p = (int)v;
	return rc;
}

int scope_refuse(const struct scope *s, const struct tree *map,
		 const struct refused *refused, const char *how)
{
	const struct tree *t;

	for (; refused->key; refused++) {
		t = tree_get(map, refused->key);
		if (t)
			return scope_fail(s, t, -EOPNOTSUPP, "%s%s: %s", t->key,
					  how, refused->why);
	}
	return 0;
}

int cannot_get(const struct scope *s, int rc, const char *what)
{
	if (rc == -EMSGSIZE)
		return scope_fail(s, NULL, rc,
				  "%s: too many to show them all; ask for one "
				  "(nid)",
				  what);
	return rc ? scope_fail(s, NULL, rc, "cannot get %s: %s", what,
			       strerror(-rc))
		  : 0;
}
