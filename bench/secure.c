/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What secure/ takes, in lines of a name and a number.
 *
 *	secure handshake DIR KIND N
 *			us of processor time, of both sides, for each of N
 *			handshakes: "full" and "resumed" by certificates of DIR
 *			(a.crt, a.key, authority.crt), "cluster" by its
 *			cluster.key; what of it the server takes to go on with
 *			it; and the bytes that go each way. "bare": resumed by
 *			OpenSSL alone, with the same settings and certificates;
 *			just the us
 *	secure record CIPHER SIZE SECONDS
 *			ns to seal a record of SIZE bytes, with its head, and ns
 *			to open it, with "integrity" and "privacy"; CIPHER as
 *			OpenSSL calls it
 *	secure tickets DIR N
 *			bytes for each of N tickets that a server has given,
 *			which name one client each, of the name in a.crt
 *	secure memory N
 *			bytes for each of N connections, both directions: each
 *			with contexts of its own, and all with a pool's
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include <openssl/ssl.h>

#include "bench/duo.h"
#include "secure/handshake.h"

static uint64_t processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* ---- handshakes ---- */

static struct keys *keys_of(const char *dir, bool cluster)
{
	static const char *const names[] = { "a.crt", "a.key", "authority.crt",
					     "cluster.key" };
	char path[4][256];
	struct keys_conf conf = { 0 };
	struct keys_error err = { "" };
	struct keys *k;

	for (unsigned int i = 0; i < 4; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", dir, names[i]);
	if (cluster)
		conf.cluster = path[3];
	else
		conf = (struct keys_conf){ .certificate = path[0],
					   .key = path[1],
					   .authority = path[2] };
	if (keys_load(&conf, &k, &err))
		give_up(-EINVAL, err.text);
	return k;
}

/* Carries over what @from has for @to. */
static bool carry(struct handshake *from, struct handshake *to, size_t *done)
{
	size_t n;
	const uint8_t *bytes = handshake_bytes(from, &n);

	if (n == *done)
		return false;
	if (handshake_feed(to, bytes + *done, n - *done))
		give_up(-EPROTO, handshake_error(to));
	*done = n;
	return true;
}

struct cost {
	uint64_t ns, server_ns;
	size_t to_server, to_client;
};

/* One handshake; with @t, of which the next one gets the ticket. */
static void shake(struct keys *k, struct ticket *t, struct cost *c)
{
	uint64_t start = processor_ns();
	struct handshake *client = handshake_new(HANDSHAKE_CLIENT, k, t);
	struct handshake *server = handshake_new(HANDSHAKE_SERVER, k, NULL);
	uint8_t to_server[SEAL_SECRET], to_client[SEAL_SECRET];
	bool goes_on;

	if (!client || !server || handshake_feed(client, NULL, 0))
		give_up(-ENOMEM, "handshake");
	c->to_server = c->to_client = 0;
	do {
		uint64_t before = processor_ns();

		goes_on = carry(client, server, &c->to_server);
		c->server_ns += processor_ns() - before;
		goes_on |= carry(server, client, &c->to_client);
	} while (goes_on);
	if (!handshake_is_done(client) || !handshake_is_done(server) ||
	    handshake_secrets(client, HANDSHAKE_RECORDS, "x", 1, to_server,
			      to_client) ||
	    handshake_secrets(server, HANDSHAKE_RECORDS, "x", 1, to_server,
			      to_client))
		give_up(-EPROTO, "handshake");
	if (t) {
		if (t->session && !handshake_was_resumed(server))
			give_up(-EPROTO, "not resumed");
		ticket_drop(t);
		if (!handshake_ticket(client, t))
			give_up(-EPROTO, "no ticket");
	}
	handshake_free(client);
	handshake_free(server);
	c->ns += processor_ns() - start;
}

static void handshakes(const char *dir, const char *kind, unsigned int n)
{
	bool resumed = !strcmp(kind, "resumed");
	struct keys *k = keys_of(dir, !strcmp(kind, "cluster"));
	struct ticket t = { 0 };
	struct cost c = { 0 };

	for (unsigned int i = 0; i < 10; i++)
		shake(k, resumed ? &t : NULL, &c);
	c.ns = c.server_ns = 0;
	for (unsigned int i = 0; i < n; i++)
		shake(k, resumed ? &t : NULL, &c);
	printf("us %.1f\nserver-us %.1f\nto-server %zu\nto-client %zu\n",
	       (double)c.ns / 1000 / n, (double)c.server_ns / 1000 / n,
	       c.to_server, c.to_client);
	ticket_drop(&t);
	keys_put(k);
}

/* ---- handshakes of OpenSSL alone ---- */

static SSL_SESSION *bare_ticket;

static int on_bare_ticket(SSL *ssl, SSL_SESSION *ticket)
{
	(void)ssl;
	SSL_SESSION_free(bare_ticket);
	bare_ticket = ticket;
	return 1;
}

/* As context_new() of secure/keys.c, with OpenSSL's own cache of sessions at
 * the server. */
static SSL_CTX *bare_context(const char *dir, bool server)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	char path[3][256];

