/* SPDX-License-Identifier: BSD-3-Clause */
/* Too few file descriptors, and too few places in the queue of incoming
 * connections. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lnd/socklnd/sock.h"
#include "lnet/node/node.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/census.h"
#include "tests/lnd/raw_peer.h"

#define ADDRESS "127.0.0.5@tcp"

static const struct ulnet_tunable tunables[] = { { "conns_per_peer", 1 } };

/* The node that is short of files runs only when it is polled. */
static struct real_net net = { .nids = { ADDRESS, "127.0.0.6@tcp" },
			       .absent = "127.0.0.99@tcp",
			       .run = LNET_RUN_POLL,
			       .cpts = 1,
			       .port = true,
			       .tunables = tunables,
			       .ntunables = ARRAY_SIZE(tunables) };

static struct lnd_rig rig = { .name = "files", .ops = &real_ops, .arg = &net };

struct said {
	const char *wanted; /* a text */
	unsigned int lines;
	/* log lines that contain it, or say that lines were left out */
	unsigned int found;
	char text[200]; /* the last line */
};

static void on_said(int level, const char *line, void *arg)
{
	struct said *said = arg;

	(void)level;
	said->lines++;
	said->found += strstr(line, said->wanted) || strstr(line, "left out");
	text_copy(said->text, sizeof(said->text), line);
}

static bool was_said(const struct said *said)
{
	if (!said->found)
		fprintf(stderr, "%u lines, the last one: %s\n", said->lines,
			said->text);
	return said->found != 0;
}

/* Limits the process to file numbers below @n. */
static bool limit_files(rlim_t n)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || n > files.rlim_max)
		return false;
	files.rlim_cur = n;
	return setrlimit(RLIMIT_NOFILE, &files) == 0;
}

static rlim_t files_max(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) ? 0 : files.rlim_max;
}

/* Returns the lowest file number that is free. */
static int next_file(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* ---- opening ---- */

/* Opens a node with one NI, and closes it again. Returns 0, or the error if
 * there were too few files. */
static int open_all(enum ulnet_run run)
{
	struct ulnet_ni_conf ni = { 0 };
	struct ulnet_conf conf;
	struct lnet *node;
	int rc;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.run = run;
	conf.cpts = run == LNET_RUN_THREADS ? 3 : 1;
	conf.port = rig.port;
	rc = lnet_nid_parse("127.0.0.8@tcp", &ni.nid);
	if (!rc)
		rc = lnet_open(&conf, &node);
	if (rc)
		return rc;
	rc = lnet_ni_add(node, &ni);
	lnet_close(node);
	return rc;
}

/* Whichever file cannot be opened: there is an error, nothing is left behind,
 * and the program goes on. */
static int open_at_the_limit(void)
{
	static const enum ulnet_run runs[] = { LNET_RUN_POLL,
					       LNET_RUN_THREADS };
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };

	if (fx_up(&fx, &rig))
		return 1;
	for (unsigned int r = 0; r < ARRAY_SIZE(runs); r++) {
		int base = next_file(), rc = -EMFILE;
		unsigned int spare = 0, before = open_files();

		for (; rc && spare < 64; spare++) {
			limit_files((rlim_t)base + spare);
			rc = open_all(runs[r]);
			expect(&fx, rc == 0 || rc == -EMFILE);
			limit_files(files_max());
			expect(&fx, open_files() == before);
			expect(&fx, next_file() == base);
		}
		/* at first files were missing, and in the end there were enough
		 */
		expect(&fx, rc == 0 && spare > 4);
	}
	fx_down(&fx);
	return fx.failures ? 1 : 0;
}

/* ---- a server without files ---- */

#define CLIENTS 20

/* Lets the node accept what has come. */
static void polls(struct fx *fx, unsigned int times)
{
	while (times--)
		lnet_poll(fx->rig->node[0], 0);
}

/* Returns 0 if a client was accepted, or -errno. */
static int answer_at(int fd)
{
	struct sock_hello h;
	int rc = hear_hello(fd, &h);

	return rc ? rc : h.type == SOCK_NONE ? -EALREADY : 0;
}

