/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket. One thread accepts connections, and each client has a
 * thread of its own, which may block: while it receives, pings, or sends. If
 * there are clients_max clients and one more comes, one is dismissed: of the
 * user with most clients, the one that has been idle for longest.
 *
 * What a client asks for ends when the client has gone: the acceptor looks for
 * connections that have been closed, and changes that are half made are undone.
 *
 * A client is disconnected if its request is not complete in time, if it does
 * not read an answer in time, or if an incomplete request exceeds its user's
 * share of memory. An answer that exceeds that share is replaced by one that
 * says so.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/share.h"
#include "config/control.h"
#include "ulnet/loop.h"

#define BACKLOG	    64
#define GROUP_SIZE  65536 /* bytes for getgrnam_r() */
#define CLIENTS_MAX 16
#define READ_SIZE   65536
#define POLL_MAX    UINT64_C(3600000000) /* us that one lnet_poll() may wait */
/* ms to wait when file descriptors or memory are lacking */
#define PAUSE 100
/* us within which a request must arrive */
#define TIMEOUT UINT64_C(10000000)
/* Bytes of the largest buffer. It is larger than any request may be, so that a
 * request that is too long is received, and can be refused. */
#define ROOM_MAX (REQUEST_MAX + READ_SIZE)
/* Limits of the bytes of all buffers, and of all answers that are being sent.
 * The first READ_SIZE bytes of each buffer and of each answer do not count. */
#define REQUESTS_SUM_MAX ((size_t)16 << 20)
#define ANSWERS_SUM_MAX	 (2 * ANSWER_MAX)
/* ns between two warnings about users */
#define QUIET (60 * NSEC_PER_SEC)

/* The two kinds of memory that clients hold; each user has a share of both. */
enum memory { REQUESTS, ANSWERS, MEMORIES };

static const struct {
	const char *name;
	size_t max;
} memories[MEMORIES] = {
	[REQUESTS] = { "request", REQUESTS_SUM_MAX },
	[ANSWERS] = { "answer", ANSWERS_SUM_MAX },
};

struct control_socket {
	int fd; /* the descriptor that listens; -1: closed */
	char *path;
	/* Of the file, to tell whether it was replaced: */
	dev_t dev;
	ino_t ino;
};

struct client {
	struct server *server;
	int fd;
	pthread_t thread;
	struct cancel cancel;
	struct ucred user;

	/* Under server.lock: */
	struct list link; /* in server.clients or .ended */
	/* value of server.activity when the client last did something */
	uint64_t last_activity;
	bool working; /* the client works on a request */
	/* the client was dismissed, or has gone by itself */
	bool leaving;
	/* bytes that count in the share of its user */
	size_t charged[MEMORIES];
	/* how many clients have the same user, and the same process:
	 * count_clients() */
	unsigned int of_user, of_process;

	/* For its own thread: */
	struct received in; /* a request, and what follows it */
	uint64_t due; /* ns: by when the request must be complete; 0: none */
	bool eof;
};

struct server {
	struct lnet_control *control;
	struct control_socket socket;
	int stop; /* eventfd: all threads are to end */
	int wake; /* eventfd: a client has ended */
	pthread_t acceptor;
	unsigned int clients_max;
	uint64_t timeout;   /* ns: ulnet_control_conf.timeout */
	atomic_bool polled; /* the thread that stops the server makes the node's
			     * turns; set before @stop */
	bool over;	    /* all clients have ended; set in a turn */
	struct ulnet_work over_work;

	/* protects what follows, up to next_complaint, and the fields of
	 * clients that say so */
	pthread_mutex_t lock;
	struct list clients, ended;
	/* increased whenever a client does something: client.last_activity */
	uint64_t activity;
	size_t charged[MEMORIES];	   /* sums of client.charged */
	uint64_t next_complaint[MEMORIES]; /* ns: no warning before that time */

	/* For the acceptor: */
	struct pollfd *polls; /* room for those of clients_max clients */
	unsigned int n;	      /* number of clients in both lists */
	/* a client was dismissed, and has not ended yet */
	bool making_room;
	uint64_t next_shortage; /* ns: no warning before that time */
};

/* As poll(), but tries again after a signal, and, when the kernel has no
 * memory, after a pause. */
static void server_wait_for(struct pollfd *p, nfds_t n, int timeout)
{
	const struct timespec pause = { 0, PAUSE * 1000000L };

	while (poll(p, n, timeout) < 0) {
		if (errno == EINTR)
			continue;
		BUG_ON(errno != ENOMEM && errno != EAGAIN);
		lnet_log(LNET_LOG_WARN, "control", "poll: %s", strerror(errno));
		nanosleep(&pause, NULL);
	}
}

