/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names in etcd, and servers that register there, with an etcd that the test
 * plays: it knows what is asked, forgets, and says what makes no sense. What a
 * real one says, tests/tools/etcd.sh tries.
 */
#include "etcd/node.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/names/told.h"
#include "ulnet/etcd.h"
#include "ulnet/loop.h"

#define MINUTE_NS UINT64_C(60000000000)

/* ---- the etcd ---- */

/* One request, and what is answered. If the last one is a watch, its connection
 * stays open. */
struct step {
	const char *path; /* what has to be asked: "kv/range" */
	const char *has;  /* and what its text has; NULL: whatever */
	char *answer;	  /* owned; NULL: none */
	unsigned int status;
	bool hold; /* the connection stays open */
};

static struct {
	/* at one port of 127.0.0.1 and 127.0.0.2: two hosts of etcd */
	struct pollfd listeners[2];
	unsigned int port;
	pthread_t thread;
	unsigned int n, done; /* done, wrong: under the lock */
	struct step steps[16];
	/* What is answered, as often as it is asked, between the steps. */
	struct step idle[2];
	char wrong[512];
	pthread_mutex_t lock;
	int open[16]; /* connections */
	unsigned int nopen;
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void step(const char *path, const char *has, unsigned int status,
		 const char *fmt, ...)
{
	struct step *s = &fake.steps[fake.n++];
	va_list ap;

	*s = (struct step){ .path = path, .has = has, .status = status };
	if (!fmt)
		return;
	va_start(ap, fmt);
	cr_assert_geq(vasprintf(&s->answer, fmt, ap), 0);
	va_end(ap);
}

/* Reads a request with its body; false: the connection has ended. */
static bool request_read(int fd, char *text, size_t size)
{
	size_t len = 0, all = size - 1;
	const char *body, *length;
	ssize_t n;

	while (len < all && (n = read(fd, text + len, size - 1 - len)) > 0) {
		len += (size_t)n;
		text[len] = '\0';
		body = strstr(text, "\r\n\r\n");
		length = strstr(text, "Content-Length: ");
		if (body && length)
			all = (size_t)(body + 4 - text) +
			      strtoul(length + 16, NULL, 10);
	}
	return len == all;
}

static void answer_write(int fd, const struct step *s)
{
	char head[128];

	snprintf(head, sizeof(head),
		 "HTTP/1.1 %u X\r\nConnection: close\r\n\r\n", s->status);
	(void)!write(fd, head, strlen(head));
	for (size_t at = 0, len = strlen(s->answer); at < len;) {
		ssize_t n = send(fd, s->answer + at, len - at, MSG_NOSIGNAL);

		if (n <= 0)
			return; /* the client did not want it all */
		at += (size_t)n;
	}
}

static void went_wrong(const struct step *s, const char *text)
{
	const char *body = strstr(text, "\r\n\r\n");

	pthread_mutex_lock(&fake.lock);
	snprintf(fake.wrong, sizeof(fake.wrong),
		 "not %s with %s: %.200s ... %.200s", s->path,
		 s->has ? s->has : "", text, body ? body : "");
	pthread_mutex_unlock(&fake.lock);
}

static bool step_is(const struct step *s, const char *text)
{
	char path[64];

	if (!s->path)
		return false;
	snprintf(path, sizeof(path), "POST /v3/%s HTTP/1.1\r\n", s->path);
	return !strncmp(text, path, strlen(path)) &&
	       (!s->has || strstr(text, s->has));
}

/* Answers, and returns @s; or what was asked instead, of fake.idle. NULL: the
 * test has ended. */
static const struct step *step_play(const struct step *s, bool last)
{
	const struct step *asked = s;
	char text[4096];
	int fd = -1;

	poll(fake.listeners, 2, -1);
	for (int i = 0; i < 2 && fd < 0; i++)
		if (fake.listeners[i].revents)
			fd = accept(fake.listeners[i].fd, NULL, NULL);
	if (fd < 0)
		return NULL;
	if (!request_read(fd, text, sizeof(text)))
		went_wrong(s, "");
	else if (!step_is(s, text) && step_is(&fake.idle[0], text))
		asked = &fake.idle[0];
	else if (!step_is(s, text) && step_is(&fake.idle[1], text))
		asked = &fake.idle[1];
	else if (!step_is(s, text))
		went_wrong(s, text);
	if (asked->answer)
		answer_write(fd, asked);
	if (asked == s && (s->hold || (last && !strcmp(s->path, "watch"))))
		fake.open[fake.nopen++] = fd;
	else
		close(fd);
	return asked;
}

static void *fake_main(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < fake.n; i++) {
		const struct step *s = &fake.steps[i], *asked;

		while ((asked = step_play(s, i + 1 == fake.n)) != s)
			if (!asked)
				return NULL;
		pthread_mutex_lock(&fake.lock);
		fake.done++;
		pthread_mutex_unlock(&fake.lock);
	}
	return NULL;
}

