/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that do not listen share an address with each other, and with one that
 * does listen there (requirement I7). */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/raw_peer.h"

#define CALLERS 8
#define PUTS	50
#define ADDRESS "127.0.0.5@tcp"
#define SIZE	1000

static const struct ulnet_tunable tunables[] = { { "min_reconnectms", 1 },
						 { "max_reconnectms", 20 },
						 { "conns_per_peer", 1 } };

static struct real_net net = { .nids = { "127.0.0.6@tcp", ADDRESS },
			       .absent = "127.0.0.99@tcp",
			       .run = LNET_RUN_THREADS,
			       .cpts = 2,
			       .port = true,
			       .tunables = tunables,
			       .ntunables = ARRAY_SIZE(tunables) };

static struct lnd_rig rig = {
	.name = "callers", .can = RIG_THREADS, .ops = &real_ops, .arg = &net
};

/* ---- who takes part ---- */

static int caller_open(uint32_t pid, struct lnet **node_p)
{
	struct ulnet_ni_conf ni = { .tunables = tunables,
				    .ntunables = ARRAY_SIZE(tunables) };
	struct ulnet_conf conf;
	int rc;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.accept = LNET_ACCEPT_NONE;
	conf.port = rig.port;
	conf.pid = pid;
	conf.transaction_timeout = 60 * 1000000;
	rc = lnet_nid_parse(ADDRESS, &ni.nid);
	if (!rc)
		rc = lnet_open(&conf, node_p);
	if (!rc)
		rc = lnet_ni_add(*node_p, &ni);
	return rc;
}

/* From now on @node is side 0 of the fixture, and the listener is side 1. */
static void is_caller(struct lnet *node)
{
	rig.node[0] = node;
	rig.nid[0] = rig.nid[1];
}

/* Opens the listener and @n callers, which have called it. */
static bool up(struct fx *fx, struct lnet **caller, unsigned int n)
{
	*fx = (struct fx){ .lock = PTHREAD_MUTEX_INITIALIZER };
	if (!expect(fx, fx_up(fx, &rig) == 0))
		return false;
	lnet_close(rig.node[0]);
	rig.node[0] = NULL;
	for (unsigned int i = 0; i < n; i++) {
		if (!expect(fx, caller_open(0, &caller[i]) == 0))
			return false;
		is_caller(caller[i]);
		still_works(fx);
	}
	return true;
}

/* Closes all callers but the last one, which is side 0. */
static int down(struct fx *fx, struct lnet **caller, unsigned int n)
{
	fx_down(fx);
	for (unsigned int i = 0; i + 1 < n; i++)
		lnet_close(caller[i]);
	return fx->failures ? 1 : 0;
}

static bool peers_are(const struct census *c, unsigned int n)
{
	return c->peers == n && c->handshakes == 0;
}

/* Returns the pid that side 0 has for the listener. */
static uint32_t pid_seen(struct fx *fx)
{
	struct box *dst = box_new(fx, 8, CUT_NONE);
	struct box *src = box_new(fx, 8, CUT_NONE);

	box_fill(src, 8);
	if (!box_post(dst, &(struct post){ .side = 1,
					   .portal = PORTAL,
					   .bits = 1,
					   .options = LNET_MD_OP_PUT }) ||
	    !box_bind(src, 0, 2, fx_patience(fx)) ||
	    !box_put(src, 1, true, PORTAL, 1, HDR(8, 0)))
		return 0;
	expect(fx, fx_wait(fx, &dst->unlinked, 1));
	expect(fx, fx_wait(fx, &src->unlinked, 1));
	return dst->last[LNET_EVENT_PUT].initiator.pid;
}

/* ---- many at once ---- */

static int share_an_address(void)
{
	struct lnet *caller[CALLERS];
	struct fx fx;

	if (!up(&fx, caller, CALLERS))
		return 1;
	/* All callers are there at once, each known by its connections. */
	expect(&fx,
	       census_wait(&fx, rig.node[1], &rig.nid[1], peers_are, CALLERS));
	for (unsigned int i = 0; i < CALLERS; i++) {
		is_caller(caller[i]);
		still_works(&fx);
	}
	expect(&fx,
	       census_wait(&fx, rig.node[1], &rig.nid[1], peers_are, CALLERS));
	return down(&fx, caller, CALLERS);
}