static uint64_t server_now(const struct server *s)
{
	return lnet_now(s->control->node, 0);
}

/* ---- one client ---- */

static void client_note_activity(struct client *c, bool working)
{
	pthread_mutex_lock(&c->server->lock);
	c->last_activity = ++c->server->activity;
	c->working = working;
	pthread_mutex_unlock(&c->server->lock);
}

/* Returns the ms until @due, rounded up; for poll(), -1 if @due is 0, which
 * means never. */
static int timeout_ms(uint64_t due, uint64_t now)
{
	uint64_t left = due > now ? due - now : 0;

	return due ? (int)MIN(left / NSEC_PER_MSEC + 1, (uint64_t)INT32_MAX)
		   : -1;
}

/* Waits for @events on the connection until @due (ns; 0: for ever). -ESHUTDOWN:
 * the server stops; -ETIMEDOUT. */
static int client_wait(struct client *c, short events, uint64_t due)
{
	for (;;) {
		struct pollfd p[] = { { c->fd, events, 0 },
				      { c->server->stop, POLLIN, 0 } };
		uint64_t now = due ? server_now(c->server) : 0;

		server_wait_for(p, ARRAY_SIZE(p), timeout_ms(due, now));
		if (p[1].revents)
			return -ESHUTDOWN;
		if (p[0].revents)
			return 0;
		if (due && server_now(c->server) >= due)
			return -ETIMEDOUT;
	}
}

/* Sends @text. Returns false: the client has gone or does not read, or the
 * server stops. */
static bool client_send(struct client *c, const char *text, size_t len)
{
	uint64_t due = server_now(c->server) + c->server->timeout;

	while (len) {
		ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno != EAGAIN || client_wait(c, POLLOUT, due)))
			return false;
		if (n <= 0)
			continue;
		text += n;
		len -= (size_t)n;
		due = server_now(c->server) + c->server->timeout;
		client_note_activity(c, false);
	}
	return true;
}

static bool blank(const char *s, size_t len)
{
	while (len && isspace((unsigned char)s[len - 1]))
		len--;
	return !len;
}

/* Returns how many bytes of @m all clients of user @uid are charged with.
 * Called with the lock held. */
static size_t user_charged(const struct server *s, uid_t uid, enum memory m)
{
	const struct client *c;
	size_t sum = 0;

	list_for_each_entry (c, &s->clients, link)
		if (c->user.uid == uid)
			sum += c->charged[m];
	return sum;
}

/* Warns that the user's share of @m is used up, at most once in QUIET. Called
 * with the lock held. */
static void share_complain(struct client *c, enum memory m, size_t held)
{
	struct server *s = c->server;
	uint64_t now = server_now(s);

	if (now < s->next_complaint[m])
		return;
	s->next_complaint[m] = now + QUIET;
	lnet_log(LNET_LOG_WARN, "control",
		 "user %u, process %d: no room for a longer %s: this user "
		 "holds %zu bytes already, all users together %zu",
		 (unsigned int)c->user.uid, (int)c->user.pid, memories[m].name,
		 held, s->charged[m]);
}

/* Charges @c for @bytes of @m, instead of what it was charged for before.
 * Returns false: the share of its user does not allow that. */
static bool client_charge(struct client *c, enum memory m, size_t bytes)
{
	size_t charge = bytes > READ_SIZE ? bytes - READ_SIZE : 0, held;
	struct server *s = c->server;
	bool ok;

	pthread_mutex_lock(&s->lock);
	held = user_charged(s, c->user.uid, m);
	ok = charge <= c->charged[m] ||
	     share_allows(held, s->charged[m], memories[m].max,
			  charge - c->charged[m]);
	if (ok) {
		s->charged[m] += charge - c->charged[m];
		c->charged[m] = charge;
	} else {
		share_complain(c, m, held);
	}
	pthread_mutex_unlock(&s->lock);
	return ok;
}

static int client_more_room(struct client *c)
{
	size_t room = c->in.room ? MIN(c->in.room * 2, ROOM_MAX) : READ_SIZE;
	char *buf;

	if (c->in.len < c->in.room)
		return 0;
	if (!client_charge(c, REQUESTS, room))
		return -ENOBUFS;
	buf = realloc(c->in.buf, room);
	if (!buf)
		return -ENOMEM;
	c->in.buf = buf;
	c->in.room = room;
	return 0;
}