/* Listens at 127.0.0.@last; port 0: any. Returns whether that works. */
static bool fake_listen(struct pollfd *l, unsigned int last)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)fake.port),
				 .sin_addr.s_addr = htonl(0x7f000000 | last) };
	socklen_t len = sizeof(a);

	*l = (struct pollfd){ .fd = socket(AF_INET, SOCK_STREAM, 0),
			      .events = POLLIN };
	if (bind(l->fd, (void *)&a, len) || listen(l->fd, 8)) {
		close(l->fd);
		return false;
	}
	cr_assert_eq(getsockname(l->fd, (void *)&a, &len), 0);
	fake.port = ntohs(a.sin_port);
	return true;
}

static void fake_begin(void)
{
	/* Somebody may have the port at the other address. */
	for (;;) {
		fake.port = 0;
		cr_assert(fake_listen(&fake.listeners[0], 1));
		if (fake_listen(&fake.listeners[1], 2))
			break;
		close(fake.listeners[0].fd);
	}
	cr_assert_eq(pthread_create(&fake.thread, NULL, fake_main, NULL), 0);
}

static void fake_end(void)
{
	for (int i = 0; i < 2; i++)
		shutdown(fake.listeners[i].fd, SHUT_RDWR);
	pthread_join(fake.thread, NULL);
	for (int i = 0; i < 2; i++)
		close(fake.listeners[i].fd);
	while (fake.nopen)
		close(fake.open[--fake.nopen]);
	for (unsigned int i = 0; i < fake.n; i++)
		free(fake.steps[i].answer);
	cr_assert_str_eq(fake.wrong, "");
	cr_assert_eq(fake.done, fake.n);
}

/* "key": ..., "value": ... of a server; of several buffers in turn. */
static const char *kv(const char *key, const char *value)
{
	static char text[8][1024];
	static unsigned int at;
	json_t *k = etcd_base64(key), *v = etcd_base64(value);

	at = (at + 1) % 8;
	snprintf(text[at], sizeof(text[at]), "\"key\":\"%s\",\"value\":\"%s\"",
		 json_string_value(k), json_string_value(v));
	json_decref(k);
	json_decref(v);
	return text[at];
}

#define HEADER(revision)                                                    \
	"\"header\":{\"cluster_id\":\"14841639068965178418\",\"revision\":" \
	"\"" #revision "\"}"
#define CREATED(revision) \
	"{\"result\":{" HEADER(revision) ",\"created\":true}}\n"
#define ONE   kv("p/1", "{\"nid\":\"10.0.0.1@tcp\"}")
#define TWO   kv("p/2", "{\"nid\":\"10.0.0.2@tcp\",\"port\":7,\"weight\":3}")
#define THREE kv("p/3", "{\"nid\":\"10.0.0.3@tcp\"}")

/* ---- the user ---- */

static struct lnet *node;
static struct ulnet_name *name;

static void node_begin(void)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_etcd_open(node), 0);
	cr_assert_eq(lnet_etcd_open(node), 0);
}

static const char *text_of(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "etcd://127.0.0.1:%u/p", fake.port);
	return text;
}

/* The same, with two hosts. */
static const char *text_of_two(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "etcd://127.0.0.1:%u,127.0.0.2:%u/p",
		 fake.port, fake.port);
	return text;
}

static void begin_with(const char *(*text)(void), unsigned int silence)
{
	fake_begin();
	node_begin();
	if (silence)
		etcd_node_of(node)->times.silence = silence;
	cr_assert_eq(lnet_name_open(node, 0, text(), tell, NULL, &name, NULL),
		     0);
}

