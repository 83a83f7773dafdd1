/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of hosts of which one cannot be looked up, on a real node that asks
 * the test's own name server. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/names/name_server.h"
#include "ulnet/loop.h"
#include "ulnet/names.h"

#define MINUTE_NS UINT64_C(60000000000)

enum rcode { NOERROR = 0, SERVFAIL = 2, NXDOMAIN = 3 };

/* In DNS, one.example is 10.0.0.1, and two.example 10.0.0.2. */
static struct {
	enum rcode one;	   /* what is said of one.example */
	uint32_t ttl;	   /* s, of two.example; 1 of one.example */
	unsigned int ends; /* questions for one.example with a failure */
} dns;

static struct lnet *node;
static struct ulnet_name *name;
static unsigned int told, logged;
static char servers[256];

static void dns_begin(void)
{
	memset(&dns, 0, sizeof(dns));
	name_server_begin();
}

/* Makes the answer to the question of @n bytes in @m. Returns its length. */
static size_t dns_answer(unsigned char *m, size_t n)
{
	size_t end = question_end(m);
	bool one = !memcmp(m + 12, "\3one", 4);
	enum rcode rcode = one ? dns.one : NOERROR;
	unsigned char a[] = { 0xc0, 12, 0, 1, 0,  1, 0, 0,
			      0,    0,	0, 4, 10, 0, 0, one ? 1 : 2 };

	cr_assert_leq(end, n);
	m[2] = 0x84 | (m[2] & 1);
	m[3] = 0x80 | (unsigned char)rcode;
	memset(m + 6, 0, 6); /* no records */
	if (one && rcode)
		dns.ends++;
	if (rcode || question_type(m) != DNS_A)
		return end;
	m[7] = 1;
	a[8] = one ? 0 : (unsigned char)(dns.ttl >> 8);
	a[9] = one ? 1 : (unsigned char)dns.ttl;
	memcpy(m + end, a, sizeof(a));
	return end + sizeof(a);
}

static void dns_serve(void)
{
	name_server_serve(dns_answer);
	lnet_poll(node, 0);
}

static void tell(void *arg, const struct ulnet_name_answer *a)
{
	char nid[LNET_NIDSTR_SIZE];

	(void)arg;
	told++;
	cr_assert_eq(a->status, 0, "%s", a->why);
	cr_assert_str_eq(a->why, "");
	*servers = '\0';
	for (unsigned int i = 0; i < a->n; i++)
		sprintf(servers + strlen(servers), "%s;",
			lnet_nid_format(&a->addresses[i].nid, nid,
					sizeof(nid)));
}

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (strstr(line, ": one.example: no name server takes the "
			 "question; the other servers are used"))
		__atomic_add_fetch(&logged, 1, __ATOMIC_RELAXED);
}

static void await(const char *expected)
{
	uint64_t until = lnet_now(node, 0) + 2 * MINUTE_NS;

	while (strcmp(servers, expected) != 0) {
		cr_assert_lt(lnet_now(node, 0), until, "%s, not %s", servers,
			     expected);
		dns_serve();
	}
}

/* Waits for @n further questions for one.example that have failed. */
static void await_failures(unsigned int n)
{
	uint64_t until = lnet_now(node, 0) + 2 * MINUTE_NS;

	for (n += dns.ends; dns.ends < n;) {
		cr_assert_lt(lnet_now(node, 0), until,
			     "it was not asked for again");
		dns_serve();
	}
}

static void begin(const char *list)
{
	struct ulnet_conf conf;

	told = logged = 0;
	*servers = '\0';
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_names_open(node), 0);
	cr_assert_eq(lnet_name_open(node, 0, list, tell, NULL, &name, NULL), 0);
}

static void end(void)
{
	lnet_name_close(name);
	lnet_close(node);
	name_server_end();
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
}

/* What the name server cannot tell now stays as it was; what it says that there
 * is not, goes. */
Test(partly, a_host_that_cannot_be_looked_up_stays)
{
	dns_begin();
	dns.ttl = 1;
	begin("two.example,one.example,10.0.0.9");
	await("10.0.0.2@tcp;10.0.0.1@tcp;10.0.0.9@tcp;");
	dns.one = SERVFAIL;
	dns.ttl = 3600;
	/* More than one look-up asks: each asks for two types, and at most
	 * twice. The others' time to live does not count. */
	await_failures(9);
	cr_assert_eq(told, 1, "%s", servers);
	cr_assert_eq(__atomic_load_n(&logged, __ATOMIC_RELAXED), 1);
	dns.one = NXDOMAIN;
	await("10.0.0.2@tcp;10.0.0.9@tcp;");
	end();
}

/* And a host that was not known is asked for again by the pauses of failures,
 * though the rest of the list is good for an hour. */
Test(partly, a_host_that_was_never_known_comes)
{
	dns_begin();
	dns.one = SERVFAIL;
	dns.ttl = 3600;
	begin("one.example,two.example");
	await("10.0.0.2@tcp;");
	await_failures(5);
	dns.one = NOERROR;
	await("10.0.0.1@tcp;10.0.0.2@tcp;");
	cr_assert_eq(__atomic_load_n(&logged, __ATOMIC_RELAXED), 1);
	end();
}
