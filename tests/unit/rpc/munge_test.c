/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients whose users prove by MUNGE who they are, with a munged that the test
 * plays: it may be away, slow, or deceived. */
#include <inttypes.h>

#include "rpc/munge.h"
#include "tests/unit/rpc/proof_rig.h"
#include "tests/unit/secure/munge.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* How munged behaves; under lock. */
static struct {
	pthread_mutex_t lock;
	bool away[MUNGE_READ + 1]; /* does not answer such a question */
	/* It makes the credential that it has made first again and again. */
	bool repeats;
	char first[MUNGE_CREDENTIAL];
	unsigned int asked[MUNGE_READ + 1];
	/* Before it says who has made a credential, it takes so long (ns), on
	 * the clock of this node. */
	uint64_t takes;
	struct lnet *node;
	struct ulnet_cond never;
} munged = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void take_time(void)
{
	uint64_t until = lnet_now(munged.node, 0) + munged.takes;

	while (lnet_cond_wait(&munged.never, &munged.lock, until) == 0)
		;
}

static void ask(const char *socket, const struct munge_question *q,
		struct munge_answer *a)
{
	pthread_mutex_lock(&munged.lock);
	munged.asked[q->what]++;
	if (q->what == MUNGE_READ && munged.takes)
		take_time();
	if (munged.away[q->what]) {
		a->rc = -EHOSTDOWN;
		text_copy(a->why, sizeof(a->why), "munged at /run/x is away");
	} else {
		fake_munge(socket, q, a);
	}
	if (q->what == MUNGE_MAKE && !munged.first[0])
		text_copy(munged.first, sizeof(munged.first), a->credential);
	if (q->what == MUNGE_MAKE && munged.repeats)
		text_copy(a->credential, sizeof(a->credential), munged.first);
	pthread_mutex_unlock(&munged.lock);
}

static struct ulrpc_keys *server_keys(struct folder *f)
{
	return (struct ulrpc_keys *)load(
		&(struct keys_conf){ .certificate = in(f, "b.crt"),
				     .key = in(f, "b.key"),
				     .authority = in(f, "authority.crt"),
				     .munge_take = true,
				     .munge_ask = ask });
}

static struct ulrpc_keys *user_keys(struct folder *f)
{
	return (struct ulrpc_keys *)load(
		&(struct keys_conf){ .authority = in(f, "authority.crt"),
				     .munge_show = true,
				     .munge_ask = ask });
}

/* The server takes users, and the client is alice. */
static struct proof_rig *rig(unsigned int cpts)
{
	struct proof_rig *g = calloc(1, sizeof(*g));
	struct serve_rig *s = &g->serve;
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	cr_assert(g);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	g->folder = folder_of_two();
	serve_init(s, 1, cpts);
	munged.node = s->node[SERVER];
	cr_assert_eq(lnet_cond_init(&munged.never), 0);
	s->rpc[SERVER] = open_with(s->node[SERVER], server_keys(g->folder));
	s->rpc[CALLER] = open_with(s->node[CALLER], user_keys(g->folder));
	who_start(g, ULRPC_FLAVOUR_AUTH);
	proof_client(g, &conf);
	return g;
}

static void rig_free(struct proof_rig *g)
{
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
	lnet_cond_destroy(&munged.never);
}

static void may(struct proof_rig *g)
{
	struct called c = who(g, "hello", 6);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
}

/* A call ends at once, certainly not executed, and @words say why. */
static void may_not(struct proof_rig *g, const char *words)
{
	unsigned int runs = g->runs;
	struct called c = who(g, "hello", 6);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_REFUSED, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert(strstr(c.outcome.text, words), "%s", c.outcome.text);
	cr_assert_lt(c.outcome.total, 1000000);
	cr_assert_eq(g->runs, runs);
}

