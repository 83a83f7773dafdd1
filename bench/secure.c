/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What secure/ takes, in lines of a name and a number.
 *
 *	secure handshake DIR KIND N
 *			us of processor time, of both sides, for each of N
 *			handshakes: "full" and "resumed" by certificates of DIR
 *			(a.crt, a.key, authority.crt), "cluster" by its
 *			cluster.key; what of it the server takes to go on with
 *			it; and the bytes that go each way
 *	secure record CIPHER SIZE SECONDS
 *			ns to seal a record of SIZE bytes, with its head, and ns
 *			to open it, with "integrity" and "privacy"; CIPHER as
 *			OpenSSL calls it
 *	secure tickets DIR N
 *			bytes for each of N tickets that a server has given,
 *			which name one client each, of the name in a.crt
 *	secure memory N
 *			bytes for each of N connections: both directions, sealed
 *			and opened; and while its keys rest
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

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

/* ---- records ---- */

struct line {
	struct seal seal;
	struct unseal unseal;
};

static const uint8_t bound[16];
static const struct seal_place place = { 7, bound, sizeof(bound) };

static void line_open(struct line *l, enum seal_cipher cipher)
{
	static const uint8_t secret[SEAL_SECRET];

	if (seal_open(&l->seal, cipher, secret, 0) ||
	    unseal_open(&l->unseal, cipher, secret))
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
	line_open(&l, cipher);
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

static void memory(unsigned int n)
{
	struct line *lines = calloc(n, sizeof(*lines));
	uint8_t record[SEAL_HEAD + 64] = { 0 };
	uint64_t ns[2];
	struct mallinfo2 before, after;

	if (!lines)
		give_up(-ENOMEM, "lines");
	line_open(&lines[0], SEAL_AES_128_GCM);
	before = mallinfo2();
	for (unsigned int i = 1; i < n; i++) {
		line_open(&lines[i], SEAL_AES_128_GCM);
		pass(&lines[i], SEAL_PRIVACY, record, 64, ns);
	}
	after = mallinfo2();
	printf("bytes %zu\n",
	       sizeof(struct line) +
		       (after.uordblks - before.uordblks) / (n - 1));
	for (unsigned int i = 1; i < n; i++) {
		seal_rest(&lines[i].seal);
		unseal_rest(&lines[i].unseal);
	}
	after = mallinfo2();
	printf("rest-bytes %zu\n",
	       sizeof(struct line) +
		       (after.uordblks - before.uordblks) / (n - 1));
	for (unsigned int i = 0; i < n; i++) {
		seal_close(&lines[i].seal);
		unseal_close(&lines[i].unseal);
	}
	free(lines);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 5 && !strcmp(what, "handshake"))
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
