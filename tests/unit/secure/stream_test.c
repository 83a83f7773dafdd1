/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "secure/handshake_priv.h"
#include "secure/stream.h"
#include "tests/unit/secure/folder.h"

#define MANY (1 << 20)

struct two {
	struct folder *folder;
	struct keys *keys;
	struct stream *side[2]; /* client, server */
};

static void two_open(struct two *t)
{
	t->side[0] = stream_new(HANDSHAKE_CLIENT, t->keys);
	t->side[1] = stream_new(HANDSHAKE_SERVER, t->keys);
	cr_assert(t->side[0] && t->side[1]);
}

static struct two two_new(void)
{
	struct two t = { .folder = folder_of_two() };

	t.keys = keys_of(t.folder, "a", "authority.crt", NULL);
	two_open(&t);
	return t;
}

static void two_end(struct two *t)
{
	stream_free(t->side[0]);
	stream_free(t->side[1]);
	keys_put(t->keys);
	folder_end(t->folder);
}

/* Carries over up to @n bytes. Returns how many. */
static size_t carry(struct stream *from, struct stream *to, size_t n)
{
	size_t have;
	const uint8_t *bytes = stream_bytes(from, &have);

	n = MIN(MIN(n, have), stream_room(to));
	if (n)
		cr_expect_eq(stream_take(to, bytes, n), 0, "%s",
			     stream_error(to));
	stream_sent(from, n);
	return n;
}

static void shake(struct two *t)
{
	while (carry(t->side[0], t->side[1], MANY) ||
	       carry(t->side[1], t->side[0], MANY)) {
	}
	cr_assert(stream_is_up(t->side[0]), "%s", stream_error(t->side[0]));
	cr_assert(stream_is_up(t->side[1]), "%s", stream_error(t->side[1]));
}

static struct two two_up(void)
{
	struct two t = two_new();

	shake(&t);
	return t;
}

static uint8_t byte_at(size_t i, unsigned int side)
{
	return (uint8_t)(i * 31 + i / 251 + side);
}

static void fill(uint8_t *to, size_t at, size_t n, unsigned int side)
{
	for (size_t i = 0; i < n; i++)
		to[i] = byte_at(at + i, side);
}

/* A number up to @n, not the same each time. */
static size_t some(size_t n)
{
	static uint64_t at = 1;

	at = at * 6364136223846793005 + 1442695040888963407;
	return 1 + (size_t)(at >> 33) % n;
}

/* ---- what is written is read ---- */

struct way {
	size_t written, read;
};

/* Writes what can be written of @total, and reads what can be read. */
static void way_go(struct way *w, struct stream *from, struct stream *to,
		   unsigned int side, size_t total)
{
	static uint8_t bytes[40000], want[40000];
	size_t n = MIN(some(sizeof(bytes)), total - w->written);
	ssize_t did;

	fill(bytes, w->written, n, side);
	if (n) {
		did = stream_write(from, bytes, n);
		cr_assert(did > 0 || did == -EAGAIN, "%zd", did);
		w->written += did > 0 ? (size_t)did : 0;
	}
	did = stream_read(to, bytes, some(sizeof(bytes)));
	cr_assert(did > 0 || did == -EAGAIN, "%zd: %s", did, stream_error(to));
	if (did < 0)
		return;
	fill(want, w->read, (size_t)did, side);
	cr_assert_eq(memcmp(bytes, want, (size_t)did), 0);
	w->read += (size_t)did;
}

Test(stream, both_ways_in_pieces)
{
	struct two t = two_new();
	struct way out = { 0 }, back = { 0 };

	while (out.read < MANY || back.read < MANY) {
		way_go(&out, t.side[0], t.side[1], 0, MANY);
		way_go(&back, t.side[1], t.side[0], 1, MANY);
		carry(t.side[0], t.side[1], some(30000));
		carry(t.side[1], t.side[0], some(30000));
	}
	cr_expect_str_eq(stream_peer(t.side[0])->name, "a");
	cr_expect_str_eq(stream_peer(t.side[1])->name, "a");
	two_end(&t);
}