static void begin(void)
{
	begin_with(text_of, 0);
}

static void end(void)
{
	lnet_name_close(name);
	lnet_close(node);
	fake_end();
}

/* Returns how many steps are done, of which none has gone wrong. */
static unsigned int steps_done(void)
{
	unsigned int done;
	bool wrong;

	pthread_mutex_lock(&fake.lock);
	done = fake.done;
	wrong = *fake.wrong;
	pthread_mutex_unlock(&fake.lock);
	cr_assert_not(wrong, "%s", fake.wrong);
	return done;
}

static bool has_asked(void *steps)
{
	return steps_done() >= *(unsigned int *)steps;
}

/* Waits until this was told, and so much asked. */
static void await(int status, const char *why, const char *servers,
		  unsigned int steps)
{
	told_await(node, status, why, servers, has_asked, &steps);
}

/* ---- names ---- */

Test(etcd, a_watch_goes_on_from_its_revision)
{
	step("kv/range", "\"range_end\":\"cDA=\"", 200,
	     "{" HEADER(5) ",\"kvs\":[{%s}],\"count\":\"1\"}", ONE);
	/* Revision 9 is that of etcd, and 7 that of what was told. */
	step("watch", "\"start_revision\":6", 200,
	     CREATED(5) "{\"result\":{" HEADER(9) ",\"events\":[{\"kv\":"
						  "{%s,\"mod_revision\":\"7\"}}"
						  "]}}\n",
	     TWO);
	step("watch", "\"start_revision\":8", 200,
	     CREATED(9) "{\"result\":{" HEADER(9) ",\"events\":[{\"type\":"
						  "\"DELETE\",\"kv\":{%s,\"mod_"
						  "revision\":\"9\"}}]}}\n",
	     ONE);
	begin();
	await(0, "", "10.0.0.2@tcp 7 3;", 3);
	end();
}

Test(etcd, a_compaction_and_an_etcd_that_knows_less)
{
	step("kv/range", NULL, 200, "{" HEADER(5) ",\"kvs\":[{%s}]}", ONE);
	step("watch", "\"start_revision\":6", 200,
	     CREATED(9) "{\"result\":{" HEADER(
		     9) ",\"canceled\":true,\"compact_revision\":\"8\"}}\n");
	step("kv/range", NULL, 200, "{" HEADER(9) ",\"kvs\":[{%s}]}", TWO);
	step("watch", "\"start_revision\":10", 200, CREATED(3));
	step("kv/range", NULL, 200, "{" HEADER(3) ",\"kvs\":[{%s}]}", THREE);
	/* Another cluster. */
	step("watch", "\"start_revision\":4", 200,
	     "{\"result\":{\"header\":{\"cluster_id\":\"14841639068965178419\","
	     "\"revision\":"
	     "\"4\"},\"created\":true}}\n");
	step("kv/range", NULL, 200,
	     "{\"header\":{\"cluster_id\":\"14841639068965178419\","
	     "\"revision\":\"4\"}}");
	step("watch", "\"start_revision\":5", 200, "");
	begin();
	await(-ENODATA, "no server is registered", "10.0.0.3@tcp 0 0;", 8);
	end();
}

Test(etcd, odd_answers)
{
	char *big = malloc(2 * ETCD_MESSAGE_MAX), *deep = malloc(8001);

	memset(big, ' ', 2 * ETCD_MESSAGE_MAX);
	big[2 * ETCD_MESSAGE_MAX - 1] = '\0';
	memset(deep, '[', 8000);
	deep[8000] = '\0';
	step("kv/range", NULL, 200, "{" HEADER(5) ",\"kvs\":[{%s}]}", ONE);
	step("watch", NULL, 200, CREATED(5) "no JSON\n");
	step("watch", NULL, 200,
	     "{\"error\":{\"grpc_code\":14,\"message\":"
	     "\"not \\u001b now\"}}\n");
	step("watch", NULL, 200, "{\"result\":7}\n");
	step("kv/range", NULL, 200, "{\"x\":%s", deep);
	step("watch", NULL, 200, "%s", big);
	step("watch", NULL, 503, "{\"error\":\"away\",\"code\":14}");
	step("watch", NULL, 200,
	     CREATED(5) "{\"result\":{" HEADER(6) ",\"events\":[{\"kv\":{%s,"
						  "\"mod_revision\":6}}]}}\n",
	     TWO);
	begin();
	await(0, "", "10.0.0.1@tcp 0 0;10.0.0.2@tcp 7 3;", 8);
	free(big);
	free(deep);
	end();
}