/* Receives more of a request, and waits for it if nothing has come. Returns 0
 * or -errno. */
static int client_receive(struct client *c)
{
	int rc = client_more_room(c);
	ssize_t n;

	if (rc)
		return rc;
	do {
		rc = client_wait(c, POLLIN, c->due);
		if (rc)
			return rc;
		n = recv(c->fd, c->in.buf + c->in.len, c->in.room - c->in.len,
			 MSG_DONTWAIT);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n < 0)
		return -errno;
	c->eof = n == 0;
	c->in.len += (size_t)n;
	if (!c->due)
		c->due = server_now(c->server) + c->server->timeout;
	client_note_activity(c, false);
	return 0;
}

/* Receives the next request: the first *@len_p bytes in the buffer. -EMSGSIZE:
 * it is too long; -ETIMEDOUT: it was not complete in time; -ENOBUFS: it exceeds
 * its user's share of memory; -ENODATA: the client sends no more requests. */
static int client_next(struct client *c, size_t *len_p)
{
	int rc;

	for (;;) {
		*len_p = c->in.len ? document_length(&c->in) : 0;
		if (*len_p > REQUEST_MAX ||
		    (!*len_p && c->in.len > REQUEST_MAX))
			return -EMSGSIZE;
		if (*len_p)
			return 0;
		if (c->eof) {
			*len_p = c->in.len;
			return blank(c->in.buf, c->in.len) ? -ENODATA : 0;
		}
		/* While bytes keep coming, client_wait() is never late. */
		if (c->due && server_now(c->server) >= c->due)
			return -ETIMEDOUT;
		rc = client_receive(c);
		if (rc)
			return rc;
	}
}

/* Sends an error that the server itself has found. @limit: how many bytes would
 * have been allowed. */
static bool server_client_tell(struct client *c, int status, const char *why,
			       size_t limit)
{
	char text[384];

	snprintf(text, sizeof(text),
		 "status: %d\n"
		 "error:\n"
		 "  parser:\n"
		 "  - request:\n"
		 "    errno: %d\n"
		 "    descr: ! \"%s (%zu bytes at most)\"\n" DOCUMENT_END,
		 status, status, why, limit);
	return client_send(c, text, strlen(text));
}

static bool client_send_answer(struct client *c, const char *answer)
{
	size_t len = strlen(answer);
	bool ok;

	if (!client_charge(c, ANSWERS, len))
		return server_client_tell(
			c, -ENOBUFS,
			"the request was carried out, but its "
			"answer is too long now: too many long ones "
			"of this user are being sent",
			ANSWERS_SUM_MAX);
	ok = client_send(c, answer, len) &&
	     client_send(c, DOCUMENT_END, strlen(DOCUMENT_END));
	client_charge(c, ANSWERS, 0);
	return ok;
}

static bool client_answer(struct client *c, size_t len)
{
	char *answer;
	bool ok;
	int rc;

	client_note_activity(c, true);
	rc = control_request(c->server->control, c->in.buf, len, &c->cancel,
			     &answer);
	client_note_activity(c, false);
	if (rc)
		return false;
	ok = client_send_answer(c, answer);
	free(answer);
	return ok;
}

/* Removes a request, which is the first @len bytes of the buffer. */
static void client_consume(struct client *c, size_t len)
{
	c->in.len -= len;
	memmove(c->in.buf, c->in.buf + len, c->in.len);
	c->in.seen = c->in.line = 0;
	c->due = c->in.len ? server_now(c->server) + c->server->timeout : 0;
	if (!c->in.len) {
		free(c->in.buf);
		c->in.buf = NULL;
		c->in.room = 0;
		client_charge(c, REQUESTS, 0);
	}
}

/* Tells the client why it is disconnected, if that is due to its request. */
static void client_refuse(struct client *c, int why)
{
	static const struct {
		int why;
		const char *text;
		size_t limit;
	} refusals[] = {
		{ -EMSGSIZE, "the request is too long", REQUEST_MAX },
		{ -ETIMEDOUT, "the request did not come to its end in time",
		  REQUEST_MAX },
		{ -ENOBUFS, "too many long requests of this user are under way",
		  REQUESTS_SUM_MAX },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(refusals); i++)
		if (refusals[i].why == why)
			server_client_tell(c, why, refusals[i].text,
					   refusals[i].limit);
}

