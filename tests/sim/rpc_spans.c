/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans of the RPC scenario: every fourth call is sampled, and so is what its
 * handler calls. In the end all spans of all nodes, in virtual time, are
 * compared with what has really happened. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ulnet/spans.h>

#include "tests/sim/rpc_run.h"

#define SAMPLED	   4 /* each of so many calls */
#define TRACE_TAIL UINT64_C(0x7370616e73000000)
#define ROOT	   UINT64_C(0x726f6f7400000000)
/* ns: a worker's answer has come to its CPT after that */
#define ON_ITS_WAY (100 * MS)

struct span {
	struct span *next; /* of the same trace */
	uint64_t id, parent, begin, end;
	bool is_server, known; /* known: a call has it */
	/* the server does not say that it has not executed the call */
	bool executed;
	char name[32], execution[16], attempts[16];
};

/* ---- while the run goes on ---- */

void spans_start(struct member *m)
{
	struct run *r = m->run;
	char path[64];
	const struct ulrpc_spans_conf conf = { .path = path };
	int rc;

	if (!r->spans_fd)
		r->spans_fd = memfd_create("spans", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->spans_fd);
	rc = ulrpc_spans_start(m->rpc, &conf, &m->spans);
	if (rc)
		lnet_sim_fail(r->sim, "node %u: no spans: %d", m->index, rc);
}

void spans_stop(struct member *m)
{
	ulrpc_spans_stop(m->spans);
	m->spans = NULL;
}

void spans_trace(struct test_call *c)
{
	if (c->id % SAMPLED == 1)
		snprintf(c->trace, sizeof(c->trace),
			 "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-01",
			 c->id, TRACE_TAIL, ROOT + c->id);
}

static bool has_job(const struct member *m, uint64_t id)
{
	for (const struct job *j = m->jobs; j; j = j->next)
		if (j->body.id == id && !j->lost)
			return true;
	return false;
}

void spans_crashing(struct member *m)
{
	struct run *r = m->run;
	uint64_t now = lnet_sim_now(r->sim);

	for (unsigned int i = 0; i < r->ncalls; i++) {
		struct test_call *c = r->calls[i];

		if (c->target == m->index && *c->trace &&
		    (has_job(m, c->id) || !c->ended || is_paused(m) ||
		     now - c->answered < ON_ITS_WAY))
			c->span_lost = true;
	}
}

/* ---- reading ---- */

/* Copies the text behind the first @key in @text, up to a quote. */
static void take(const char *text, const char *key, char *to, size_t size)
{
	const char *at = strstr(text, key);
	size_t n;

	*to = '\0';
	if (!at)
		return;
	at += strlen(key);
	n = strcspn(at, "\"");
	if (n < size)
		snprintf(to, n + 1, "%s", at);
}

static uint64_t number(const char *text, const char *key, int base)
{
	char word[40];

	take(text, key, word, sizeof(word));
	return strtoull(word, NULL, base);
}

static struct span *span_read(const char *text)
{
	static const char value[] = "\",\"value\":{\"stringValue\":\"";
	struct span *s = calloc(1, sizeof(*s));
	char key[80];

	if (!s)
		abort();
	s->id = number(text, "\"spanId\":\"", 16);
	s->parent = number(text, "\"parentSpanId\":\"", 16);
	s->begin = number(text, "\"startTimeUnixNano\":\"", 10);
	s->end = number(text, "\"endTimeUnixNano\":\"", 10);
	s->is_server = strstr(text, "\"kind\":2,");
	take(text, "\"name\":\"", s->name, sizeof(s->name));
	snprintf(key, sizeof(key), "rpc.ulrpc.execution%s", value);
	take(text, key, s->execution, sizeof(s->execution));
	take(text, "rpc.ulrpc.attempts\",\"value\":{\"intValue\":\"",
	     s->attempts, sizeof(s->attempts));
	s->executed = strcmp(s->execution, "not executed") != 0;
	return s;
}

/* Sorts the spans of @text, which is changed, by the calls that have begun
 * their traces. Returns how many belong to none. */
static unsigned int spans_sort(struct run *r, char *text, struct span **of)
{
	static const char mark[] = "{\"traceId\":\"";
	unsigned int strange = 0;
	char *at = strstr(text, mark), *next;

	for (; at; at = next) {
		struct span *s;
		char call[17];

		next = strstr(at + 1, mark);
		if (next)
			*next = '\0';
		s = span_read(at + 1);
		snprintf(call, sizeof(call), "%s", at + strlen(mark));
		s->next = NULL;
		if (strtoull(call, NULL, 16) - 1 < r->ncalls) {
			struct span **list = &of[strtoull(call, NULL, 16) - 1];

			s->next = *list;
			*list = s;
			continue;
		}
		fprintf(stderr, "a span of no trace: %.16s %s\n", call,
			s->name);
		strange++;
		free(s);
	}
	return strange;
}

/* ---- checking ---- */