/* Warnings, as the log had them: what is told to users is so short-lived here
 * that one may be replaced before its user's turn. */
static struct {
	pthread_mutex_t lock;
	char text[4096];
} warned = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void on_line(int level, const char *line, void *arg)
{
	size_t len;

	(void)arg;
	if (level != LNET_LOG_WARN)
		return;
	pthread_mutex_lock(&warned.lock);
	len = strlen(warned.text);
	snprintf(warned.text + len, sizeof(warned.text) - len, "%s\n", line);
	pthread_mutex_unlock(&warned.lock);
}

static void warned_of(const char **at, const char *what)
{
	const char *found = strstr(*at, what);

	cr_assert_not_null(found, "%s: %s", what, warned.text);
	*at = found + 1;
}

/* Each failure is told, and keeps the list. */
Test(etcd, what_is_told)
{
	const char *at = warned.text;

	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	step("kv/range", NULL, 500, "{\"error\":\"away\",\"code\":14}");
	step("kv/range", NULL, 200, "[]");
	step("kv/range", NULL, 200, "{" HEADER(5) ",\"kvs\":[{%s}]}", ONE);
	step("watch", NULL, 404, "Not found");
	step("watch", NULL, 200, CREATED(5));
	begin();
	await(0, "", "10.0.0.1@tcp 0 0;", 5);
	end();
	warned_of(&at, "/p: etcd: away\n");
	warned_of(&at, "/p: etcd: the answer makes no sense\n");
	warned_of(&at, "/p: etcd: HTTP status 404: Not found; the addresses "
		       "known before "
		       "are kept\n");
}

Test(etcd, odd_servers)
{
	step("kv/range", NULL, 200,
	     "{" HEADER(5) ",\"kvs\":[{%s},{%s},{%s},{%s},{%s},{%s},{%s},"
			   "{\"key\":\"*\",\"value\":\"e30=\"},{\"key\":7},"
			   "[],{}],\"more\":false}",
	     kv("p/a", "{\"nid\":\"0@lo\"}"), kv("p/b", "[]"),
	     kv("p/c", "{\"nid\":\"10.0.0.9@tcp\",\"port\":65536}"),
	     kv("p/d", "{\"nid\":\"10.0.0.9@tcp\",\"weight\":\"1\"}"),
	     kv("p/e", "{\"nid\":\"host\"}"), kv("p/f", "10.0.0.9@tcp"), TWO);
	step("watch", NULL, 200, CREATED(5));
	begin();
	await(0, "", "10.0.0.2@tcp 7 3;", 2);
	end();
}

#define TWO_COMES(revision)                                            \
	"{\"result\":{" HEADER(revision) ",\"events\":[{\"kv\":{%s,"   \
					 "\"mod_revision\":" #revision \
					 "}}]}}\n"

/* A host that takes the connection of a watch and says nothing. */
Test(etcd, a_host_that_says_nothing_is_left)
{
	step("kv/range", "Host: 127.0.0.1:", 200,
	     "{" HEADER(5) ",\"kvs\":[{%s}]}", ONE);
	step("watch", "Host: 127.0.0.1:", 200, NULL);
	fake.steps[1].hold = true;
	step("watch", "Host: 127.0.0.2:", 200, CREATED(5) TWO_COMES(6), TWO);
	begin_with(text_of_two, 0);
	await(0, "", "10.0.0.1@tcp 0 0;10.0.0.2@tcp 7 3;", 3);
	end();
}

/* A watch that was made, and of which nothing more is heard, is made again;
 * this is no failure. */
Test(etcd, a_silent_watch_is_begun_again)
{
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	step("kv/range", NULL, 200, "{" HEADER(5) ",\"kvs\":[{%s}]}", ONE);
	step("watch", "\"start_revision\":6", 200, CREATED(5));
	fake.steps[1].hold = true;
	step("watch", "\"start_revision\":6", 200, CREATED(6) TWO_COMES(6),
	     TWO);
	begin_with(text_of, 200);
	await(0, "", "10.0.0.1@tcp 0 0;10.0.0.2@tcp 7 3;", 3);
	cr_assert_str_eq(warned.text, "");
	end();
}