Test(stream, byte_by_byte)
{
	struct two t = two_new();
	struct way out = { 0 }, back = { 0 };

	while (out.read < 3000 || back.read < 3000) {
		way_go(&out, t.side[0], t.side[1], 0, 3000);
		way_go(&back, t.side[1], t.side[0], 1, 3000);
		carry(t.side[0], t.side[1], 1);
		carry(t.side[1], t.side[0], 1);
	}
	two_end(&t);
}

/* Over sockets that take less than there is. */
static void socket_go(struct stream *s, int fd)
{
	static uint8_t bytes[STREAM_ROOM];
	size_t n;
	const uint8_t *out = stream_bytes(s, &n);
	ssize_t did = n ? send(fd, out, n, MSG_DONTWAIT) : 0;

	if (did > 0)
		stream_sent(s, (size_t)did);
	n = stream_room(s);
	did = n ? recv(fd, bytes, n, MSG_DONTWAIT) : 0;
	if (did > 0)
		cr_expect_eq(stream_take(s, bytes, (size_t)did), 0);
}

Test(stream, over_sockets)
{
	struct two t = two_new();
	struct way out = { 0 }, back = { 0 };
	int fd[2], small = 4096;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &small,
					sizeof(small)),
			     0);
	while (out.read < MANY || back.read < MANY) {
		way_go(&out, t.side[0], t.side[1], 0, MANY);
		way_go(&back, t.side[1], t.side[0], 1, MANY);
		socket_go(t.side[0], fd[0]);
		socket_go(t.side[1], fd[1]);
	}
	close(fd[0]);
	close(fd[1]);
	two_end(&t);
}

Test(stream, cannot_be_read_on_the_way)
{
	static const char text[] = "a text that nobody else is to see";
	struct two t = two_up();
	const uint8_t *bytes;
	size_t n;

	cr_assert_eq(stream_write(t.side[0], text, sizeof(text)),
		     (ssize_t)sizeof(text));
	bytes = stream_bytes(t.side[0], &n);
	cr_assert(n > sizeof(text));
	cr_expect(!memmem(bytes, n, text, 5));
	two_end(&t);
}

/* ---- bounds ---- */

Test(stream, is_not_read)
{
	struct two t = two_up();
	static uint8_t bytes[MANY];
	struct stream *from = t.side[0], *to = t.side[1];
	size_t total = 0, n;
	ssize_t did;

	do {
		while ((did = stream_write(from, bytes, sizeof(bytes))) > 0)
			total += (size_t)did;
		cr_assert_eq(did, -EAGAIN);
		stream_bytes(from, &n);
		cr_expect(n < STREAM_ROOM + 20000, "%zu", n);
	} while (carry(from, to, MANY));
	cr_expect_eq(stream_room(to), 0);
	cr_expect(total > STREAM_ROOM && total < 3 * STREAM_ROOM, "%zu", total);
	/* It goes on when it is read. */
	while (total) {
		did = stream_read(to, bytes, sizeof(bytes));
		cr_assert(did > 0 || did == -EAGAIN);
		total -= did > 0 ? (size_t)did : 0;
		carry(from, to, MANY);
	}
	two_end(&t);
}

Test(stream, nothing_before_the_peer_is_proved)
{
	struct two t = two_new();
	uint8_t byte;

	cr_expect_eq(stream_write(t.side[0], "x", 1), -EAGAIN);
	cr_expect_eq(stream_write(t.side[1], "x", 1), -EAGAIN);
	cr_expect_eq(stream_read(t.side[1], &byte, 1), -EAGAIN);
	two_end(&t);
}

/* ---- ends ---- */

Test(stream, is_closed)
{
	struct two t = two_up();
	char text[8];

	cr_assert_eq(stream_write(t.side[0], "last", 4), 4);
	stream_close(t.side[0]);
	stream_close(t.side[0]);
	cr_expect_eq(stream_write(t.side[0], "x", 1), -EPIPE);
	carry(t.side[0], t.side[1], MANY);
	stream_end(t.side[1]);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), 4);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), 0);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), 0);
	/* The other way is open still. */
	cr_assert_eq(stream_write(t.side[1], "back", 4), 4);
	stream_close(t.side[1]);
	carry(t.side[1], t.side[0], MANY);
	cr_expect_eq(stream_read(t.side[0], text, sizeof(text)), 4);
	cr_expect_eq(stream_read(t.side[0], text, sizeof(text)), 0);
	two_end(&t);
}

