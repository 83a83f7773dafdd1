/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile peers that connect: malformed requests and HELLOs. */
#include "tests/lnd/hostile.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- request ---- */

enum { CLOSES, REFUSES, GOES_ON };

static const struct patch requests[] = {
	{ "magic 0", 0, 4, 0, CLOSES },
	{ "magic of HTTP", 0, 4, 0x20544547, CLOSES },
	{ "magic of a protocol to come", 0, 4, 0x45726963, REFUSES },
	{ "magic of the ancients", 0, 4, 0xeebc0ded, CLOSES },
	{ "version 0", 4, 4, 0, REFUSES },
	{ "version 3", 4, 4, 3, REFUSES },
	{ "version in the other order", 4, 4, 0x01000000, REFUSES },
	{ "a NID nobody here has", 8, 8, TCP_NID(0x7f000009), CLOSES },
	{ "the NID of another node", 8, 8, TCP_NID(0x7f000006), CLOSES },
	{ "another net", 8, 8, UINT64_C(0x000200077f000005), CLOSES },
	{ "another type of net", 8, 8, UINT64_C(0x000500007f000005), CLOSES },
	{ "NID 0", 8, 8, 0, CLOSES },
	{ "any NID", 8, 8, UINT64_MAX, CLOSES },
	{ "0@lo", 8, 8, UINT64_C(0x0009000000000000), CLOSES },
	{ "a NID with its top byte set", 8, 8, UINT64_C(0x010200007f000005),
	  CLOSES },
	{ "nothing wrong", 0, 0, 0, GOES_ON },
};

static void expect_refusal(struct fx *fx, int fd)
{
	static const uint8_t no[16] = { 0x00, 0x71, 0xce, 0xac, 1 };
	uint8_t buf[16];

	expect(fx, hear(fd, buf, sizeof(buf)) == 0);
	expect(fx, memcmp(buf, no, sizeof(no)) == 0);
	expect(fx, hear(fd, buf, 1) == -ECONNRESET);
}

static void one_request(struct fx *fx, struct raw_peer *s,
			const struct patch *p)
{
	uint8_t buf[256], byte;
	struct sock_hello h = { 0 };
	int fd = raw_peer_connect(s);

	if (!expect(fx, fd >= 0))
		return;
	raw_peer_request(s, buf);
	raw_peer_number(s, buf + p->at, p->width, p->value);
	say(fd, buf, 16);
	if (p->then == GOES_ON) {
		say(fd, buf, raw_peer_hello(s, SOCK_CONTROL, buf));
		expect(fx, hear_hello(fd, &h) == 0 && h.type == SOCK_CONTROL);
		/* The node must have noticed the end of this connection before
		 * another one of its type is opened, or it would refuse that.
		 */
		shutdown(fd, SHUT_WR);
		expect(fx, hear(fd, &byte, 1) == -ECONNRESET);
	} else if (p->then == REFUSES) {
		expect_refusal(fx, fd);
	} else {
		expect(fx, hear(fd, &byte, 1) == -ECONNRESET);
	}
	close(fd);
}

static void bad_requests(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	each_patch(fx, &s, requests, ARRAY_SIZE(requests), one_request);
	visit_end(fx, &bystander, &s);
}

/* The long form of a NID has 20 bytes: size, type, net, address. */
static void large_requests(struct fx *fx)
{
	static const struct {
		const char *name;
		uint8_t nid[20];
		bool good;
	} all[] = {
		{ "IPv6", { 12, 2, 0, 0, 0xfd, 0x77, [19] = 1 }, false },
		{ "size 200", { 200, 2, 0, 0, 127, 0, 0, 5 }, false },
		{ "more behind IPv4",
		  { 0, 2, 0, 0, 127, 0, 0, 5, [19] = 1 },
		  false },
		{ "ANY", { 0, 0xff }, false },
		{ "nothing wrong", { 0, 2, 0, 0, 127, 0, 0, 5 }, true },
	};
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		unsigned int before = fx->failures;
		int fd = raw_peer_connect(&s);
		uint8_t buf[128];
		struct sock_hello h = { 0 };

		raw_peer_request(&s, buf);
		raw_peer_number(&s, buf + 4, 4, 2);
		memcpy(buf + 8, all[i].nid, 20);
		raw_peer_hello(&s, SOCK_CONTROL, buf + 28);
		say(fd, buf, 28 + SOCK_HELLO_SIZE);
		if (all[i].good)
			expect(fx, hear_hello(fd, &h) == 0);
		else
			expect(fx, hear(fd, buf, 1) == -ECONNRESET);
		close(fd);
		say_which(fx, before, all[i].name);
	}
	visit_end(fx, &bystander, &s);
}

/* ---- HELLO ---- */

enum { NO_ANSWER, NONE_V3, OPENS };

