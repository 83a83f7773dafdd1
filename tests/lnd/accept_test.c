/* SPDX-License-Identifier: BSD-3-Clause */
/* From which peers socklnd accepts connections, where it listens, and what it
 * says when it cannot. */
#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lnd/socklnd/sock.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/netns.h"
#include "tests/lnd/pair.h"
#include "tests/lnd/raw_peer.h"

#define ON_TCP LNET_NET(LNET_TYPE_SOCK, 0)

static enum ulnet_accept accept_mode;

static void tune(struct ulnet_conf *conf, bool hasty)
{
	(void)hasty;
	conf->accept = accept_mode;
}

static const struct ulnet_tunable tunables[] = { { "min_reconnectms", 1 },
						 { "max_reconnectms", 20 },
						 { "conns_per_peer", 1 } };

static bool up(struct fx *fx, enum ulnet_accept mode)
{
	accept_mode = mode;
	pair_net.tune = tune;
	return pair_up(fx, tunables, ARRAY_SIZE(tunables));
}

/* May this process have ports below 1024, and are they special at all? */
static bool is_privileged(void)
{
	struct ulnet_nid nid = lnet_nid_make(ON_TCP, 0x7f000007);
	union netif_addr at = netif_addr(&nid, 1000);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool good = bind(fd, &at.any, sizeof(at)) == 0;

	close(fd);
	return good;
}

/* ---- from whom ---- */

