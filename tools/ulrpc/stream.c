/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "tools/common/program.h"

#define ROOM   65536 /* bytes that are read at a time */
#define BLANKS " \t\r\n"

/*
 * JSON objects that come one after another. An object is over at the bracket
 * that closes it: only brackets and strings are looked at here, and
 * message_read() says what is wrong with the rest.
 */
struct objects {
	char *text; /* what has come, from the first object not taken on */
	size_t n, size;
	size_t seen; /* bytes of @text that were looked at */
	unsigned int depth;
	bool string, escaped; /* in a string; behind a '\' in it */
	bool end;	      /* nothing more will come */
	unsigned int taken;   /* number of objects that were taken */
};

/*
 * The thread that reads and sends, while the main thread receives and prints.
 * It waits for input, for signals, and for the pipe, to which the stream's
 * events write: a byte of 'w' means that there may be room for a message, 'e'
 * that the stream is over, and no event will come any more.
 */
struct feeder {
	const struct stream_call *call;
	struct ulrpc_stream *stream;
	struct objects objects;
	struct message_bytes message; /* the next one; data: NULL: none */
	bool full; /* the server has no room for it */
	bool closed; /* all was sent */
	bool over;
	int pipe[2];
	int rc;
};

/* ---- objects ---- */

/* Returns whether the object is there to its end, which is then o->seen. */
static bool object_look(struct objects *o)
{
	for (; o->seen < o->n; o->seen++) {
		char c = o->text[o->seen];

		if (o->string) {
			o->string = o->escaped || c != '"';
			o->escaped = !o->escaped && c == '\\';
		} else if (c == '"') {
			o->string = true;
		} else if (c == '{' || c == '[') {
			o->depth++;
		} else if ((c == '}' || c == ']') && !--o->depth) {
			o->seen++;
			return true;
		}
	}
	return false;
}

static bool is_blank(const struct objects *o)
{
	return strspn(o->text, BLANKS) >= o->n;
}

/* Returns how many bytes at the beginning are the next object; or, at the end
 * of all input, whatever is there that is not blank. 0: there is none. */
static size_t object_next(struct objects *o)
{
	if (!o->n)
		return 0;
	/* What is no object may have no end: message_read() refuses it. */
	if (!is_blank(o) && o->text[strspn(o->text, BLANKS)] != '{')
		return o->n;
	if (object_look(o))
		return o->seen;
	return o->end && !is_blank(o) ? o->n : 0;
}

static void object_taken(struct objects *o, size_t n)
{
	memmove(o->text, o->text + n, o->n - n + 1);
	o->n -= n;
	o->seen = 0;
	o->taken++;
}

static bool objects_add(struct objects *o, const char *bytes, size_t n)
{
	if (o->n + n + 1 > o->size) {
		size_t size = 2 * (o->n + n) + ROOM;
		char *more = realloc(o->text, size);

		if (!more)
			return false;
		o->text = more;
		o->size = size;
	}
	memcpy(o->text + o->n, bytes, n);
	o->n += n;
	o->text[o->n] = '\0';
	return true;
}

/* ---- sending ---- */

/* Ends the stream, as something is wrong on this side. */
static void feeder_fail(struct feeder *f, int rc)
{
	f->rc = rc;
	f->closed = true;
	ulrpc_stream_cancel(f->stream);
}

static void feeder_read(struct feeder *f)
{
	char room[ROOM];
	ssize_t n = read(f->call->fd, room, sizeof(room));

	if (n < 0 && errno != EINTR && errno != EAGAIN)
		feeder_fail(f, -errno);
	else if (n > 0 && !objects_add(&f->objects, room, (size_t)n))
		feeder_fail(f, -ENOMEM);
	f->objects.end |= n == 0;
}

/* Makes the next message. Returns false if there is none, or none yet. */
static bool feeder_message(struct feeder *f)
{
	size_t n;

	if (f->message.data)
		return true;
	n = object_next(&f->objects);
	if (!n)
		return false;
	if (!message_read(f->call->input, f->objects.text, n, &f->message,
			  f->call->err)) {
		if (f->objects.taken)
			fprintf(f->call->err,
				"messages sent before that: %u\n",
				f->objects.taken);
		feeder_fail(f, -EINVAL);
		return false;
	}
	object_taken(&f->objects, n);
	if (!f->message.data) /* an empty message */
		f->message.data = calloc(1, 1);
	return f->message.data;
}

static void say_too_long(const struct feeder *f)
{
	fprintf(f->call->err,
		"message %u has %zu bytes, and the stream takes up to %u\n",
		f->objects.taken, f->message.n,
		ulrpc_stream_message_max(f->stream));
}

static void feeder_send(struct feeder *f)
{
	int rc = 0;

	f->full = false;
	while (!f->closed && feeder_message(f)) {
		rc = ulrpc_stream_send(f->stream, f->message.data,
				       f->message.n);
		f->full = rc == -EAGAIN;
		if (f->full)
			return;
		if (rc == -EMSGSIZE)
			say_too_long(f);
		free(f->message.data);
		f->message.data = NULL;
		/* -EPIPE: the stream is over, and its outcome says why */
		f->closed |= rc != 0;
		if (rc && rc != -EPIPE)
			feeder_fail(f, rc);
	}
	if (!f->closed && f->objects.end) {
		(void)ulrpc_stream_close_send(f->stream);
		f->closed = true;
	}
}