static int all_at_once(void)
{
	struct box *dst, *src[CALLERS], *in[CALLERS], *out[CALLERS];
	struct lnet *caller[CALLERS];
	struct fx fx;

	if (!up(&fx, caller, CALLERS))
		return 1;
	/* Each message has a range of its own, as one may arrive while the
	 * handler of another one checks its bytes. */
	dst = box_new(&fx, CALLERS * PUTS * SIZE, CUT_NONE);
	expect(&fx,
	       box_post(dst, &(struct post){ .side = 1,
					     .portal = PORTAL,
					     .bits = 1,
					     .options = LNET_MD_OP_PUT,
					     .threshold = CALLERS * PUTS }));
	/* Each caller has its own buffer, in which only its own messages
	 * arrive. */
	for (unsigned int i = 0; i < CALLERS; i++) {
		is_caller(caller[i]);
		src[i] = box_new(&fx, SIZE, CUT_NONE);
		out[i] = box_new(&fx, SIZE, CUT_NONE);
		in[i] = box_new(&fx, PUTS * SIZE, CUT_NONE);
		box_fill(src[i], 7);
		box_fill(out[i], i);
		box_post(in[i], &(struct post){ .side = 0,
						.portal = PORTAL,
						.bits = 100 + i,
						.options = LNET_MD_OP_PUT,
						.threshold = PUTS });
		box_bind(src[i], 0, 2 * PUTS, fx_patience(&fx));
		box_bind(out[i], 1, 2 * PUTS, fx_patience(&fx));
	}
	for (unsigned int n = 0; n < PUTS; n++)
		for (unsigned int i = 0; i < CALLERS; i++) {
			is_caller(caller[i]);
			box_put(src[i], 1, true, PORTAL, 1, HDR(7, n));
			box_put(out[i], 0, true, PORTAL, 100 + i, HDR(i, n));
		}
	expect(&fx, fx_wait(&fx, &dst->unlinked, 1));
	for (unsigned int i = 0; i < CALLERS; i++) {
		expect(&fx, fx_wait(&fx, &src[i]->unlinked, 1));
		expect(&fx, fx_wait(&fx, &out[i]->unlinked, 1));
		expect(&fx, fx_wait(&fx, &in[i]->unlinked, 1));
		expect(&fx, src[i]->outcomes[LNET_OUTCOME_DELIVERED] == PUTS);
		expect(&fx, out[i]->outcomes[LNET_OUTCOME_DELIVERED] == PUTS);
	}
	return down(&fx, caller, CALLERS);
}

/* ---- how many connections ---- */

static void put_of(struct fx *fx, unsigned int from, unsigned int to,
		   uint32_t size)
{
	struct box *dst = box_new(fx, size, CUT_NONE);
	struct box *src = box_new(fx, size, CUT_NONE);

	box_fill(src, size);
	if (box_post(dst, &(struct post){ .side = to,
					  .portal = PORTAL,
					  .bits = 1,
					  .options = LNET_MD_OP_PUT }) &&
	    box_bind(src, from, 2, fx_patience(fx)) &&
	    box_put(src, to, true, PORTAL, 1, HDR(size, 0))) {
		expect(fx, fx_wait(fx, &dst->unlinked, 1));
		expect(fx, fx_wait(fx, &src->unlinked, 1));
	}
}

/* A caller with small messages only has one connection; those for bulk are
 * opened by the first large message, in either direction. */
static int one_connection(void)
{
	struct lnet *caller[2];
	struct fx fx;

	if (!up(&fx, caller, 0))
		return 1;
	for (unsigned int i = 0; i < 2; i++) {
		if (!expect(&fx, caller_open(0, &caller[i]) == 0))
			return 1;
		is_caller(caller[i]);
		for (unsigned int n = 0; n < 20; n++) {
			put_of(&fx, 0, 1, 1000);
			put_of(&fx, 1, 0, 1000);
		}
		expect(&fx,
		       census_wait(&fx, caller[i], NULL, census_conns_are, 1));
		put_of(&fx, i, 1 - i, 100000);
		expect(&fx,
		       census_wait(&fx, caller[i], NULL, census_conns_are, 3));
		put_of(&fx, 0, 1, 100000);
		put_of(&fx, 1, 0, 100000);
	}
	expect(&fx, census_wait(&fx, rig.node[1], NULL, census_conns_are, 6));
	return down(&fx, caller, 2);
}