static void *client_main(void *arg)
{
	struct client *c = arg;
	struct server *s = c->server;
	uint64_t one = 1;
	size_t len;
	int rc;

	while (!(rc = client_next(c, &len)) && client_answer(c, len))
		client_consume(c, len);
	client_refuse(c, rc);
	shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_lock(&s->lock);
	for (unsigned int m = 0; m < MEMORIES; m++) {
		s->charged[m] -= c->charged[m];
		c->charged[m] = 0;
	}
	list_del(&c->link);
	list_add_tail(&s->ended, &c->link);
	pthread_mutex_unlock(&s->lock);
	BUG_ON(write(s->wake, &one, sizeof(one)) < 0 && errno != EAGAIN);
	return NULL;
}

/* ---- clients: the acceptor's thread ---- */

/* Starts a thread that gets no signals: they are for the application. */
static int server_thread_start(pthread_t *thread, void *(*fn)(void *arg),
			       void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static void server_client_free(struct client *c)
{
	fork_fd_close(c->fd);
	cancel_fini(&c->cancel);
	free(c->in.buf);
	free(c);
}

static void client_start(struct server *s, int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	int rc = -ENOMEM;

	if (c) {
		socklen_t size = sizeof(c->user);

		c->server = s;
		c->fd = fd;
		BUG_ON(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c->user,
				  &size));
		cancel_init(&c->cancel);
		pthread_mutex_lock(&s->lock);
		c->last_activity = ++s->activity;
		list_add_tail(&s->clients, &c->link);
		rc = server_thread_start(&c->thread, client_main, c);
		if (rc)
			list_del(&c->link);
		else
			s->n++;
		pthread_mutex_unlock(&s->lock);
	}
	if (!rc)
		return;
	lnet_log(LNET_LOG_WARN, "control", "client refused: %s", strerror(-rc));
	if (c)
		server_client_free(c);
	else
		fork_fd_close(fd);
}

static void client_dismiss(struct client *c)
{
	c->leaving = true;
	cancel_now(&c->cancel);
	shutdown(c->fd, SHUT_RDWR);
}

/* Frees the clients whose threads have ended. */
static void clients_reap(struct server *s)
{
	struct list ended;
	uint64_t count;

	BUG_ON(read(s->wake, &count, sizeof(count)) < 0 && errno != EAGAIN);
	list_init(&ended);
	pthread_mutex_lock(&s->lock);
	list_splice_tail(&ended, &s->ended);
	pthread_mutex_unlock(&s->lock);
	while (!list_empty(&ended)) {
		struct client *c = list_first(&ended, struct client, link);

		list_del(&c->link);
		pthread_join(c->thread, NULL);
		server_client_free(c);
		s->n--;
		s->making_room = false;
	}
}

/* Sets of_user and of_process of each client: how many clients have the same
 * user, and the same process. Called with the lock held. */
static void count_clients(struct server *s)
{
	struct client *c, *other;

	list_for_each_entry (c, &s->clients, link) {
		c->of_user = c->of_process = 0;
		list_for_each_entry (other, &s->clients, link) {
			bool same = other->user.uid == c->user.uid;

			c->of_user += same;
			c->of_process += same && other->user.pid == c->user.pid;
		}
	}
}

/* Is @a dismissed rather than @b (NULL: none)? Compares how many clients the
 * user has, then how many the process has, then whether the client is working,
 * then for how long it has been idle. */
static bool is_dismissed_before(const struct client *a, const struct client *b)
{
	if (!b)
		return true;
	if (a->of_user != b->of_user)
		return a->of_user > b->of_user;
	if (a->of_process != b->of_process)
		return a->of_process > b->of_process;
	if (a->working != b->working)
		return b->working;
	return a->last_activity < b->last_activity;
}

static void server_make_room(struct server *s)
{
	struct client *c, *victim = NULL;

	if (s->making_room)
		return;
	pthread_mutex_lock(&s->lock);
	count_clients(s);
	list_for_each_entry (c, &s->clients, link) {
		s->making_room |= c->leaving;
		if (is_dismissed_before(c, victim))
			victim = c;
	}
	if (victim && !s->making_room) {
		client_dismiss(victim);
		s->making_room = true;
	}
	pthread_mutex_unlock(&s->lock);
}

static void accept_complain(struct server *s, int error)
{
	uint64_t now = server_now(s);

	if (now < s->next_shortage)
		return;
	s->next_shortage = now + QUIET;
	lnet_log(LNET_LOG_WARN, "control", "cannot take connections: %s",
		 strerror(error));
}

