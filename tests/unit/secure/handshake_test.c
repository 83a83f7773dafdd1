/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <openssl/ssl.h>

#include "secure/handshake.h"
#include "tests/unit/secure/clock.h"
#include "tests/unit/secure/folder.h"

/* The keys of both nodes of a folder, which believe each other. */
static struct folder *folder_of_both(struct keys **a, struct keys **b)
{
	struct folder *f = folder_of_two();

	*a = keys_of(f, "a", "authority.crt", NULL);
	*b = keys_of(f, "b", "authority.crt", NULL);
	return f;
}

static void folder_of_both_end(struct folder *f, struct keys *a, struct keys *b)
{
	keys_put(a);
	keys_put(b);
	folder_end(f);
}

struct pair {
	struct handshake *client, *server;
	size_t to_server, to_client; /* bytes that were carried over */
	int client_rc, server_rc;
};

static struct pair begin(struct keys *client, struct keys *server,
			 const struct ticket *ticket)
{
	struct pair p = {
		.client = handshake_new(HANDSHAKE_CLIENT, client, ticket),
		.server = handshake_new(HANDSHAKE_SERVER, server, NULL),
	};

	cr_assert(p.client && p.server);
	return p;
}

/* Carries over what @from has for @to, @step bytes at a time. */
static bool carry(struct handshake *from, struct handshake *to, size_t *done,
		  size_t step, int *rc)
{
	size_t n, at = *done;
	const uint8_t *bytes = handshake_bytes(from, &n);

	for (; *done < n; *done += MIN(step, n - *done))
		*rc = handshake_feed(to, bytes + *done, MIN(step, n - *done));
	return *done > at;
}

static void run(struct pair *p, size_t step)
{
	bool on = true;

	p->client_rc = handshake_feed(p->client, NULL, 0);
	while (on) {
		on = carry(p->client, p->server, &p->to_server, step,
			   &p->server_rc);
		on |= carry(p->server, p->client, &p->to_client, step,
			    &p->client_rc);
	}
}

static void end(struct pair *p)
{
	handshake_free(p->client);
	handshake_free(p->server);
}

static void agree(const struct pair *p)
{
	uint8_t a[SEAL_SECRET], b[SEAL_SECRET], c[SEAL_SECRET], d[SEAL_SECRET];

	cr_assert(handshake_is_done(p->client), "%s",
		  handshake_error(p->client));
	cr_assert(handshake_is_done(p->server), "%s",
		  handshake_error(p->server));
	cr_assert_eq(
		handshake_secrets(p->client, HANDSHAKE_RECORDS, "x", 1, a, b),
		0);
	cr_assert_eq(
		handshake_secrets(p->server, HANDSHAKE_RECORDS, "x", 1, c, d),
		0);
	cr_expect_arr_eq(a, c, SEAL_SECRET);
	cr_expect_arr_eq(b, d, SEAL_SECRET);
	cr_expect_neq(memcmp(a, b, SEAL_SECRET), 0);
	/* Other connections have other secrets. */
	cr_assert_eq(
		handshake_secrets(p->server, HANDSHAKE_RECORDS, "y", 1, c, d),
		0);
	cr_expect_neq(memcmp(a, c, SEAL_SECRET), 0);
	cr_expect_eq(handshake_cipher(p->client), handshake_cipher(p->server));
}

/* Both know why; the side that has refused says so to the other one. */
static void disagree(const struct pair *p, const char *client,
		     const char *server)
{
	cr_expect(!handshake_is_done(p->client) || !*client);
	cr_expect(!handshake_is_done(p->server));
	cr_expect_eq(p->server_rc, -EACCES, "%d: %s", p->server_rc,
		     handshake_error(p->server));
	cr_expect(strstr(handshake_error(p->client), client), "%s",
		  handshake_error(p->client));
	cr_expect(strstr(handshake_error(p->server), server), "%s",
		  handshake_error(p->server));
}

Test(handshake, with_certificates)
{
	static const char *const nids[] = { "10.0.0.[1-9]@tcp", "7@kfi", NULL };
	struct folder *f = folder_of_two();
	struct keys *a, *b;
	const struct identity *id;
	struct pair p;

	f->make.nids = nids;
	cr_assert_eq(make_node(&f->make, "c.example"), 0);
	a = keys_of(f, "a", "authority.crt", "revoked.crl");
	b = keys_of(f, "c.example", "authority.crt", "revoked.crl");
	p = begin(a, b, NULL);
	run(&p, 1 << 20);
	agree(&p);
	id = handshake_peer(p.client);
	cr_expect_eq(id->kind, IDENTITY_CERTIFICATE);
	cr_expect_str_eq(id->name, "c.example");
	cr_expect_str_eq(id->issuer, "site");
	cr_assert_eq(id->nnids, 2);
	cr_expect_str_eq(id->nids, nids[0]);
	cr_expect_str_eq(id->nids + strlen(nids[0]) + 1, nids[1]);
	cr_expect_eq(id->until, f->make.now + 30 * 24 * 3600);
	cr_expect_str_eq(handshake_peer(p.server)->name, "a");
	cr_expect_eq(handshake_peer(p.server)->nnids, 0);
	cr_expect(!handshake_was_resumed(p.client));
	end(&p);
	folder_of_both_end(f, a, b);
}