static const struct patch hellos[] = {
	{ "magic 0", 0, 4, 0, NO_ANSWER },
	{ "magic of a request", 0, 4, 0xacce7100, NO_ANSWER },
	{ "magic of the ancients", 0, 4, 0xeebc0ded, NONE_V3 },
	{ "version 0", 4, 4, 0, NONE_V3 },
	{ "version 1", 4, 4, 1, NONE_V3 },
	{ "version 99", 4, 4, 99, NONE_V3 },
	{ "another's NID", 8, 8, TCP_NID(0x7f000008), NO_ANSWER },
	{ "the sane peer's NID", 8, 8, TCP_NID(0x7f000006), NO_ANSWER },
	{ "our own NID", 8, 8, TCP_NID(0x7f000005), NO_ANSWER },
	{ "NID of another net", 8, 8, UINT64_C(0x000200077f000007), NO_ANSWER },
	{ "NID 0", 8, 8, 0, NO_ANSWER },
	{ "any NID", 8, 8, UINT64_MAX, NO_ANSWER },
	{ "0@lo", 8, 8, UINT64_C(0x0009000000000000), NO_ANSWER },
	{ "for somebody else", 16, 8, TCP_NID(0x7f000008), OPENS },
	{ "for nobody", 16, 8, 0, OPENS },
	{ "type NONE", 48, 4, 0xffffffff, NO_ANSWER },
	{ "type ANY", 48, 4, 0, OPENS },
	{ "type BULK_IN", 48, 4, 2, OPENS },
	{ "type BULK_OUT", 48, 4, 3, OPENS },
	{ "type 4", 48, 4, 4, NO_ANSWER },
	{ "type 99", 48, 4, 99, NO_ANSWER },
	{ "type -2", 48, 4, 0xfffffffe, NO_ANSWER },
	{ "17 addresses", 52, 4, 17, NO_ANSWER },
	{ "4 G addresses", 52, 4, 0xffffffff, NO_ANSWER },
	{ "incarnation 0", 32, 8, 0, OPENS },
	{ "nothing wrong", 0, 0, 0, OPENS },
};

static void expect_hello_answer(struct fx *fx, int fd, int then)
{
	struct sock_hello h = { 0 };
	uint8_t byte;

	if (then == NO_ANSWER) {
		expect(fx, hear(fd, &byte, 1) == -ECONNRESET);
		return;
	}
	if (!expect(fx, hear_hello(fd, &h) == 0))
		return;
	expect(fx, h.version == 3);
	expect(fx, lnet_nid_eq(&h.src_nid, &fx->rig->nid[0]));
	expect(fx, (h.type == SOCK_NONE) == (then == NONE_V3));
	if (then == NONE_V3)
		expect(fx, hear(fd, &byte, 1) == -ECONNRESET);
}

static void one_hello(struct fx *fx, struct raw_peer *s, const struct patch *p)
{
	int fd = raw_peer_connect(s);
	uint8_t buf[128];
	size_t n;

	if (!expect(fx, fd >= 0))
		return;
	n = raw_peer_request(s, buf);
	raw_peer_hello(s, SOCK_CONTROL, buf + n);
	raw_peer_number(s, buf + n + p->at, p->width, p->value);
	say(fd, buf, n + SOCK_HELLO_SIZE);
	expect_hello_answer(fx, fd, p->then);
	close(fd);
	/* Waits until the node has dropped the last connection. */
	expect(fx, raw_peer_has_conns(fx, s, 0));
}

static void bad_hellos(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	each_patch(fx, &s, hellos, ARRAY_SIZE(hellos), one_hello);
	visit_end(fx, &bystander, &s);
}

/* A HELLO may list 16 addresses, which the node ignores; if one of them is 0,
 * the node closes the connection. */
static void hello_addresses(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (unsigned int zero = 0; zero <= 16; zero++) {
		int fd = raw_peer_connect(&s);
		uint8_t buf[256];
		size_t n = raw_peer_request(&s, buf);
		uint8_t *hello = buf + n;

		raw_peer_hello(&s, SOCK_CONTROL, hello);
		raw_peer_number(&s, hello + 52, 4, 16);
		for (unsigned int i = 0; i < 16; i++)
			raw_peer_number(&s, hello + 56 + 4 * i, 4,
					i == zero ? 0 : 0x7f000010 + i);
		say(fd, buf, n + 56 + 64);
		expect_hello_answer(fx, fd, zero == 16 ? OPENS : NO_ANSWER);
		if (zero == 16)
			expect(fx, raw_peer_pings(fx, &s, fd));
		close(fd);
	}
	visit_end(fx, &bystander, &s);
}