static int connect_and_greet(struct raw_peer *s)
{
	uint8_t buf[200];
	int fd = raw_peer_connect(s);
	size_t n;

	if (fd < 0)
		return fd;
	n = raw_peer_request(s, buf);
	n += raw_peer_hello(s, SOCK_CONTROL, buf + n);
	say(fd, buf, n);
	return fd;
}

/* Clients for which there is no descriptor are told to try again, and the log
 * names them and the limit. Later, when there are descriptors, they are served.
 */
static int server_at_the_limit(void)
{
	struct said said = { .wanted = "127.0.0.7:" };
	unsigned int good = 0, refused = 0;
	int fd[CLIENTS], later, room;
	struct raw_peer s;
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };

	if (fx_up(&fx, &rig))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	s.pid = LNET_PID_USERFLAG;
	for (unsigned int i = 0; i < CLIENTS; i++) {
		s.pid++;
		s.incarnation++;
		fd[i] = connect_and_greet(&s);
		expect(&fx, fd[i] >= 0);
	}
	room = next_file();
	lnet_log_set(LNET_LOG_WARN, on_said, &said);
	limit_files((rlim_t)room + 5);
	polls(&fx, 200);
	limit_files(files_max());
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		int rc = answer_at(fd[i]);

		good += rc == 0;
		refused += rc == -EALREADY;
		close(fd[i]);
	}
	expect(&fx, good == 5);
	expect(&fx, refused == CLIENTS - 5);
	expect(&fx, was_said(&said));
	expect(&fx, said.lines >= 1 && said.lines <= 11);
	polls(&fx, 200);
	s.incarnation++;
	later = connect_and_greet(&s);
	polls(&fx, 20);
	expect(&fx, answer_at(later) == 0);
	close(later);
	raw_peer_fini(&s);
	fx_down(&fx);
	return fx.failures ? 1 : 0;
}

/* ---- one host and all others ---- */

#define CROWD 200

struct answers {
	unsigned int good, refused;
};

/* Runs in a process of its own, whose files do not count: @n callers connect
 * from one address, and stay. Writes how they were answered. */
static void crowd(struct raw_peer *s, unsigned int n, int out)
{
	struct answers a = { 0 };
	int fd[CROWD];

	limit_files(files_max());
	s->pid = LNET_PID_USERFLAG;
	for (unsigned int i = 0; i < n; i++) {
		s->pid++;
		s->incarnation++;
		fd[i] = connect_and_greet(s);
	}
	for (unsigned int i = 0; i < n; i++) {
		int rc = fd[i] < 0 ? fd[i] : answer_at(fd[i]);

		a.good += rc == 0;
		a.refused += rc == -EALREADY;
	}
	if (write(out, &a, sizeof(a)) != sizeof(a))
		_exit(1);
	pause();
	_exit(0);
}

static pid_t crowd_start(struct fx *fx, unsigned int n, struct answers *a)
{
	struct pollfd answered = { .events = POLLIN };
	struct raw_peer s;
	int out[2];
	pid_t pid;

	raw_peer_init(&s, fx, "127.0.0.7@tcp");
	BUG_ON(pipe(out));
	pid = fork();
	if (pid == 0)
		crowd(&s, n, out[1]);
	answered.fd = out[0];
	while (pid > 0 && poll(&answered, 1, 0) == 0)
		polls(fx, 1);
	expect(fx, read(out[0], a, sizeof(*a)) == sizeof(*a));
	close(out[0]);
	close(out[1]);
	raw_peer_fini(&s);
	return pid;
}

static bool is_served(struct fx *fx, const char *nid)
{
	struct raw_peer s;
	int fd, rc;

	raw_peer_init(&s, fx, nid);
	fd = connect_and_greet(&s);
	polls(fx, 20);
	rc = answer_at(fd);
	close(fd);
	raw_peer_fini(&s);
	return rc == 0;
}

/* The processes of one address together get half of the files. Another address
 * is served all the same, and so is the first one when its connections are
 * gone. */
