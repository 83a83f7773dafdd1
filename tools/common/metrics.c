/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <ulnet/control.h>

/* ---- what a node says ---- */

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

/* ---- where it is served ---- */

#define AT_HOME "127.0.0.1"

int metrics_place(const char *address, struct addrinfo **info)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	const char *colon = strrchr(address, ':');
	const char *port = colon ? colon + 1 : address;
	size_t length = colon ? (size_t)(colon - address) : strlen(AT_HOME);
	char text[64], *host = text;
	uint64_t number;

	if (length >= sizeof(text))
		return -EINVAL;
	memcpy(text, colon ? address : AT_HOME, length);
	text[length] = '\0';
	if (length >= 2 && *text == '[' && text[length - 1] == ']') {
		text[length - 1] = '\0';
		host++;
	} else if (strchr(text, ':')) {
		return -EINVAL;
	}
	if (!*host || strlen(port) > 5 ||
	    !number_parse(port, 1, 65535, &number) ||
	    getaddrinfo(host, port, &hints, info))
		return -EINVAL;
	return 0;
}

/* ---- the command line ---- */

int metrics_take_place(const struct option_at *at)
{
	struct addrinfo *info;

	if (metrics_place(at->text, &info))
		return option_bad(at, "[ADDRESS:]PORT is expected, with an "
				      "address in numbers, like 127.0.0.1:9988 "
				      "or [::1]:9988");
	freeaddrinfo(info);
	*(const char **)((char *)at->object + at->row->at) = at->text;
	return 0;
}