/* Accepts a connection. Returns false: there are no file descriptors, or
 * memory. */
static bool server_accept(struct server *s)
{
	int fd;

	fork_hold();
	fd = fork_fd_made(accept4(s->socket.fd, NULL, NULL, SOCK_CLOEXEC));

	if (fd >= 0) {
		client_start(s, fd);
		return true;
	}
	switch (errno) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		accept_complain(s, errno);
		server_make_room(s);
		return false;
	default: /* the client has gone again */
		return true;
	}
}

/* What the acceptor waits for, before the connections of clients. */
enum { POLL_STOP, POLL_WAKE, POLL_LISTEN, POLL_CLIENTS };

/* Adds the connections of all clients to s->polls, without events: poll() tells
 * of those that have been closed at the other end. Returns how many there are
 * in all. */
static nfds_t poll_clients(struct server *s)
{
	nfds_t n = POLL_CLIENTS;
	struct client *c;

	pthread_mutex_lock(&s->lock);
	list_for_each_entry (c, &s->clients, link)
		if (!c->leaving)
			s->polls[n++] = (struct pollfd){ .fd = c->fd };
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* A connection has been closed: nobody will read what its client asked for. */
static void client_has_gone(struct server *s, int fd)
{
	struct client *c;

	pthread_mutex_lock(&s->lock);
	list_for_each_entry (c, &s->clients, link)
		if (c->fd == fd) {
			c->leaving = true;
			cancel_now(&c->cancel);
		}
	pthread_mutex_unlock(&s->lock);
}

static void *acceptor_main(void *arg)
{
	struct server *s = arg;
	bool out_of_resources = false;
	struct pollfd *p = s->polls;
	struct client *c;

	for (;;) {
		/* While a client is being dismissed, or resources are missing,
		 * new clients wait in the kernel. */
		bool listen_too = !s->making_room && !out_of_resources;
		nfds_t n = poll_clients(s);

		p[POLL_STOP] = (struct pollfd){ s->stop, POLLIN, 0 };
		p[POLL_WAKE] = (struct pollfd){ s->wake, POLLIN, 0 };
		p[POLL_LISTEN] =
			(struct pollfd){ listen_too ? s->socket.fd : -1, POLLIN,
					 0 };
		server_wait_for(p, n, out_of_resources ? PAUSE : -1);
		out_of_resources = false;
		if (p[POLL_STOP].revents)
			break;
		for (nfds_t i = POLL_CLIENTS; i < n; i++)
			if (p[i].revents)
				client_has_gone(s, p[i].fd);
		if (p[POLL_WAKE].revents)
			clients_reap(s);
		else if (p[POLL_LISTEN].revents && s->n >= s->clients_max)
			server_make_room(s);
		else if (p[POLL_LISTEN].revents)
			out_of_resources = !server_accept(s);
	}
	pthread_mutex_lock(&s->lock);
	list_for_each_entry (c, &s->clients, link) {
		atomic_store(&c->cancel.at_end, true);
		client_dismiss(c);
	}
	pthread_mutex_unlock(&s->lock);
	while (s->n) {
		p[POLL_WAKE] = (struct pollfd){ s->wake, POLLIN, 0 };
		server_wait_for(&p[POLL_WAKE], 1, -1);
		clients_reap(s);
	}
	if (atomic_load(&s->polled))
		lnet_post(s->control->node, 0, &s->over_work);
	return NULL;
}

/* ---- the socket ---- */

static int find_group(const char *group, gid_t *gid_p)
{
	struct group g, *found = NULL;
	char *end, *buf;
	unsigned long n;
	int rc;

	errno = 0;
	n = strtoul(group, &end, 10);
	if (*group >= '0' && *group <= '9' && !*end && !errno &&
	    n < (gid_t)-1) {
		*gid_p = (gid_t)n;
		return 0;
	}
	buf = malloc(GROUP_SIZE);
	if (!buf)
		return -ENOMEM;
	rc = getgrnam_r(group, &g, buf, GROUP_SIZE, &found) || !found ? -EINVAL
								      : 0;
	if (!rc)
		*gid_p = g.gr_gid;
	free(buf);
	return rc;
}

/* Locks the directory of @path, so that of two nodes that start at the same
 * time one waits until the socket of the other listens. Returns a descriptor,
 * to be closed, or -errno. */
static int lock_directory(const char *path)
{
	char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
	const char *dir = slash == copy ? "/" : slash ? copy : ".";
	int fd, rc;

	if (!copy)
		return -ENOMEM;
	if (slash)
		*slash = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 ? -errno : 0;
	free(copy);
	while (!rc && flock(fd, LOCK_EX) && (rc = -errno) == -EINTR)
		rc = 0;
	if (rc && fd >= 0)
		close(fd);
	return rc ? rc : fd;
}

/* Removes a socket file at which nobody listens any more. -EADDRINUSE: somebody
 * does. */
static int remove_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, rc;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno
								       : 0;
	close(fd);
	if (rc == -ECONNREFUSED)
		return unlink(addr->sun_path) ? -errno : 0;
	/* -EAGAIN: somebody listens, and the queue of the socket is full. */
	return rc == -EAGAIN || !rc ? -EADDRINUSE : rc;
}

