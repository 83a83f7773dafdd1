/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile peers that the node connects to: their answers, and the race when
 * both connect at once. */
#include "tests/lnd/hostile.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRIES 3 /* refusals that the node takes for "try later" */

/* Begins a visit of a peer that listens. */
static bool begin(struct fx *fx, struct bystander *bystander,
		  struct raw_peer *s)
{
	return visit_begin(fx, bystander, s) &&
	       expect(fx, raw_peer_listen(s) == 0);
}

static bool is_forgotten(const struct census *c, unsigned int arg)
{
	(void)arg;
	return c->peers == 0;
}

/* Has the node forgotten the peer, even its failures? */
static bool forgotten(struct fx *fx, const struct raw_peer *s)
{
	return expect(fx, census_wait(fx, fx->rig->node[0], &s->nid,
				      is_forgotten, 0));
}

static struct box *put_to(struct fx *fx, const struct raw_peer *s,
			  uint32_t size, bool ack, uint64_t timeout)
{
	struct box *b = box_new(fx, size, CUT_NONE);

	box_fill(b, 9);
	if (box_bind(b, 0, ack ? 2 : 1, timeout))
		box_put_to(b, &s->nid, ack, PORTAL, 9, HDR(9, 0));
	return b;
}

/* Waits until the node connects, but only while @b's operation is under way. */
static int next_call(struct fx *fx, struct raw_peer *s, struct box *b)
{
	for (uint64_t t = 0; t < fx_patience(fx); t += 100) {
		if (raw_peer_is_called(s))
			return raw_peer_accept(s);
		if (fx_read(fx, &b->terminals))
			return -ENOENT;
		fx_run(fx, 100);
	}
	return -ETIMEDOUT;
}

/* Reads request and HELLO; @type is SOCK_NONE if that fails. */
static int hear_both(struct raw_peer *s, int fd, enum sock_type *type)
{
	struct ulnet_nid target;
	struct sock_hello h = { 0 };
	int rc = hear_request(fd, &target);

	*type = SOCK_NONE;
	if (!rc && !lnet_nid_eq(&target, &s->nid))
		return -EPROTO;
	if (!rc)
		rc = hear_hello(fd, &h);
	if (!rc)
		*type = sock_type_invert(h.type);
	return rc;
}