Test(stream, is_closed_before_it_is_up)
{
	struct two t = two_new();
	char text[8];

	stream_close(t.side[0]);
	shake(&t);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), 0);
	two_end(&t);
}

/* Whatever is cut off, wherever: that is not an end. */
Test(stream, is_cut_off)
{
	struct two t = two_up();
	char text[8];

	cr_assert_eq(stream_write(t.side[0], "first", 5), 5);
	carry(t.side[0], t.side[1], MANY);
	cr_assert_eq(stream_write(t.side[0], "second", 6), 6);
	carry(t.side[0], t.side[1], 10);
	stream_end(t.side[1]);
	cr_expect_eq(stream_room(t.side[1]), 0);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), 5);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), -ECONNRESET);
	cr_expect_eq(stream_write(t.side[1], text, 1), -ECONNRESET);
	two_end(&t);
	t = two_new();
	carry(t.side[0], t.side[1], 100);
	stream_end(t.side[1]);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), -ECONNRESET);
	two_end(&t);
}

/* ---- what others do to it ---- */

/* Takes what has come, which was tampered with: nothing of it is read. */
static void refuses(struct stream *to, const uint8_t *bytes, size_t n)
{
	uint8_t text[64];

	cr_assert_eq(stream_take(to, bytes, n), 0);
	cr_expect_eq(stream_read(to, text, sizeof(text)), -EPROTO);
	cr_expect_eq(stream_read(to, text, sizeof(text)), -EPROTO);
	cr_expect_eq(stream_write(to, text, 1), -EPROTO);
	cr_expect_eq(stream_room(to), 0);
	cr_expect(*stream_error(to));
}

#define TEXT   "twenty bytes of text"
#define LENGTH (5 + 20 + 1 + 16) /* of the record */

/* Two records of which one is altered, lost, copied, overtaken, moved. */
Test(stream, altered)
{
	for (size_t i = 0; i < LENGTH; i++) {
		struct two t = two_up();
		uint8_t bad[LENGTH];
		size_t n;

		/* The length, as something that never comes. */
		if (i == 3 || i == 4) {
			two_end(&t);
			continue;
		}
		cr_assert_eq(stream_write(t.side[0], TEXT, 20), 20);
		memcpy(bad, stream_bytes(t.side[0], &n), LENGTH);
		cr_assert_eq(n, LENGTH);
		bad[i] ^= 1;
		refuses(t.side[1], bad, LENGTH);
		two_end(&t);
	}
}

static void two_records(struct stream *s, uint8_t records[2 * LENGTH])
{
	size_t n;

	cr_assert_eq(stream_write(s, TEXT, 20), 20);
	cr_assert_eq(stream_write(s, TEXT, 20), 20);
	memcpy(records, stream_bytes(s, &n), 2 * LENGTH);
	cr_assert_eq(n, 2 * LENGTH);
}

Test(stream, lost)
{
	struct two t = two_up();
	uint8_t records[2 * LENGTH];

	two_records(t.side[0], records);
	refuses(t.side[1], records + LENGTH, LENGTH);
	two_end(&t);
}

Test(stream, copied)
{
	struct two t = two_up();
	uint8_t records[2 * LENGTH], text[64];

	two_records(t.side[0], records);
	cr_assert_eq(stream_take(t.side[1], records, LENGTH), 0);
	cr_expect_eq(stream_read(t.side[1], text, sizeof(text)), 20);
	refuses(t.side[1], records, LENGTH);
	two_end(&t);
}

Test(stream, sent_back)
{
	struct two t = two_up();
	uint8_t records[2 * LENGTH];

	two_records(t.side[0], records);
	refuses(t.side[0], records, LENGTH);
	two_end(&t);
}

Test(stream, of_another_connection)
{
	struct two t = two_up(), other = two_up();
	uint8_t records[2 * LENGTH];

	two_records(t.side[0], records);
	refuses(other.side[1], records, LENGTH);
	two_end(&t);
	two_end(&other);
}

