/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that control a node in another process: sends requests to its
 * control socket, and prints the answers in the three styles of the kernel's
 * lnetctl. Such programs have no loop, so all times are those of the system's
 * clock.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "config/control.h"

#define READ_SIZE 65536
/* the longest time, ms, that connecting may take */
#define TIMEOUT_MAX UINT64_C(86400000)

struct lnet_ctl {
	int fd;
	pid_t pid;	    /* the process that has connected */
	struct received in; /* what was received: an answer, or its beginning */
};

/* Milliseconds of a clock that does not jump. */
static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Sets how long connect() may wait; 0: for ever. */
static int set_connect_timeout(int fd, int64_t ms)
{
	struct timeval t = { .tv_sec = (time_t)(ms / 1000),
			     .tv_usec = (long)(ms % 1000 * 1000) };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) ? -errno
								      : 0;
}

/* Connects. While the node's queue of connections is full, waits for up to
 * @timeout us (0: for ever), even if signals come. */
static int ctl_connect(int fd, const struct sockaddr_un *addr, uint64_t timeout)
{
	uint64_t ms = timeout / 1000 + !!(timeout % 1000);
	int64_t until = now() + (int64_t)MIN(ms, TIMEOUT_MAX);
	int rc;

	do {
		rc = set_connect_timeout(fd, ms ? MAX(until - now(), 1) : 0);
		if (!rc &&
		    connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
			rc = -errno;
	} while (rc == -EINTR && (!ms || now() < until));
	return rc == -EAGAIN || rc == -EINTR ? -ETIMEDOUT : rc;
}

int lnet_ctl_connect(const char *path, uint64_t timeout,
		     struct lnet_ctl **ctl_p)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct lnet_ctl *ctl;
	int fd, rc;

	if (path && !*path)
		return -EINVAL;
	if (!path)
		path = getenv("ULNET_SOCKET");
	if (!path || !*path)
		path = LNET_CTL_PATH;
	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	text_copy(addr.sun_path, sizeof(addr.sun_path), path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = ctl_connect(fd, &addr, timeout);
	ctl = rc ? NULL : calloc(1, sizeof(*ctl));
	if (!ctl) {
		close(fd);
		return rc ? rc : -ENOMEM;
	}
	ctl->fd = fd;
	ctl->pid = getpid();
	*ctl_p = ctl;
	return 0;
}

void lnet_ctl_close(struct lnet_ctl *ctl)
{
	if (!ctl)
		return;
	close(ctl->fd);
	free(ctl->in.buf);
	free(ctl);
}

/* Waits for @events until now() reaches @until (negative: for ever). Returns 0
 * or -errno. */
static int ctl_wait(struct lnet_ctl *ctl, short events, int64_t until)
{
	struct pollfd p = { ctl->fd, events, 0 };

	for (;;) {
		int64_t left = until < 0 ? -1 : MAX(until - now(), 0);
		int n = poll(&p, 1, (int)MIN(left, INT32_MAX));

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && left <= INT32_MAX)
			return -ETIMEDOUT;
	}
}