static void expect_not_delivered(struct fx *fx, struct box *b)
{
	expect(fx, fx_wait(fx, &b->terminals, 1));
	box_end(b);
	expect(fx, b->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
	expect(fx, b->terminal.status != 0);
}

/* Fails unless @f is @b's PUT and @b gets its SEND. */
static void expect_put_in(struct fx *fx, const struct frame *f, struct box *b)
{
	expect(fx, f->hdr.type == SOCK_MSG_LNET);
	expect(fx, f->lnet.type == LNET_MSG_PUT && f->lnet.match_bits == 9);
	expect(fx, fx_wait(fx, &b->n[LNET_EVENT_SEND], 1));
}

/* The same of the next frame on @fd. */
static void expect_put(struct fx *fx, struct raw_peer *s, int fd, struct box *b)
{
	struct frame f;

	if (expect(fx, raw_peer_hear(s, fd, &f) == 0))
		expect_put_in(fx, &f, b);
}

/* ---- one number is wrong ---- */

enum { FAILS, RETRIED, OPENS };

static const struct patch answers[] = {
	{ "magic 0", 0, 4, 0, FAILS },
	{ "magic of a request", 0, 4, 0xacce7100, FAILS },
	{ "magic of the ancients", 0, 4, 0xeebc0ded, FAILS },
	{ "version 0", 4, 4, 0, FAILS },
	{ "version 1", 4, 4, 1, FAILS },
	{ "another version", 4, 4, 2, FAILS },
	{ "version 99", 4, 4, 99, FAILS },
	{ "another's NID", 8, 8, TCP_NID(0x7f000008), FAILS },
	{ "the sane peer's NID", 8, 8, TCP_NID(0x7f000006), FAILS },
	{ "our own NID", 8, 8, TCP_NID(0x7f000005), FAILS },
	{ "any NID", 8, 8, UINT64_MAX, FAILS },
	{ "NID 0", 8, 8, 0, FAILS },
	{ "for somebody else", 16, 8, TCP_NID(0x7f000008), OPENS },
	{ "type ANY", 48, 4, 0, FAILS },
	{ "type BULK_IN", 48, 4, 2, FAILS },
	{ "type 4", 48, 4, 4, FAILS },
	{ "17 addresses", 52, 4, 17, FAILS },
	{ "4 G addresses", 52, 4, 0xffffffff, FAILS },
	{ "nothing wrong", 0, 0, 0, OPENS },
};

/* attempts go on until the message's deadline */
static const struct patch refuses[] = {
	{ "type NONE", 48, 4, 0xffffffff, RETRIED },
};

/* An attempt that takes long may yield to others before it is answered, and be
 * made again: then a connection ends without having opened, and one more
 * comes. */
static void one_answer(struct fx *fx, struct raw_peer *s, const struct patch *p)
{
	struct box *b = put_to(fx, s, 100, false, fx_patience(fx));
	unsigned int calls = 0;
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	enum sock_type type;
	struct frame f;
	int fd;

	while ((fd = next_call(fx, s, b)) >= 0) {
		expect(fx, hear_both(s, fd, &type) == 0);
		calls++;
		raw_peer_hello(s, type, buf);
		raw_peer_number(s, buf + p->at, p->width, p->value);
		say(fd, buf, SOCK_HELLO_SIZE);
		if (p->then == OPENS && !raw_peer_hear(s, fd, &f))
			break;
		expect(fx, hear_end(fd));
		close(fd);
	}
	if (p->then == OPENS) {
		if (expect(fx, fd >= 0))
			expect_put_in(fx, &f, b);
		close(fd);
		/* the node may be opening its other connections */
		shutdown(s->listener, SHUT_RDWR);
		close(s->listener);
		expect(fx, raw_peer_listen(s) == 0);
	} else {
		expect_not_delivered(fx, b);
		expect(fx, calls > (p->then == RETRIED));
		if (p->then == FAILS)
			expect(fx, b->terminal.elapsed < fx_patience(fx));
	}
	forgotten(fx, s);
}

static void answers_with(struct fx *fx, const struct patch *list,
			 unsigned int n)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!begin(fx, &bystander, &s))
		return;
	each_patch(fx, &s, list, n, one_answer);
	visit_end(fx, &bystander, &s);
}

static void bad_answers(struct fx *fx)
{
	answers_with(fx, answers, ARRAY_SIZE(answers));
}

static void refusals(struct fx *fx)
{
	answers_with(fx, refuses, ARRAY_SIZE(refuses));
}

/* ---- no answer, or a part of one ---- */

static void ends_early(struct fx *fx)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	enum sock_type type;
	struct raw_peer s;
	struct bystander bystander;

	if (!begin(fx, &bystander, &s))
		return;
	/* cut at once; after the node's greeting; within the answer */
	for (int cut = -1; cut < SOCK_HELLO_SIZE; cut++) {
		struct box *b = put_to(fx, &s, 100, false, fx_patience(fx));
		int fd = next_call(fx, &s, b);

		if (!expect(fx, fd >= 0))
			break;
		if (cut >= 0 && expect(fx, hear_both(&s, fd, &type) == 0)) {
			raw_peer_hello(&s, type, buf);
			say(fd, buf, (size_t)cut);
		}
		close(fd);
		expect_not_delivered(fx, b);
		forgotten(fx, &s);
	}
	visit_end(fx, &bystander, &s);
}