/* ---- nobody there ---- */

/* Fails unless a PUT to @id ends at once, as certainly not delivered. */
static void expect_unreachable(struct fx *fx, struct ulnet_id id)
{
	struct box *b = box_new(fx, 100, CUT_NONE);

	if (!box_bind(b, 1, 1, 1000 * fx_patience(fx)) ||
	    !box_put_id(b, id, true, PORTAL, 1, 0))
		return;
	expect(fx, fx_wait(fx, &b->unlinked, 1));
	expect(fx, b->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	expect(fx, b->terminal.status == -EHOSTUNREACH);
}

static int unreachable(void)
{
	struct lnet *caller[2];
	struct ulnet_id id;
	struct fx fx;

	if (!up(&fx, caller, 2))
		return 1;
	is_caller(caller[0]);
	id = fx_id(&fx, 0);
	lnet_close(caller[0]);
	is_caller(caller[1]);
	expect(&fx, census_wait(&fx, rig.node[1], NULL, peers_are, 1));
	expect_unreachable(&fx, id);
	/* a process that was never there */
	id.pid = LNET_PID_USERFLAG | 5;
	expect_unreachable(&fx, id);
	still_works(&fx);
	return down(&fx, caller + 1, 1);
}

/* ---- names ---- */

/* Two callers have the same pid by chance: the listener gives one of them
 * another. */
static int same_pid(void)
{
	const uint32_t pid = LNET_PID_USERFLAG | 99;
	struct lnet *caller[3];
	uint32_t seen[3];
	struct fx fx;

	if (!up(&fx, NULL, 0))
		return 1;
	for (unsigned int i = 0; i < 3; i++) {
		if (!expect(&fx, caller_open(pid, &caller[i]) == 0))
			return 1;
		is_caller(caller[i]);
		seen[i] = pid_seen(&fx);
		expect(&fx, seen[i] & LNET_PID_USERFLAG);
	}
	expect(&fx, seen[0] == pid && seen[1] != pid && seen[2] != pid);
	expect(&fx, seen[1] != seen[2]);
	for (unsigned int i = 0; i < 3; i++) {
		is_caller(caller[i]);
		expect(&fx, pid_seen(&fx) == seen[i]);
	}
	expect(&fx, census_wait(&fx, rig.node[1], NULL, peers_are, 3));
	return down(&fx, caller, 3);
}

/* A caller that connects again is recognized as the same process. */
static int comes_again(void)
{
	struct lnet *caller[2];
	uint32_t seen[2];
	struct fx fx;

	if (!up(&fx, caller, 2))
		return 1;
	for (unsigned int i = 0; i < 2; i++) {
		is_caller(caller[i]);
		seen[i] = pid_seen(&fx);
	}
	if (!expect(&fx, fx_kill(&fx) == 0) ||
	    !expect(&fx, rig.ops->restart_peer(&rig) == 0))
		return 1;
	for (unsigned int i = 2; i-- > 0;) {
		is_caller(caller[i]);
		works_again(&fx);
		expect(&fx, pid_seen(&fx) == seen[i]);
	}
	is_caller(caller[1]);
	return down(&fx, caller, 2);
}

/* The caller's old connections are dead, which the listener has not noticed:
 * the new one tells it. Another process of the same name is not taken for the
 * caller. */
static int comes_again_unseen(void)
{
	struct lnet *caller[1];
	int fd, again, other;
	struct raw_peer s;
	struct fx fx;

	if (!up(&fx, caller, 1))
		return 1;
	raw_peer_init(&s, &fx, "127.0.0.7@tcp");
	s.to = rig.nid[1];
	s.pid = LNET_PID_USERFLAG | 3;
	fd = raw_peer_open(&s, SOCK_CONTROL);
	expect(&fx, fd >= 0);
	again = raw_peer_open(&s, SOCK_CONTROL);
	expect(&fx, again >= 0);
	expect(&fx, hear_end(fd));
	s.incarnation++;
	other = raw_peer_open(&s, SOCK_CONTROL);
	expect(&fx, other >= 0);
	raw_peer_pings(&fx, &s, other);
	s.incarnation--;
	raw_peer_pings(&fx, &s, again);
	expect(&fx, census_wait(&fx, rig.node[1], &s.nid, peers_are, 2));
	close(fd);
	close(again);
	close(other);
	raw_peer_fini(&s);
	still_works(&fx);
	return down(&fx, caller, 1);
}

/* ---- what is said ---- */

/* The last line that a node has logged about something. */
struct said {
	int level; /* or a more serious one */
	const char *about;
	char text[200];
};

static void on_said(int level, const char *line, void *arg)
{
	struct said *said = arg;

	if (level <= said->level && strstr(line, said->about))
		text_copy(said->text, sizeof(said->text), line);
}

/* A raw peer with @pid connects, and then resets its connection, as the system
 * does for a process that ends without having read everything. @said gets the
 * node's last warning about that. */
static void goes_unread(struct fx *fx, uint32_t pid, struct said *said)
{
	struct linger linger = { .l_onoff = 1 };
	struct raw_peer s;
	struct census c;
	int fd;

	*said = (struct said){ LNET_LOG_WARN, "connections closed", "" };
	raw_peer_init(&s, fx, "127.0.0.7@tcp");
	s.to = rig.nid[1];
	s.pid = pid;
	fd = raw_peer_open(&s, SOCK_CONTROL);
	expect(fx, fd >= 0);
	expect(fx, census_wait(fx, rig.node[1], &s.nid, peers_are, 1));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	lnet_log_set(LNET_LOG_WARN, on_said, said);
	close(fd);
	expect(fx, census_wait(fx, rig.node[1], &s.nid, census_conns_are, 0));
	/* The turn that has lost the connection is over, and has logged it. */
	census_take(rig.node[1], &s.nid, &c);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	raw_peer_fini(&s);
}

/* A reset connection is worth a warning, but not if the peer is a node that
 * does not listen: programs come and go. */
static int leaves(void)
{
	struct lnet *caller[1];
	struct said said;
	struct fx fx;

	if (!up(&fx, caller, 1))
		return 1;
	goes_unread(&fx, LNET_PID_USERFLAG | 3, &said);
	expect(&fx, !said.text[0]);
	goes_unread(&fx, LNET_PID_LUSTRE, &said);
	expect(&fx, strstr(said.text, "Connection reset") != NULL);
	still_works(&fx);
	return down(&fx, caller, 1);
}

/* ---- who may not ---- */

/* The error of a second listener names the first one's address. */
static int two_listeners(void)
{
	struct lnet *caller[1], *second;
	struct ulnet_ni_conf ni = { 0 };
	struct said said = { LNET_LOG_ERR, "", "" };
	struct ulnet_conf conf;
	char where[32];
	struct fx fx;

	if (!up(&fx, caller, 1))
		return 1;
	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.port = rig.port;
	ni.nid = rig.nid[1];
	lnet_log_set(LNET_LOG_ERR, on_said, &said);
	if (expect(&fx, lnet_open(&conf, &second) == 0)) {
		expect(&fx, lnet_ni_add(second, &ni) == -EADDRINUSE);
		lnet_close(second);
	}
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	snprintf(where, sizeof(where), "127.0.0.5:%u:", rig.port);
	expect(&fx, strstr(said.text, where) != NULL);
	expect(&fx, strstr(said.text, "another node listens there") != NULL);
	still_works(&fx);
	return down(&fx, caller, 1);
}

/* A listener has an ordinary pid, since nobody could connect to another. */
static int listener_with_flag(void)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.pid = LNET_PID_USERFLAG | 1;
	return lnet_open(&conf, &node) == -EINVAL ? 0 : 1;
}

/* ---- */

static const struct apart_test tests[] = {
	{ "many on one address", share_an_address },
	{ "many on one address at once, both ways", all_at_once },
	{ "one connection for who says little", one_connection },
	{ "one that has gone, or was never there", unreachable },
	{ "one that leaves, and has not read all", leaves },
	{ "the same pid by chance", same_pid },
	{ "the listener restarts", comes_again },
	{ "connects again, unseen", comes_again_unseen },
	{ "two listeners on one address", two_listeners },
	{ "a listener with a caller's pid", listener_with_flag },
};

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, NULL);

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return apart_all(&a, tests, ARRAY_SIZE(tests));
}
