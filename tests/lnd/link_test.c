/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses and links that go and come, and what becomes of NIs. Each case has
 * a network namespace of its own, in a process of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lnd/link.h"
#include "lnd/netif.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/netdev.h"
#include "tests/lnd/netns.h"
#include "ulnet/lnet.h"
#include "ulnet/loop.h"

#define PATIENCE 60 /* s */
/* us: at most this long between two looks at the clock */
#define POLL_US 100000
#define PORT	7988
#define ADDR	"10.77.0.1"
#define FLAPS	2000 /* more changes than a netlink socket can hold */

static bool failed;

#define expect(what)                                                     \
	do {                                                             \
		if (!(what)) {                                           \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, \
				__LINE__, #what);                        \
			failed = true;                                   \
		}                                                        \
	} while (0)

/* ---- nodes ---- */

static struct ulnet_nid nid_of(const char *text)
{
	struct ulnet_nid nid = LNET_NID_ANY;

	expect(lnet_nid_parse(text, &nid) == 0);
	return nid;
}

static struct lnet *node_new(enum ulnet_run run, unsigned int cpts,
			     enum ulnet_accept accept)
{
	struct lnet *node = NULL;
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.run = run;
	conf.cpts = cpts;
	conf.port = PORT;
	conf.accept = accept;
	expect(lnet_open(&conf, &node) == 0);
	return node;
}

static int add_ni(struct lnet *node, const char *nid)
{
	struct ulnet_ni_conf conf = { .nid = nid_of(nid) };

	return lnet_ni_add(node, &conf);
}

/* Opens a node that the test polls, with one NI. */
static struct lnet *node_with(const char *nid)
{
	struct lnet *node = node_new(LNET_RUN_POLL, 1, LNET_ACCEPT_ALL);

	expect(add_ni(node, nid) == 0);
	return node;
}

/* Is NI @i up? 0 is 0@lo; the others follow in the order in which they were
 * added, as the nets are numbered. */
static bool is_up(struct lnet *node, unsigned int i)
{
	struct ulnet_ni_info info = { .up = false };

	expect(lnet_ni_info(node, i, &info) == 0);
	return info.up;
}

static time_t seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Does the NI become @up before PATIENCE is over? */
static bool becomes(struct lnet *node, unsigned int i, bool up)
{
	time_t until = seconds() + PATIENCE;

	while (is_up(node, i) != up && seconds() < until)
		lnet_poll(node, POLL_US);
	return is_up(node, i) == up;
}

/* ---- cases ---- */

static void loopback(void)
{
	struct lnet *node;

	expect(netdev_set("lo", true) == 0);
	node = node_with("127.0.0.2@tcp");
	expect(is_up(node, 1));
	for (unsigned int i = 0; i < 3; i++) {
		expect(netdev_set("lo", false) == 0);
		expect(becomes(node, 1, false));
		expect(netdev_set("lo", true) == 0);
		expect(becomes(node, 1, true));
	}
	expect(is_up(node, 0)); /* 0@lo needs no interface */
	lnet_close(node);
}

/* NIs with the address that goes are down, and no others. */
static void address(void)
{
	struct lnet *node;

	expect(netdev_set("lo", true) == 0);
	expect(netdev_add_addr("lo", ADDR) == 0);
	node = node_with(ADDR "@tcp");
	expect(add_ni(node, "127.0.0.2@tcp1") == 0);
	expect(add_ni(node, ADDR "@tcp2") == 0);
	expect(netdev_del_addr("lo", ADDR) == 0);
	expect(becomes(node, 1, false));
	expect(is_up(node, 2));
	expect(becomes(node, 3, false));
	expect(netdev_add_addr("lo", ADDR) == 0);
	expect(becomes(node, 1, true));
	expect(becomes(node, 3, true));
	expect(is_up(node, 2));
	lnet_close(node);
}

/* IPv6 addresses come and go like IPv4 ones. */
static void address_ipv6(void)
{
	struct lnet *node;

	expect(netdev_set("lo", true) == 0);
	expect(netdev_add_addr("lo", "fd77::2") == 0);
	node = node_with("fd77::2@tcp");
	expect(add_ni(node, "::1@tcp1") == 0);
	expect(add_ni(node, "127.0.0.2@tcp1") == 0);
	expect(netdev_del_addr("lo", "fd77::2") == 0);
	expect(becomes(node, 1, false));
	expect(is_up(node, 2));
	expect(is_up(node, 3));
	expect(netdev_add_addr("lo", "fd77::2") == 0);
	expect(becomes(node, 1, true));
	expect(netdev_set("lo", false) == 0);
	expect(becomes(node, 1, false));
	expect(becomes(node, 2, false));
	lnet_close(node);
}