Test(stream, plain_text)
{
	static const uint8_t hello[64] = "a hello of LNet";
	struct two t = two_new();

	cr_expect_eq(stream_take(t.side[1], hello, sizeof(hello)), -EPROTO);
	cr_expect(*stream_error(t.side[1]));
	cr_expect_eq(stream_room(t.side[1]), 0);
	two_end(&t);
}

Test(stream, too_long)
{
	/* the beginning of a record of 16 KiB */
	static uint8_t bytes[HANDSHAKE_MAX + 1] = { 0x16, 3, 1, 0x40, 0 };
	struct two t = two_new();

	cr_expect_eq(stream_take(t.side[1], bytes, sizeof(bytes)), -EMSGSIZE);
	two_end(&t);
}

Test(stream, of_another_authority)
{
	struct two t = two_new(), other = two_new();
	struct stream *client = other.side[0], *server = t.side[1];
	const uint8_t *bytes;
	uint8_t byte;
	size_t n;

	carry(client, server, MANY);
	bytes = stream_bytes(server, &n);
	cr_expect_eq(stream_take(client, bytes, n), -EACCES);
	bytes = stream_bytes(client, &n);
	cr_expect_eq(stream_take(server, bytes, n), -EACCES);
	cr_expect(!stream_is_up(client) && !stream_is_up(server));
	cr_expect_eq(stream_read(client, &byte, 1), -EACCES);
	two_end(&t);
	two_end(&other);
}

/* Whoever asks for new keys for ever, and does not take the answers, is
 * left. */
Test(stream, asks_for_keys)
{
	struct two t = two_up();
	struct handshake *raw =
		handshake_begin(HANDSHAKE_CLIENT, t.keys, NULL, "ulnet-stream");
	struct stream *server = stream_new(HANDSHAKE_SERVER, t.keys);
	const uint8_t *bytes;
	uint8_t text[8];
	ssize_t rc = -EAGAIN;
	size_t at = 0, n, most = 0;

	cr_assert(raw && server);
	cr_assert_eq(handshake_feed(raw, NULL, 0), 0);
	for (unsigned int i = 0; i < 2; i++) {
		bytes = handshake_bytes(raw, &n);
		cr_assert_eq(stream_take(server, bytes + at, n - at), 0);
		at = n;
		bytes = stream_bytes(server, &n);
		cr_assert_eq(handshake_feed(raw, bytes, n), 0);
		stream_sent(server, n);
	}
	cr_assert(stream_is_up(server));
	for (unsigned int i = 0; i < 20000 && rc == -EAGAIN; i++) {
		cr_assert_eq(SSL_key_update(raw->ssl, SSL_KEY_UPDATE_REQUESTED),
			     1);
		cr_assert_eq(SSL_do_handshake(raw->ssl), 1);
		bytes = handshake_bytes(raw, &n);
		cr_assert_eq(stream_take(server, bytes + at, n - at), 0);
		at = n;
		rc = stream_read(server, text, sizeof(text));
		stream_bytes(server, &n);
		most = MAX(most, n);
	}
	cr_expect_eq(rc, -EMSGSIZE);
	cr_expect(most < 3 * STREAM_ROOM);
	handshake_free(raw);
	stream_free(server);
	two_end(&t);
}

/* ---- tickets, and other protocols ---- */

/* A ticket would take the place of one that is used. */
Test(stream, gives_no_ticket)
{
	struct two t = two_new();
	size_t n;

	carry(t.side[0], t.side[1], MANY);
	carry(t.side[1], t.side[0], MANY);
	carry(t.side[0], t.side[1], MANY);
	cr_assert(stream_is_up(t.side[1]));
	(void)stream_bytes(t.side[1], &n);
	cr_expect_eq(n, 0);
	two_end(&t);
}

/* Returns the ticket of a handshake for calls. */
static struct ticket ticket_of_call(struct keys *k)
{
	struct handshake *h[2] = { handshake_new(HANDSHAKE_CLIENT, k, NULL),
				   handshake_new(HANDSHAKE_SERVER, k, NULL) };
	size_t sent[2] = { 0 }, n;
	struct ticket ticket;