/* The peer is connected to, and says nothing. */
static void silence(struct fx *fx)
{
	struct box *by_timeout, *by_deadline;
	struct raw_peer s;
	struct bystander bystander;
	int fd;

	if (!begin(fx, &bystander, &s))
		return;
	by_timeout = put_to(fx, &s, 100, false, fx_patience(fx));
	by_deadline = put_to(fx, &s, 100, true, SHORT_TIMEOUT);
	fd = next_call(fx, &s, by_timeout);
	expect_not_delivered(fx, by_deadline);
	expect(fx, by_deadline->terminal.status == -ETIMEDOUT);
	bystander_goes_on(fx, &bystander);
	expect_not_delivered(fx, by_timeout);
	expect(fx, by_timeout->terminal.elapsed < fx_patience(fx) / 2);
	expect(fx, hear_end(fd));
	close(fd);
	forgotten(fx, &s);
	visit_end(fx, &bystander, &s);
}

static bool random_answer(struct fx *fx, struct raw_peer *s, unsigned int k,
			  uint64_t *state)
{
	struct box *b = put_to(fx, s, 100, false, fx_patience(fx));
	int fd = next_call(fx, s, b);
	enum sock_type type;
	uint8_t buf[512];

	if (!expect(fx, fd >= 0))
		return false;
	expect(fx, hear_both(s, fd, &type) == 0);
	fill_randomly(state, buf, sizeof(buf));
	if (k % 2) {
		/* never a correct HELLO */
		raw_peer_hello(s, SOCK_BULK_IN, buf);
		turn_bits(state, buf, 48, 1);
	}
	say(fd, buf, sizeof(buf));
	close(fd);
	expect_not_delivered(fx, b);
	forgotten(fx, s);
	return true;
}

static void random_answers(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	uint64_t seed;

	if (!begin(fx, &bystander, &s))
		return;
	seed = each_random(fx, &s, 150, random_answer);
	visit_end(fx, &bystander, &s);
	say_seed(fx, seed);
}

/* ---- another version ---- */

/* Answers the first connection with NONE and @version, and uses that version
 * from then on. */
static void in_version(struct fx *fx, struct raw_peer *s, uint32_t version)
{
	struct box *b = put_to(fx, s, 100, false, fx_patience(fx));
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	enum sock_type type;
	struct sock_hello h = { 0 };
	struct ulnet_nid target;
	int fd[3];

	fd[0] = next_call(fx, s, b);
	if (!expect(fx, fd[0] >= 0))
		return;
	expect(fx, hear_both(s, fd[0], &type) == 0);
	s->version = version;
	say(fd[0], buf, raw_peer_hello(s, SOCK_NONE, buf));
	expect(fx, hear_end(fd[0]));
	close(fd[0]);
	for (int i = 0; i < 3; i++) {
		fd[i] = raw_peer_accept(s);
		if (!expect(fx, fd[i] >= 0))
			return;
		expect(fx, hear_request(fd[i], &target) == 0);
		expect(fx, hear_hello(fd[i], &h) == 0);
		expect(fx, h.version == version);
		type = sock_type_invert(h.type);
		say(fd[i], buf, raw_peer_hello(s, type, buf));
		if (i == 0)
			expect_put(fx, s, fd[0], b);
	}
	raw_peer_pings(fx, s, fd[0]);
	close_all(fd, 3);
	forgotten(fx, s);
}

static void other_versions(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!begin(fx, &bystander, &s))
		return;
	in_version(fx, &s, 2);
	s.version = 3;
	in_version(fx, &s, 4);
	visit_end(fx, &bystander, &s);
}

