/* SPDX-License-Identifier: BSD-3-Clause */
#include "etcd/request.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define ETCD_PORT "2379"

/* ---- texts ---- */

static int text_fail(struct ulnet_text_error *err, size_t offset,
		     const char *what)
{
	if (err) {
		err->offset = offset;
		snprintf(err->what, sizeof(err->what), "%s", what);
	}
	return -EINVAL;
}

/* "host", "host:port", "10.0.0.1:port", "[fd00::1]:port" */
static int endpoint_take(struct etcd_text *t, const char *rest, const char *p,
			 size_t len, struct ulnet_text_error *err)
{
	size_t host = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"
				"QRSTUVWXYZ0123456789.-_");
	size_t digits;
	long port;

	if (*p == '[') {
		host = 1 + strspn(p + 1, "0123456789abcdefABCDEF:.");
		if (host < 3 || p[host++] != ']')
			return text_fail(err, (size_t)(p - rest),
					 "no IPv6 address in brackets");
	}
	if (!host || host > 253 || (host < len && p[host] != ':'))
		return text_fail(err, (size_t)(p - rest),
				 "HOST:PORT of etcd is expected");
	if (t->n == ETCD_ENDPOINTS_MAX)
		return text_fail(err, (size_t)(p - rest),
				 "more than 8 hosts of etcd");
	if (host == len) {
		snprintf(t->endpoint[t->n++], ETCD_ENDPOINT_SIZE,
			 "%.*s:" ETCD_PORT, (int)len, p);
		return 0;
	}
	digits = strspn(p + host + 1, "0123456789");
	port = digits && digits < 6 ? strtol(p + host + 1, NULL, 10) : 0;
	if (host + 1 + digits != len || port < 1 || port > 65535)
		return text_fail(err, (size_t)(p - rest) + host + 1,
				 "a port from 1 to 65535 is expected");
	snprintf(t->endpoint[t->n++], ETCD_ENDPOINT_SIZE, "%.*s", (int)len, p);
	return 0;
}

static int prefix_take(struct etcd_text *t, const char *rest, const char *p,
		       struct ulnet_text_error *err)
{
	size_t len = strlen(p);

	while (len && p[len - 1] == '/')
		len--;
	if (!len)
		return text_fail(err, (size_t)(p - rest),
				 "/PREFIX of keys is expected");
	if (len > ETCD_PREFIX_SIZE - 2)
		return text_fail(err, (size_t)(p - rest),
				 "a prefix of more than 510 bytes");
	snprintf(t->prefix, sizeof(t->prefix), "%.*s/", (int)len, p);
	return 0;
}

int etcd_text_parse(const char *rest, struct etcd_text *text,
		    struct ulnet_text_error *err)
{
	const char *p = rest;
	int rc;

	text->n = 0;
	for (;; p++) {
		size_t len = strcspn(p, ",/");

		rc = endpoint_take(text, rest, p, len, err);
		if (rc)
			return rc;
		p += len;
		if (*p != ',')
			break;
	}
	return prefix_take(text, rest, *p ? p + 1 : p, err);
}

/* ---- links ---- */

static void curl_init_once(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

int etcd_link_init(struct etcd_link *l, const struct etcd_text *text)
{
	/* Older libcurls count their users without a lock. */
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, curl_init_once);
	*l = (struct etcd_link){ .text = *text, .times = ETCD_TIMES_DEFAULT };
	l->multi = curl_multi_init();
	return l->multi ? 0 : -ENOMEM;
}

static void token_drop(struct etcd_link *l)
{
	free(l->token);
	l->token = NULL;
}

void etcd_link_fini(struct etcd_link *l)
{
	curl_multi_cleanup(l->multi);
	etcd_settings_put(l->settings);
	token_drop(l);
}

void etcd_link_stop(struct etcd_link *l)
{
	atomic_store(&l->stop, true);
	curl_multi_wakeup(l->multi);
}