/* Whether it is asked for the list, or watched. */
Test(etcd, a_host_without_a_leader_is_left)
{
	step("kv/range", "Host: 127.0.0.1:", 503,
	     "{\"error\":\"etcdserver: no leader\",\"code\":14}");
	step("kv/range", "Host: 127.0.0.2:", 200,
	     "{" HEADER(5) ",\"kvs\":[{%s}]}", ONE);
	step("watch", "Host: 127.0.0.2:", 200,
	     CREATED(5) "{\"error\":{\"grpc_code\":14,\"message\":"
			"\"etcdserver: no leader\"}}\n");
	step("watch", "Host: 127.0.0.1:", 200, CREATED(5) TWO_COMES(6), TWO);
	begin_with(text_of_two, 0);
	await(0, "", "10.0.0.1@tcp 0 0;10.0.0.2@tcp 7 3;", 4);
	end();
}

Test(etcd, a_watch_wants_a_leader)
{
	step("kv/range", NULL, 200, "{" HEADER(5) ",\"kvs\":[{%s}]}", ONE);
	step("watch", "Grpc-Metadata-hasleader: true\r\n", 200, CREATED(5));
	begin();
	await(0, "", "10.0.0.1@tcp 0 0;", 2);
	end();
}

/* ---- settings ---- */

static int settings(const char *text, mode_t mode, const char *why)
{
	char path[] = "/tmp/etcd_test.XXXXXX";
	int fd = mkstemp(path);
	struct ulnet_text_error err = { .what = "" };
	struct etcd_settings *s = NULL;
	int rc;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
	rc = etcd_settings_read(path, &s, &err);
	unlink(path);
	cr_assert_str_eq(err.what, why);
	etcd_settings_put(s);
	return rc;
}

Test(etcd, settings_in_a_file)
{
	char big[5000];

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	cr_assert_eq(settings("", 0644, ""), 0);
	cr_assert_eq(settings("# a comment\n\n  ca: /a\r\ncert:/b\nkey :\t/c",
			      0644, ""),
		     0);
	cr_assert_eq(settings("user: u\npassword: p: 1\n", 0600, ""), 0);
	cr_assert_eq(settings("user: u\npassword: p\n", 0640,
			      "others may read or change it, and there is a "
			      "password in it: chmod 600"),
		     -EACCES);
	cr_assert_eq(settings("user: u\n", 0600,
			      "there is a user without a password"),
		     -EINVAL);
	cr_assert_eq(settings("password: u\n", 0600,
			      "there is a password without a user"),
		     -EINVAL);
	cr_assert_eq(
		settings("key: /a\n", 0600, "there is a key without a cert"),
		-EINVAL);
	cr_assert_eq(
		settings("ca: /a\nca: /b\n", 0600, "line 2: it comes twice"),
		-EINVAL);
	cr_assert_eq(settings("ca: \n", 0600, "line 1: the value is missing"),
		     -EINVAL);
	cr_assert_eq(
		settings("ca\n", 0600, "line 1: 'name: value' is expected"),
		-EINVAL);
	cr_assert_eq(settings("secret: 1\n", 0600,
			      "line 1: not ca, cert, key, user or password"),
		     -EINVAL);
	cr_assert_eq(settings(big, 0600, "line 1: it is too long"), -EINVAL);
}

static struct etcd_link link_with(const char *user)
{
	struct etcd_settings *s = calloc(1, sizeof(*s));
	struct etcd_link link;
	struct etcd_text text;

	fake_begin();
	cr_assert_eq(
		etcd_text_parse(text_of_two() + strlen("etcd://"), &text, NULL),
		0);
	cr_assert_eq(etcd_link_init(&link, &text), 0);
	atomic_init(&s->refs, 1);
	s->user = strdup(user);
	s->password = strdup("\"secret\"");
	link.settings = s;
	return link;
}

#define RANGE json_pack("{s:s}", "key", "YQ==")

/* A user has a token, which is got from the host that is asked, and again when
 * etcd does not know it any more. */
