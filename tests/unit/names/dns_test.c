/* SPDX-License-Identifier: BSD-3-Clause */
/* What DNS answers, and what else comes from a name server that is broken,
 * hostile or silent, on a real node that asks the test's own name server. */
#include <ctype.h>
#include <errno.h>

#include "base/util.h"
#include "names/resolver.h"
#include "tests/unit/names/name_server.h"
#include "tests/unit/names/told.h"
#include "ulnet/lnet.h"

static struct lnet *node;

static void begin(void)
{
	struct ulnet_conf conf;

	name_server_begin();
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_names_open(node), 0);
}

static void end(void)
{
	lnet_close(node);
	name_server_end();
}

/* ---- answers ---- */

/* An answer that is being made, in the place of the question. */
struct reply {
	unsigned char *m;
	size_t n;
};

static struct reply reply_to(unsigned char *m)
{
	m[2] = 0x84 | (m[2] & 1);
	m[3] = 0x80;
	memset(m + 6, 0, 6); /* no records */
	return (struct reply){ m, question_end(m) };
}

static void put(struct reply *r, const void *from, size_t n)
{
	cr_assert_leq(r->n + n, ANSWER_MAX);
	memcpy(r->m + r->n, from, n);
	r->n += n;
}

static void put16(struct reply *r, unsigned int v)
{
	const unsigned char b[] = { (unsigned char)(v >> 8), (unsigned char)v };

	put(r, b, sizeof(b));
}

/* A record of the question's name, with a time to live of an hour. */
static void put_record(struct reply *r, unsigned int type, const void *data,
		       size_t n)
{
	put16(r, 0xc00c);
	put16(r, type);
	put16(r, DNS_IN);
	put16(r, 0);
	put16(r, 3600);
	put16(r, (unsigned int)n);
	put(r, data, n);
	r->m[7]++;
}

/* An SRV record. @host is a name as in a message: "\3two\7example". */
static void put_srv(struct reply *r, unsigned int priority, unsigned int weight,
		    unsigned int port, const char *host)
{
	unsigned char data[256];
	struct reply d = { data, 0 };

	put16(&d, priority);
	put16(&d, weight);
	put16(&d, port);
	put(&d, host, strlen(host) + 1);
	put_record(r, DNS_SRV, data, d.n);
}

#define ONE   "\3one\7example"
#define TWO   "\3two\7example"
#define THREE "\5three\7example"

/* The hosts one, two and three are 10.0.0.1, .2 and .3. */
static void put_host(struct reply *r, const char *name)
{
	unsigned char a[] = { 10, 0, 0, 1 };

	if (question_type(r->m) != DNS_A)
		return;
	a[3] = !strcmp(name, "two.example")   ? 2
	       : !strcmp(name, "three.example") ? 3
						: 1;
	put_record(r, DNS_A, a, sizeof(a));
}

/* ---- what names stand for ---- */

static void await(name_server_fn answer, unsigned int times)
{
	uint64_t until = lnet_now(node, 0) + UINT64_C(120000000000); /* ns */

	while (told.times < times) {
		cr_assert_lt(lnet_now(node, 0), until, "nothing was told");
		name_server_serve(answer);
		lnet_poll(node, 0);
	}
}

/* Looks up @text, and waits until it is told. */
static void look_up(const char *text, name_server_fn answer)
{
	struct ulnet_name *name;

	memset(&told, 0, sizeof(told));
	cr_assert_eq(lnet_name_open(node, 0, text, tell, NULL, &name, NULL), 0);
	await(answer, 1);
	lnet_name_close(name);
}

static const unsigned char ipv6[16] = { 0xfd, [15] = 1 };

static size_t answer_ipv6(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);
	char name[256];

	(void)n;
	if (question_type(m) == DNS_AAAA)
		put_record(&r, DNS_AAAA, ipv6, sizeof(ipv6));
	else if (!strcmp(question_name(m, name), "both.example"))
		put_host(&r, name);
	return r.n;
}

/* c-ares puts first what this host can reach (RFC 6724). */
Test(dns, ipv6_addresses_are_nids_like_others)
{
	begin();
	look_up("six.example:7000", answer_ipv6);
	cr_assert_eq(told.status, 0, "%s", told.why);
	cr_assert_str_eq(told.servers, "fd00::1@tcp 7000 0;");
	look_up("both.example", answer_ipv6);
	cr_assert(strstr(told.servers, "fd00::1@tcp 0 0;"), "%s", told.servers);
	cr_assert(strstr(told.servers, "10.0.0.1@tcp 0 0;"), "%s",
		  told.servers);
	end();
}

static size_t answer_services(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);
	char name[256];

	(void)n;
	question_name(m, name);
	if (question_type(m) == DNS_SRV) {
		put_srv(&r, 5, 10, 7001, TWO);
		put_srv(&r, 1, 70, 7000, ONE);
		put_srv(&r, 1, 30, 7002, THREE);
	} else {
		put_host(&r, name);
	}
	return r.n;
}