static bool link_stopped(const struct etcd_link *l)
{
	return !l->deaf && atomic_load(&l->stop);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int etcd_link_pause(struct etcd_link *l, unsigned int ms)
{
	uint64_t now = now_ms(), until = now + ms;

	for (; !link_stopped(l) && now < until; now = now_ms())
		curl_multi_poll(l->multi, NULL, 0, (int)(until - now), NULL);
	return link_stopped(l) ? -ESHUTDOWN : 0;
}

void etcd_link_why(struct etcd_link *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	for (char *c = l->why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* ---- one transfer ---- */

struct transfer {
	struct etcd_link *link;
	size_t len;
	char *buf;	    /* ETCD_MESSAGE_MAX + 1 bytes */
	etcd_message_fn fn; /* NULL: no stream */
	void *arg;
	int rc;	       /* why it was ended by us */
	bool answered; /* something has come */
	uint64_t heard; /* ms: when that was; before, when it was asked */
	bool unheard;  /* the endpoint did not answer: another one may */
};

static json_t *object_of(const char *text, size_t len)
{
	json_t *made = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

	if (made && !json_is_object(made)) {
		json_decref(made);
		return NULL;
	}
	return made;
}

static int no_sense(struct etcd_link *l)
{
	etcd_link_why(l, "etcd: the answer makes no sense");
	return -EPROTO;
}

/* An error in JSON: of a request, or as a message of a stream. */
static int told_error(struct etcd_link *l, const json_t *error)
{
	const json_t *inner = json_object_get(error, "error");
	const char *text;
	int64_t code;

	if (json_is_object(inner))
		error = inner;
	text = json_string_value(json_object_get(error, "message"));
	if (!text)
		text = json_string_value(json_object_get(error, "error"));
	etcd_link_why(l, "etcd: %s", text ? text : "an error without a text");
	code = etcd_number(error, "code");
	if (!code)
		code = etcd_number(error, "grpc_code");
	/* gRPC's NOT_FOUND and UNAUTHENTICATED */
	return code == 5 ? -ENOENT : code == 16 ? -EACCES : -EREMOTEIO;
}

static int message_take(struct transfer *t, const char *text, size_t len)
{
	json_t *message = object_of(text, len);
	int rc;

	if (!message)
		return no_sense(t->link);
	if (json_object_get(message, "error"))
		rc = told_error(t->link, message);
	else
		rc = t->fn(t->arg, message);
	json_decref(message);
	return rc;
}

/* Takes the lines that are complete. */
static void lines_take(struct transfer *t)
{
	char *begin = t->buf, *end;

	while (!t->rc &&
	       (end = memchr(begin, '\n', t->len - (size_t)(begin - t->buf)))) {
		if (end > begin)
			t->rc = message_take(t, begin, (size_t)(end - begin));
		begin = end + 1;
	}
	t->len -= (size_t)(begin - t->buf);
	memmove(t->buf, begin, t->len);
}

static size_t on_bytes(char *bytes, size_t one, size_t n, void *arg)
{
	struct transfer *t = arg;

	(void)one;
	t->answered = true;
	t->heard = now_ms();
	/* Of a stream, one message may be so long; a read is much shorter. */
	if (n > ETCD_MESSAGE_MAX - t->len) {
		etcd_link_why(t->link, "etcd: an answer of more than %u bytes",
			      ETCD_MESSAGE_MAX);
		t->rc = -EMSGSIZE;
		return 0;
	}
	memcpy(t->buf + t->len, bytes, n);
	t->len += n;
	if (t->fn)
		lines_take(t);
	return t->rc ? 0 : n;
}

static void easy_set(CURL *easy, struct transfer *t, const char *url,
		     const char *body)
{
	const struct etcd_times *times = &t->link->times;

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)times->connect);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 10L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	if (!t->fn)
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)times->answer);
}

/* Sets what TLS needs. */
static void easy_set_tls(CURL *easy, const struct etcd_settings *s)
{
	curl_easy_setopt(easy, CURLOPT_SSLVERSION,
			 (long)CURL_SSLVERSION_TLSv1_2);
	if (s && s->ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, s->ca);
	if (s && s->cert)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, s->cert);
	if (s && s->cert)
		curl_easy_setopt(easy, CURLOPT_SSLKEY,
				 s->key ? s->key : s->cert);
}

/* How long @t may go on without a word, ms; 0: it has said nothing for too
 * long. libcurl itself looks after what is no stream. */
static unsigned int patience_left(const struct transfer *t)
{
	const struct etcd_times *times = &t->link->times;
	uint64_t silent = now_ms() - t->heard;
	unsigned int most = t->answered ? times->silence : times->answer;

	if (!t->fn)
		return 1000;
	return silent < most ? most - (unsigned int)silent : 0;
}

static int of_curl(struct etcd_link *l, CURLcode code)
{
	etcd_link_why(l, "etcd at %s: %s", l->text.endpoint[l->at],
		      curl_easy_strerror(code));
	switch (code) {
	case CURLE_OK: /* of a stream: its end */
		etcd_link_why(l, "etcd at %s has ended the watch",
			      l->text.endpoint[l->at]);
		return -ECONNRESET;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_COULDNT_RESOLVE_HOST:
		return -ENOENT;
	default:
		return -EIO;
	}
}