/* In pieces of any size. */
Test(handshake, byte_by_byte)
{
	struct folder *f = folder_of_two();
	struct keys *a = keys_of(f, "a", "authority.crt", NULL);
	struct pair p = begin(a, a, NULL);

	run(&p, 1);
	agree(&p);
	end(&p);
	keys_put(a);
	folder_end(f);
}

Test(handshake, with_a_cluster_key)
{
	struct folder *f = folder_new();
	struct keys *k;
	struct ticket t;
	struct pair p;

	cr_assert_eq(make_cluster(&f->make, "one", false), 0);
	k = load(&(struct keys_conf){ .cluster = in(f, "cluster.key") });
	p = begin(k, k, NULL);
	run(&p, 100);
	agree(&p);
	cr_expect_eq(handshake_peer(p.client)->kind, IDENTITY_CLUSTER_KEY);
	cr_expect_str_eq(handshake_peer(p.client)->name, "one");
	cr_expect_str_eq(handshake_peer(p.server)->name, "one");
	cr_expect(!handshake_ticket(p.client, &t));
	end(&p);
	keys_put(k);
	folder_end(f);
}

/* While a key is changed, both are believed. */
Test(handshake, with_an_old_cluster_key)
{
	struct folder *f = folder_new();
	struct keys_conf conf = { .cluster = in(f, "cluster.key") };
	struct keys *old, *both;
	struct pair p;

	cr_assert_eq(make_cluster(&f->make, "one", false), 0);
	old = load(&conf);
	cr_assert_eq(make_cluster(&f->make, "two", true), 0);
	both = load(&conf);
	p = begin(old, both, NULL);
	run(&p, 100);
	agree(&p);
	cr_expect_str_eq(handshake_peer(p.server)->name, "one");
	end(&p);
	/* The new one is not known everywhere yet. */
	p = begin(both, old, NULL);
	run(&p, 100);
	disagree(&p, "does not know the cluster's key", "");
	end(&p);
	keys_put(old);
	keys_put(both);
	folder_end(f);
}

Test(handshake, with_another_cluster_key)
{
	struct folder *f = folder_new(), *g = folder_new();
	struct keys *a, *b;
	struct pair p;

	cr_assert_eq(make_cluster(&f->make, "one", false), 0);
	cr_assert_eq(make_cluster(&g->make, "one", false), 0);
	a = load(&(struct keys_conf){ .cluster = in(f, "cluster.key") });
	b = load(&(struct keys_conf){ .cluster = in(g, "cluster.key") });
	p = begin(a, b, NULL);
	run(&p, 100);
	disagree(&p, "", "another key under the name of the cluster's key");
	end(&p);
	folder_of_both_end(f, a, b);
	folder_end(g);
}

/* ---- who is not believed ---- */

Test(handshake, of_another_authority)
{
	struct folder *f = folder_of_two(), *g = folder_of_two();
	struct keys *a = keys_of(f, "a", "authority.crt", NULL);
	struct keys *b = keys_of(g, "b", "authority.crt", NULL);
	struct pair p = begin(a, b, NULL);

	run(&p, 1000);
	disagree(&p, "the peer's certificate is not believed",
		 "does not know this node's authority");
	end(&p);
	folder_of_both_end(f, a, b);
	folder_end(g);
}

Test(handshake, of_a_revoked_client)
{
	struct folder *f = folder_of_two();
	struct keys *a = keys_of(f, "a", "authority.crt", NULL), *b;
	struct pair p;

	cr_assert_eq(make_revoked(&f->make, "a"), 0);
	b = keys_of(f, "b", "authority.crt", "revoked.crl");
	p = begin(a, b, NULL);
	run(&p, 1000);
	disagree(&p, "certificate was revoked", "certificate revoked");
	end(&p);
	folder_of_both_end(f, a, b);
}

/* The server's certificate is the first that is seen. */
static void shifted(int64_t shift, const char *why, const char *alert)
{
	struct keys *a, *b;
	struct folder *f = folder_of_both(&a, &b);
	struct pair p = begin(a, b, NULL);

	clock_shift = shift;
	run(&p, 1000);
	clock_shift = 0;
	if (why)
		disagree(&p, why, alert);
	else
		agree(&p);
	end(&p);
	folder_of_both_end(f, a, b);
}