/* Opens a connection from a port below 1024, and greets. */
static int open_from_privileged(struct raw_peer *s, const char *from)
{
	struct ulnet_nid server = lnet_nid_make(ON_TCP, 0x7f000005);
	union netif_addr to = netif_addr(&server, s->port);
	uint8_t buf[128];
	struct sock_hello h = { 0 };
	struct ulnet_nid nid;
	int rc = -EADDRINUSE, fd = -1;
	size_t n;

	if (lnet_nid_parse(from, &nid))
		return -EINVAL;
	for (uint16_t p = 1023; p > 512 && rc; p--) {
		union netif_addr at = netif_addr(&nid, p);

		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		rc = bind(fd, &at.any, sizeof(at)) ? -errno : 0;
		if (rc)
			close(fd);
	}
	if (rc || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return rc ? rc : -errno;
	n = raw_peer_request(s, buf);
	say(fd, buf, n + raw_peer_hello(s, SOCK_CONTROL, buf + n));
	rc = hear_hello(fd, &h);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static int secure(void)
{
	struct raw_peer s;
	uint8_t byte;
	struct fx fx;
	int fd;

	if (!is_privileged())
		return SKIPPED;
	if (!up(&fx, LNET_ACCEPT_SECURE))
		return 1;
	still_works(&fx);
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	/* closed before a byte was sent */
	fd = raw_peer_connect(&s);
	expect(&fx, hear(fd, &byte, 1) == -ECONNRESET);
	close(fd);
	expect(&fx, raw_peer_open(&s, SOCK_CONTROL) == -ECONNRESET);
	fd = open_from_privileged(&s, "127.0.0.7@tcp");
	if (expect(&fx, fd >= 0))
		raw_peer_pings(&fx, &s, fd);
	close(fd);
	still_works(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* A peer with a privileged port may claim any NID, others only that of their
 * own address. */
static int speaks_for_others(void)
{
	struct raw_peer s;
	struct fx fx;
	int fd;

	if (!up(&fx, LNET_ACCEPT_ALL))
		return 1;
	still_works(&fx);
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	fd = raw_peer_open(&s, SOCK_CONTROL);
	if (expect(&fx, fd >= 0))
		raw_peer_pings(&fx, &s, fd);
	close(fd);
	if (is_privileged()) {
		expect(&fx, !lnet_nid_parse("10.9.8.7@tcp", &s.nid));
		fd = open_from_privileged(&s, "127.0.0.7@tcp");
		if (expect(&fx, fd >= 0))
			raw_peer_pings(&fx, &s, fd);
		close(fd);
		/* ... but not the node's own NID. */
		s.nid = pair.nid[0];
		fd = open_from_privileged(&s, "127.0.0.7@tcp");
		expect(&fx, fd == -ECONNRESET);
	}
	still_works(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* A node that does not listen connects to others, and receives their messages
 * on the connections that it has opened. */
static int none(void)
{
	struct ulnet_ni_conf ni = { .tunables = tunables,
				    .ntunables = ARRAY_SIZE(tunables) };
	struct ulnet_conf conf;
	struct raw_peer s;
	struct fx fx;
	struct lnet *deaf;

	if (!up(&fx, LNET_ACCEPT_ALL))
		return 1;
	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.accept = LNET_ACCEPT_NONE;
	conf.port = pair.port;
	expect(&fx, lnet_nid_parse("127.0.0.7@tcp", &ni.nid) == 0);
	if (!expect(&fx, lnet_open(&conf, &deaf) == 0))
		return pair_down(&fx);
	expect(&fx, lnet_ni_add(deaf, &ni) == 0);
	raw_peer_init(&s, &fx, "127.0.0.9@tcp");
	s.to = ni.nid;
	expect(&fx, raw_peer_connect(&s) == -ECONNREFUSED);
	/* The node connects first. */
	lnet_close(pair.node[1]);
	pair.node[1] = pair.node[0];
	pair.nid[1] = pair.nid[0];
	pair.node[0] = deaf;
	pair.nid[0] = ni.nid;
	still_works(&fx);
	raw_peer_fini(&s);
	return pair_down(&fx);
}

/* ---- where ---- */

static bool greets(struct fx *fx, struct raw_peer *s, const char *to)
{
	int fd;

	expect(fx, lnet_nid_parse(to, &s->to) == 0);
	fd = raw_peer_open(s, SOCK_CONTROL);
	if (fd < 0)
		return false;
	raw_peer_pings(fx, s, fd);
	close(fd);
	return true;
}

/* Two nets on one address have one listener, and each answers for its own NIDs
 * only. */
static int two_nets(void)
{
	struct ulnet_ni_conf ni = { 0 };
	struct ulnet_nid first;
	struct raw_peer s, s1;
	struct fx fx;

	if (!up(&fx, LNET_ACCEPT_ALL))
		return 1;
	first = pair.nid[0];
	expect(&fx, lnet_nid_parse("127.0.0.5@tcp1", &ni.nid) == 0);
	expect(&fx, lnet_ni_add(pair.node[0], &ni) == 0);
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	raw_peer_init(&s1, &fx, "127.0.0.7@tcp1");
	expect(&fx, greets(&fx, &s, "127.0.0.5@tcp"));
	expect(&fx, greets(&fx, &s1, "127.0.0.5@tcp1"));
	/* The peer's NID is on another net than the one it connects to. */
	expect(&fx, !greets(&fx, &s, "127.0.0.5@tcp1"));
	expect(&fx, !greets(&fx, &s1, "127.0.0.5@tcp"));
	still_works(&fx);
	expect(&fx, lnet_ni_del(pair.node[0], &first) == 0);
	expect(&fx, !greets(&fx, &s, "127.0.0.5@tcp"));
	expect(&fx, greets(&fx, &s1, "127.0.0.5@tcp1"));
	expect(&fx, lnet_ni_del(pair.node[0], &ni.nid) == 0);
	expect(&fx, raw_peer_connect(&s) == -ECONNREFUSED);
	ni.nid = first;
	expect(&fx, lnet_ni_add(pair.node[0], &ni) == 0);
	works_again(&fx);
	raw_peer_fini(&s);
	raw_peer_fini(&s1);
	return pair_down(&fx);
}

/* ---- what does not work ---- */

static int add(uint16_t port, const char *nid, const char *interface)
{
	struct ulnet_ni_conf ni = { .interface = interface };
	struct ulnet_conf conf;
	struct lnet *node;
	int rc;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.port = port;
	if (lnet_nid_parse(nid, &ni.nid) || lnet_open(&conf, &node))
		return -EINVAL;
	rc = lnet_ni_add(node, &ni);
	lnet_close(node);
	return rc;
}

static int errors(void)
{
	unsigned int files;
	struct fx fx;

	if (!up(&fx, LNET_ACCEPT_ALL))
		return 1;
	files = open_files();
	expect(&fx, add(pair.port, "127.0.0.5@tcp", NULL) == -EADDRINUSE);
	expect(&fx, add(pair.port, "192.0.2.1@tcp", NULL) == -EADDRNOTAVAIL);
	expect(&fx, add(pair.port, "0.0.0.0@tcp", "nosuch0") == -ENODEV);
	expect(&fx, add(pair.port, "127.0.0.7@tcp", NULL) == 0);
	expect(&fx, open_files() == files);
	still_works(&fx);
	return pair_down(&fx);
}

static bool drop_privileges(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct nothing[2];

	memset(nothing, 0, sizeof(nothing));
	return syscall(SYS_capset, &h, nothing) == 0;
}

/* In a network namespace of its own, where ports below 1024 are privileged. */
static int unprivileged(void)
{
	struct in_addr any = { .s_addr = htonl(0x0a090807) };
	struct fx fx = { 0 };

	if (netns_enter() || netns_add_addr(any) || !drop_privileges())
		return SKIPPED;
	expect(&fx, add(988, "127.0.0.5@tcp", NULL) == -EACCES);
	expect(&fx, add(1023, "127.0.0.5@tcp", NULL) == -EACCES);
	expect(&fx, add(1024, "127.0.0.5@tcp", NULL) == 0);
	/* The node's own connections come from ordinary ports. */
	if (!up(&fx, LNET_ACCEPT_ALL))
		return 1;
	still_works(&fx);
	return pair_down(&fx);
}

/* Nodes that accept connections from privileged ports only, but have no right
 * to use them. */
static int unprivileged_secure(void)
{
	struct in_addr any = { .s_addr = htonl(0x0a090807) };
	struct box *b;
	struct fx fx;

	if (netns_enter() || netns_add_addr(any) || !drop_privileges())
		return SKIPPED;
	if (!up(&fx, LNET_ACCEPT_SECURE))
		return 1;
	b = box_new(&fx, 100, CUT_NONE);
	if (box_bind(b, 0, 1, fx_patience(&fx)))
		box_put(b, 1, false, PORTAL, 1, 0);
	expect(&fx, fx_wait(&fx, &b->unlinked, 1));
	expect(&fx, b->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	expect(&fx, b->terminal.status == -ECONNRESET ||
			    b->terminal.status == -EPIPE);
	return pair_down(&fx);
}

/* ---- */

static const struct apart_test tests[] = {
	{ "accept=secure: privileged ports only", secure },
	{ "accept=all: who may speak for whom", speaks_for_others },
	{ "accept=none: does not listen", none },
	{ "two nets on one address", two_nets },
	{ "port in use, address not here, no such interface", errors },
	{ "no privilege: ports below 1024", unprivileged },
	{ "no privilege: accept=secure", unprivileged_secure },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, "privileged ports");

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
