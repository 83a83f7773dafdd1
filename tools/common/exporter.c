/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporter.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ulnet/control.h>

#include "http_clients.h"

#define FRESH_NS  UINT64_C(1000000000)
#define BACKLOG	  64
#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define LOOPBACK  "127.0.0.1"

/* ---- asking the node ---- */

int metrics_ask_control(void *arg, const char *request, char **answer_p)
{
	return lnet_control_request(arg, request, answer_p);
}

/* Sends the node @request, and appends the output of the answer to @out. */
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
	/* a node without RPC: no metrics of it, and no error */
	return rc == -EOPNOTSUPP ? 0 : rc;
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

/* ---- addresses ---- */

/* Parses "[ADDRESS:]PORT"; *@info is for freeaddrinfo(). -EINVAL. */
static int address_parse(const char *address, struct addrinfo **info)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	const char *colon = strrchr(address, ':');
	const char *port = colon ? colon + 1 : address;
	size_t length = colon ? (size_t)(colon - address) : strlen(LOOPBACK);
	char text[64], *host = text;
	uint64_t number;

	if (length >= sizeof(text))
		return -EINVAL;
	memcpy(text, colon ? address : LOOPBACK, length);
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

int metrics_take_address(const struct option_at *at)
{
	struct addrinfo *info;

	if (address_parse(at->text, &info))
		return option_bad(at, "[ADDRESS:]PORT is expected, with an "
				      "address in numbers, like 127.0.0.1:9988 "
				      "or [::1]:9988");
	freeaddrinfo(info);
	*(const char **)((char *)at->object + at->row->at) = at->text;
	return 0;
}

/* ---- the server ---- */

struct exporter {
	const struct metrics_source *source;
	const struct say *say;
	struct MHD_Daemon *daemon;
	/* Only for the exporter's thread: the last answer of the node, which
	 * all HTTP clients get until it is FRESH_NS old; NULL: none. */
	struct MHD_Response *last;
	uint64_t made_ns;
	struct http_clients clients;
};

static int listen_at(const struct addrinfo *info)
{
	int on = 1, rc;
	int fd = socket(info->ai_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Gets a new answer of the node if e->last is not fresh. If the node does not
 * answer, e->last becomes NULL. */
static void refresh(struct exporter *e)
{
	struct MHD_Response *made;
	char *text;
	size_t len;
	int rc;

	if (e->last && clock_ns() - e->made_ns < FRESH_NS)
		return;
	if (e->last)
		MHD_destroy_response(e->last);
	e->last = NULL;
	rc = metrics_text(e->source, &text, &len);
	if (rc) {
		say(e->say, LNET_LOG_WARN, "no metrics: %s", strerror(-rc));
		return;
	}
	made = MHD_create_response_from_buffer(len, text,
					       MHD_RESPMEM_MUST_FREE);
	if (!made) {
		free(text);
		return;
	}
	MHD_add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, TEXT_TYPE);
	e->last = made;
	e->made_ns = clock_ns();
}

static enum MHD_Result exporter_refuse(struct MHD_Connection *c,
				       unsigned int status, const char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

/* The connection @c begins or ends. *@client_p is its place among the clients.
 * If there are too many connections, shuts one down, which libmicrohttpd then
 * ends. */
static void on_connection(void *arg, struct MHD_Connection *c, void **client_p,
			  enum MHD_ConnectionNotificationCode what)
{
	struct exporter *e = arg;
	const union MHD_ConnectionInfo *fd, *from;
	int gone;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*client_p)
			http_client_go(*client_p);
		return;
	}
	fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	from = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	*client_p = fd ? http_client_come(&e->clients, fd->connect_fd,
					  from ? from->client_addr : NULL)
		       : NULL;
	gone = http_clients_dismiss(&e->clients);
	if (gone != HTTP_CLIENT_NOBODY)
		shutdown(gone, SHUT_RDWR);
}

static void note_asked(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (info && info->socket_context)
		((struct http_client *)info->socket_context)->asked = true;
}

/* Answers an HTTP request. Called with the headers of the request, and not
 * again with its body, because the answer ends the connection. */
static enum MHD_Result exporter_answer(void *arg, struct MHD_Connection *c,
				       const char *url, const char *method,
				       const char *version, const char *body,
				       size_t *nbody, void **state)
{
	struct exporter *e = arg;

	(void)version;
	(void)body;
	(void)nbody;
	(void)state;
	note_asked(c);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
	    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return exporter_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED,
				       "only GET and HEAD\n");
	if (strcmp(url, "/metrics") != 0)
		return exporter_refuse(c, MHD_HTTP_NOT_FOUND, "try /metrics\n");
	refresh(e);
	if (!e->last)
		return exporter_refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE,
				       "no answer of the node\n");
	return MHD_queue_response(c, MHD_HTTP_OK, e->last);
}

static struct MHD_Daemon *daemon_start(struct exporter *e, int fd)
{
	return MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL,
		exporter_answer, e, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, e,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)HTTP_CLIENTS_ROOM,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)EXPORTER_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)EXPORTER_TIMEOUT_S,
		MHD_OPTION_END);
}

static int serve_at(struct exporter *e, const struct addrinfo *info)
{
	int fd = listen_at(info);

	if (fd < 0)
		return fd;
	e->daemon = daemon_start(e, fd);
	if (e->daemon)
		return 0;
	close(fd);
	return -ENOMEM;
}

int exporter_start(const struct metrics_source *source, const char *address,
		   const struct say *s, struct exporter **exporter_p)
{
	struct addrinfo *info = NULL;
	struct exporter *e;
	int rc;

	if (!address)
		return 0;
	e = calloc(1, sizeof(*e));
	rc = e ? address_parse(address, &info) : -ENOMEM;
	if (!rc) {
		e->source = source;
		e->say = s;
		rc = serve_at(e, info);
		freeaddrinfo(info);
	}
	if (rc) {
		say(s, LNET_LOG_ERR, "metrics at %s: %s", address,
		    strerror(-rc));
		free(e);
		return rc;
	}
	*exporter_p = e;
	return 0;
}

void exporter_stop(struct exporter *e)
{
	if (!e)
		return;
	MHD_stop_daemon(e->daemon);
	if (e->last)
		MHD_destroy_response(e->last);
	free(e);
}