Test(etcd, a_user_has_a_token)
{
	struct etcd_link link;
	json_t *reply;

	step("auth/authenticate",
	     "{\"name\":\"anna\",\"password\":"
	     "\"\\\"secret\\\"\"}",
	     503, "{\"error\":\"etcdserver: no leader\",\"code\":14}");
	step("auth/authenticate", "Host: 127.0.0.2:", 200,
	     "{\"token\":\"one.1\"}");
	step("kv/range", "Authorization: one.1\r\n", 200, "{}");
	step("kv/range", "Authorization: one.1\r\n", 401,
	     "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}");
	step("auth/authenticate", NULL, 200, "{\"token\":\"two.2\"}");
	step("kv/range", "Authorization: two.2\r\n", 200, "{}");
	/* It is asked for once in a request. */
	step("kv/range", "Authorization: two.2\r\n", 401,
	     "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}");
	step("auth/authenticate", NULL, 200, "{\"token\":\"three\"}");
	step("kv/range", "Authorization: three\r\n", 401,
	     "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}");
	/* What would be a head of its own is no token. */
	step("auth/authenticate", NULL, 200, "{\"token\":\"four\\r\\nX: y\"}");
	step("auth/authenticate", NULL, 400,
	     "{\"error\":\"etcdserver: authentication failed\",\"code\":3}");
	link = link_with("anna");
	cr_assert_eq(etcd_ask(&link, "kv/range", RANGE, &reply), 0, "%s",
		     link.why);
	json_decref(reply);
	cr_assert_eq(etcd_ask(&link, "kv/range", RANGE, &reply), 0);
	json_decref(reply);
	cr_assert_eq(etcd_ask(&link, "kv/range", RANGE, &reply), -EACCES);
	cr_assert_str_eq(link.why, "etcd: etcdserver: invalid auth token");
	cr_assert_eq(etcd_ask(&link, "kv/range", RANGE, &reply), -EPROTO);
	cr_assert_str_eq(link.why, "etcd: no token for the user");
	cr_assert_eq(etcd_ask(&link, "kv/range", RANGE, &reply), -EREMOTEIO);
	cr_assert_str_eq(link.why, "etcd: etcdserver: authentication failed");
	etcd_link_fini(&link);
	fake_end();
}

/* ---- servers ---- */

static void await_steps(unsigned int n)
{
	while (steps_done() < n)
		usleep(1000);
}

static struct ulnet_etcd_entry *enter(unsigned int ttl)
{
	struct ulnet_address address = { .port = 988 };
	struct ulnet_etcd_entry *entry;

	fake_begin();
	node_begin();
	cr_assert_eq(lnet_nid_parse("10.0.0.1@tcp", &address.nid), 0);
	cr_assert_eq(lnet_etcd_register(node, text_of(), &address, ttl, &entry,
					NULL),
		     0);
	return entry;
}

static void leave(struct ulnet_etcd_entry *entry)
{
	lnet_etcd_withdraw(entry);
	lnet_close(node);
	fake_end();
}

static void idle(unsigned int i, const char *path, const char *answer)
{
	fake.idle[i] = (struct step){ path, NULL, strdup(answer), 200, false };
}

Test(etcd, a_key_that_is_deleted_is_written_again)
{
	struct ulnet_etcd_entry *entry;

	step("lease/grant", NULL, 200, "{\"ID\":\"7\",\"TTL\":\"9\"}");
	step("kv/put", "\"lease\":\"7\"", 200, "{" HEADER(1) "}");
	step("kv/range", "\"key\":\"cC8xMC4wLjAuMUB0Y3A=\"", 200,
	     "{" HEADER(3) "}");
	step("kv/put", "\"lease\":\"7\"", 200, "{" HEADER(4) "}");
	step("lease/revoke", "{\"ID\":\"7\"}", 200, "{}");
	idle(0, "lease/keepalive",
	     "{\"result\":{\"ID\":\"7\",\"TTL\":\"9\"}}\n");
	idle(1, "kv/range", "{" HEADER(4) ",\"count\":\"1\"}");
	entry = enter(9);
	await_steps(4);
	leave(entry);
	free(fake.idle[0].answer);
	free(fake.idle[1].answer);
}