/* In which order clients call them is what named_test.c is about. */
Test(dns, services_have_ports_priorities_and_weights)
{
	begin();
	look_up("srv:///_x._tcp.example", answer_services);
	cr_assert_eq(told.status, 0, "%s", told.why);
	cr_assert_str_eq(told.servers, "10.0.0.1@tcp 7000 70;"
				       "10.0.0.3@tcp 7002 30;"
				       "10.0.0.2@tcp 7001 10;");
	end();
}

/* ---- damage ---- */

static void cut_in_head(struct reply *r)
{
	r->n = question_end(r->m) + 7;
}

static void cut_in_data(struct reply *r)
{
	r->n -= 3;
}

/* 16 bytes of the record are between its owner's name and its target. */
static unsigned char *record_at(struct reply *r, size_t offset)
{
	return r->m + question_end(r->m) + 2 + offset;
}

static void short_data(struct reply *r)
{
	record_at(r, 9)[0] = 5;
}

static void long_data(struct reply *r)
{
	record_at(r, 8)[0] = 0xff;
}

/* The target says that its name goes on at itself. */
static void target_loops(struct reply *r)
{
	size_t at = question_end(r->m) + 2 + 16;

	r->m[at] = 0xc0 | (unsigned char)(at >> 8);
	r->m[at + 1] = (unsigned char)at;
}

static void target_is_outside(struct reply *r)
{
	unsigned char *target = record_at(r, 16);

	target[0] = 0xff;
	target[1] = 0xf0;
}

static void owner_loops(struct reply *r)
{
	size_t at = question_end(r->m);

	r->m[at] = 0xc0 | (unsigned char)(at >> 8);
	r->m[at + 1] = (unsigned char)at;
}

static void label_of_other_kind(struct reply *r)
{
	record_at(r, 16)[0] = 0x80;
}

static void more_records_than_there_are(struct reply *r)
{
	r->m[6] = 0xff;
}

static void (*damage)(struct reply *r);

static size_t answer_damaged(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);
	char name[256];

	(void)n;
	question_name(m, name);
	if (question_type(m) == DNS_SRV) {
		put_srv(&r, 1, 70, 7000, ONE);
		damage(&r);
	} else {
		put_host(&r, name);
	}
	return r.n;
}

Test(dns, damaged_lists_of_services_are_refused_as_a_whole)
{
	void (*const all[])(struct reply *) = {
		cut_in_head,	   cut_in_data,
		short_data,	   long_data,
		target_loops,	   target_is_outside,
		owner_loops,	   label_of_other_kind,
		more_records_than_there_are,
	};

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		char text[64];

		damage = all[i];
		sprintf(text, "srv:///_x%zu._tcp.example", i);
		look_up(text, answer_damaged);
		cr_assert_eq(told.status, -EBADMSG, "%zu: %d %s", i,
			     told.status, told.why);
		cr_assert_str_eq(told.why,
				 "the name server's answer is damaged");
		cr_assert_str_eq(told.servers, "");
	}
	end();
}

static void not_damaged(struct reply *r)
{
	(void)r;
}

/* Addresses in the place of services, and services of another class. */
static void other_type(struct reply *r)
{
	record_at(r, 0)[1] = DNS_TXT;
}

static void other_class(struct reply *r)
{
	record_at(r, 2)[1] = DNS_CHAOS;
}

static void target_is_root(struct reply *r)
{
	record_at(r, 9)[0] = 7;
	record_at(r, 16)[0] = 0;
	r->n = question_end(r->m) + 2 + 17;
}

Test(dns, records_of_something_else_are_no_services)
{
	void (*const all[])(struct reply *) = { other_type, other_class,
						target_is_root };

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		char text[64];

		damage = all[i];
		sprintf(text, "srv:///_y%zu._tcp.example", i);
		look_up(text, answer_damaged);
		cr_assert_eq(told.status, -ENODATA, "%zu: %d %s", i,
			     told.status, told.why);
	}
	damage = not_damaged;
	look_up("srv:///_z._tcp.example", answer_damaged);
	cr_assert_str_eq(told.servers, "10.0.0.1@tcp 7000 70;");
	end();
}

static size_t answer_strange_target(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);

	(void)n;
	if (question_type(m) == DNS_SRV) {
		put_srv(&r, 1, 1, 7000, "\6\033[2J\n\t\7example");
		put_srv(&r, 1, 1, 7000, "\3%n%\7example");
	} else {
		m[3] = 0x83; /* there is no such name */
	}
	return r.n;
}

/* It names hosts to those who read logs. */
Test(dns, names_in_answers_are_printable)
{
	begin();
	look_up("srv:///_x._tcp.example", answer_strange_target);
	cr_assert_neq(told.status, 0);
	cr_assert_neq(*told.why, '\0');
	for (const char *p = told.why; *p; p++)
		cr_assert(isprint((unsigned char)*p), "%d in a text", *p);
	end();
}

/* ---- damaged addresses ---- */

static void short_address(struct reply *r)
{
	record_at(r, 9)[0] = 3;
}

static size_t answer_damaged_host(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);

	(void)n;
	put_host(&r, "one.example");
	if (question_type(m) == DNS_A)
		damage(&r);
	return r.n;
}

