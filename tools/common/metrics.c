/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <ulnet/control.h>

int metrics_ask_control(void *arg, const char *request, char **answer_p)
{
	return lnet_control_request(arg, request, answer_p);
}

/* Appends what the answer has for stdout. */
static int add_answer(const struct metrics_source *source, const char *request,
		      FILE *out)
{
	char *answer;
	int rc = source->ask(source->arg, request, &answer);
	int status = 0;

	if (rc)
		return rc;
	rc = lnet_ctl_print(answer, out, NULL, &status);
	if (!rc && status && status != -EOPNOTSUPP)
		(void)lnet_ctl_print(answer, NULL, stderr, NULL);
	free(answer);
	return rc ? rc : status;
}

static int add_all(const struct metrics_source *source, FILE *out)
{
	char request[64];
	int rc;

	snprintf(request, sizeof(request), "metrics: {peers: %u}",
		 source->peers);
	rc = add_answer(source, request, out);
	if (rc)
		return rc;
	rc = add_answer(source, "rpc metrics:", out);
	return rc == -EOPNOTSUPP ? 0 : rc; /* a node without RPC */
}

int metrics_text(const struct metrics_source *source, char **text_p,
		 size_t *len_p)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len_p);
	int rc, failed;

	if (!out)
		return -ENOMEM;
	rc = add_all(source, out);
	failed = ferror(out);
	failed |= fclose(out);
	if (!rc && failed)
		rc = -ENOMEM;
	if (rc)
		free(text);
	else
		*text_p = text;
	return rc;
}
