/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/permit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rpc/flavour.h"
#include "rpc/owner.h"
#include "rpc/rules.h"
#include "rpc/server/session/export.h"
#include "rpc/text.h"
#include "secure/identity.h"

/* Results are kept for this many methods, by their place in
 * ulrpc_service.methods. Methods at later places are judged with each call. */
#define PLACES 64

/* Bytes: a caller with less room gets no text, as so short a beginning would
 * tell nothing. */
#define TEXT_LEAST 32

/* A call that is to be judged: what it calls, and who makes it. */
struct asked {
	const struct ulrpc_service *service;
	/* NULL: the service has no such method */
	const struct ulrpc_method *method;
	struct rules_caller caller;
};

static struct rules_caller caller_of(const struct request_batch *b)
{
	const struct sealed *sd = export_seal(b->export);

	return (struct rules_caller){
		.who = sd ? sd->who : NULL,
		.nid = export_source(b->export),
		.flavour = batch_flavour(b),
	};
}

/* Returns what is known about the share of @b. This holds for messages of one
 * flavour only, and is forgotten when another one comes. */
static struct permit *permit_of(struct request_batch *b)
{
	struct permit *p = &b->share->permit;
	enum ulrpc_flavour flavour = batch_flavour(b);

	if (p->flavour != (uint8_t)flavour)
		*p = (struct permit){ .flavour = (uint8_t)flavour };
	return p;
}

/* ---- all methods ---- */

static bool judge_all(const struct request_batch *b)
{
	const struct ulrpc_rules *rules = b->sc->shard->exports->rules;
	const struct ulrpc_service *svc = b->sc->service;
	const struct rules_caller caller = caller_of(b);
	enum ulrpc_flavour wanted;

	if (caller.flavour < svc->most)
		return false;
	if (!strcmp(svc->name, RPC_STREAM_CARRIER))
		return true;
	return !rules || rules_judge(rules, &caller, svc->name, NULL,
				     &wanted) == RULES_LET;
}

/* Has @b the lowest flavour that messages of its client can have? Then what it
 * may do, all messages of the client may. */
static bool is_least(const struct request_batch *b)
{
	return batch_flavour(b) <= ULRPC_FLAVOUR_AUTH;
}

bool permit_all(struct request_batch *b)
{
	struct permit *p = permit_of(b);

	if (!p->all)
		p->all = judge_all(b);
	if (p->all && is_least(b))
		b->share->cleared = !b->share->marked;
	return p->all;
}

/* ---- one method ---- */

/* What the client is told of a call that is not executed. */
struct refused {
	enum rpc_stat stat;
	/* the flavour that the call should have; DEFAULT: refused for another
	 * reason */
	enum ulrpc_flavour wanted;
	const char *why;
};

static const struct refused refusals[] = {
	[RULES_LOW] = { .stat = RPC_STAT_requests_unsealed },
	[RULES_NOBODY] = { .stat = RPC_STAT_requests_unproved,
			   .why = "it has not proved who it is" },
	[RULES_UNNAMED] = { .stat = RPC_STAT_requests_unnamed,
			    .why = "no rule allows it" },
};

/* Judges @a. With RULES_LOW, *@wanted_p is the flavour that it should have. */
static enum rules_verdict judge(const struct request_batch *b,
				const struct asked *a,
				enum ulrpc_flavour *wanted_p)
{
	const struct ulrpc_rules *rules = b->sc->shard->exports->rules;
	enum ulrpc_flavour least =
		a->method ? a->method->flavour : ULRPC_FLAVOUR_NONE;
	enum rules_verdict v = RULES_LET;

	if (rules)
		v = rules_judge(rules, &a->caller, a->service->name,
				a->method ? a->method->name : NULL, wanted_p);
	if (v == RULES_LET && a->caller.flavour < least) {
		*wanted_p = least;
		return RULES_LOW;
	}
	if (v == RULES_LOW)
		*wanted_p = MAX(*wanted_p, least);
	return v;
}

/* Writes who calls, such as "alice (certificate of site) at 10.0.0.1@tcp". */
static void caller_text(const struct rules_caller *caller, char *text,
			size_t size)
{
	const struct identity *who = caller->who;
	char nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(caller->nid, nid, sizeof(nid));
	if (!who)
		snprintf(text, size, "%s", nid);
	else if (who->kind == IDENTITY_MUNGE)
		snprintf(text, size,
			 "%.48s (MUNGE: uid %" PRIu32 ", group %.32s) "
			 "at %s",
			 who->name, who->uid, who->group, nid);
	else if (who->kind == IDENTITY_CLUSTER_KEY)
		snprintf(text, size, "%.64s (cluster's key) at %s", who->name,
			 nid);
	else
		snprintf(text, size, "%.64s (certificate of %.32s) at %s",
			 who->name, who->issuer, nid);
}