static void use(struct proof_rig *g, const char *name)
{
	const struct ulrpc_rule rule = { .names = LIST(name),
					 .kind = ULRPC_PEER_MUNGE };
	const struct ulrpc_rules_conf conf = { .rules = &rule, .nrules = 1 };
	struct ulrpc_rules *made;
	char why[256] = "";

	cr_assert_eq(ulrpc_rules_new(&conf, &made, why, sizeof(why)), 0, "%s",
		     why);
	cr_assert_eq(ulrpc_use_rules(g->serve.rpc[SERVER], made), 0);
	ulrpc_rules_put(made);
}

static void users_are_seen(unsigned int cpts)
{
	struct proof_rig *g = rig(cpts);

	may(g);
	cr_assert_eq(g->peer.kind, ULRPC_PEER_MUNGE);
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_AUTH);
	cr_assert_str_eq(g->peer.name, "user=alice");
	cr_assert_str_eq(g->peer.group, "staff");
	cr_assert_str_eq(g->peer.issuer, "");
	cr_assert_eq(g->peer.uid, FAKE_UID);
	cr_assert_eq(g->peer.gid, FAKE_GID);
	use(g, "uid=1001");
	may_not(g, "user=alice (MUNGE: uid 1000, group staff) at ");
	use(g, "uid=1000");
	may(g);
	use(g, "group=other");
	may_not(g, "no rule");
	use(g, "group=st*");
	may(g);
	/* Nor does it matter which of his groups his process has. */
	use(g, "group=audio");
	may(g);
	use(g, "gid=201");
	may(g);
	use(g, "gid=202");
	may_not(g, "no rule");
	rig_free(g);
}

Test(rpc_munge, handlers_see_which_user_calls)
{
	users_are_seen(1);
	users_are_seen(4);
}

static void away(struct proof_rig *g, enum munge_what what, const char *words)
{
	munged.away[what] = true;
	may_not(g, words);
	munged.away[what] = false;
	may(g);
}

/* A client is told so at once, and goes on as soon as there is a munged. */
Test(rpc_munge, the_clients_munged_is_away)
{
	struct proof_rig *g = rig(1);

	away(g, MUNGE_MAKE, "munged at /run/x is away");
	rig_free(g);
}

Test(rpc_munge, the_servers_munged_is_away)
{
	struct proof_rig *g = rig(1);

	away(g, MUNGE_READ, "its munged does not answer");
	rig_free(g);
}

/* Whoever has seen a credential can do nothing with it. */
Test(rpc_munge, a_credential_is_good_for_one_connection)
{
	struct proof_rig *g = rig(1);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	may(g);
	ulrpc_client_close(g->serve.client);
	cr_assert_eq(ulrpc_close(g->serve.rpc[CALLER]), 0);
	g->serve.rpc[CALLER] =
		open_with(g->serve.node[CALLER], user_keys(g->folder));
	munged.repeats = true;
	proof_client(g, &conf);
	may_not(g, "the credential was made for something else");
	munged.repeats = false;
	may(g);
	cr_assert_eq(munged.asked[MUNGE_READ], 3);
	rig_free(g);
}

/* A server whose munged hangs goes on serving those who do not need it. */
Test(rpc_munge, a_slow_munged_holds_up_nobody_else)
{
	struct proof_rig *g = rig(1);
	struct ulrpc_client *user = g->serve.client;
	struct ulrpc *other;
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);
	struct called slow;

	munged.takes = 3 * SEC;
	serve_call(&g->serve, "who", "hello", 6, 10000000,
		   ULRPC_PRIORITY_DEFAULT, &slow);
	while (!munged.asked[MUNGE_READ])
		lnet_sim_run(g->serve.sim, MSEC);
	/* the server calls itself, with its certificate */
	other = g->serve.rpc[CALLER];
	g->serve.rpc[CALLER] = g->serve.rpc[SERVER];
	proof_client(g, &conf);
	may(g);
	cr_assert_eq(g->peer.kind, ULRPC_PEER_CERTIFICATE);
	cr_assert(!slow.ended);
	ulrpc_client_close(g->serve.client);
	g->serve.rpc[CALLER] = other;
	g->serve.client = user;
	while (!slow.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(slow.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(slow.outcome.cause), slow.outcome.text);
	cr_assert_eq(g->peer.kind, ULRPC_PEER_MUNGE);
	/* It was asked once, however often the client has repeated itself. */
	cr_assert_eq(munged.asked[MUNGE_READ], 1);
	rig_free(g);
}

