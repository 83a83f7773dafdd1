/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to etcd's gateway for JSON, over HTTP: each of them from a thread of
 * its own, which waits for the answer, or until it has to stop. Knows the
 * endpoints and their turn, and nothing of what is asked.
 *
 * What etcd says is bounded: ETCD_MESSAGE_MAX bytes of one answer, or of one
 * message of a stream.
 */
#ifndef ETCD_REQUEST_H
#define ETCD_REQUEST_H

#include <jansson.h>
#include <stdatomic.h>

#include "etcd/settings.h"
#include "ulnet/names.h"

#define ETCD_MESSAGE_MAX   (1u << 20)
#define ETCD_ENDPOINTS_MAX 8
#define ETCD_ENDPOINT_SIZE 264
#define ETCD_PREFIX_SIZE   512

/* How long one endpoint may take, ms. */
struct etcd_times {
	unsigned int connect;
	/* for an answer, or for the first message of a stream */
	unsigned int answer;
	/* A stream that has said nothing for so long ends: its endpoint may
	 * have hung up without a word. */
	unsigned int silence;
};
#define ETCD_TIMES_DEFAULT    \
	((struct etcd_times){ \
		.connect = 2000, .answer = 5000, .silence = 60000 })

/* What a text of the form "host:port,host:port/prefix" says. */
struct etcd_text {
	bool tls; /* hosts are asked over TLS; not set by etcd_text_parse() */
	unsigned int n;
	char endpoint[ETCD_ENDPOINTS_MAX][ETCD_ENDPOINT_SIZE];
	char prefix[ETCD_PREFIX_SIZE]; /* of keys; ends with '/' */
};

/* 0; -EINVAL: *@err says why, unless it is NULL. */
int etcd_text_parse(const char *rest, struct etcd_text *text,
		    struct ulnet_text_error *err);

struct etcd_link {
	void *multi; /* CURLM */
	struct etcd_text text;
	struct etcd_times times;
	/* a reference; NULL: there are none */
	struct etcd_settings *settings;
	/* "Authorization: ..." of the settings' user; NULL: none */
	char *token;
	unsigned int at;  /* the endpoint in use */
	atomic_bool stop; /* waits end with -ESHUTDOWN */
	bool deaf;	  /* they do not */
	/* why the last request has failed */
	char why[LNET_NAME_WHY];
};

/* With the default times. 0; -ENOMEM. */
int etcd_link_init(struct etcd_link *l, const struct etcd_text *text);
void etcd_link_fini(struct etcd_link *l);
/* Any thread. */
void etcd_link_stop(struct etcd_link *l);
/* Waits, ms. 0; -ESHUTDOWN. */
int etcd_link_pause(struct etcd_link *l, unsigned int ms);
/* Why something has failed, for people: what is not printable is replaced. */
void etcd_link_why(struct etcd_link *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Posts @request, of which the reference is taken (NULL: no memory), to @path.
 * 0: *@reply_p is an object, whose reference the caller has; otherwise l->why
 * says why: -ENOENT: etcd does not know something; -EREMOTEIO: another error
 * that etcd has told; -EACCES: it does not know who asks; -EPROTO: the answer makes no sense; -ESHUTDOWN; else
 * -errno, and the next endpoint is used from now on. */
int etcd_ask(struct etcd_link *l, const char *path, json_t *request,
	     json_t **reply_p);

/* A message of a stream, borrowed. Other than 0 ends the stream. */
typedef int (*etcd_message_fn)(void *arg, json_t *message);

/* As etcd_ask(), but the answer is a stream, and asked for only of members of
 * etcd that have a leader. Returns why it has ended, never 0; what @fn returned,
 * if that was it; -EAGAIN: it has been silent for times.silence, which is not a
 * failure. */
int etcd_stream(struct etcd_link *l, const char *path, json_t *request,
		etcd_message_fn fn, void *arg);

/* ---- JSON ---- */

/* A number, or the text of one, as the gateway has them; 0: none. */
int64_t etcd_number(const json_t *object, const char *key);
/* A string in base64, decoded; to be freed. NULL: there is none, it is longer
 * than @max, has a zero byte, or there is no memory. */
char *etcd_bytes(const json_t *object, const char *key, size_t max);
/* A new string in base64; NULL: no memory. */
json_t *etcd_base64(const char *text);

#endif