/* Version 4 is answered in version 4, whose frames are larger. */
static void version_4(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	int fd;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (s.swap = false;; s.swap = true) {
		s.version = 4;
		fd = raw_peer_open(&s, SOCK_CONTROL);
		if (!expect(fx, fd >= 0))
			break;
		expect(fx, raw_peer_pings(fx, &s, fd));
		expect(fx, raw_peer_puts(fx, &s, fd, 70000));
		close(fd);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
		if (s.swap)
			break;
	}
	visit_end(fx, &bystander, &s);
}

/* ---- more than one connection ---- */

/* A peer may open one connection of each type, as conns_per_peer says; more are
 * refused. */
static void too_many(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	if (raw_peer_open_all(fx, &s, fd)) {
		for (int i = 0; i < 3; i++)
			expect(fx, raw_peer_open(&s, SOCK_CONTROL + i) ==
					   -EALREADY);
		expect(fx, raw_peer_pings(fx, &s, fd[0]));
		for (int i = 1; i < 3; i++)
			expect(fx, is_silent(fd[i]));
	}
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

static void reborn(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	/* as another process, and in another version */
	for (unsigned int k = 0; k < 2; k++) {
		if (raw_peer_open_all(fx, &s, fd)) {
			s.incarnation += k == 0;
			s.version -= k == 1;
			expect(fx,
			       raw_peer_open(&s, SOCK_CONTROL) == -EALREADY);
			expect(fx, hear_ends(fd, 3));
		}
		close_all(fd, 3);
		if (raw_peer_open_all(fx, &s, fd))
			expect(fx, raw_peer_pings(fx, &s, fd[0]));
		close_all(fd, 3);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
	}
	visit_end(fx, &bystander, &s);
}

/* ---- cut, in pieces, at random ---- */

static size_t good_greeting(const struct raw_peer *s, uint8_t *buf)
{
	size_t n = raw_peer_request(s, buf);

	return n + raw_peer_hello(s, SOCK_CONTROL, buf + n);
}

static void cut_greetings(struct fx *fx)
{
	uint8_t buf[128];
	struct raw_peer s;
	struct bystander bystander;
	size_t n;

	if (!visit_begin(fx, &bystander, &s))
		return;
	n = good_greeting(&s, buf);
	for (size_t cut = 0; cut < n; cut++) {
		int fd = raw_peer_connect(&s);

		say(fd, buf, cut);
		close(fd);
	}
	visit_end(fx, &bystander, &s);
}

static void greeting_in_pieces(struct fx *fx)
{
	struct sock_hello h = { 0 };
	uint8_t buf[128];
	struct raw_peer s;
	struct bystander bystander;
	size_t n;
	int fd;

	if (!visit_begin(fx, &bystander, &s))
		return;
	n = good_greeting(&s, buf);
	fd = raw_peer_connect(&s);
	say_slowly(fd, buf, n);
	expect(fx, hear_hello(fd, &h) == 0 && h.type == SOCK_CONTROL);
	expect(fx, raw_peer_pings(fx, &s, fd));
	close(fd);
	visit_end(fx, &bystander, &s);
}

/* Sends correct bytes up to some offset, then random ones; or correct bytes
 * with some bits flipped. */
static bool random_greeting(struct fx *fx, struct raw_peer *s, unsigned int k,
			    uint64_t *state)
{
	enum { LONGEST = 700 };
	uint8_t buf[1024] = { 0 };
	int fd = raw_peer_connect(s);
	size_t n, good;

	if (!expect(fx, fd >= 0))
		return false;
	s->swap = hostile_random(state) % 4 == 0;
	n = good_greeting(s, buf);
	good = hostile_random(state) % (n + 1);
	if (k % 2) {
		turn_bits(state, buf, n, 3);
	} else {
		fill_randomly(state, buf + good, LONGEST);
		n = good + LONGEST;
	}
	say(fd, buf, n);
	/* half of the peers wait for an answer, if there is any */
	if (k % 4 < 2)
		shutdown(fd, SHUT_WR);
	if (k % 8 < 2)
		expect(fx, hear_end(fd));
	close(fd);
	return true;
}

static void random_greetings(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	uint64_t seed;

	if (!visit_begin(fx, &bystander, &s))
		return;
	seed = each_random(fx, &s, 300, random_greeting);
	visit_end(fx, &bystander, &s);
	say_seed(fx, seed);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "requests that are none", 0, bad_requests },
	{ "requests with 20 bytes of NID", 0, large_requests },
	{ "HELLOs that are none", 0, bad_hellos },
	{ "HELLOs with addresses", 0, hello_addresses },
	{ "HELLO of version 4", 0, version_4 },
	{ "more connections than are wanted", 0, too_many },
	{ "another incarnation, another version", 0, reborn },
	{ "greetings cut anywhere", 0, cut_greetings },
	{ "a greeting byte by byte", 0, greeting_in_pieces },
	{ "random bytes in a greeting", 0, random_greetings },
};

const struct topic topic_greeting = { list, ARRAY_SIZE(list) };