/* A server has run for @before ns. Then a user has called, and its munged has
 * taken @takes ns, in vain. Returns how long a call takes right after that,
 * with which somebody else comes in by a certificate (us). */
static uint64_t call_after(uint64_t before, uint64_t takes)
{
	struct proof_rig *g = rig(1);
	struct ulrpc_client *user = g->serve.client;
	struct ulrpc *users = g->serve.rpc[CALLER];
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);
	struct called c;

	lnet_sim_run(g->serve.sim, before);
	munged.takes = takes;
	munged.away[MUNGE_READ] = true;
	munged.asked[MUNGE_READ] = 0;
	serve_call(&g->serve, "who", "hello", 6, 20000000,
		   ULRPC_PRIORITY_DEFAULT, &c);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_neq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_gt(munged.asked[MUNGE_READ], 0);
	/* the server calls itself, with its certificate */
	g->serve.rpc[CALLER] = g->serve.rpc[SERVER];
	proof_client(g, &conf);
	c = who(g, "hello", 6);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
	cr_assert_eq(g->peer.kind, ULRPC_PEER_CERTIFICATE);
	ulrpc_client_close(g->serve.client);
	g->serve.rpc[CALLER] = users;
	g->serve.client = user;
	rig_free(g);
	return c.outcome.total;
}

/* What munged takes is no time that others have to wait for at the door,
 * neither of known hosts nor of strangers (base/door.h): they come in as fast
 * as if munged had answered at once. */
Test(rpc_munge, a_slow_munged_closes_no_door)
{
	static const uint64_t before[] = { 0, DOOR_START + SEC };

	for (unsigned int i = 0; i < ARRAY_SIZE(before); i++) {
		uint64_t fast = call_after(before[i], 0);
		uint64_t slow = call_after(before[i], 5 * SEC);

		cr_assert_leq(slow, fast + 1000, "%u: %" PRIu64 " %" PRIu64, i,
			      slow, fast);
	}
}

/* RPC can be closed while munged is asked, and waits for it. */
Test(rpc_munge, closed_meanwhile)
{
	struct proof_rig *g = rig(1);
	struct called c;

	munged.takes = 3 * SEC;
	serve_call(&g->serve, "who", "hello", 6, 10000000,
		   ULRPC_PRIORITY_DEFAULT, &c);
	while (!munged.asked[MUNGE_READ])
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(ulrpc_service_stop(g->serve.service, 1000000), 0);
	cr_assert_eq(ulrpc_close(g->serve.rpc[SERVER]), 0);
	g->serve.rpc[SERVER] = NULL;
	g->serve.service = NULL;
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_neq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(g->runs, 0);
	rig_free(g);
}

/* The node crashes while its munged is asked. */
Test(rpc_munge, crashed_meanwhile)
{
	struct proof_rig *g = rig(1);
	struct called c;

	munged.takes = 3 * SEC;
	serve_call(&g->serve, "who", "hello", 6, 10000000,
		   ULRPC_PRIORITY_DEFAULT, &c);
	while (!munged.asked[MUNGE_READ])
		lnet_sim_run(g->serve.sim, MSEC);
	lnet_sim_crash(g->serve.sim, SERVER);
	g->serve.rpc[SERVER] = NULL;
	g->serve.service = NULL;
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_neq(c.outcome.cause, ULRPC_CAUSE_OK);
	rig_free(g);
}

/* The user's connection ends when the server's keys do not take users any
 * more. */
Test(rpc_munge, users_are_not_believed_any_more)
{
	struct proof_rig *g = rig(1);
	struct ulrpc_keys *keys;

	may(g);
	keys = keys_load_named(g->folder, "b");
	cr_assert_eq(ulrpc_use_keys(g->serve.rpc[SERVER], keys), 0);
	ulrpc_keys_put(keys);
	lnet_sim_run(g->serve.sim, SEC);
	cr_assert_neq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	rig_free(g);
}