/* Carries it out. *@code_p: how it has ended, if that is 0. */
static int transfer_run(struct transfer *t, CURL *easy, CURLcode *code_p)
{
	struct etcd_link *l = t->link;
	unsigned int patience = 1;
	int running = 1, left;
	CURLMsg *m;

	if (curl_multi_add_handle(l->multi, easy))
		return -ENOMEM;
	t->heard = now_ms();
	while (running && !link_stopped(l)) {
		curl_multi_perform(l->multi, &running);
		patience = patience_left(t);
		if (running && !patience)
			break;
		if (running)
			curl_multi_poll(l->multi, NULL, 0, (int)patience, NULL);
	}
	*code_p = CURLE_ABORTED_BY_CALLBACK;
	if (running && !patience) {
		t->rc = t->answered ? -EAGAIN : 0;
		*code_p = CURLE_OPERATION_TIMEDOUT;
		running = 0;
	}
	while ((m = curl_multi_info_read(l->multi, &left)))
		if (m->msg == CURLMSG_DONE)
			*code_p = m->data.result;
	curl_multi_remove_handle(l->multi, easy);
	return running ? -ESHUTDOWN : 0;
}

/* Returns 0 if @t has a whole answer. */
static int transfer_end(struct transfer *t, CURL *easy, CURLcode code)
{
	struct etcd_link *l = t->link;
	long status = 0;
	json_t *error;
	int rc;

	if (t->rc) {
		/* The next host may have what this one has not: a leader. */
		if (t->fn && t->rc == -EREMOTEIO)
			l->at = (l->at + 1) % l->text.n;
		return t->rc;
	}
	if (code != CURLE_OK) {
		rc = of_curl(l, code);
		l->at = (l->at + 1) % l->text.n;
		t->unheard = !t->answered;
		if (t->fn && t->answered)
			return -ECONNRESET;
		/* Unlike what etcd itself does not know. */
		return rc == -ENOENT ? -EHOSTUNREACH : rc;
	}
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200)
		return t->fn ? of_curl(l, code) : 0;
	error = object_of(t->buf, t->len);
	/* It has no leader, or is no etcd: another host may be better off. */
	if (!error || status >= 500) {
		l->at = (l->at + 1) % l->text.n;
		t->unheard = true;
	}
	if (!error) {
		t->buf[MIN(t->len, ETCD_MESSAGE_MAX)] = '\0';
		t->buf[strcspn(t->buf, "\r\n")] = '\0';
		etcd_link_why(l, "etcd: HTTP status %ld%s%s", status,
			      *t->buf ? ": " : "", t->buf);
		return -EREMOTEIO;
	}
	rc = told_error(l, error);
	json_decref(error);
	return rc;
}

static bool head_add(struct curl_slist **heads, const char *head)
{
	struct curl_slist *longer = curl_slist_append(*heads, head);

	if (longer)
		*heads = longer;
	return longer;
}

static bool heads_make(const struct transfer *t, struct curl_slist **heads)
{
	/* A member without a leader has no news, and does not say so unless it
	 * is asked. */
	return (!t->fn || head_add(heads, "Grpc-Metadata-hasleader: true")) &&
	       (!t->link->token || head_add(heads, t->link->token));
}

static int transfer(struct transfer *t, const char *path, const char *body)
{
	struct etcd_link *l = t->link;
	char url[ETCD_ENDPOINT_SIZE + 64];
	CURL *easy = curl_easy_init();
	struct curl_slist *heads = NULL;
	CURLcode code;
	int rc = -ENOMEM;

	if (!easy || !heads_make(t, &heads))
		goto out;
	snprintf(url, sizeof(url), "%s://%s/v3/%s",
		 l->text.tls ? "https" : "http", l->text.endpoint[l->at], path);
	easy_set(easy, t, url, body);
	if (l->text.tls)
		easy_set_tls(easy, l->settings);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, heads);
	rc = transfer_run(t, easy, &code);
	if (!rc)
		rc = transfer_end(t, easy, code);
out:
	curl_easy_cleanup(easy);
	curl_slist_free_all(heads);
	return rc;
}

/* Takes what etcd says to a name and a password that are right. */
static int token_take(struct etcd_link *l, const char *text, size_t len)
{
	static const char head[] = "Authorization: ";
	json_t *reply = object_of(text, len);
	const char *token = json_string_value(json_object_get(reply, "token"));
	int rc = -EPROTO;

	for (const char *c = token; c && *c; c++)
		if (*c <= ' ' || *c > '~')
			token = NULL;
	if (token && *token) {
		l->token = malloc(sizeof(head) + strlen(token));
		rc = l->token ? 0 : -ENOMEM;
	}
	if (l->token)
		sprintf(l->token, "%s%s", head, token);
	else
		etcd_link_why(l, "etcd: no token for the user");
	json_decref(reply);
	return rc;
}