/* The peer rejects each version that it is offered. */
static void fickle(struct fx *fx)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];
	enum sock_type type;
	struct raw_peer s;
	struct bystander bystander;
	unsigned int calls = 0;
	struct box *b;
	int fd;

	if (!begin(fx, &bystander, &s))
		return;
	b = put_to(fx, &s, 100, false, fx_patience(fx));
	while ((fd = next_call(fx, &s, b)) >= 0 && calls++ < 100) {
		expect(fx, hear_both(&s, fd, &type) == 0);
		s.version = calls % 2 ? 2 : 3;
		say(fd, buf, raw_peer_hello(&s, SOCK_NONE, buf));
		expect(fx, hear_end(fd));
		close(fd);
	}
	expect(fx, calls == RETRIES + 1);
	expect_not_delivered(fx, b);
	forgotten(fx, &s);
	visit_end(fx, &bystander, &s);
}

/* The peer has another incarnation on each of its connections. */
static void many_lives(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	enum sock_type type;
	struct box *b;
	int fd[4];

	if (!begin(fx, &bystander, &s))
		return;
	b = put_to(fx, &s, 100, false, fx_patience(fx));
	fd[0] = raw_peer_answer(&s, &type);
	expect_put(fx, &s, fd[0], b);
	s.incarnation++;
	fd[1] = raw_peer_answer(&s, &type);
	/* The first connection is of an older incarnation, the second one was
	 * late. */
	expect(fx, hear_end(fd[0]));
	expect(fx, hear_end(fd[1]));
	close_all(fd, 2);
	forgotten(fx, &s);
	b = put_to(fx, &s, 100, false, fx_patience(fx));
	for (int i = 0; i < 3; i++)
		fd[i] = raw_peer_answer(&s, &type);
	expect_put(fx, &s, fd[0], b);
	raw_peer_pings(fx, &s, fd[0]);
	close_all(fd, 3);
	forgotten(fx, &s);
	visit_end(fx, &bystander, &s);
}

/* ---- after it ---- */

/* The peer was connected to, and then sends nonsense: the same happens as if it
 * had connected. */
static void nonsense(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!begin(fx, &bystander, &s))
		return;
	for (int k = 0; k < 3; k++) {
		struct box *b = put_to(fx, &s, 100, true, fx_patience(fx));
		uint8_t junk[500];
		enum sock_type type;
		struct frame f;
		int fd[3];

		memset(junk, 0x55, sizeof(junk));
		for (int i = 0; i < 3; i++) {
			fd[i] = raw_peer_answer(&s, &type);
			expect(fx, fd[i] >= 0);
		}
		expect(fx, raw_peer_hear(&s, fd[0], &f) == 0);
		expect(fx, raw_peer_has_conns(fx, &s, 3));
		say(fd[k], junk, sizeof(junk));
		expect(fx, hear_ends(fd, 3));
		close_all(fd, 3);
		box_end(b);
		expect(fx, b->outcomes[LNET_OUTCOME_UNKNOWN] == 1);
		forgotten(fx, &s);
	}
	visit_end(fx, &bystander, &s);
}

/* ---- both connect at once ---- */

/* Takes the next connection of the node on which a HELLO comes. */
static int next_hello(struct raw_peer *s, enum sock_type *type)
{
	int fd;

	while ((fd = raw_peer_accept(s)) >= 0 && hear_both(s, fd, type))
		close(fd);
	return fd;
}

static void answer(struct raw_peer *s, int fd, enum sock_type type)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	say(fd, buf, raw_peer_hello(s, type, buf));
}

/* Answers the HELLO of @type that has come on @fd, and hears *@f. The node's
 * attempt may yield to others before it is answered, and be made again: then
 * another connection comes. Returns the one that opens, or -errno. */
static int answer_and_hear(struct raw_peer *s, int fd, enum sock_type type,
			   struct frame *f)
{
	while (fd >= 0) {
		answer(s, fd, type);
		if (!raw_peer_hear(s, fd, f))
			break;
		close(fd);
		fd = next_hello(s, &type);
	}
	return fd;
}

static void refuse(struct fx *fx, struct raw_peer *s, int fd)
{
	answer(s, fd, SOCK_NONE);
	expect(fx, hear_end(fd));
	close(fd);
}