static unsigned int wrong(const struct test_call *c, const char *what)
{
	fprintf(stderr,
		"call %lu of node %u to node %u, %s, trace %s: %s (%s, %s, %u "
		"executions)\n",
		(unsigned long)c->id, c->from->index, c->target,
		method_names[c->method], c->trace, what,
		ulrpc_cause_name(c->outcome.cause),
		ulrpc_execution_name(c->outcome.execution), c->executed);
	return 1;
}

/* Checks what the server's spans below @s, that of @c, say. */
static unsigned int check_executions(const struct test_call *c,
				     const struct span *s,
				     const struct span *all)
{
	unsigned int n = 0, bad = 0;
	bool stores = method_semantics(c->method) == ULRPC_EXACTLY_ONCE;

	for (const struct span *x = all; x; x = x->next) {
		if (!x->is_server || x->parent != s->id)
			continue;
		n += x->executed;
		if (x->begin < s->begin)
			bad += wrong(c, "served before it was made");
		if (strcmp(x->name, s->name) != 0)
			bad += wrong(c, "another method was served");
	}
	if (n > c->executed && !stores)
		bad += wrong(c, "more spans of its server than executions");
	if (n < c->executed && !c->span_lost)
		bad += wrong(c, "fewer spans of its server than executions");
	return bad;
}

static unsigned int check_own(const struct test_call *c, const struct span *s)
{
	char name[32];
	unsigned int bad = 0;

	snprintf(name, sizeof(name), "s%u/%s", c->service,
		 method_names[c->method]);
	if (strcmp(s->name, name) != 0)
		bad += wrong(c, "its span has another name");
	if (s->begin > s->end || s->begin / US < c->began / US)
		bad += wrong(c, "its span has wrong times");
	if (!c->ended)
		return bad;
	if (strcmp(s->execution, ulrpc_execution_name(c->outcome.execution)) !=
	    0)
		bad += wrong(c, "its span knows more of it than its caller");
	if (strtoul(s->attempts, NULL, 10) != c->outcome.attempts)
		bad += wrong(c, "its span has other attempts");
	return bad;
}

static unsigned int check_call(const struct test_call *c, struct span *all)
{
	uint64_t parent = strtoull(c->trace + 36, NULL, 16);
	unsigned int n = 0, bad = 0;

	for (struct span *s = all; s; s = s->next) {
		if (s->is_server || s->parent != parent)
			continue;
		n++;
		s->known = true;
		bad += check_own(c, s);
		bad += check_executions(c, s, all);
	}
	if (c->ended && !c->failed && n != 1)
		bad += wrong(c, n ? "two spans" : "no span");
	if (n && c->dead)
		bad += wrong(c, "a span, but no end");
	return bad;
}

/* Every span belongs to a call, or is below one that does; if a node has
 * crashed, that one may be missing. */
static unsigned int check_parents(const struct test_call *root,
				  const struct span *all, bool crashed)
{
	unsigned int bad = 0;

	for (const struct span *s = all; s; s = s->next) {
		const struct span *p = all;

		while (p && (p->id != s->parent || p->is_server))
			p = p->next;
		if (s->is_server && !p && !crashed)
			bad += wrong(root, "a span below none");
		if (!s->is_server && !s->known)
			bad += wrong(root, "a span of no call");
		if (s->begin > s->end)
			bad += wrong(root, "a span that ends before it begins");
	}
	return bad;
}

static void spans_free(struct span *all)
{
	while (all) {
		struct span *s = all;

		all = s->next;
		free(s);
	}
}

static unsigned int spans_check(struct run *r, struct span **of)
{
	bool *crashed = calloc(r->ncalls + 1, sizeof(*crashed));
	unsigned int bad = 0;

	if (!crashed)
		abort();
	for (unsigned int i = 0; i < r->ncalls; i++) {
		const struct test_call *c = r->calls[i];
		char root[17];
		uint64_t k;

		if (!*c->trace)
			continue;
		snprintf(root, sizeof(root), "%s", c->trace + 3);
		k = strtoull(root, NULL, 16) - 1;
		bad += check_call(c, of[k]);
		crashed[k] |= c->dead || c->failed;
	}
	for (unsigned int i = 0; i < r->ncalls; i++) {
		bad += check_parents(r->calls[i], of[i], crashed[i]);
		spans_free(of[i]);
	}
	free(crashed);
	return bad;
}

unsigned int spans_wrong(struct run *r)
{
	struct span **of = calloc(r->ncalls + 1, sizeof(*of));
	unsigned int bad;
	struct stat st;
	char *text;

	for (unsigned int i = 0; i < r->n; i++)
		spans_stop(&r->members[i]);
	if (!of || !r->spans_fd || fstat(r->spans_fd, &st))
		abort();
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text ||
	    pread(r->spans_fd, text, (size_t)st.st_size, 0) != st.st_size)
		abort();
	close(r->spans_fd);
	bad = spans_sort(r, text, of);
	free(text);
	bad += spans_check(r, of);
	free(of);
	return bad;
}