static void method_text(const struct wire_call *c, const struct asked *a,
			char *text, size_t size)
{
	if (a->method)
		snprintf(text, size, "%.48s", a->method->name);
	else
		snprintf(text, size, "0x%08" PRIx32, c->method);
}

/* Writes why->text; what does not fit is cut off. */
static __attribute__((format(printf, 2, 3))) void say(struct denial *why,
						      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
}

static void denial_text(const struct wire_call *c, const struct asked *a,
			const struct refused *r, struct denial *why)
{
	char caller[192], method[64];

	caller_text(&a->caller, caller, sizeof(caller));
	method_text(c, a, method, sizeof(method));
	if (r->why)
		say(why, "method %s of service %s is not for %s: %s", method,
		    a->service->name, caller, r->why);
	else
		say(why,
		    "method %s of service %s wants flavour %s; %s calls with "
		    "%s",
		    method, a->service->name, ulrpc_flavour_name(r->wanted),
		    caller, ulrpc_flavour_name(a->caller.flavour));
}

static void denial_log(const struct request_batch *b, const struct denial *why)
{
	struct shard *s = b->sc->shard;

	if (log_share_may(&s->exports->logged, export_source(b->export),
			  shard_now(s)))
		lnet_log(LNET_LOG_WARN, "rpc", "a call is refused: %s",
			 why->text);
}

static void deny(const struct request_batch *b, const struct wire_call *c,
		 const struct asked *a, const struct refused *r,
		 struct denial *why)
{
	size_t room = MIN(c->reply_max, (uint32_t)ULRPC_TEXT_MAX - 1);

	stat_count(b->sc->shard, r->stat);
	b->export->refused++;
	denial_text(c, a, r, why);
	/* Not logged if the client has keys and its flavour is too low: it
	 * raises the flavour when it learns that, and calls again. */
	if (!r->wanted || !a->caller.who)
		denial_log(b, why);
	why->length = 0;
	if (room >= TEXT_LEAST)
		why->length = (uint32_t)text_fit(why->text, room);
	why->flavour = 0;
	if (r->wanted)
		why->flavour = flavour_to_wire(r->wanted);
}

uint32_t permit_call(struct request_batch *b, const struct wire_call *c,
		     struct denial *why)
{
	const struct ulrpc_service *svc = b->sc->service;
	const struct asked a = { svc, service_method(svc, c->method),
				 caller_of(b) };
	size_t place = a.method ? (size_t)(a.method - svc->methods) : PLACES;
	struct permit *p = permit_of(b);
	struct refused r;
	enum ulrpc_flavour wanted = ULRPC_FLAVOUR_DEFAULT;
	enum rules_verdict v;

	if (place < PLACES && p->methods & UINT64_C(1) << place)
		return WIRE_OK;
	v = judge(b, &a, &wanted);
	if (v == RULES_LET) {
		if (place < PLACES)
			p->methods |= UINT64_C(1) << place;
		return WIRE_OK;
	}
	r = refusals[v];
	r.wanted = wanted;
	if (v != RULES_LOW)
		r.wanted = ULRPC_FLAVOUR_DEFAULT;
	deny(b, c, &a, &r, why);
	return WIRE_REFUSED;
}

/* ---- what outlives its call ---- */

bool owner_may(const struct shard *s, const struct rpc_owner *owner,
	       enum ulrpc_flavour flavour, const char *service,
	       const char *method)
{
	const struct exports *x = s->exports;
	const struct export *e;
	const struct sealed *sd;
	struct rules_caller caller;
	enum ulrpc_flavour wanted;

	if (!x->rules)
		return true;
	if (owner_is_gone(s, owner))
		return false;
	e = id_slot_obj(&x->table, (uint32_t)owner->connection);
	sd = export_seal(e);
	caller = (struct rules_caller){ .who = sd ? sd->who : NULL,
					.nid = export_source(e),
					.flavour = flavour };
	return rules_judge(x->rules, &caller, service, method, &wanted) ==
	       RULES_LET;
}