static void feeder_hear(struct feeder *f)
{
	char bytes[64];
	ssize_t n = read(f->pipe[0], bytes, sizeof(bytes));

	f->over |= n > 0 && memchr(bytes, 'e', (size_t)n);
}

static void *feed(void *arg)
{
	struct feeder *f = arg;

	while (!f->over) {
		struct pollfd fds[] = {
			{ .fd = f->pipe[0], .events = POLLIN },
			{ .fd = f->call->signals, .events = POLLIN },
			{ .fd = f->call->fd, .events = POLLIN },
		};

		feeder_send(f);
		/* A negative descriptor is not waited for. */
		if (f->closed || f->full || f->objects.end)
			fds[2].fd = -1;
		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents)
			feeder_hear(f);
		if (fds[1].revents && signals_take(f->call->signals))
			ulrpc_stream_cancel(f->stream);
		if (fds[2].revents)
			feeder_read(f);
	}
	return NULL;
}

/* ---- receiving ---- */

/* The pipe has room for thousands of these. @f may be gone afterwards. */
static void tell(const struct feeder *f, char what)
{
	ssize_t n = write(f->pipe[1], &what, 1);

	(void)n;
}

static void on_writable(void *arg, struct ulrpc_stream *stream)
{
	(void)stream;
	tell(arg, 'w');
}

static void on_ended(void *arg, struct ulrpc_stream *stream,
		     const struct ulrpc_stream_outcome *outcome)
{
	(void)stream;
	(void)outcome;
	tell(arg, 'e');
}

/* Prints all messages that come. Returns 0 or -errno. */
static int print_all(const struct stream_call *call,
		     struct ulrpc_stream *stream)
{
	const void *body;
	size_t length;
	int rc;

	while ((rc = ulrpc_stream_next_wait(stream, &body, &length)) == 1) {
		if (!message_print(call->output, body, length, call->defaults,
				   stdout, call->err))
			rc = -EPROTO;
		if (rc == 1 && fflush(stdout))
			rc = -EIO;
		if (rc != 1) {
			ulrpc_stream_cancel(stream);
			return rc;
		}
	}
	return rc;
}

static int receive(struct feeder *f, struct ulrpc_stream_outcome *outcome)
{
	int rc = print_all(f->call, f->stream);
	int end = ulrpc_stream_outcome_wait(f->stream, outcome);

	/* How the stream ended matters less than what is wrong here. */
	return rc == -EPROTO || rc == -EIO ? rc : end;
}

static int with_feeder(struct feeder *f, struct ulrpc_stream_outcome *outcome)
{
	pthread_t thread;
	int rc = -pthread_create(&thread, NULL, feed, f);

	if (rc) {
		f->closed = true;
		ulrpc_stream_cancel(f->stream);
		feed(f);
		return rc;
	}
	rc = receive(f, outcome);
	pthread_join(thread, NULL);
	return f->rc ? f->rc : rc;
}

/* Opens the stream: with the only message, if the client does not stream. */
static int open_stream(struct feeder *f, struct ulrpc_streams *streams)
{
	const struct stream_call *call = f->call;
	struct ulrpc_stream_conf conf = {
		.deadline = call->deadline,
		.events = { .writable = on_writable,
			    .ended = on_ended,
			    .arg = f },
	};
	struct message_bytes first = { .n = 0 };
	int rc;

	if (!call->client_streaming &&
	    !message_read(call->input, call->text, strlen(call->text), &first,
			  call->err))
		return -EINVAL;
	rc = ulrpc_stream_open(streams, call->method, first.data, first.n,
			       &conf, &f->stream);
	free(first.data);
	return rc;
}

int stream_call(const struct stream_call *call,
		struct ulrpc_stream_outcome *outcome)
{
	struct feeder f = { .call = call,
			    .objects.end = call->fd < 0,
			    .pipe = { -1, -1 } };
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;
	int rc;

	ulrpc_streams_conf_init(&conf);
	conf.client = call->client;
	conf.patience = call->patience;
	rc = ulrpc_streams_open(call->rpc, &conf, &streams);
	if (rc)
		return rc;
	if (pipe2(f.pipe, O_CLOEXEC | O_NONBLOCK))
		rc = -errno;
	if (!rc && call->client_streaming && call->fd < 0 &&
	    !objects_add(&f.objects, call->text, strlen(call->text)))
		rc = -ENOMEM;
	if (!rc)
		rc = open_stream(&f, streams);
	if (!rc)
		rc = with_feeder(&f, outcome);
	ulrpc_stream_put(f.stream);
	ulrpc_streams_close(streams);
	for (unsigned int i = 0; i < 2; i++)
		if (f.pipe[i] >= 0)
			close(f.pipe[i]);
	free(f.objects.text);
	free(f.message.data);
	return rc;
}
