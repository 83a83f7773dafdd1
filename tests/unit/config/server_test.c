/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: its file, its clients, and clients that are malicious. */
#include "tests/unit/config/rig.h"

#include <dirent.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* the limit that lnet_control(7) gives */
#define REQUEST_LIMIT ((size_t)4 << 20)

/* ---- a rig with a socket in a directory of its own ---- */

static char dir[64], path[96];

static void dir_make(void)
{
	strcpy(dir, "/tmp/ulnet-ctl-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
}

static void dir_remove(void)
{
	unlink(path);
	cr_assert_eq(rmdir(dir), 0, "%s: something was left", dir);
}

static struct rig serve(unsigned int clients_max)
{
	struct ulnet_control_conf conf = { .path = path,
					   .clients_max = clients_max };
	struct rig rig;

	dir_make();
	rig = rig_open_with(1, &conf);
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	return rig;
}

static void serve_end(struct rig *rig)
{
	struct stat st;

	rig_close(rig);
	cr_assert_eq(lstat(path, &st), -1);
	dir_remove();
}

static struct lnet_ctl *client(void)
{
	struct lnet_ctl *ctl;

	cr_assert_eq(lnet_ctl_connect(path, 0, &ctl), 0);
	return ctl;
}

static void client_ask(struct lnet_ctl *ctl, const char *request, int status)
{
	struct result r;
	char *answer;

	cr_assert_eq(lnet_ctl_request(ctl, request, 0, &answer), 0);
	r = result_of(answer);
	cr_assert_eq(r.status, status, "%s: %s", request, answer);
	result_free(&r);
}

/* Checks that a new client is served. */
static void served(void)
{
	struct lnet_ctl *ctl = client();

	client_ask(ctl, "net show:", 0);
	lnet_ctl_close(ctl);
}

Test(server, an_empty_path_is_no_socket)
{
	struct lnet_ctl *ctl;

	cr_assert_eq(lnet_ctl_connect("", 0, &ctl), -EINVAL);
}

/* ---- raw clients, which may break all rules ---- */

static int raw(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, path);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void raw_send(int fd, const char *text)
{
	size_t len = strlen(text);

	cr_assert_eq(send(fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Returns all that comes until the node closes the connection. */
static char *raw_read(int fd)
{
	char *text = calloc(1, 65536);
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, 65535 - len, 0)) > 0)
		len += (size_t)n;
	close(fd);
	return text;
}

/* ---- clients that leave ---- */

static unsigned int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int n = 0;

	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

/* Nobody reads the answer to a ping any more: nobody waits for it, either. No
 * peer answers through the stub LND. */
Test(server, who_leaves_is_not_worked_for)
{
	struct rig rig = serve(2);
	unsigned int before = threads();
	int fd = raw();

	raw_send(fd, "ping: {nids: [10.77.0.9@tcp], timeout: 3600}\n...\n");
	while (threads() == before)
		usleep(1000);
	close(fd);
	while (threads() > before)
		usleep(1000);
	serve_end(&rig);
}

/* A client that sends no more requests, but reads, has not left. */
Test(server, half_closed)
{
	struct rig rig = serve(2);
	int fd = raw();
	char *answer;

	raw_send(fd, "ping: {nids: [10.77.0.9@tcp], timeout: 1}\n...\n");
	shutdown(fd, SHUT_WR);
	answer = raw_read(fd);
	cr_assert_not_null(strstr(answer, "failed to ping"), "%s", answer);
	free(answer);
	serve_end(&rig);
}

/* ---- the file ---- */

static int start_at(const char *where, const char *group)
{
	struct ulnet_control_conf conf = { .path = where, .group = group };
	struct lnet_control *control;
	struct lnet *node;
	int rc;

	cr_assert_eq(lnet_open(NULL, &node), 0);
	rc = lnet_control_start(node, &conf, &control);
	if (!rc)
		lnet_control_stop(control);
	lnet_close(node);
	return rc;
}

Test(server, file_mode)
{
	struct ulnet_control_conf conf = { .path = path };
	struct rig rig = serve(0);
	struct stat st;

	cr_assert_eq(lstat(path, &st), 0);
	cr_assert(S_ISSOCK(st.st_mode));
	cr_assert_eq(st.st_mode & 07777, 0600);
	serve_end(&rig);

	dir_make();
	umask(0);
	conf.group = "0";
	rig = rig_open_with(1, &conf);
	cr_assert_eq(lstat(path, &st), 0);
	/* Giving the file to a group takes a member of that group. */
	cr_assert_eq(st.st_mode & 07777, 0660);
	cr_assert_eq(st.st_gid, 0);
	serve_end(&rig);
}

Test(server, bad_files)
{
	char file[128], deep[300];
	FILE *f;

	dir_make();
	snprintf(file, sizeof(file), "%s/missing/sock", dir);
	cr_assert_eq(start_at(file, NULL), -ENOENT);
	memset(deep, 'x', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	cr_assert_eq(start_at(deep, NULL), -ENAMETOOLONG);
	cr_assert_eq(start_at("", NULL), -EINVAL);
	cr_assert_eq(start_at(path, "no such group"), -EINVAL);
	cr_assert_eq(start_at(dir, NULL), -ENOTSOCK);
	cr_assert_eq(start_at("/proc/self/sock", NULL), -ENOENT);
	f = fopen(path, "w");
	fputs("precious", f);
	fclose(f);
	cr_assert_eq(start_at(path, NULL), -ENOTSOCK);
	cr_assert_eq(access(path, F_OK), 0);
	dir_remove();
}

Test(server, stale_and_live)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	struct rig rig;
	int fd;

	/* The socket of a node that was killed. */
	dir_make();
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(addr.sun_path, path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_assert_eq(start_at(path, NULL), -EADDRINUSE);
	close(fd);
	cr_assert_eq(lstat(path, &st), 0);
	cr_assert_eq(start_at(path, NULL), 0);
	dir_remove();

	rig = serve(0);
	cr_assert_eq(start_at(path, NULL), -EADDRINUSE);
	served();
	/* A file that is no longer this node's socket is not removed. */
	cr_assert_eq(unlink(path), 0);
	fclose(fopen(path, "w"));
	rig_close(&rig);
	cr_assert_eq(lstat(path, &st), 0);
	cr_assert(S_ISREG(st.st_mode));
	dir_remove();
}

/* ---- the client's side ---- */

Test(server, requests)
{
	struct rig rig = serve(0);
	struct lnet_ctl *ctl;

	setenv("ULNET_SOCKET", path, 1);
	cr_assert_eq(lnet_ctl_connect(NULL, 0, &ctl), 0);
	client_ask(ctl, "net show:", 0);
	client_ask(ctl, "net show: {verbose: 4}\n", 0);
	client_ask(ctl, "ping: {nids: [0@lo]}", 0);
	client_ask(ctl, "no such thing:", -EINVAL);
	client_ask(ctl, "net del: {net: tcp}", 0);
	client_ask(ctl, "net del: {net: tcp}", -EINVAL);
	client_ask(ctl, "[", -EINVAL);
	client_ask(ctl, "", -EINVAL);
	client_ask(ctl, "net show:", 0);
	lnet_ctl_close(ctl);
	serve_end(&rig);
}

Test(server, client_errors)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct lnet_ctl *ctl = NULL;
	char *big, *answer = NULL;
	char deep[300];
	struct rig rig;
	int fd;

	dir_make();
	memset(deep, 'x', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	cr_assert_eq(lnet_ctl_connect(deep, 0, &ctl), -ENAMETOOLONG);
	cr_assert_eq(lnet_ctl_connect(path, 0, &ctl), -ENOENT);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(addr.sun_path, path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(lnet_ctl_connect(path, 0, &ctl), -ECONNREFUSED);
	cr_assert_null(ctl);
	/* A server that accepts the connection, never answers, and goes away.
	 */
	cr_assert_eq(listen(fd, 5), 0);
	cr_assert_eq(lnet_ctl_connect(path, 0, &ctl), 0);
	cr_assert_eq(lnet_ctl_request(ctl, "net show:", 1000, &answer),
		     -ETIMEDOUT);
	close(fd);
	cr_assert_eq(lnet_ctl_request(ctl, "net show:", 0, &answer),
		     -ECONNRESET);
	lnet_ctl_close(ctl);
	dir_remove();

	rig = serve(0);
	ctl = client();
	big = malloc(REQUEST_LIMIT + 1);
	memset(big, ' ', REQUEST_LIMIT);
	big[REQUEST_LIMIT] = '\0';
	cr_assert_eq(lnet_ctl_request(ctl, big, 0, &answer), -EMSGSIZE);
	cr_assert_null(answer);
	client_ask(ctl, "net show:", 0);
	free(big);
	serve_end(&rig);
	cr_assert_eq(lnet_ctl_request(ctl, "net show:", 0, &answer),
		     -ECONNRESET);
	lnet_ctl_close(ctl);
}

/* ---- messages on the connection ---- */

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* A client whose connection is not accepted waits for its time-out, even if
 * signals interrupt it. */
static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* A process that is stopped and continued sees the same errors as one that gets
 * a signal. */
static void expect_time_out_in_spite_of_alarms(void)
{
	const struct sigaction act = { .sa_handler = on_alarm };
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	const struct itimerval never = { 0 };
	struct lnet_ctl *ctl;

	cr_assert_eq(sigaction(SIGALRM, &act, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
	cr_assert_eq(lnet_ctl_connect(path, 100000, &ctl), -ETIMEDOUT);
	cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
	cr_assert_gt(alarms, 0);
}

Test(server, full_queue)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), fds[16];
	struct timespec begin, end;
	struct lnet_ctl *ctl;
	unsigned int n = 0;

	dir_make();
	strcpy(addr.sun_path, path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(fd, 0), 0);
	do {
		cr_assert_lt(n, ARRAY_SIZE(fds));
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	} while (!connect(fds[n++], (struct sockaddr *)&addr, sizeof(addr)));
	cr_assert_eq(errno, EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	cr_assert_eq(lnet_ctl_connect(path, 1000, &ctl), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &end);
	/* The default of 10 s does not replace the time-out that was given. */
	cr_assert_lt(end.tv_sec - begin.tv_sec, 9);
	expect_time_out_in_spite_of_alarms();
	while (n)
		close(fds[--n]);
	close(fd);
	dir_remove();
}

Test(server, framing)
{
	static const char three[] =
		"net show:\n...\n---\nglobal show:\n... \r\n"
		"frob:\n...\n";
	struct rig rig = serve(0);
	char *text;
	int fd;

	/* Several requests at once, of which the last one has no end mark; then
	 * several, byte by byte. */
	fd = raw();
	raw_send(fd, three);
	raw_send(fd, "net show:");
	shutdown(fd, SHUT_WR);
	text = raw_read(fd);
	cr_assert_eq(count(text, "status: 0\n"), 3, "%s", text);
	cr_assert_eq(count(text, "status: -22\n"), 1, "%s", text);
	cr_assert_eq(count(text, "\n...\n"), 4, "%s", text);
	free(text);

	fd = raw();
	for (const char *c = three; *c; c++)
		cr_assert_eq(send(fd, c, 1, MSG_NOSIGNAL), 1);
	shutdown(fd, SHUT_WR);
	text = raw_read(fd);
	cr_assert_eq(count(text, "\n...\n"), 3, "%s", text);
	free(text);

	/* An empty message, or one of blanks, is no request. */
	fd = raw();
	raw_send(fd, "\n \n");
	shutdown(fd, SHUT_WR);
	text = raw_read(fd);
	cr_assert_str_eq(text, "");
	free(text);

	fd = raw();
	raw_send(fd, "net show: {verbo");
	close(fd);
	served();
	serve_end(&rig);
}

static void *send_much(void *arg)
{
	char *spaces = malloc(1 << 20);
	int fd = *(int *)arg;

	memset(spaces, ' ', 1 << 20);
	for (int i = 0; i < 64; i++)
		if (send(fd, spaces, 1 << 20, MSG_NOSIGNAL) < 0)
			break;
	free(spaces);
	return NULL;
}

Test(server, endless_request)
{
	struct rig rig = serve(0);
	int fd = raw();
	pthread_t thread;
	char *text;

	pthread_create(&thread, NULL, send_much, &fd);
	text = raw_read(dup(fd));
	cr_assert(strstr(text, "status: -90\n"), "%s", text);
	pthread_join(thread, NULL);
	close(fd);
	free(text);
	served();
	serve_end(&rig);
}

/* ---- clients that occupy places ---- */

Test(server, silent_clients)
{
	struct rig rig = serve(4);
	int fds[40];

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = raw();
		if (i % 3 == 1)
			raw_send(fds[i], "net show: {");
		if (i % 3 == 2)
			raw_send(fds[i], "net show:\n...\n");
	}
	served();
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	served();
	serve_end(&rig);
}

/* Clients that send requests, and never read the answers. */
Test(server, deaf_clients)
{
	static const char ask[] = "net show: {verbose: 4}\n...\n";
	struct rig rig = serve(4);
	int fds[4];

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = raw();
		/* Sends until the node reads no more, as its answers cannot be
		 * sent. */
		while (send(fds[i], ask, strlen(ask),
			    MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
			;
		cr_assert_eq(errno, EAGAIN);
	}
	served();
	serve_end(&rig);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* A client that waits for an answer keeps its place as long as idle clients can
 * give way. */
Test(server, waiting_client)
{
	struct rig rig = serve(2);
	int waits = raw();
	char *text;

	raw_send(waits, "ping: {nids: 10.77.0.97@tcp, timeout: 3600}\n...\n");
	served();
	served();
	served();
	/* A request that waits ends when the server stops. */
	serve_end(&rig);
	text = raw_read(waits);
	cr_assert(!strstr(text, "status: 0"), "%s", text);
	free(text);
}

/* All clients wait for answers: the first of them is closed to make room for a
 * new one. */
Test(server, waiting_clients)
{
	struct rig rig = serve(2);
	int first = raw(), second = raw();
	char *text;

	raw_send(first, "ping: {nids: 10.77.0.97@tcp, timeout: 3600}\n...\n");
	raw_send(second, "ping: {nids: 10.77.0.97@tcp, timeout: 3600}\n...\n");
	served();
	served();
	serve_end(&rig);
	text = raw_read(first);
	free(text);
	text = raw_read(second);
	free(text);
}

/* ---- incomplete requests ---- */

/* Sends @n bytes of a request that never ends. */
static void send_half(int fd, size_t n)
{
	char *spaces = malloc(n);

	memset(spaces, ' ', n);
	/* the request may be refused */
	(void)!send(fd, spaces, n, MSG_NOSIGNAL);
	free(spaces);
}

static char *logged;
static unsigned int complaints;
static const char *what = "no room for a longer request";

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (!strstr(line, what))
		return;
	complaints++;
	logged = logged ? logged : strdup(line);
}

static void *send_half_of(void *arg)
{
	send_half(*(int *)arg, REQUEST_LIMIT - 10);
	return NULL;
}

/* Returns how many clients have got an answer, or have been closed. */
static unsigned int refused(const int *fds, unsigned int n)
{
	struct pollfd p[12];
	unsigned int count = 0;

	for (unsigned int i = 0; i < n; i++)
		p[i] = (struct pollfd){ fds[i], POLLIN, 0 };
	cr_assert_geq(poll(p, n, 100), 0);
	for (unsigned int i = 0; i < n; i++)
		count += p[i].revents != 0;
	return count;
}

/* Many incomplete requests of nearly 4 MiB: those beyond the user's share of
 * memory are refused at once, which is logged once. A client with short
 * requests is served all the time. */
Test(server, half_requests)
{
	struct ulnet_control_conf conf = { .path = path,
					   .timeout = UINT64_C(3600000000) };
	pthread_t threads[12];
	struct rig rig;
	int fds[12];

	dir_make();
	rig = rig_open_with(1, &conf);
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = raw();
		pthread_create(&threads[i], NULL, send_half_of, &fds[i]);
	}
	served();
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		pthread_join(threads[i], NULL);
	/* The user's share, half of 16 MiB, is enough for two requests, and for
	 * parts of one or two more. */
	while (refused(fds, ARRAY_SIZE(fds)) < ARRAY_SIZE(fds) - 4)
		served();
	cr_assert_lt(refused(fds, ARRAY_SIZE(fds)), ARRAY_SIZE(fds));
	cr_assert_eq(complaints, 1);
	cr_assert(strstr(logged, "user "), "%s", logged);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	served();
	serve_end(&rig);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
}

/* ---- no file descriptors ---- */

static atomic_uint accepts_refused;

/* Replaces the C library's accept4(). */
int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *restrict len, int flags)
{
	if (atomic_load(&accepts_refused)) {
		atomic_fetch_sub(&accepts_refused, 1);
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_accept4, fd, addr.__sockaddr__, len, flags);
}

/* If no file descriptor is free the server tries again and again to accept, and
 * logs it once. */
Test(server, no_files)
{
	struct rig rig = serve(0);

	what = "cannot take connections: Too many open files";
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	atomic_store(&accepts_refused, 4);
	served();
	cr_assert_eq(atomic_load(&accepts_refused), 0);
	cr_assert_eq(complaints, 1, "%u", complaints);
	serve_end(&rig);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
}

/* ---- long answers that are not read ---- */

#define LONG_ANSWER ((size_t)12 << 20)

static int say_much(void *arg, struct lnet_control_call *call, char **output_p)
{
	char *text = malloc(LONG_ANSWER);

	(void)arg;
	(void)call;
	cr_assert_not_null(text);
	memset(text, 'x', LONG_ANSWER);
	memcpy(text, "much: ", 6);
	text[LONG_ANSWER - 1] = 0;
	*output_p = text;
	return 0;
}

/* Returns the status that an answer begins with. */
static int status_of_answer(int fd)
{
	char text[32] = { 0 };
	int status;

	cr_assert_gt(recv(fd, text, sizeof(text) - 1, 0), 10);
	cr_assert_eq(sscanf(text, "status: %d\n", &status), 1, "%s", text);
	return status;
}

static int ask_much(void)
{
	int fd = raw();

	raw_send(fd, "much:\n...\n");
	return fd;
}

/* A user has a share of the memory for answers that have not been read;
 * requests beyond that are refused. */
Test(server, long_answers)
{
	const struct ulnet_control_command much = { .name = "much",
						    .fn = say_much };
	struct ulnet_control_conf conf = { .path = path,
					   .timeout = UINT64_C(3600000000) };
	unsigned int held = 0;
	int fds[12], fd, status;
	struct rig rig;
	char *text;

	dir_make();
	rig = rig_open_with(1, &conf);
	cr_assert_eq(lnet_control_add(rig.control, &much), 0);
	what = "no room for a longer answer";
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = ask_much();
		status = status_of_answer(fds[i]);
		cr_assert(status == 0 || status == -ENOBUFS, "%d", status);
		held += status == 0;
	}
	/* So many that they take more than half of 128 MiB; no further ones. */
	cr_assert_eq(held, 6);
	cr_assert_eq(complaints, 1);
	served();
	/* A client that was refused keeps its connection. Closing the others
	 * frees their memory. */
	raw_send(fds[11], "net show:\n...\n");
	shutdown(fds[11], SHUT_WR);
	text = raw_read(fds[11]);
	cr_assert(strstr(text, "status: 0\n"), "%s", text);
	free(text);
	for (unsigned int i = 0; i < 11; i++)
		close(fds[i]);
	do {
		fd = ask_much();
		status = status_of_answer(fd);
		close(fd);
	} while (status);
	serve_end(&rig);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
}

/* A request must be complete within the time-out, even if its bytes come
 * steadily. */
Test(server, slow_request)
{
	struct ulnet_control_conf conf = { .path = path, .timeout = 100000 };
	struct rig rig;
	char *text;
	int fd, idle;

	dir_make();
	rig = rig_open_with(1, &conf);
	idle = raw();
	fd = raw();
	while (send(fd, " ", 1, MSG_NOSIGNAL) == 1)
		;
	text = raw_read(fd);
	cr_assert(!*text || strstr(text, "did not come to its end in time"),
		  "%s", text);
	free(text);
	/* This client has not begun a request, so it has not been closed. */
	raw_send(idle, "net show:\n...\n");
	shutdown(idle, SHUT_WR);
	text = raw_read(idle);
	cr_assert(strstr(text, "status: 0\n"), "%s", text);
	free(text);
	serve_end(&rig);
}

/* A client that does not read its answers is closed after the time-out. */
Test(server, slow_reader)
{
	static const char ask[] = "net show: {verbose: 4}\n...\n";
	struct ulnet_control_conf conf = { .path = path, .timeout = 100000 };
	struct rig rig;
	int fd;

	dir_make();
	rig = rig_open_with(1, &conf);
	fd = raw();
	while (send(fd, ask, strlen(ask), MSG_NOSIGNAL) > 0)
		;
	cr_assert(errno == EPIPE || errno == ECONNRESET);
	close(fd);
	serve_end(&rig);
}

/* A busy process that occupies all places loses those that others need, while
 * another client keeps its place. */
Test(server, crowd_of_one_process)
{
	struct rig rig = serve(8);
	struct lnet_ctl *admin = client();
	int done[2];
	pid_t crowd;
	char c;

	client_ask(admin, "net show:", 0);
	cr_assert_eq(pipe(done), 0);
	crowd = fork();
	if (!crowd) {
		int fds[40];

		close(done[1]);
		for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
			fds[i] = raw();
		/* incomplete requests, which keep growing */
		for (unsigned int n = 0; n < 100; n++)
			for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
				(void)!send(fds[i], " ", 1, MSG_NOSIGNAL);
		_exit(read(done[0], &c, 1) == 0 ? 0 : 1);
	}
	close(done[0]);
	for (unsigned int i = 0; i < 200; i++) {
		client_ask(admin, "net show:", 0);
		if (i % 20 == 0)
			served();
	}
	close(done[1]);
	cr_assert_eq(waitpid(crowd, NULL, 0), crowd);
	client_ask(admin, "net show:", 0);
	lnet_ctl_close(admin);
	serve_end(&rig);
}

/* ---- many clients at the same time ---- */

static void *add_and_del(void *arg)
{
	struct lnet_ctl *ctl = client();
	char add[96], del[96];
	int n = *(int *)arg;

	snprintf(add, sizeof(add), "net add: {net: tcp%d, interfaces: [eth%d]}",
		 n, n);
	snprintf(del, sizeof(del), "net del: {net: tcp%d}", n);
	for (int i = 0; i < 20; i++) {
		client_ask(ctl, add, 0);
		client_ask(ctl, "export:", 0);
		client_ask(ctl, del, 0);
	}
	lnet_ctl_close(ctl);
	return NULL;
}

Test(server, many_clients)
{
	struct rig rig = serve(0);
	pthread_t threads[6];
	int n[6];

	for (int i = 0; i < 6; i++) {
		n[i] = i + 1;
		pthread_create(&threads[i], NULL, add_and_del, &n[i]);
	}
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	ask_out(&rig, "net show: {net: tcp1}", "");
	serve_end(&rig);
}
