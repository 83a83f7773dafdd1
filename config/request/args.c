/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments that many requests have. */
#include <errno.h>

#include "config/request/request.h"

int scope_net(const struct scope *s, const struct tree *t, uint32_t *net_p)
{
	const char *text;
	int rc = scope_text(s, t, &text);

	if (!rc && lnet_net_parse(text, net_p))
		rc = scope_fail(s, t, -ENOENT, "cannot parse net '%s'", text);
	return rc;
}

int scope_get_net(const struct scope *s, const struct tree *map,
		  const char *key, uint32_t *net_p)
{
	const struct tree *t = tree_get(map, key);

	return t ? scope_net(s, t, net_p) : 0;
}

int scope_nid(const struct scope *s, const struct tree *t,
	      struct ulnet_nid *nid_p)
{
	const char *text;
	int rc = scope_text(s, t, &text);

	if (!rc && (lnet_nid_parse(text, nid_p) || lnet_nid_is_any(nid_p)))
		rc = scope_fail(s, t, -EINVAL, "cannot parse NID '%s'", text);
	return rc;
}

int scope_get_nid(const struct scope *s, const struct tree *map,
		  const char *key, struct ulnet_nid *nid_p)
{
	const struct tree *t = tree_get(map, key);

	return t ? scope_nid(s, t, nid_p) : 0;
}

int scope_get_verbose(const struct scope *s, const struct tree *map,
		      int *verbose_p)
{
	int64_t v = 0;
	int rc = scope_get_number(s, map, "verbose", 0, INT32_MAX, &v);

	*verbose_p = (int)v;
	return rc;
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