/* The connections of a race: the first one, and then those that the node has
 * opened because they were missing, some of which may have ended. */
struct opened {
	int fd[16];
	unsigned int n;
};

static void answer_next(struct fx *fx, struct raw_peer *s, struct opened *o)
{
	enum sock_type type;
	int fd = raw_peer_accept(s);

	if (fd < 0 || hear_both(s, fd, &type)) {
		close(fd);
	} else if (type == SOCK_CONTROL) {
		/* of an attempt that has yielded */
		refuse(fx, s, fd);
	} else if (expect(fx, o->n < ARRAY_SIZE(o->fd))) {
		answer(s, fd, type);
		o->fd[o->n++] = fd;
	}
}

/* Answers until the node has three connections. Any attempt may yield to others
 * and be made again. */
static void answer_bulk(struct fx *fx, struct raw_peer *s, struct opened *o)
{
	struct census c = { 0 };

	for (uint64_t waited = 0; waited < fx_patience(fx); waited += 1000) {
		while (raw_peer_is_called(s))
			answer_next(fx, s, o);
		census_take(fx->rig->node[0], &s->nid, &c);
		if (census_conns_are(&c, 3))
			return;
		fx_run(fx, 1000);
	}
	expect(fx, false);
}

/* The node has accepted @own while its attempt @fd was not answered: a NID that
 * @wins may connect at any time, another one only when the attempt has ended by
 * itself. */
static void own_is_used(struct fx *fx, struct raw_peer *s, int fd, int own,
			bool wins, struct box *b)
{
	if (!wins)
		expect(fx, hear_end(fd));
	expect_put(fx, s, own, b);
	refuse(fx, s, fd);
}

static void race(struct fx *fx, const char *nid, bool it_wins)
{
	enum sock_type type;
	struct raw_peer s;
	struct bystander bystander;
	struct frame f;
	struct opened o = { .n = 1 };
	struct box *b;
	int fd;

	if (!visit_begin(fx, &bystander, &s))
		return;
	if (!expect(fx, lnet_nid_parse(nid, &s.nid) == 0) ||
	    !expect(fx, raw_peer_listen(&s) == 0))
		return;
	b = put_to(fx, &s, 100, false, fx_patience(fx));
	fd = next_hello(&s, &type);
	o.fd[0] = raw_peer_open(&s, SOCK_CONTROL);
	if (o.fd[0] >= 0) {
		own_is_used(fx, &s, fd, o.fd[0], it_wins, b);
	} else {
		expect(fx, o.fd[0] == -EALREADY && !it_wins);
		o.fd[0] = answer_and_hear(&s, fd, type, &f);
		if (!expect(fx, o.fd[0] >= 0))
			return;
		expect_put_in(fx, &f, b);
	}
	answer_bulk(fx, &s, &o);
	expect(fx, !raw_peer_is_called(&s));
	raw_peer_pings(fx, &s, o.fd[0]);
	close_all(o.fd, o.n);
	forgotten(fx, &s);
	visit_end(fx, &bystander, &s);
}

static void race_lower(struct fx *fx)
{
	race(fx, "127.0.0.3@tcp", false);
}

static void race_higher(struct fx *fx)
{
	race(fx, "127.0.0.7@tcp", true);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "answers with wrong numbers", 0, bad_answers },
	{ "answers that refuse", HASTY, refusals },
	{ "answers that end early", 0, ends_early },
	{ "no answer", HASTY, silence },
	{ "random answers", 0, random_answers },
	{ "answers in other versions", 0, other_versions },
	{ "it likes no version", 0, fickle },
	{ "another incarnation on each connection", 0, many_lives },
	{ "nonsense after the answer", 0, nonsense },
	{ "race with a lower NID", 0, race_lower },
	{ "race with a higher NID", 0, race_higher },
};

const struct topic topic_answers = { list, ARRAY_SIZE(list) };