static void added_while_down(void)
{
	struct lnet *node;

	expect(netdev_set("lo", true) == 0);
	expect(netdev_set("lo", false) == 0);
	node = node_with("127.0.0.2@tcp");
	expect(!is_up(node, 1));
	expect(netdev_set("lo", true) == 0);
	expect(becomes(node, 1, true));
	lnet_close(node);
}

/* A node that accepts no connections still learns of changes from the system,
 * also when NIs were deleted and added again. */
static void without_listener(void)
{
	struct lnet *node = node_new(LNET_RUN_POLL, 1, LNET_ACCEPT_NONE);
	struct ulnet_nid nid = nid_of("127.0.0.2@tcp");

	expect(netdev_set("lo", true) == 0);
	for (unsigned int i = 0; i < 2; i++) {
		struct ulnet_ni_info info;

		expect(add_ni(node, "127.0.0.2@tcp") == 0);
		expect(netdev_set("lo", false) == 0);
		expect(becomes(node, 1, false));
		expect(netdev_set("lo", true) == 0);
		expect(becomes(node, 1, true));
		/* the NI is deleted while a change is waiting to be read */
		expect(netdev_set("lo", false) == 0);
		expect(netdev_set("lo", true) == 0);
		expect(lnet_ni_del(node, &nid) == 0);
		expect(lnet_ni_info(node, 1, &info) == -ENOENT);
		lnet_poll(node, 0); /* the NI is deleted here */
	}
	lnet_close(node);
}

/* Closes a node directly after a change. */
static void closing(void)
{
	for (unsigned int turns = 0; turns < 4; turns++) {
		struct lnet *node;

		expect(netdev_set("lo", true) == 0);
		node = node_with("127.0.0.2@tcp");
		expect(netdev_set("lo", false) == 0);
		for (unsigned int i = 0; i < turns; i++)
			lnet_poll(node, 0);
		lnet_close(node);
	}
}

/* More changes than the socket holds: the last state counts. */
static void lost_messages(void)
{
	struct lnet *node;
	int fd;

	expect(netdev_set("lo", true) == 0);
	expect(netdev_add_addr("lo", ADDR) == 0);
	node = node_with(ADDR "@tcp");
	fd = netdev_listen();
	expect(fd >= 0);
	for (unsigned int i = 0; i < FLAPS && !failed; i++) {
		expect(netdev_del_addr("lo", ADDR) == 0);
		expect(netdev_add_addr("lo", ADDR) == 0);
	}
	expect(netdev_del_addr("lo", ADDR) == 0);
	expect(netdev_has_lost(fd));
	expect(becomes(node, 1, false));
	expect(netdev_add_addr("lo", ADDR) == 0);
	expect(becomes(node, 1, true));
	close(fd);
	lnet_close(node);
}

/* ---- what others see ---- */

struct pong {
	bool done;
	int status;
	unsigned int nnis, nup;
};

static void ponged(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct pong *p = arg;

	p->done = true;
	p->status = status;
	for (unsigned int i = 0; info && i < info->nnis; i++) {
		p->nnis++;
		p->nup += info->ni[i].up;
	}
}

/* Pings @node from @from, at @nid, while both are polled. */
static struct pong ask_at(struct lnet *from, struct lnet *node, const char *nid)
{
	struct ulnet_id id = { nid_of(nid), LNET_PID_ANY };
	struct pong p = { .status = 0 };

	p.status = lnet_ping(from, id, 0, ponged, &p);
	while (!p.status && !p.done) {
		lnet_poll(from, 0);
		lnet_poll(node, 0);
	}
	return p;
}

static struct pong ask(struct lnet *from, struct lnet *node)
{
	return ask_at(from, node, "127.0.0.2@tcp");
}