/* Both had been valid when the nodes started. */
Test(handshake, of_one_who_has_expired)
{
	shifted(31 * DAY, "is not believed: certificate has expired",
		"this node's certificate is not valid (any more, or yet)");
}

Test(handshake, of_one_who_is_not_valid_yet)
{
	shifted(-2 * DAY, "is not believed: certificate is not yet valid",
		"the peer does not believe this node's certificate");
}

/* Certificates that were just made are good where the clock is behind. */
Test(handshake, with_a_clock_an_hour_off)
{
	shifted(-3600, NULL, NULL);
	shifted(3600, NULL, NULL);
}

Test(handshake, of_a_client_who_has_expired)
{
	struct folder *f = folder_of_two();
	struct keys *a, *b = keys_of(f, "b", "authority.crt", NULL);
	struct pair p;

	f->make.days = 1;
	cr_assert_eq(make_node(&f->make, "short"), 0);
	a = keys_of(f, "short", "authority.crt", NULL);
	p = begin(a, b, NULL);
	clock_shift = 2 * DAY;
	run(&p, 1000);
	disagree(&p, "this node's certificate is not valid (any more, or yet)",
		 "is not believed: certificate has expired");
	end(&p);
	folder_of_both_end(f, a, b);
}

Test(handshake, without_a_certificate)
{
	struct folder *f = folder_of_two();
	struct keys *a, *b = keys_of(f, "b", "authority.crt", NULL);
	struct pair p;

	cr_assert_eq(make_cluster(&f->make, "one", false), 0);
	a = load(&(struct keys_conf){ .cluster = in(f, "cluster.key") });
	p = begin(a, b, NULL);
	run(&p, 1000);
	cr_expect(!handshake_is_done(p.client));
	cr_expect(!handshake_is_done(p.server));
	end(&p);
	folder_of_both_end(f, a, b);
}

/* ---- tickets ---- */

static struct ticket first_ticket(struct keys *client, struct keys *server)
{
	struct pair p = begin(client, server, NULL);
	struct ticket t;

	run(&p, 1 << 20);
	agree(&p);
	cr_assert(handshake_ticket(p.client, &t));
	end(&p);
	return t;
}

static bool resumes(struct keys *client, struct keys *server, struct ticket *t)
{
	struct pair p = begin(client, server, t);
	bool resumed;

	run(&p, 1 << 20);
	agree(&p);
	resumed = handshake_was_resumed(p.server);
	cr_expect_eq(handshake_was_resumed(p.client), resumed);
	cr_expect_str_eq(handshake_peer(p.client)->name, "b");
	cr_expect_str_eq(handshake_peer(p.server)->name, "a");
	ticket_drop(t);
	cr_assert(handshake_ticket(p.client, t));
	end(&p);
	return resumed;
}

Test(handshake, resumed)
{
	struct keys *a, *b;
	struct folder *f = folder_of_both(&a, &b);
	struct ticket t = first_ticket(a, b);

	for (unsigned int i = 0; i < 3; i++)
		cr_expect(resumes(a, b, &t));
	ticket_drop(&t);
	folder_of_both_end(f, a, b);
}

/* A ticket does not make a client believed for longer than its certificate,
 * also if it uses a ticket that it should not use any more. */
static void expired_meanwhile(bool knows)
{
	struct folder *f = folder_of_two();
	struct keys *a, *b = keys_of(f, "b", "authority.crt", NULL);
	struct ticket t;
	struct pair p;

	f->make.days = 1;
	f->make.now -= DAY - 1800;
	cr_assert_eq(make_node(&f->make, "short"), 0);
	a = keys_of(f, "short", "authority.crt", NULL);
	t = first_ticket(a, b);
	clock_shift = 1700;
	p = begin(a, b, &t);
	run(&p, 1 << 20);
	agree(&p);
	cr_expect(handshake_was_resumed(p.server));
	ticket_drop(&t);
	cr_assert(handshake_ticket(p.client, &t));
	end(&p);
	clock_shift = 1900;
	if (!knows)
		t.until = INT64_MAX;
	p = begin(a, b, &t);
	run(&p, 1 << 20);
	disagree(&p, knows ? "this node's certificate is not valid" : "",
		 "certificate has expired");
	clock_shift = 0;
	end(&p);
	ticket_drop(&t);
	folder_of_both_end(f, a, b);
}

Test(handshake, expired_meanwhile)
{
	expired_meanwhile(true);
	expired_meanwhile(false);
}

