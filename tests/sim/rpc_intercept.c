/* SPDX-License-Identifier: BSD-3-Clause */
/* Interceptors of the RPC scenario: nodes with odd numbers have some, on both
 * sides. Each call and each request that has begun ends exactly once, unless
 * the node crashes. */
#include <stdlib.h>
#include <ulnet/intercept.h>

#include "tests/sim/rpc_run.h"

#define SIGHT_MAGIC UINT64_C(0x6963657074696f6e)

/* A call or a request that an interceptor has seen begin, and not end. */
struct sight {
	uint64_t magic;
	struct sight *next, **prev; /* link in member.sights */
	/* The node has crashed. The handler may still answer a request whose
	 * service had ended before, and its end is told then. */
	bool crashed;
};

static struct sight *sight_new(struct member *m)
{
	struct sight *s = malloc(sizeof(*s));

	if (!s)
		abort();
	s->magic = SIGHT_MAGIC;
	s->crashed = false;
	s->next = m->sights;
	s->prev = &m->sights;
	if (s->next)
		s->next->prev = &s->next;
	m->sights = s;
	return s;
}

static void sight_free(struct sight *s)
{
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->magic = 0;
	free(s);
}

static void sight_end(const struct member *m, struct sight *s)
{
	if (s && s->magic == SIGHT_MAGIC)
		sight_free(s);
	else
		lnet_sim_fail(m->run->sim,
			      "node %u: an interceptor hears of the end of "
			      "something that it has not seen",
			      m->index);
}

static int on_call(void *arg, struct ulrpc_call_start *start)
{
	start->state = sight_new(arg);
	return ulrpc_context_add(start->context, "seen", "by the caller", 13);
}

static void on_call_end(void *arg, void *state, const struct ulrpc_call_end *e)
{
	(void)e;
	sight_end(arg, state);
}

static int on_request(void *arg, struct ulrpc_request_start *start)
{
	struct ulrpc_metadata m;
	const struct member *member = arg;

	start->state = sight_new(arg);
	if (!ulrpc_request_find(start->request, "seen", &m) && m.length != 13)
		lnet_sim_fail(member->run->sim,
			      "node %u: an interceptor's metadata are wrong",
			      member->index);
	return ulrpc_reply_add(start->request, "seen", "by the server", 13);
}

static void on_request_end(void *arg, void *state,
			   const struct ulrpc_request_end *e)
{
	(void)e;
	sight_end(arg, state);
}

bool intercept_adds(unsigned int index)
{
	return index % 2;
}

void intercept_conf(struct member *m, struct ulrpc_conf *conf)
{
	m->sees_calls = (struct ulrpc_call_interceptor){ on_call, on_call_end,
							 m };
	m->sees_requests = (struct ulrpc_request_interceptor){
		on_request, on_request_end, m
	};
	if (!intercept_adds(m->index))
		return;
	conf->call_interceptors = &m->sees_calls;
	conf->ncall_interceptors = 1;
	conf->request_interceptors = &m->sees_requests;
	conf->nrequest_interceptors = 1;
}

void intercept_crashed(struct member *m)
{
	for (struct sight *s = m->sights; s; s = s->next)
		s->crashed = true;
}

unsigned int intercept_left(struct member *m)
{
	unsigned int n = 0;

	while (m->sights) {
		n += !m->sights->crashed;
		sight_free(m->sights);
	}
	return n;
}