static int one_host(void)
{
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct said said = { .wanted = "127.0.0.7@tcp: refused" };
	struct answers a = { 0 };
	unsigned int max, n;
	pid_t pid;

	if (fx_up(&fx, &rig))
		return 1;
	/* so that half of the limit is more than are open now */
	max = 2 * (unsigned int)next_file() + 16;
	n = max / 2 + 20;
	BUG_ON(n > CROWD);
	limit_files(max);
	lnet_log_set(LNET_LOG_WARN, on_said, &said);
	pid = crowd_start(&fx, n, &a);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	expect(&fx, a.good == max / 2 + 1);
	expect(&fx, a.refused == n - a.good);
	expect(&fx, was_said(&said));
	expect(&fx, is_served(&fx, "127.0.0.9@tcp"));
	expect(&fx, !is_served(&fx, "127.0.0.7@tcp"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	polls(&fx, 200);
	expect(&fx, is_served(&fx, "127.0.0.7@tcp"));
	limit_files(files_max());
	fx_down(&fx);
	return fx.failures ? 1 : 0;
}

/* ---- a storm ---- */

static unsigned int somaxconn(void)
{
	FILE *f = fopen("/proc/sys/net/core/somaxconn", "re");
	unsigned int n = 0;

	if (!f || fscanf(f, "%u", &n) != 1)
		n = 128;
	if (f)
		fclose(f);
	return n;
}

static int connect_now(const struct raw_peer *s)
{
	union netif_addr to = netif_addr(&s->to, s->port);
	struct pollfd p = { .events = POLLOUT };

	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	(void)connect(p.fd, &to.any, sizeof(to));
	/* On the loopback interface a connection opens at once, unless the
	 * queue is full. */
	return poll(&p, 1, 0) == 1 && !sock_error(p.fd) ? p.fd
							: (close(p.fd), -1);
}

/* So many connect at once that none has been accepted when the last one comes:
 * no peer has to try again. */
static int storm(void)
{
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };
	unsigned int n = 3000, there = 0, good = 0;
	struct raw_peer s;
	int *fd;

	n = MIN(n, somaxconn());
	n = MIN(n, (unsigned int)(files_max() - 100) / 2);
	if (n < 200 || !limit_files(files_max()))
		return SKIPPED;
	if (fx_up(&fx, &rig))
		return 1;
	fd = calloc(n, sizeof(*fd));
	BUG_ON(!fd);
	raw_peer_init(&s, &fx, "127.0.0.1@tcp");
	for (unsigned int i = 0; i < n; i++) {
		fd[i] = connect_now(&s);
		there += fd[i] >= 0;
	}
	expect(&fx, there == n);
	for (unsigned int i = 0; i < n; i++) {
		uint8_t buf[200];
		size_t len = raw_peer_request(&s, buf);

		s.pid = LNET_PID_USERFLAG | (i + 1);
		s.incarnation++;
		len += raw_peer_hello(&s, SOCK_CONTROL, buf + len);
		if (fd[i] >= 0)
			say(fd[i], buf, len);
	}
	/* Connections are accepted in batches; bytes that are there are read at
	 * once, so that no peer is dropped as silent. */
	polls(&fx, n / 8);
	for (unsigned int i = 0; i < n; i++) {
		int flags = fd[i] < 0 ? 0 : fcntl(fd[i], F_GETFL);

		if (fd[i] < 0)
			continue;
		fcntl(fd[i], F_SETFL, flags & ~O_NONBLOCK);
		good += answer_at(fd[i]) == 0;
	}
	expect(&fx, good == n);
	for (unsigned int i = 0; i < n; i++)
		close(fd[i]);
	free(fd);
	raw_peer_fini(&s);
	fx_down(&fx);
	return fx.failures ? 1 : 0;
}

/* ---- */

static const struct apart_test tests[] = {
	{ "a node is opened when few files are left", open_at_the_limit },
	{ "a server has no files left", server_at_the_limit },
	{ "one host has its share of files", one_host },
	{ "very many connect at once", storm },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
