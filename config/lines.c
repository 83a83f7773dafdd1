/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/scope.h"

/* *@text_p is to be freed. */
static int lines_make(const struct lines *lines, struct lnet *node,
		      unsigned int peers, char **text_p)
{
	size_t size;
	FILE *out = open_memstream(text_p, &size);
	int rc, failed;

	if (!out)
		return -ENOMEM;
	rc = lines->print(out, node, peers);
	failed = ferror(out);
	failed |= fclose(out);
	if (!rc && failed)
		rc = -ENOMEM;
	if (rc)
		free(*text_p);
	return rc;
}

void lines_answer(struct request *r, const struct lines *lines)
{
	const struct tree *t = tree_get(r->args, "peers");
	int64_t peers = lines->peers;
	char *text;
	int rc;

	if (t && scope_number(&r->scope, t, 0, lines->peers_max, &peers))
		return;
	rc = lines_make(lines, r->control->node, (unsigned int)peers, &text);
	if (rc) {
		scope_fail(&r->scope, NULL, rc, "cannot get %s: %s",
			   lines->what, strerror(-rc));
		return;
	}
	tree_text(answer_output(r->answer), "text", TREE_DOUBLE, text);
	free(text);
}
