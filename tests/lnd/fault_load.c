/* SPDX-License-Identifier: BSD-3-Clause */
/* Too many raw peers, too slow ones, too few file descriptors. */
#include "tests/lnd/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- who says nothing ---- */

/* Opens @n connections that send @len bytes of a greeting, and no more. */
static void silent(struct fx *fx, unsigned int n, size_t len)
{
	struct raw_peer s, late;
	struct census c;
	struct bystander bystander;
	uint8_t buf[128];
	int fd[1000], good;

	if (!visit_begin(fx, &bystander, &s))
		return;
	raw_peer_init(&late, fx, "127.0.0.9@tcp");
	raw_peer_hello(&s, SOCK_CONTROL, buf + raw_peer_request(&s, buf));
	for (unsigned int i = 0; i < n; i++) {
		fd[i] = raw_peer_connect(&s);
		if (!expect(fx, fd[i] >= 0))
			return;
		say(fd[i], buf, len);
	}
	/* A peer that does greet is still accepted. */
	good = raw_peer_open(&late, SOCK_CONTROL);
	if (expect(fx, good >= 0))
		raw_peer_pings(fx, &late, good);
	close(good);
	census_take(fx->rig->node[0], NULL, &c);
	expect(fx, c.handshakes <= ACCEPT_MAX);
	bystander_goes_on(fx, &bystander);
	expect(fx, hear_ends(fd, n));
	close_all(fd, n);
	raw_peer_fini(&late);
	visit_end(fx, &bystander, &s);
}

static void some_are_silent(struct fx *fx)
{
	silent(fx, ACCEPT_MAX / 2, 0);
}

static void many_are_silent(struct fx *fx)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 2500) {
		fx->skipped = "takes 2500 file descriptors";
		return;
	}
	silent(fx, 1000, 0);
	silent(fx, 1000, 15);
	silent(fx, 1000, SOCK_REQUEST_SIZE);
	silent(fx, 1000, SOCK_REQUEST_SIZE + SOCK_HELLO_SIZE - 1);
}

/* ---- who does not read ---- */

#define PUTS 30

/* Sends 30 MiB to a peer that reads nothing, with deadlines of @timeout us. All
 * messages fail; then the peer must have @left connections: 0 or 3. */
static void not_read(struct fx *fx, uint64_t timeout, unsigned int left)
{
	struct box *b[PUTS];
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s) || !raw_peer_open_all(fx, &s, fd))
		return;
	for (unsigned int i = 0; i < PUTS; i++) {
		b[i] = box_new(fx, LNET_MTU, CUT_NONE);
		if (box_bind(b[i], 0, 0, timeout))
			box_put_to(b[i], &s.nid, true, PORTAL, 1, 0);
	}
	bystander_goes_on(fx, &bystander);
	for (unsigned int i = 0; i < PUTS; i++) {
		expect(fx, fx_wait(fx, &b[i]->terminals, 1));
		expect(fx, b[i]->outcomes[LNET_OUTCOME_DELIVERED] == 0);
		expect(fx, b[i]->terminal.status != 0);
		expect(fx, b[i]->terminal.elapsed < fx_patience(fx) / 2);
		box_end(b[i]);
	}
	/* The first message was on its way, the last one not even begun. */
	expect(fx, b[0]->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
	expect(fx, b[PUTS - 1]->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	if (left)
		expect(fx, raw_peer_has_conns(fx, &s, left));
	else
		expect(fx, hear_ends(fd, 3));
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* The messages' deadlines come first: the connection stays, so that the peer
 * could still read the rest of the first one. */
static void not_read_deadline(struct fx *fx)
{
	not_read(fx, 100 * SHORT_TIMEOUT, 3);
}

/* The connection's timeout comes first. */
static void not_read_timeout(struct fx *fx)
{
	not_read(fx, fx_patience(fx), 0);
}

/* ---- no file descriptors ---- */

struct hoard {
	struct rlimit before;
	int *fd;
	unsigned int n;
};

static void take_all_files(struct hoard *h)
{
	struct rlimit few;
	int fd;

	getrlimit(RLIMIT_NOFILE, &h->before);
	few = h->before;
	few.rlim_cur = 200;
	h->fd = calloc(few.rlim_cur, sizeof(*h->fd));
	h->n = 0;
	setrlimit(RLIMIT_NOFILE, &few);
	while ((fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		h->fd[h->n++] = fd;
}

static void give_back_files(struct hoard *h)
{
	close_all(h->fd, h->n);
	free(h->fd);
	setrlimit(RLIMIT_NOFILE, &h->before);
}

static void no_files(struct fx *fx)
{
	struct raw_peer s, other;
	uint8_t buf[128];
	struct sock_hello h = { 0 };
	struct hoard hoard;
	struct bystander bystander;
	struct box *b;
	int fd, called;

	if (!visit_begin(fx, &bystander, &s))
		return;
	raw_peer_init(&other, fx, "127.0.0.9@tcp");
	expect(fx, raw_peer_listen(&other) == 0);
	b = box_new(fx, 100, CUT_NONE);
	box_bind(b, 0, 0, fx_patience(fx));
	take_all_files(&hoard);
	/* there is no descriptor to connect with */
	box_put_to(b, &other.nid, true, PORTAL, 1, 0);
	expect(fx, fx_wait(fx, &b->terminals, 1));
	expect(fx, b->terminal.status == -EMFILE);
	expect(fx, b->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	/* With the descriptor that the listener keeps in reserve, a new peer is
	 * told to try again. The peer itself needs one, too: nobody else opens
	 * a file now. */
	close(hoard.fd[--hoard.n]);
	fd = raw_peer_connect(&s);
	expect(fx, fd >= 0);
	raw_peer_hello(&s, SOCK_CONTROL, buf + raw_peer_request(&s, buf));
	say(fd, buf, SOCK_REQUEST_SIZE + SOCK_HELLO_SIZE);
	bystander_goes_on(fx, &bystander);
	expect(fx, hear_hello(fd, &h) == 0);
	expect(fx, h.type == SOCK_NONE);
	give_back_files(&hoard);
	close(fd);
	fd = raw_peer_open(&s, SOCK_CONTROL);
	expect(fx, fd >= 0);
	raw_peer_pings(fx, &s, fd);
	close(fd);
	box_end(b);
	/* The failure is forgotten, and the node connects to the peer. */
	expect(fx, census_wait(fx, fx->rig->node[0], &other.nid,
			       census_failures_are, 0));
	b = box_new(fx, 100, CUT_NONE);
	box_bind(b, 0, 0, fx_patience(fx));
	box_put_to(b, &other.nid, true, PORTAL, 1, 0);
	called = raw_peer_accept(&other);
	expect(fx, called >= 0);
	close(called);
	expect(fx, fx_wait(fx, &b->terminals, 1));
	box_end(b);
	raw_peer_fini(&other);
	visit_end(fx, &bystander, &s);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "50 strangers say nothing", HASTY, some_are_silent },
	{ "1000 strangers say nothing", HASTY, many_are_silent },
	{ "a peer does not read: deadlines", 0, not_read_deadline },
	{ "a peer does not read: timeout", HASTY, not_read_timeout },
	{ "no file descriptors", 0, no_files },
};

const struct topic topic_load = { list, ARRAY_SIZE(list) };