static void peers_are_told(void)
{
	struct lnet *node, *other;
	struct pong p;

	expect(netdev_set("lo", true) == 0);
	expect(netdev_add_addr("lo", ADDR) == 0);
	node = node_with("127.0.0.2@tcp");
	expect(add_ni(node, ADDR "@tcp1") == 0);
	other = node_with("127.0.0.3@tcp");
	p = ask(other, node);
	expect(p.status == 0 && p.nnis == 2 && p.nup == 2);
	expect(netdev_del_addr("lo", ADDR) == 0);
	expect(becomes(node, 2, false));
	p = ask(other, node);
	expect(p.status == 0 && p.nnis == 2 && p.nup == 1);
	expect(netdev_add_addr("lo", ADDR) == 0);
	expect(becomes(node, 2, true));
	p = ask(other, node);
	expect(p.status == 0 && p.nnis == 2 && p.nup == 2);
	lnet_close(other);
	lnet_close(node);
}

/* A message is refused, with a clear error, while the only NI is down.
 * Afterwards both nodes reach each other again, and the NI listens on its
 * address as before. */
static void sends(void)
{
	struct lnet *node, *other;

	expect(netdev_set("lo", true) == 0);
	node = node_with("127.0.0.2@tcp");
	expect(netdev_add_addr("lo", ADDR) == 0);
	other = node_with(ADDR "@tcp");
	expect(ask(other, node).status == 0);
	expect(netdev_del_addr("lo", ADDR) == 0);
	expect(becomes(other, 1, false));
	expect(ask(other, node).status == -ENETDOWN);
	expect(netdev_add_addr("lo", ADDR) == 0);
	expect(becomes(other, 1, true));
	expect(ask_at(node, other, ADDR "@tcp").status == 0);
	expect(ask(other, node).status == 0);
	lnet_close(other);
	lnet_close(node);
}

/* ---- what is under way ---- */

struct ear {
	struct ulnet_peer_watch watch;
	struct lnet *node;
	unsigned int n; /* how often the end of connections was reported */
};

static void on_disconnected(struct ulnet_peer_watch *watch,
			    const struct ulnet_id *peer)
{
	struct ear *ear = container_of(watch, struct ear, watch);

	(void)peer;
	ear->n++;
}

static int listen_to(void *arg)
{
	struct ear *ear = arg;

	lnet_peer_watch_add(ear->node, 0, &ear->watch);
	return 0;
}

/* Connections end at once when the address goes, and their users are told, so
 * that nobody waits for a timeout. */
static void connections_end(void)
{
	struct ear ear = { .watch.disconnected = on_disconnected };
	time_t until = seconds() + PATIENCE;
	struct lnet *node, *other;

	expect(netdev_set("lo", true) == 0);
	expect(netdev_add_addr("lo", ADDR) == 0);
	node = node_with("127.0.0.2@tcp");
	other = node_with(ADDR "@tcp");
	ear.node = other;
	expect(lnet_call(other, 0, listen_to, &ear) == 0);
	expect(ask(other, node).status == 0);
	expect(ear.n == 0);
	expect(netdev_del_addr("lo", ADDR) == 0);
	while (!ear.n && seconds() < until)
		lnet_poll(other, POLL_US);
	expect(ear.n == 1);
	expect(!is_up(other, 1));
	lnet_close(other);
	lnet_close(node);
}

/* Makes a listener whose connections stay silent. */
static int mute_listen(const char *addr)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	expect(inet_pton(AF_INET, addr, &a.sin_addr) == 1);
	expect(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	expect(listen(fd, 8) == 0);
	return fd;
}

/* A message that waits for a connection fails at once when the address goes. */
static void attempts_end(void)
{
	struct ulnet_id id = { nid_of("127.0.0.9@tcp"), LNET_PID_ANY };
	struct pong p = { .status = 0 };
	struct lnet *other;
	int fd;

	expect(netdev_set("lo", true) == 0);
	expect(netdev_add_addr("lo", ADDR) == 0);
	fd = mute_listen("127.0.0.9");
	other = node_with(ADDR "@tcp");
	expect(lnet_ping(other, id, 0, ponged, &p) == 0);
	lnet_poll(other, POLL_US);
	expect(!p.done);
	expect(netdev_del_addr("lo", ADDR) == 0);
	expect(becomes(other, 1, false));
	while (!p.done)
		lnet_poll(other, POLL_US);
	expect(p.status == -ENETDOWN);
	lnet_close(other);
	close(fd);
}

/* ---- threads ---- */

/* Posts changed[0] for each NI that the log says is down, changed[1] for each
 * one that is up. */
static void on_log(int level, const char *line, void *arg)
{
	sem_t *changed = arg;

	(void)level;
	if (strstr(line, ": down"))
		sem_post(&changed[0]);
	else if (strstr(line, ": up"))
		sem_post(&changed[1]);
}

