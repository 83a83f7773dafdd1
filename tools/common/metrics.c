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

struct place {
	char host[64];
	char port[8];
};

/* What is in front of the last colon, without brackets. */
static int split(const char *address, struct place *p)
{
	const char *colon = strrchr(address, ':');
	const char *port = colon ? colon + 1 : address;
	const char *host = colon ? address : AT_HOME;
	size_t len = colon ? (size_t)(colon - address) : strlen(host);
	size_t port_len = strlen(port);

	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(host, ':', len)) {
		return -EINVAL;
	}
	if (!len || len >= sizeof(p->host) || !port_len || port_len > 5 ||
	    port[strspn(port, "0123456789")] || strtoul(port, NULL, 10) < 1 ||
	    strtoul(port, NULL, 10) > 65535)
		return -EINVAL;
	memcpy(p->host, host, len);
	p->host[len] = '\0';
	memcpy(p->port, port, port_len + 1);
	return 0;
}

int metrics_place(const char *address, struct addrinfo **info)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	struct place p;

	if (split(address, &p) || getaddrinfo(p.host, p.port, &hints, info))
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

const struct option_row metrics_rows[] = {
	{ "metrics", 'm', "[ADDRESS:]PORT",
	  "serve metrics to Prometheus there, by HTTP; without an address at "
	  "127.0.0.1",
	  .kind = OPTION_CALL, offsetof(struct metrics_options, address),
	  .take = metrics_take_place },
	{ "metrics-peers", 0, "N",
	  "with metrics of so many NIDs of peers (256)", .kind = OPTION_NUMBER,
	  offsetof(struct metrics_options, peers), 0, METRICS_PEERS_MAX },
	{ 0 },
};
