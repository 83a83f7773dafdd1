/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments and failures that many requests have in common. */
#include "config/request/request.h"

#include <errno.h>

void request_down(struct request *r)
{
	answer_error(r->answer, &r->scope.subject, -ENETDOWN,
		     "LNet is not configured: %s", strerror(ENETDOWN));
}

int scope_net(const struct scope *s, const struct tree *t, uint32_t *net_p)
{
	const char *text = NULL;
	int rc = scope_text(s, t, &text);

	if (text && lnet_net_parse(text, net_p))
		rc = scope_fail(s, t, -ENOENT, "cannot parse net '%s'", text);
	return rc;
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