static bool comes(sem_t *sem)
{
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE;
	do
		rc = sem_timedwait(sem, &until);
	while (rc && errno == EINTR);
	return rc == 0;
}

static void threads(void)
{
	struct lnet *node = node_new(LNET_RUN_THREADS, 4, LNET_ACCEPT_ALL);
	sem_t changed[2];

	sem_init(&changed[0], 0, 0);
	sem_init(&changed[1], 0, 0);
	lnet_log_set(LNET_LOG_INFO, on_log, changed);
	expect(netdev_set("lo", true) == 0);
	expect(add_ni(node, "127.0.0.2@tcp") == 0);
	for (unsigned int i = 0; i < 3; i++) {
		expect(netdev_set("lo", false) == 0);
		expect(comes(&changed[0]));
		expect(!is_up(node, 1));
		expect(netdev_set("lo", true) == 0);
		expect(comes(&changed[1]));
		expect(is_up(node, 1));
	}
	expect(netdev_set("lo", false) == 0);
	lnet_close(node);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
	sem_destroy(&changed[0]);
	sem_destroy(&changed[1]);
}

/* ---- a system that does not tell ---- */

static void count_warnings(int level, const char *line, void *arg)
{
	unsigned int *n = arg;

	*n += level == LNET_LOG_WARN && strstr(line, "not noticed") != NULL;
}

/* Loads the lower half of argument @n of a system call. */
static struct sock_filter load_arg(unsigned int n)
{
	uint32_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;

	return (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS,
		(uint32_t)offsetof(struct seccomp_data, args[n]) + low);
}

/* From now on no non-blocking netlink socket can be opened, as in a sandbox.
 * The C library opens blocking ones. */
static int forbid_netlink(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
		load_arg(0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3),
		load_arg(1),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SOCK_NONBLOCK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return 0;
}

static void no_netlink(void)
{
	unsigned int warnings = 0;
	struct lnet *node;

	expect(netdev_set("lo", true) == 0);
	expect(forbid_netlink() == 0);
	lnet_log_set(LNET_LOG_WARN, count_warnings, &warnings);
	node = node_with("127.0.0.2@tcp");
	expect(add_ni(node, "127.0.0.2@tcp1") == 0);
	expect(is_up(node, 1) && is_up(node, 2));
	expect(warnings == 1);
	lnet_close(node);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
}

/* ---- a cable ---- */

static void pair_up(void)
{
	expect(netdev_add_pair("ul0", "ul1") == 0);
	expect(netdev_add_addr("ul0", ADDR) == 0);
	expect(netdev_set("ul0", true) == 0);
	expect(netdev_set("ul1", true) == 0);
}

static void cable(void)
{
	struct lnet *node;

	pair_up();
	node = node_with(ADDR "@tcp");
	/* carriers come up with a delay */
	expect(becomes(node, 1, true));
	expect(netdev_set("ul1", false) == 0);
	expect(becomes(node, 1, false));
	expect(netdev_set("ul1", true) == 0);
	expect(becomes(node, 1, true));
	expect(netdev_set("ul0", false) == 0);
	expect(becomes(node, 1, false));
	expect(netdev_set("ul0", true) == 0);
	expect(becomes(node, 1, true));
	expect(netdev_del("ul0") == 0);
	expect(becomes(node, 1, false));
	pair_up();
	expect(becomes(node, 1, true));
	lnet_close(node);
}

/* The interface is removed, and another one of its name and address is added:
 * the NI works as before, and listens. */
static void device(void)
{
	struct lnet *node, *other;

	expect(netdev_set("lo", true) == 0);
	pair_up();
	node = node_with("127.0.0.2@tcp");
	other = node_with(ADDR "@tcp");
	expect(becomes(other, 1, true));
	expect(ask(other, node).status == 0);
	for (unsigned int i = 0; i < 2; i++) {
		expect(netdev_del("ul0") == 0);
		expect(becomes(other, 1, false));
		expect(ask(other, node).status == -ENETDOWN);
		pair_up();
		expect(becomes(other, 1, true));
		expect(ask_at(node, other, ADDR "@tcp").status == 0);
		expect(ask(other, node).status == 0);
	}
	/* so quickly that the node may not notice */
	expect(netdev_del("ul0") == 0);
	pair_up();
	expect(becomes(other, 1, true));
	expect(ask_at(node, other, ADDR "@tcp").status == 0);
	expect(ask(other, node).status == 0);
	lnet_close(other);
	lnet_close(node);
}

