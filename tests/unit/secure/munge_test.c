/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshakes of users whom MUNGE names. */
#include <errno.h>

#include "secure/handshake.h"
#include "tests/unit/secure/folder.h"
#include "tests/unit/secure/munge.h"

struct pair {
	struct handshake *client, *server;
	size_t to_server, to_client;
	int client_rc, server_rc;
};

static struct keys *server_keys(struct folder *f, bool takes)
{
	return load(&(struct keys_conf){ .certificate = in(f, "b.crt"),
					 .key = in(f, "b.key"),
					 .authority = in(f, "authority.crt"),
					 .munge_take = takes,
					 .munge_ask = fake_munge });
}

static struct keys *user_keys(struct folder *f)
{
	return load(&(struct keys_conf){ .authority = in(f, "authority.crt"),
					 .munge_show = true,
					 .munge_ask = fake_munge });
}

static struct pair begin(struct keys *client, struct keys *server)
{
	struct pair p = {
		.client = handshake_new(HANDSHAKE_CLIENT, client, NULL),
		.server = handshake_new(HANDSHAKE_SERVER, server, NULL),
	};

	cr_assert(p.client && p.server);
	p.client_rc = handshake_feed(p.client, NULL, 0);
	return p;
}

static bool carry(struct handshake *from, struct handshake *to, size_t *done,
		  int *rc)
{
	size_t n, at = *done;
	const uint8_t *bytes = handshake_bytes(from, &n);

	if (n > at)
		*rc = handshake_feed(to, bytes + at, n - at);
	*done = n;
	return n > at;
}

/* Carries bytes until there are no more. */
static void flow(struct pair *p)
{
	bool on = true;

	while (on) {
		on = carry(p->client, p->server, &p->to_server, &p->server_rc);
		on |= carry(p->server, p->client, &p->to_client, &p->client_rc);
	}
}

/* Has munged asked what @h wants, of which it wants something. */
static int answer(struct handshake *h)
{
	struct munge_question q;
	struct munge_answer a = { 0 };

	cr_assert(handshake_question(h, &q));
	fake_munge(NULL, &q, &a);
	return handshake_answer(h, &a);
}

static void run(struct pair *p)
{
	flow(p);
	if (handshake_question(p->client, NULL))
		p->client_rc = answer(p->client);
	flow(p);
	if (handshake_question(p->server, NULL))
		p->server_rc = answer(p->server);
	flow(p);
}

static void end(struct pair *p)
{
	handshake_free(p->client);
	handshake_free(p->server);
}

/* The user is proved by MUNGE, and the server by its certificate. */
Test(munge, a_user_without_a_certificate)
{
	struct folder *f = folder_of_two();
	struct keys *user = user_keys(f), *server = server_keys(f, true);
	uint8_t a[SEAL_SECRET], b[SEAL_SECRET], c[SEAL_SECRET], d[SEAL_SECRET];
	const struct identity *id;
	struct ticket t;
	struct pair p;

	p = begin(user, server);
	flow(&p);
	cr_expect(!handshake_is_done(p.client));
	cr_expect(!handshake_is_done(p.server));
	cr_assert_eq(answer(p.client), 0);
	flow(&p);
	cr_expect(!handshake_is_done(p.client));
	cr_expect(!handshake_is_done(p.server));
	cr_assert_eq(answer(p.server), 0);
	flow(&p);
	cr_assert(handshake_is_done(p.client), "%s", handshake_error(p.client));
	cr_assert(handshake_is_done(p.server), "%s", handshake_error(p.server));
	id = handshake_peer(p.server);
	cr_expect_eq(id->kind, IDENTITY_MUNGE);
	cr_expect_str_eq(id->name, "user=alice");
	cr_expect_str_eq(id->group, "staff");
	cr_expect_eq(id->uid, FAKE_UID);
	cr_expect_eq(id->gid, FAKE_GID);
	cr_expect_str_eq(handshake_peer(p.client)->name, "b");
	cr_assert_eq(
		handshake_secrets(p.client, HANDSHAKE_RECORDS, "x", 1, a, b),
		0);
	cr_assert_eq(
		handshake_secrets(p.server, HANDSHAKE_RECORDS, "x", 1, c, d),
		0);
	cr_expect_arr_eq(a, c, SEAL_SECRET);
	cr_expect_arr_eq(b, d, SEAL_SECRET);
	/* It would let the user come back without a credential. */
	cr_expect(!handshake_ticket(p.client, &t));
	cr_expect_null(keys_doubt(server, id));
	end(&p);
	keys_put(user);
	keys_put(server);
	folder_end(f);
}