/* The server has forgotten it, for it had to be used only once. */
Test(handshake, with_a_ticket_twice)
{
	struct keys *a, *b;
	struct folder *f = folder_of_both(&a, &b);
	struct ticket t = first_ticket(a, b), same = t;

	SSL_SESSION_up_ref(same.session);
	keys_ref(same.keys);
	cr_expect(resumes(a, b, &t));
	cr_expect(!resumes(a, b, &same));
	ticket_drop(&same);
	ticket_drop(&t);
	folder_of_both_end(f, a, b);
}

Test(handshake, with_an_old_ticket)
{
	struct keys *a, *b;
	struct folder *f = folder_of_both(&a, &b);
	struct ticket t = first_ticket(a, b);

	clock_shift = 3610;
	cr_expect(!resumes(a, b, &t));
	cr_expect(resumes(a, b, &t));
	ticket_drop(&t);
	folder_of_both_end(f, a, b);
}

/* Whoever has been revoked meanwhile has no use of his ticket. */
Test(handshake, revoked_meanwhile)
{
	struct folder *f = folder_of_two();
	struct keys *a = keys_of(f, "a", "authority.crt", NULL), *after;
	struct keys *b = keys_of(f, "b", "authority.crt", NULL);
	struct ticket t = first_ticket(a, b);
	struct pair p;

	cr_assert_eq(make_revoked(&f->make, "b"), 0);
	after = keys_of(f, "a", "authority.crt", "revoked.crl");
	p = begin(after, b, &t);
	run(&p, 1 << 20);
	cr_expect_eq(p.client_rc, -EACCES);
	cr_expect(!handshake_is_done(p.client));
	end(&p);
	ticket_drop(&t);
	keys_put(a);
	keys_put(after);
	keys_put(b);
	folder_end(f);
}

/* After other keys were read, all begins anew. */
Test(handshake, new_keys)
{
	struct keys *a, *b;
	struct folder *f = folder_of_both(&a, &b);
	struct ticket t = first_ticket(a, b);

	keys_put(b);
	b = keys_of(f, "b", "authority.crt", NULL);
	cr_expect(!resumes(a, b, &t));
	cr_expect(resumes(a, b, &t));
	ticket_drop(&t);
	folder_of_both_end(f, a, b);
}

/* ---- what strangers send ---- */

Test(handshake, nonsense)
{
	struct folder *f = folder_of_two();
	struct keys *b = keys_of(f, "b", "authority.crt", NULL);
	uint8_t zeros[1024] = { 0 };
	struct pair p = begin(b, b, NULL);
	size_t n;

	cr_expect_eq(handshake_feed(p.server, zeros, sizeof(zeros)), -EPROTO);
	cr_expect_eq(handshake_feed(p.server, NULL, 0), -EPROTO);
	cr_expect(*handshake_error(p.server));
	(void)handshake_bytes(p.server, &n);
	end(&p);
	keys_put(b);
	folder_end(f);
}

/* A side cannot make the other one keep more than this. */
Test(handshake, too_long)
{
	struct folder *f = folder_of_two();
	struct keys *b = keys_of(f, "b", "authority.crt", NULL);
	/* the beginning of a record of 16 KiB */
	static const uint8_t record[] = { 0x16, 3, 1, 0x40, 0 };
	static uint8_t bytes[HANDSHAKE_MAX];
	struct pair p = begin(b, b, NULL);

	cr_expect_eq(handshake_feed(p.server, record, sizeof(record)), 0);
	cr_expect_eq(handshake_feed(p.server, bytes, sizeof(bytes)), -EMSGSIZE);
	end(&p);
	keys_put(b);
	folder_end(f);
}

/* Each byte of the handshake counts: whatever is altered, the two never come to
 * be done with different secrets. */
Test(handshake, altered)
{
	struct folder *f = folder_of_two();
	struct keys *a = keys_of(f, "a", "authority.crt", NULL);
	size_t length = 1;

	for (size_t i = 0; i < length; i += 7) {
		struct pair p = begin(a, a, NULL);
		const uint8_t *bytes;
		uint8_t *bad;
		size_t n;

		cr_assert_eq(handshake_feed(p.client, NULL, 0), 0);
		carry(p.client, p.server, &p.to_server, 1 << 20, &p.server_rc);
		bytes = handshake_bytes(p.server, &n);
		bad = malloc(n);
		memcpy(bad, bytes, n);
		bad[i % n] ^= 1;
		length = n;
		p.client_rc = handshake_feed(p.client, bad, n);
		cr_expect(!handshake_is_done(p.client), "byte %zu", i);
		free(bad);
		end(&p);
	}
	keys_put(a);
	folder_end(f);
}