/* ---- a watch, without an LND over it ---- */

/* An NI as its LND sees it, with what it has heard. */
struct watcher {
	struct lnd_ni ni;
	struct lnd_link link;
	unsigned int looks;
	char name[LNET_INTERFACE_SIZE];
	const char *fault;
};

static void on_renamed(struct lnd_ni *ni, const char *name)
{
	struct watcher *w = container_of(ni, struct watcher, ni);

	snprintf(w->name, sizeof(w->name), "%s", name);
}

static void on_look(struct lnd_link *l, const struct ifaddrs *all)
{
	struct watcher *w = container_of(l, struct watcher, link);

	w->looks++;
	w->fault = netif_fault(all, &w->ni.nid);
	lnd_link_name(&w->ni, all);
}

static void watcher_join(struct watcher *w, const char *nid, const char *name,
			 struct loop **loop, void **slot)
{
	static const struct lnd_upcalls upcalls = { .ni_renamed = on_renamed };

	*w = (struct watcher){ .ni = { .nid = nid_of(nid),
				       .upcalls = &upcalls,
				       .loops = loop },
			       .link = { .look = on_look } };
	snprintf(w->ni.interface, sizeof(w->ni.interface), "%s", name);
	w->link.ni = &w->ni;
	expect(lnd_link_join(&w->link, slot) == 0);
}

/* The NIs of any LND hear of names, links and addresses, while they want to. */
static void watch(void)
{
	struct watcher a, b;
	unsigned int looks;
	void *slot = NULL;
	struct loop *loop;
	struct env *env;

	expect(netdev_set("lo", true) == 0);
	pair_up();
	expect(env_ev_new(NULL, &env) == 0);
	expect(loop_new(env, &loop) == 0);
	watcher_join(&a, ADDR "@o2ib", "ul0", &loop, &slot);
	watcher_join(&b, "127.0.0.1@tcp", "lo", &loop, &slot);
	expect(slot && a.link.watch == slot && b.link.watch == slot);
	expect(!a.looks && !b.looks);
	lnd_link_look(&b.link);
	expect(a.looks == 1 && b.looks == 1 && !b.fault);
	expect(netdev_set("ul0", false) == 0);
	expect(netdev_rename("ul0", "ens5") == 0);
	while (!*a.name || !a.fault)
		loop_run_once(loop, true);
	expect(strcmp(a.name, "ens5") == 0 && !*b.name && !b.fault);
	expect(netdev_set("ens5", true) == 0);
	while (a.fault)
		loop_run_once(loop, true);
	lnd_link_leave(&b.link);
	looks = b.looks;
	expect(netdev_del_addr("ens5", ADDR) == 0);
	while (!a.fault)
		loop_run_once(loop, true);
	expect(b.looks == looks);
	lnd_link_leave(&a.link);
	lnd_link_leave(&a.link);
	expect(!slot && !a.link.watch);
	loop_free(loop);
}

/* ---- all of them ---- */

static const struct link_case {
	const char *name;
	void (*run)(void);
	bool pair; /* it needs a pair of devices */
} cases[] = {
	{ "loopback", loopback, false },
	{ "address", address, false },
	{ "address, IPv6", address_ipv6, false },
	{ "added while down", added_while_down, false },
	{ "without listener", without_listener, false },
	{ "closing", closing, false },
	{ "lost messages", lost_messages, false },
	{ "peers are told", peers_are_told, false },
	{ "sends", sends, false },
	{ "connections end", connections_end, false },
	{ "attempts end", attempts_end, false },
	{ "threads", threads, false },
	{ "no netlink", no_netlink, false },
	{ "cable", cable, true },
	{ "device", device, true },
	{ "watch", watch, true },
};

/* Enters the namespace of the case. Returns 0, or why it cannot be run here. */
static int enter(const struct link_case *c)
{
	int rc = netns_enter();

	if (rc) {
		printf("no network namespace: %s\n", strerror(-rc));
		return rc;
	}
	if (!c->pair)
		return 0;
	rc = netdev_add_pair("try0", "try1");
	if (rc)
		printf("no pair of interfaces: %s\n", strerror(-rc));
	else
		rc = netdev_del("try0");
	return rc;
}

static int run(const void *arg)
{
	const struct link_case *c = arg;

	if (enter(c))
		return SKIPPED;
	c->run();
	return failed;
}

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, "network namespaces");

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		apart_run(&a, cases[i].name, run, &cases[i]);
	return apart_end(&a);
}