/* What has a short lease does not wait for long. */
Test(etcd, nothing_takes_longer_than_a_third_of_the_lease)
{
	const struct etcd_job *job;
	struct ulnet_etcd_entry *entry;

	step("lease/grant", NULL, 200, "{\"ID\":\"7\",\"TTL\":\"9\"}");
	step("kv/put", NULL, 200, "{" HEADER(1) "}");
	step("lease/revoke", NULL, 200, "{}");
	idle(0, "lease/keepalive",
	     "{\"result\":{\"ID\":\"7\",\"TTL\":\"9\"}}\n");
	idle(1, "kv/range", "{" HEADER(4) ",\"count\":\"1\"}");
	entry = enter(9);
	cr_assert_eq(lnet_etcd_wait(entry, MINUTE_NS / 1000), 0);
	job = (const struct etcd_job *)(const void *)
		entry; /* its first field */
	cr_assert_eq(job->retry_max, 3000);
	cr_assert_eq(job->link.times.connect, 2000);
	cr_assert_eq(job->link.times.answer, 3000);
	leave(entry);
	free(fake.idle[0].answer);
	free(fake.idle[1].answer);
}

Test(etcd, pauses_are_bounded)
{
	struct etcd_job job = { .retry = ETCD_RETRY_MIN, .retry_max = 300 };

	atomic_store(&job.link.stop, true);
	cr_assert_eq(etcd_job_retry(&job), -ESHUTDOWN);
	cr_assert_eq(job.retry, 300);
}

/* A key that may have been written when the server withdraws goes with its
 * lease. */
Test(etcd, a_withdrawal_while_the_key_is_written)
{
	struct ulnet_etcd_entry *entry;

	step("lease/grant", NULL, 200, "{\"ID\":\"7\",\"TTL\":\"3600\"}");
	step("kv/put", NULL, 200, NULL);
	fake.steps[1].hold = true;
	step("lease/revoke", "{\"ID\":\"7\"}", 200, "{}");
	entry = enter(3600);
	await_steps(2);
	leave(entry);
}

Test(etcd, a_server_registers_again_and_withdraws)
{
	struct ulnet_address address = { .port = 988, .weight = 2 };
	struct ulnet_etcd_entry *entry;
	struct ulnet_text_error err;

	step("lease/grant", "{\"TTL\":9}", 200, "{\"ID\":\"7\",\"TTL\":\"9\"}");
	step("kv/put", "\"lease\":\"7\"", 200, "{" HEADER(1) "}");
	/* The lease has ended. */
	step("lease/keepalive", "{\"ID\":\"7\"}", 200,
	     "{\"result\":{\"ID\":\"7\"}}\n");
	step("lease/grant", NULL, 200, "{\"ID\":\"8\",\"TTL\":\"9\"}");
	step("kv/put", "\"key\":\"cC8xMC4wLjAuMUB0Y3A=\"", 200, "{}");
	step("lease/revoke", "{\"ID\":\"8\"}", 200, "{}");
	fake_begin();
	node_begin();
	cr_assert_eq(lnet_nid_parse("10.0.0.1@tcp", &address.nid), 0);
	cr_assert_eq(lnet_etcd_register(node, "x", &address, 2, &entry, &err),
		     -EINVAL);
	cr_assert_eq(
		lnet_etcd_register(node, text_of(), &address, 1, &entry, NULL),
		-EINVAL);
	cr_assert_eq(lnet_etcd_register(node, "etcd://h:x/p", &address, 2,
					&entry, &err),
		     -EINVAL);
	cr_assert_eq(err.offset, strlen("etcd://h:"));
	cr_assert_eq(
		lnet_etcd_register(node, text_of(), &address, 9, &entry, &err),
		0, "%s", err.what);
	cr_assert_eq(lnet_etcd_wait(entry, MINUTE_NS / 1000), 0);
	await_steps(5);
	lnet_etcd_withdraw(entry);
	lnet_etcd_withdraw(NULL);
	lnet_close(node);
	fake_end();
}

/* A node that is closed with names in use, and an etcd that says nothing. */
Test(etcd, a_node_is_closed_meanwhile)
{
	step("kv/range", NULL, 200, "{");
	fake.steps[0].hold = true;
	begin();
	while (lnet_poll(node, 1000) == 0 && !told.times) {
		pthread_mutex_lock(&fake.lock);
		if (fake.done)
			told.times = 1;
		pthread_mutex_unlock(&fake.lock);
	}
	lnet_close(node);
	fake_end();
}