static int socket_make(struct control_socket *s, const struct sockaddr_un *addr,
		       const gid_t *gid)
{
	struct stat st;

	/* A child of fork() must have no copy of this socket, or it would take
	 * clients of this node, or of the next one that uses the path. */
	fork_hold();
	s->fd = fork_fd_made(
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (s->fd < 0)
		return -errno;
	/* bind() makes the file with the mode of the socket. */
	if (fchmod(s->fd, 0600) ||
	    bind(s->fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return -errno;
	if (lstat(addr->sun_path, &st))
		return -errno;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->path = strdup(addr->sun_path);
	if (!s->path)
		return -ENOMEM;
	if (gid && (lchown(s->path, (uid_t)-1, *gid) || chmod(s->path, 0660)))
		return -errno;
	return listen(s->fd, BACKLOG) ? -errno : 0;
}

static void socket_close(struct control_socket *s)
{
	struct stat st;

	if (s->path && !lstat(s->path, &st) && st.st_dev == s->dev &&
	    st.st_ino == s->ino)
		unlink(s->path);
	free(s->path);
	s->path = NULL;
	if (s->fd >= 0)
		fork_fd_close(s->fd);
	s->fd = -1;
}

static int socket_open(struct control_socket *s, const char *path,
		       const char *group)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int dir, rc;
	gid_t gid;

	*s = (struct control_socket){ .fd = -1 };
	if (!*path)
		return -EINVAL;
	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	text_copy(addr.sun_path, sizeof(addr.sun_path), path);
	rc = group ? find_group(group, &gid) : 0;
	if (rc)
		return rc;
	dir = lock_directory(path);
	if (dir < 0)
		return dir;
	rc = remove_stale(&addr);
	if (!rc)
		rc = socket_make(s, &addr, group ? &gid : NULL);
	if (rc)
		socket_close(s);
	close(dir);
	return rc;
}

/* ---- the server ---- */

static void server_free(struct server *s)
{
	socket_close(&s->socket);
	if (s->stop >= 0)
		close(s->stop);
	if (s->wake >= 0)
		close(s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->polls);
	free(s);
}

int server_start(struct lnet_control *control,
		 const struct ulnet_control_conf *conf,
		 struct server **server_p)
{
	struct server *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->control = control;
	s->clients_max = conf->clients_max ? conf->clients_max : CLIENTS_MAX;
	s->timeout = (conf->timeout ? conf->timeout : TIMEOUT) * NSEC_PER_USEC;
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->clients);
	list_init(&s->ended);
	s->socket.fd = -1;
	s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->stop < 0 || s->wake < 0 ? -errno : 0;
	s->polls = calloc((size_t)s->clients_max + POLL_CLIENTS,
			  sizeof(*s->polls));
	if (!rc && !s->polls)
		rc = -ENOMEM;
	if (!rc)
		rc = socket_open(&s->socket, conf->path, conf->group);
	if (!rc)
		rc = server_thread_start(&s->acceptor, acceptor_main, s);
	if (rc)
		server_free(s);
	else
		*server_p = s;
	return rc;
}

static void on_over(struct ulnet_work *work)
{
	container_of(work, struct server, over_work)->over = true;
}

void server_stop(struct server *s)
{
	struct lnet *node = s->control->node;
	/* This thread runs the node: clients may wait for turns that it must
	 * make. */
	bool polled = lnet_poll(node, 0) == 0;
	uint64_t one = 1;

	s->over_work.fn = on_over;
	atomic_store(&s->polled, polled);
	BUG_ON(write(s->stop, &one, sizeof(one)) != sizeof(one));
	while (polled && !s->over)
		BUG_ON(lnet_poll(node, POLL_MAX));
	pthread_join(s->acceptor, NULL);
	server_free(s);
}