	snprintf(path[0], sizeof(path[0]), "%s/a.crt", dir);
	snprintf(path[1], sizeof(path[1]), "%s/a.key", dir);
	snprintf(path[2], sizeof(path[2]), "%s/authority.crt", dir);
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, "X25519:P-256") != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") != 1 ||
	    SSL_CTX_use_certificate_file(ctx, path[0], SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, path[1], SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_load_verify_file(ctx, path[2]) != 1 ||
	    SSL_CTX_set_session_id_context(ctx, (const uint8_t *)"x", 1) != 1)
		give_up(-EINVAL, dir);
	SSL_CTX_set_verify(
		ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	if (!server) {
		SSL_CTX_set_session_cache_mode(
			ctx,
			SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(ctx, on_bare_ticket);
	}
	return ctx;
}

static SSL *bare_side(SSL_CTX *ctx)
{
	SSL *ssl = SSL_new(ctx);

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	return ssl;
}

static void bare_carry(SSL *from, SSL *to)
{
	char bytes[8192];
	int n = BIO_read(SSL_get_wbio(from), bytes, sizeof(bytes));

	if (n > 0 && BIO_write(SSL_get_rbio(to), bytes, n) != n)
		give_up(-ENOMEM, "a BIO");
}

static void bare_shake(SSL_CTX *of_client, SSL_CTX *of_server)
{
	SSL *client = bare_side(of_client), *server = bare_side(of_server);
	bool again = bare_ticket != NULL;
	char byte;

	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	if (again)
		(void)SSL_set_session(client, bare_ticket);
	for (unsigned int i = 0; i < 2; i++) {
		(void)SSL_do_handshake(client);
		bare_carry(client, server);
		(void)SSL_do_handshake(server);
		bare_carry(server, client);
	}
	(void)SSL_read(client, &byte, 1); /* takes the ticket */
	if (!SSL_is_init_finished(client) || !SSL_is_init_finished(server) ||
	    SSL_session_reused(server) != again)
		give_up(-EPROTO, "a bare handshake");
	SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_set_shutdown(server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(client);
	SSL_free(server);
}

static void bare(const char *dir, unsigned int n)
{
	SSL_CTX *client = bare_context(dir, false);
	SSL_CTX *server = bare_context(dir, true);
	uint64_t start;

	for (unsigned int i = 0; i < 10; i++)
		bare_shake(client, server);
	start = processor_ns();
	for (unsigned int i = 0; i < n; i++)
		bare_shake(client, server);
	printf("us %.1f\n", (double)(processor_ns() - start) / 1000 / n);
	SSL_SESSION_free(bare_ticket);
	SSL_CTX_free(client);
	SSL_CTX_free(server);
}

/* ---- records ---- */

struct line {
	struct seal seal;
	struct unseal unseal;
};

static const uint8_t bound[16];
static const struct seal_place place = { 7, bound, sizeof(bound) };

static void line_open(struct line *l, struct seal_pool *pool,
		      enum seal_cipher cipher)
{
	static const uint8_t secret[SEAL_SECRET];

	if (seal_open(&l->seal, pool, cipher, secret, 0) ||
	    unseal_open(&l->unseal, pool, cipher, secret))
		give_up(-ENOMEM, "keys");
}

static void pass(struct line *l, enum seal_protection protection,
		 uint8_t *record, size_t size, uint64_t ns[2])
{
	const struct iovec in = { record + SEAL_HEAD, size };
	uint64_t start = processor_ns(), middle;
	int rc = seal_record(&l->seal, protection, &place, &in, 1, 0, record,
			     protection == SEAL_PRIVACY ? in.iov_base : NULL);

	middle = processor_ns();
	if (!rc)
		rc = unseal_record(&l->unseal, record, SEAL_HEAD + size, &place,
				   &protection);
	if (rc)
		give_up(rc, "record");
	ns[0] += middle - start;
	ns[1] += processor_ns() - middle;
}

/* What two looks at the clock take. */
static double looking(void)
{
	uint64_t start = processor_ns();

	for (unsigned int i = 0; i < 100000; i++)
		(void)processor_ns();
	return (double)(processor_ns() - start) / 100000;
}

static void records(enum seal_cipher cipher, size_t size, double seconds)
{
	static const char *const names[] = { "integrity", "privacy" };
	uint8_t *record = calloc(1, SEAL_HEAD + size);
	double look = looking();
	struct line l;

	if (!record)
		give_up(-ENOMEM, "record");
	line_open(&l, NULL, cipher);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t ns[2] = { 0 }, n = 0;

		do {
			pass(&l, SEAL_INTEGRITY + i, record, size, ns);
			n++;
		} while ((double)(ns[0] + ns[1]) < seconds * 1e9);
		printf("%s-seal %.0f\n%s-open %.0f\n", names[i],
		       (double)ns[0] / (double)n - look, names[i],
		       (double)ns[1] / (double)n - look);
	}
	seal_close(&l.seal);
	unseal_close(&l.unseal);
	free(record);
}

/* ---- memory ---- */

static void tickets(const char *dir, unsigned int n)
{
	struct keys *k = keys_of(dir, false);
	struct mallinfo2 before, after;
	struct ticket t = { 0 };
	struct cost c = { 0 };

	shake(k, &t, &c);
	ticket_drop(&t);
	before = mallinfo2();
	for (unsigned int i = 0; i < n; i++) {
		shake(k, &t, &c);
		ticket_drop(&t);
	}
	after = mallinfo2();
	printf("bytes %zu\n", (after.uordblks - before.uordblks) / n);
	keys_put(k);
}

static size_t memory_of(struct seal_pool *pool, unsigned int n)
{
	struct line *lines = calloc(n, sizeof(*lines));
	uint8_t record[SEAL_HEAD + 64] = { 0 };
	struct mallinfo2 before, after;
	uint64_t ns[2];

	if (!lines)
		give_up(-ENOMEM, "lines");
	line_open(&lines[0], NULL, SEAL_AES_128_GCM);
	before = mallinfo2();
	for (unsigned int i = 1; i < n; i++) {
		line_open(&lines[i], pool, SEAL_AES_128_GCM);
		pass(&lines[i], SEAL_PRIVACY, record, 64, ns);
	}
	after = mallinfo2();
	for (unsigned int i = 0; i < n; i++) {
		seal_close(&lines[i].seal);
		unseal_close(&lines[i].unseal);
	}
	free(lines);
	return sizeof(struct line) +
	       (after.uordblks - before.uordblks) / (n - 1);
}

static void memory(unsigned int n)
{
	struct seal_pool pool = { 0 };

	printf("pool-bytes %zu\n", memory_of(&pool, n));
	printf("alone-bytes %zu\n", memory_of(NULL, n));
	seal_pool_fini(&pool);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 5 && !strcmp(what, "handshake") && !strcmp(argv[3], "bare"))
		bare(argv[2], (unsigned int)atoi(argv[4]));
	else if (argc == 5 && !strcmp(what, "handshake"))
		handshakes(argv[2], argv[3], (unsigned int)atoi(argv[4]));
	else if (argc == 5 && !strcmp(what, "record"))
		records(strcmp(argv[2], "aes-128-gcm") ? SEAL_CHACHA20_POLY1305
						       : SEAL_AES_128_GCM,
			(size_t)atol(argv[3]), atof(argv[4]));
	else if (argc == 4 && !strcmp(what, "tickets"))
		tickets(argv[2], (unsigned int)atoi(argv[3]));
	else if (argc == 3 && !strcmp(what, "memory"))
		memory((unsigned int)atoi(argv[2]));
	else
		give_up(-EINVAL, "see the head of bench/secure.c");
	return 0;
}
