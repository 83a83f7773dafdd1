/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporter.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "metrics.h"
#include "metrics_options.h"

#define AT_HOME	  "127.0.0.1"
#define FRESH_NS  UINT64_C(1000000000)
#define BACKLOG	  64
#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exporter {
	struct lnet *node;
	unsigned int peers_max;
	const struct metrics_more *more;
	const struct say *say;
	struct MHD_Daemon *daemon;
	/* its thread: the last answer, which connections share, until it is
	 * FRESH_NS old */
	struct MHD_Response *last;
	uint64_t made_ns;
};

/* ---- where ---- */

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

	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(host, ':', len)) {
		return -EINVAL;
	}
	if (!len || len >= sizeof(p->host) || !*port || strlen(port) > 5 ||
	    port[strspn(port, "0123456789")] || strtoul(port, NULL, 10) < 1 ||
	    strtoul(port, NULL, 10) > 65535)
		return -EINVAL;
	memcpy(p->host, host, len);
	p->host[len] = '\0';
	strcpy(p->port, port);
	return 0;
}

/* @info is freeaddrinfo()'s. */
static int resolve(const char *address, struct addrinfo **info)
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

int exporter_check(const char *address)
{
	struct addrinfo *info;
	int rc = resolve(address, &info);

	if (!rc)
		freeaddrinfo(info);
	return rc;
}

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

/* ---- answers ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void refresh(struct exporter *e)
{
	struct MHD_Response *made;
	char *text;
	size_t len;
	int rc;

	if (e->last && now_ns() - e->made_ns < FRESH_NS)
		return;
	if (e->last)
		MHD_destroy_response(e->last);
	e->last = NULL;
	rc = metrics_print(e->node, e->peers_max, e->more, &text, &len);
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
	e->made_ns = now_ns();
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned int status,
			      const char *text)
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

/* Called once with the headers, and then for each piece of a body, which nobody
 * wants: an answer to the headers ends the connection before there is one. */
static enum MHD_Result answer(void *arg, struct MHD_Connection *c,
			      const char *url, const char *method,
			      const char *version, const char *body,
			      size_t *nbody, void **state)
{
	struct exporter *e = arg;

	(void)version;
	(void)body;
	(void)nbody;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
	    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED,
			      "only GET and HEAD\n");
	if (strcmp(url, "/metrics") != 0)
		return refuse(c, MHD_HTTP_NOT_FOUND, "try /metrics\n");
	refresh(e);
	if (!e->last)
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	return MHD_queue_response(c, MHD_HTTP_OK, e->last);
}

/* ---- its life ---- */

static struct MHD_Daemon *daemon_start(struct exporter *e, int fd)
{
	return MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL,
		answer, e, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)EXPORTER_CONNECTIONS,
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

int exporter_start(struct lnet *node, const struct metrics_options *o,
		   const struct metrics_more *more, const struct say *s,
		   struct exporter **exporter_p)
{
	struct addrinfo *info = NULL;
	struct exporter *e;
	int rc;

	if (!o->address)
		return 0;
	e = calloc(1, sizeof(*e));
	rc = e ? resolve(o->address, &info) : -ENOMEM;
	if (!rc) {
		e->node = node;
		e->peers_max = o->peers;
		e->more = more;
		e->say = s;
		rc = serve_at(e, info);
		freeaddrinfo(info);
	}
	if (rc) {
		say(s, LNET_LOG_ERR, "--metrics %s: %s", o->address,
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