/* Gets a token for the user, if the settings have one. *@unheard_p: the host
 * did not answer. */
static int token_get(struct etcd_link *l, bool *unheard_p)
{
	struct transfer t = { .link = l };
	json_t *request;
	char *body;
	int rc = -ENOMEM;

	if (!l->settings || !l->settings->user || l->token)
		return 0;
	request = json_pack("{s:s,s:s}", "name", l->settings->user, "password",
			    l->settings->password);
	body = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_decref(request);
	t.buf = malloc(ETCD_MESSAGE_MAX + 1);
	if (body && t.buf)
		rc = transfer(&t, "auth/authenticate", body);
	if (!rc)
		rc = token_take(l, t.buf, t.len);
	*unheard_p = t.unheard;
	if (body)
		explicit_bzero(body, strlen(body));
	free(body);
	free(t.buf);
	return rc;
}

static int post(struct transfer *t, const char *path, json_t *request)
{
	struct etcd_link *l = t->link;
	bool again = false;
	char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
	int rc = -ENOMEM;

	json_decref(request);
	etcd_link_why(l, "no memory");
	t->buf = malloc(ETCD_MESSAGE_MAX + 1);
	for (unsigned int left = l->text.n; body && t->buf && left; left--) {
		t->unheard = t->answered = false;
		t->len = 0;
		rc = token_get(l, &t->unheard);
		if (!rc)
			rc = transfer(t, path, body);
		if (rc == -EACCES && l->token) {
			/* Tokens expire. A watch is begun again anyway. */
			token_drop(l);
			if (!t->fn && !again) {
				again = true;
				left++;
				continue;
			}
		}
		if (!t->unheard)
			break;
	}
	free(body);
	return rc;
}

int etcd_ask(struct etcd_link *l, const char *path, json_t *request,
	     json_t **reply_p)
{
	struct transfer t = { .link = l };
	int rc = post(&t, path, request);

	if (!rc) {
		*reply_p = object_of(t.buf, t.len);
		rc = *reply_p ? 0 : no_sense(l);
	}
	free(t.buf);
	return rc;
}

int etcd_stream(struct etcd_link *l, const char *path, json_t *request,
		etcd_message_fn fn, void *arg)
{
	struct transfer t = { .link = l, .fn = fn, .arg = arg };
	int rc = post(&t, path, request);

	free(t.buf);
	return rc;
}

/* ---- JSON ---- */

int64_t etcd_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		return json_integer_value(value);
	/* Numbers of clusters and leases use all 64 bits. */
	return text ? (int64_t)strtoull(text, NULL, 10) : 0;
}

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Decodes @len characters of @text, without '='. Returns how many bytes they
 * are; -1: they are no base64. */
static ssize_t decode(const char *text, size_t len, char *to)
{
	unsigned int bits = 0, have = 0;
	ssize_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const char *digit = strchr(digits, text[i]);

		if (!digit || !*digit)
			return -1;
		bits = bits << 6 | (unsigned int)(digit - digits);
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		to[n++] = (char)(bits >> have & 0xff);
	}
	return n;
}

char *etcd_bytes(const json_t *object, const char *key, size_t max)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);
	size_t len = text ? json_string_length(value) : 0;
	char *made;
	ssize_t n;

	while (len && text[len - 1] == '=')
		len--;
	if (!text || len / 4 * 3 > max)
		return NULL;
	made = malloc(len + 1);
	n = made ? decode(text, len, made) : -1;
	if (n < 0 || (size_t)n > max || memchr(made, '\0', (size_t)n)) {
		free(made);
		return NULL;
	}
	made[n] = '\0';
	return made;
}

json_t *etcd_base64(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = strlen(text), at = 0;
	char *made = malloc(len / 3 * 4 + 5);
	json_t *string;

	if (!made)
		return NULL;
	for (; len; p += 3, len -= len < 3 ? len : 3) {
		unsigned int bits = (unsigned int)p[0] << 16;

		if (len > 1)
			bits |= (unsigned int)p[1] << 8;
		if (len > 2)
			bits |= p[2];
		made[at++] = digits[bits >> 18];
		made[at++] = digits[bits >> 12 & 63];
		made[at++] = len > 1 ? digits[bits >> 6 & 63] : '=';
		made[at++] = len > 2 ? digits[bits & 63] : '=';
	}
	string = json_stringn(made, at);
	free(made);
	return string;
}