static int ctl_send(struct lnet_ctl *ctl, const char *text, size_t len,
		    int64_t until)
{
	while (len) {
		ssize_t n =
			send(ctl->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		int rc = 0;

		if (n < 0 && errno == EAGAIN)
			rc = ctl_wait(ctl, POLLOUT, until);
		else if (n < 0 && errno != EINTR)
			rc = errno == EPIPE ? -ECONNRESET : -errno;
		if (rc)
			return rc;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

size_t document_length(struct received *r)
{
	char *nl;

	while (r->len &&
	       (nl = memchr(r->buf + r->seen, '\n', r->len - r->seen))) {
		const char *end = nl, *start = r->buf + r->line;

		r->seen = (size_t)(nl - r->buf) + 1;
		while (end > start && isspace((unsigned char)end[-1]))
			end--;
		if (end - start == 3 && !memcmp(start, "...", 3))
			return r->seen;
		r->line = r->seen;
	}
	r->seen = r->len;
	return 0;
}

/* Receives what has come of an answer; if nothing has come, waits for it.
 * Returns 0 or -errno. */
static int ctl_receive(struct lnet_ctl *ctl, int64_t until)
{
	ssize_t n;

	if (ctl->in.len == ctl->in.room) {
		size_t room = ctl->in.room ? ctl->in.room * 2 : READ_SIZE;
		char *buf = room > 2 * ANSWER_MAX ? NULL
						  : realloc(ctl->in.buf, room);

		if (!buf)
			return room > 2 * ANSWER_MAX ? -EMSGSIZE : -ENOMEM;
		ctl->in.buf = buf;
		ctl->in.room = room;
	}
	n = recv(ctl->fd, ctl->in.buf + ctl->in.len, ctl->in.room - ctl->in.len,
		 MSG_DONTWAIT);
	if (n > 0) {
		ctl->in.len += (size_t)n;
		return 0;
	}
	if (!n)
		return -ECONNRESET;
	if (errno == EINTR)
		return 0;
	return errno == EAGAIN ? ctl_wait(ctl, POLLIN, until) : -errno;
}

int lnet_ctl_request(struct lnet_ctl *ctl, const char *request,
		     uint64_t timeout, char **answer_p)
{
	int64_t until = -1;
	int rc;

	if (strlen(request) + strlen("\n" DOCUMENT_END) > REQUEST_MAX)
		return -EMSGSIZE;
	/* In a child of fork(): the answer would reach the parent. */
	if (ctl->pid != getpid())
		return -ESHUTDOWN;
	if (timeout)
		until = now() + (int64_t)MIN(timeout / 1000 + 1,
					     (uint64_t)INT64_MAX / 4);
	rc = ctl_send(ctl, request, strlen(request), until);
	if (!rc)
		rc = ctl_send(ctl, "\n" DOCUMENT_END, strlen("\n" DOCUMENT_END),
			      until);
	while (!rc && !document_length(&ctl->in))
		rc = ctl_receive(ctl, until);
	if (rc)
		return rc;
	ctl->in.buf[ctl->in.line] = '\0';
	*answer_p = ctl->in.buf;
	ctl->in = (struct received){ .buf = NULL };
	return 0;
}

/* ---- printing answers ---- */

/* The style in which the kernel's lnetctl prints the section @key. */
static const struct tree_style *output_style(const char *key)
{
	static const char *const wide[] = {
		"net",	 "peer", "peer list",	      "route",
		"fault", "path", "Local NI recovery", "Peer NI recovery",
		NULL
	};
	static const char *const narrow[] = { "ping", "discover", "cpt-of-nid",
					      NULL };

	if (key_in(key, wide))
		return &tree_wide;
	return key_in(key, narrow) ? &tree_narrow : &tree_middle;
}

static const struct tree_style *error_style(const struct tree *error)
{
	const struct tree *item = list_next(error, NULL), *first;

	if (!strcmp(error->key, "manage"))
		return &tree_narrow;
	first = item ? list_next(item, NULL) : NULL;
	return first && first->kind == TREE_MAP ? &tree_middle : &tree_wide;
}

static void print_output(const struct tree *output, FILE *out)
{
	const struct tree *t = NULL;

	while ((t = list_next(output, t)))
		if (t->key && !strcmp(t->key, "text") && tree_is_text(t))
			/* a text that is no YAML: printed as it is */
			fputs(t->text, out);
		else if (t->key)
			tree_emit_pair(t, output_style(t->key), out);
}

static void client_print_errors(const struct tree *errors, FILE *err)
{
	const struct tree *t = NULL;

	while ((t = list_next(errors, t))) {
		const struct tree_style *style;

		if (!t->key)
			continue;
		style = error_style(t);
		if (style == &tree_wide)
			fputs("---\n", err);
		tree_emit_pair(t, style, err);
		if (style == &tree_wide)
			fputs("...\n", err);
	}
}

static void print_notes(const struct tree *notes, FILE *err)
{
	const struct tree *t = NULL;

	while ((t = list_next(notes, t))) {
		fputs("# ", err);
		/* Control characters, such as ends of lines, become '?'. */
		for (const char *c = t->text; *c; c++)
			fputc((unsigned char)*c < ' ' ? '?' : *c, err);
		fputc('\n', err);
	}
}

int lnet_ctl_print(const char *answer, FILE *out, FILE *err, int *status_p)
{
	struct tree_error why;
	struct doc *doc;
	const struct tree *root, *status;
	int64_t value;
	int rc = tree_parse(answer, strlen(answer), &answer_limits, &doc, &why);

	if (rc)
		return rc == -ENOMEM ? rc : -EINVAL;
	root = doc_root(doc);
	status = tree_get(root, "status");
	if (!status || !tree_number(status, &value) || value > 0 ||
	    value < INT32_MIN) {
		doc_free(doc);
		return -EINVAL;
	}
	if (out) {
		print_output(tree_get(root, "output"), out);
		rc = fflush(out) ? -EIO : 0;
	}
	if (err) {
		client_print_errors(tree_get(root, "error"), err);
		print_notes(tree_get(root, "notes"), err);
		rc = fflush(err) ? -EIO : rc;
	}
	if (!rc && status_p)
		*status_p = (int)value;
	doc_free(doc);
	return rc;
}