	cr_assert(h[0] && h[1]);
	cr_assert_eq(handshake_feed(h[0], NULL, 0), 0);
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int side = i % 2;
		const uint8_t *bytes =
			handshake_bytes(h[side], &n) + sent[side];

		cr_assert_eq(handshake_feed(h[!side], bytes, n - sent[side]),
			     0);
		sent[side] = n;
	}
	cr_assert(handshake_ticket(h[0], &ticket));
	handshake_free(h[0]);
	handshake_free(h[1]);
	return ticket;
}

/* Carries the handshakes' bytes between a handshake and a stream. */
static void mixed(struct keys *k, const struct ticket *ticket, int rc)
{
	struct handshake *h = handshake_new(HANDSHAKE_CLIENT, k, ticket);
	struct stream *s = stream_new(HANDSHAKE_SERVER, k);
	const uint8_t *bytes;
	size_t n;

	cr_assert(h && s);
	cr_assert_eq(handshake_feed(h, NULL, 0), 0);
	bytes = handshake_bytes(h, &n);
	cr_expect_eq(stream_take(s, bytes, n), rc);
	cr_expect(strstr(stream_error(s), "something else"), "%s",
		  stream_error(s));
	bytes = stream_bytes(s, &n);
	cr_expect_eq(handshake_feed(h, bytes, n), rc);
	cr_expect(strstr(handshake_error(h), "something else"), "%s",
		  handshake_error(h));
	handshake_free(h);
	stream_free(s);
}

/* What is meant for calls does not open a stream, nor does its ticket. */
Test(stream, of_another_protocol)
{
	struct two t = two_new();
	struct ticket ticket = ticket_of_call(t.keys);

	mixed(t.keys, NULL, -EPROTO);
	mixed(t.keys, &ticket, -EPROTO);
	ticket_drop(&ticket);
	two_end(&t);
}

/* One who says nothing of what the handshake is for. */
Test(stream, of_no_protocol)
{
	struct two t = two_new();
	struct handshake *raw =
		handshake_begin(HANDSHAKE_CLIENT, t.keys, NULL, "ulnet-stream");
	const uint8_t *bytes;
	size_t n, at;

	cr_assert(raw);
	cr_assert_eq(SSL_set_alpn_protos(raw->ssl, NULL, 0), 0);
	cr_assert_eq(handshake_feed(raw, NULL, 0), 0);
	bytes = handshake_bytes(raw, &at);
	cr_assert_eq(stream_take(t.side[1], bytes, at), 0);
	bytes = stream_bytes(t.side[1], &n);
	cr_expect_eq(handshake_feed(raw, bytes, n), -EPROTO);
	/* It goes on all the same. */
	bytes = handshake_bytes(raw, &n);
	cr_expect_eq(stream_take(t.side[1], bytes + at, n - at), -EPROTO);
	cr_expect(!stream_is_up(t.side[1]));
	handshake_free(raw);
	two_end(&t);
}

/* What @n bytes cost on the wire, written one at a time. */
static size_t wire_of(struct two *t, unsigned int n)
{
	size_t wire = 0;

	for (unsigned int i = 0; i < n; i++) {
		const uint8_t byte = (uint8_t)i;
		uint8_t back = 0;

		cr_assert_eq(stream_write(t->side[0], &byte, 1), 1);
		wire += carry(t->side[0], t->side[1], MANY);
		cr_assert_eq(stream_read(t->side[1], &back, 1), 1);
		cr_assert_eq(back, byte);
	}
	return wire;
}

/* Each side takes new keys after so many records, and says so by a record of
 * its own; nobody notices else. */
Test(stream, keys_are_renewed)
{
	struct two t = two_up();
	size_t before = wire_of(&t, 32), one = before / 32;

	stream_renew_after(t.side[0], 0);
	cr_expect_gt(wire_of(&t, 32), before + 31 * one);
	stream_renew_after(t.side[0], 8);
	cr_expect_lt(wire_of(&t, 32), before + 8 * one);
	two_end(&t);
}