/* Both, too, if there is only a cluster's key. */
Test(munge, with_a_cluster_key)
{
	struct folder *f = folder_new();
	struct keys *user, *server, *later;
	struct pair p;

	cr_assert_eq(make_cluster(&f->make, "one", false), 0);
	user = load(&(struct keys_conf){ .cluster = in(f, "cluster.key"),
					 .munge_show = true,
					 .munge_ask = fake_munge });
	server = load(&(struct keys_conf){ .cluster = in(f, "cluster.key"),
					   .munge_take = true,
					   .munge_ask = fake_munge });
	p = begin(user, server);
	run(&p);
	cr_assert(handshake_is_done(p.client), "%s", handshake_error(p.client));
	cr_assert(handshake_is_done(p.server), "%s", handshake_error(p.server));
	cr_expect_eq(handshake_peer(p.client)->kind, IDENTITY_CLUSTER_KEY);
	cr_expect_eq(handshake_peer(p.server)->kind, IDENTITY_MUNGE);
	cr_expect_null(keys_doubt(server, handshake_peer(p.server)));
	/* The cluster gets another key. */
	cr_assert_eq(remove(in(f, "cluster.key")), 0);
	cr_assert_eq(make_cluster(&f->make, "one", false), 0);
	later = load(&(struct keys_conf){ .cluster = in(f, "cluster.key"),
					  .munge_take = true,
					  .munge_ask = fake_munge });
	cr_expect_not_null(keys_doubt(later, handshake_peer(p.server)));
	end(&p);
	keys_put(user);
	keys_put(server);
	keys_put(later);
	folder_end(f);
}

/* What was made for one handshake is worth nothing in another one, not even of
 * the same two. */
Test(munge, of_another_handshake)
{
	struct folder *f = folder_of_two();
	struct keys *user = user_keys(f), *server = server_keys(f, true);
	struct munge_question first, second;
	struct munge_answer a = { 0 };
	struct pair one = begin(user, server), two = begin(user, server);

	flow(&one);
	flow(&two);
	cr_assert(handshake_question(one.client, &first));
	cr_assert(handshake_question(two.client, &second));
	cr_expect_neq(
		memcmp(&first.payload, &second.payload, sizeof(first.payload)),
		0);
	fake_munge(NULL, &first, &a);
	cr_assert_eq(handshake_answer(two.client, &a), 0);
	flow(&two);
	cr_expect_eq(answer(two.server), -EACCES);
	flow(&two);
	cr_expect(!handshake_is_done(two.server));
	cr_expect(!handshake_is_done(two.client));
	cr_expect_eq(two.client_rc, -EACCES);
	cr_expect(strstr(handshake_error(two.client), "for something else"),
		  "%s", handshake_error(two.client));
	cr_expect(strstr(handshake_error(two.server), "for something else"),
		  "%s", handshake_error(two.server));
	end(&one);
	end(&two);
	keys_put(user);
	keys_put(server);
	folder_end(f);
}

/* What the credential carries is not the payload @a->payload of @a->carried
 * bytes, but what @change makes of it. */
static void carries_another(void (*change)(struct munge_answer *a))
{
	struct folder *f = folder_of_two();
	struct keys *user = user_keys(f), *server = server_keys(f, true);
	struct munge_question q;
	struct munge_answer a = { 0 };
	struct pair p = begin(user, server);

	flow(&p);
	cr_assert_eq(answer(p.client), 0);
	flow(&p);
	cr_assert(handshake_question(p.server, &q));
	fake_munge(NULL, &q, &a);
	change(&a);
	cr_expect_eq(handshake_answer(p.server, &a), -EACCES);
	cr_expect(strstr(handshake_error(p.server), "for something else"), "%s",
		  handshake_error(p.server));
	end(&p);
	keys_put(user);
	keys_put(server);
	folder_end(f);
}

static void is_less(struct munge_answer *a)
{
	a->carried--;
}

static void is_more(struct munge_answer *a)
{
	a->carried++;
}

/* as a program munges it that was lured to, and does not know what for */
static void is_bare(struct munge_answer *a)
{
	memmove(&a->payload, a->payload.binding, MUNGE_BINDING);
	a->carried = MUNGE_BINDING;
}

static void is_for_something_else(struct munge_answer *a)
{
	memset(a->payload.purpose, 0, sizeof(a->payload.purpose));
}

static void is_of_another_version(struct munge_answer *a)
{
	a->payload.purpose[sizeof(a->payload.purpose) - 2]++;
}

static void goes_on_behind_the_text(struct munge_answer *a)
{
	a->payload.purpose[sizeof(a->payload.purpose) - 1] = 'x';
}

/* A credential may be of another program, which meant something else by it. */
Test(munge, of_another_program)
{
	carries_another(is_less);
	carries_another(is_more);
	carries_another(is_bare);
	carries_another(is_for_something_else);
	carries_another(is_of_another_version);
	carries_another(goes_on_behind_the_text);
}

/* @rc, @why: what the server's munged says. The client hears @told. */
static void is_refused(int rc, const char *why, const char *told)
{
	struct folder *f = folder_of_two();
	struct keys *user = user_keys(f), *server = server_keys(f, true);
	struct munge_answer a = { .rc = rc };
	struct pair p = begin(user, server);

	text_copy(a.why, sizeof(a.why), why);
	flow(&p);
	cr_assert_eq(answer(p.client), 0);
	flow(&p);
	cr_assert(handshake_question(p.server, NULL));
	cr_expect_eq(handshake_answer(p.server, &a), -EACCES);
	cr_expect_str_eq(handshake_error(p.server), why);
	flow(&p);
	cr_expect_eq(p.client_rc, -EACCES);
	cr_expect(strstr(handshake_error(p.client), told), "%s",
		  handshake_error(p.client));
	end(&p);
	keys_put(user);
	keys_put(server);
	folder_end(f);
}