Test(dns, damaged_addresses_are_no_addresses)
{
	void (*const all[])(struct reply *) = { cut_in_head, cut_in_data,
						short_address, long_data,
						owner_loops };

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		char text[64];

		damage = all[i];
		sprintf(text, "host%zu.example", i);
		look_up(text, answer_damaged_host);
		cr_assert_neq(told.status, 0, "%zu: %s", i, told.servers);
		cr_assert_str_eq(told.servers, "");
	}
	end();
}

static size_t answer_circle(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);
	const unsigned char self[] = { 0xc0, 12 };

	(void)n;
	put_record(&r, DNS_CNAME, self, sizeof(self));
	return r.n;
}

Test(dns, a_name_that_stands_for_itself_has_no_address)
{
	begin();
	look_up("circle.example", answer_circle);
	cr_assert_neq(told.status, 0);
	cr_assert_str_eq(told.servers, "");
	end();
}

/* ---- silence ---- */

static size_t answer_truncated(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);

	(void)n;
	m[2] |= 2; /* it is asked again over TCP, where nobody listens */
	return r.n;
}

static size_t answer_to_another(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);

	(void)n;
	put_host(&r, "one.example");
	m[0] ^= 0x55; /* the number of another question */
	return r.n;
}

static size_t answer_but_mute(unsigned char *m, size_t n)
{
	struct reply r = reply_to(m);
	char name[256];

	(void)n;
	if (!strcmp(question_name(m, name), "mute.example"))
		return 0;
	put_host(&r, name);
	return r.n;
}

Test(dns, answers_that_are_none)
{
	begin();
	look_up("long.example", answer_truncated);
	cr_assert_eq(told.status, -ECONNREFUSED, "%d %s", told.status,
		     told.why);
	cr_assert_str_eq(told.why, "no name server takes the question");
	end();
}

/* A look-up ends by a limit of its own, with a cause and a text of its own. */
Test(dns, silence)
{
	static const struct {
		const char *name;
		name_server_fn answer;
	} all[] = { { "mute.example", answer_but_mute },
		    { "forged.example", answer_to_another } };

	begin();
	name_server.timeout = 20;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		look_up(all[i].name, all[i].answer);
		cr_assert_eq(told.status, -ETIMEDOUT, "%d %s", told.status,
			     told.why);
		cr_assert_str_eq(told.why, "no name server answers");
	}
	end();
}

static void count_told(void *arg, const struct ulnet_name_answer *a)
{
	(void)a;
	++*(unsigned int *)arg;
}

static void on_ping(void *arg, int status, const struct ulnet_ping_info *info)
{
	(void)info;
	cr_assert_eq(status, 0);
	++*(unsigned int *)arg;
}

/* While one name is not answered, nothing else waits. */
Test(dns, a_look_up_that_hangs_holds_up_nothing_else)
{
	struct ulnet_id lo = { .pid = LNET_PID_ANY };
	struct ulnet_name *mute, *other;
	unsigned int answered = 0, pings = 0;

	begin();
	memset(&told, 0, sizeof(told));
	cr_assert_eq(lnet_name_open(node, 0, "mute.example", tell, NULL, &mute,
				    NULL),
		     0);
	cr_assert_eq(lnet_nid_parse("0@lo", &lo.nid), 0);
	for (unsigned int i = 1; i <= 20; i++) {
		char text[32];

		sprintf(text, "other%u.example", i);
		cr_assert_eq(lnet_name_open(node, 0, text, count_told,
					    &answered, &other, NULL),
			     0);
		cr_assert_eq(lnet_ping(node, lo, 60000000, on_ping, &pings), 0);
		while (answered < i || pings < i) {
			name_server_serve(answer_but_mute);
			lnet_poll(node, 0);
		}
		lnet_name_close(other);
	}
	cr_assert_eq(told.times, 0, "the others were waiting: %s", told.why);
	lnet_name_close(mute);
	end();
}

/* ---- many names ---- */

static unsigned int questions;

static size_t answer_none(unsigned char *m, size_t n)
{
	(void)m, (void)n;
	questions++;
	return 0;
}

/* A name server is not asked everything at a time; but its silence keeps nobody
 * from asking. */
Test(dns, many_names_are_asked_for_in_turn)
{
	/* questions: each query has two */
	const unsigned int some = 2 * RESOLVER_QUERIES, all = 2 * some;
	unsigned int unused = 0;
	struct ulnet_name *name; /* the node closes it */
	uint64_t from;

	begin();
	from = lnet_now(node, 0);
	for (unsigned int i = 0; i < all / 2; i++) {
		char text[32];

		sprintf(text, "host%u.example", i);
		cr_assert_eq(lnet_name_open(node, 0, text, count_told, &unused,
					    &name, NULL),
			     0);
	}
	for (questions = 0; questions < all;) {
		uint64_t periods;

		name_server_serve(answer_none);
		periods = 1 + (lnet_now(node, 0) - from) / RESOLVER_PERIOD;
		cr_assert_leq(questions, periods * some);
		cr_assert_lt(periods, 1200, "%u questions", questions);
	}
	cr_assert_eq(questions, all);
	end();
}