Test(munge, what_munged_does_not_believe)
{
	is_refused(-EACCES, "MUNGE: Replayed credential", "Replayed");
	/* Where the server has its munged is nobody's business. */
	is_refused(-EHOSTDOWN, "MUNGE: no answer from munged at /run/x",
		   "its munged does not answer");
}

Test(munge, a_client_without_munged)
{
	struct folder *f = folder_of_two();
	struct keys *user = user_keys(f), *server = server_keys(f, true);
	struct munge_answer a = { .rc = -EHOSTDOWN, .why = "gone: /run/x" };
	struct pair p = begin(user, server);

	flow(&p);
	cr_expect_eq(handshake_answer(p.client, &a), -EACCES);
	cr_expect_str_eq(handshake_error(p.client), "gone: /run/x");
	flow(&p);
	cr_expect_neq(p.server_rc, 0);
	cr_expect(!handshake_is_done(p.server));
	end(&p);
	keys_put(user);
	keys_put(server);
	folder_end(f);
}

/* A server takes users only if its keys say so. */
Test(munge, a_server_that_does_not_take_it)
{
	struct folder *f = folder_of_two();
	struct keys *user = user_keys(f), *server = server_keys(f, false);
	struct pair p = begin(user, server);

	run(&p);
	cr_expect(!handshake_is_done(p.server));
	cr_expect_eq(p.client_rc, -EACCES);
	cr_expect_str_eq(handshake_error(p.client),
			 "the peer does not take MUNGE");
	end(&p);
	keys_put(user);
	keys_put(server);
	folder_end(f);
}

/* One that does still wants a certificate of everybody else. */
Test(munge, others_prove_themselves_as_before)
{
	struct folder *f = folder_of_two();
	struct keys *a = keys_of(f, "a", "authority.crt", NULL);
	struct keys *server = server_keys(f, true);
	struct identity *user = identity_user_new("a", 1, "a", 1);
	struct pair p = begin(a, server);

	run(&p);
	cr_assert(handshake_is_done(p.server), "%s", handshake_error(p.server));
	cr_expect_eq(handshake_peer(p.server)->kind, IDENTITY_CERTIFICATE);
	cr_expect(!identity_same(handshake_peer(p.server), user));
	/* The node's keys change: no user is believed any more. */
	cr_expect_null(keys_doubt(server, user));
	cr_expect_not_null(keys_doubt(a, user));
	identity_put(user);
	end(&p);
	keys_put(a);
	keys_put(server);
	folder_end(f);
}

static void do_not_load(struct keys_conf conf, const char *words)
{
	struct keys_error err = { "" };
	struct keys *k;

	cr_expect_eq(keys_load(&conf, &k, &err), -EINVAL, "%s", err.text);
	cr_expect(strstr(err.text, words), "%s", err.text);
}

Test(munge, keys_that_are_not_enough)
{
	static char path[200];
	struct folder *f = folder_of_two();

	do_not_load((struct keys_conf){ .authority = in(f, "authority.crt"),
					.munge_take = true,
					.munge_ask = fake_munge },
		    "a server has to");
	do_not_load((struct keys_conf){ .munge_show = true,
					.munge_ask = fake_munge },
		    "whom to believe");
	memset(path, 'a', sizeof(path) - 1);
	do_not_load((struct keys_conf){ .authority = in(f, "authority.crt"),
					.munge_show = true,
					.munge_socket = path,
					.munge_ask = fake_munge },
		    "too long");
	folder_end(f);
}

/* The same user, whatever is known of names; another group is another peer. */
Test(munge, who_is_the_same)
{
	struct identity *a = identity_user_new("alice", 7, "staff", 8);
	struct identity *b = identity_user_new("", 7, "", 8);
	struct identity *c = identity_user_new("alice", 7, "other", 9);
	struct identity *d = identity_user_new("alice", 8, "staff", 8);
	uint8_t da[DIGEST_SIZE], db[DIGEST_SIZE], dc[DIGEST_SIZE],
		dd[DIGEST_SIZE];

	cr_assert_eq(identity_digest(a, "x", 1, da), 0);
	cr_assert_eq(identity_digest(b, "x", 1, db), 0);
	cr_assert_eq(identity_digest(c, "x", 1, dc), 0);
	cr_assert_eq(identity_digest(d, "x", 1, dd), 0);
	cr_expect_str_eq(b->name, "uid=7");
	cr_expect_str_eq(b->group, "gid=8");
	cr_expect(identity_same(a, b));
	cr_expect(!identity_same(a, c));
	cr_expect(!identity_same(a, d));
	cr_expect_arr_eq(da, db, DIGEST_SIZE);
	cr_expect_neq(memcmp(da, dc, DIGEST_SIZE), 0);
	cr_expect_neq(memcmp(da, dd, DIGEST_SIZE), 0);
	identity_put(a);
	identity_put(b);
	identity_put(c);
	identity_put(d);
}
