/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/core/stat.h"

#include "lnet/core/cpt.h"

static const struct {
	const char *name;
	const char *help;
	bool now; /* a gauge, which goes up and down */
} stat_texts[STAT_COUNT] = {
#define STAT(name, help)     { #name, help, false },
#define STAT_NOW(name, help) { #name, help, true },
#include "lnet/core/stat.def"
#undef STAT
#undef STAT_NOW
};

#define UNCOUNTED(cause, text) [LNET_CAUSE_##cause] = { text, STAT_COUNT }
#define COUNTED(cause, text, stat) \
	[LNET_CAUSE_##cause] = { text, STAT_##stat##_count }
static const struct {
	const char *name;
	enum lnet_stat failed; /* the counter for stat_of_cause() */
} causes[LNET_CAUSE_COUNT] = {
	UNCOUNTED(OK, "ok"),
	COUNTED(LOCAL_INTERRUPT, "local interrupt", local_interrupt),
	COUNTED(LOCAL_DROPPED, "local dropped", local_dropped),
	COUNTED(LOCAL_ABORTED, "local aborted", local_aborted),
	COUNTED(LOCAL_NO_ROUTE, "local no route", local_no_route),
	COUNTED(LOCAL_ERROR, "local error", local_error),
	COUNTED(LOCAL_TIMEOUT, "local timeout", local_timeout),
	COUNTED(REMOTE_ERROR, "remote error", remote_error),
	COUNTED(REMOTE_DROPPED, "remote dropped", remote_dropped),
	COUNTED(REMOTE_TIMEOUT, "remote timeout", remote_timeout),
	COUNTED(NETWORK_TIMEOUT, "network timeout", network_timeout),
	UNCOUNTED(RESPONSE_TIMEOUT, "response timeout"),
	UNCOUNTED(CANCELED, "canceled"),
	UNCOUNTED(SHUTDOWN, "shutdown"),
};

enum lnet_stat stat_of_cause(enum ulnet_cause cause)
{
	return causes[cause].failed;
}

enum resent resent_by(enum ulnet_cause cause)
{
	if (cause == LNET_CAUSE_LOCAL_TIMEOUT)
		return RESENT_TIMEOUT;
	return cause == LNET_CAUSE_REMOTE_DROPPED ? RESENT_REMOTE
						  : RESENT_LOCAL;
}

int lnet_stats(struct lnet *node, struct ulnet_stat *stats, unsigned int n)
{
	for (unsigned int i = 0; i < n && i < STAT_COUNT; i++) {
		stats[i].name = stat_texts[i].name;
		stats[i].help = stat_texts[i].help;
		stats[i].now = stat_texts[i].now;
		stats[i].value = 0;
		for (unsigned int c = 0; c < node->cpts; c++)
			stats[i].value += stat_get(&node->cpt[c]->stats[i]);
	}
	return STAT_COUNT;
}

void cpt_stats_reset(struct lnet_cpt *cpt)
{
	for (unsigned int i = 0; i < STAT_COUNT; i++)
		if (!stat_texts[i].now)
			stat_set(&cpt->stats[i], 0);
	stat_set(&cpt->stats[STAT_msgs_max],
		 stat_get(&cpt->stats[STAT_msgs_alloc]));
}

/* ---- traffic ---- */

void traffic_sum(const struct traffic *t, struct ulnet_counts *counts)
{
	counts->put += stat_get(&t->count[LNET_MSG_PUT]);
	counts->get += stat_get(&t->count[LNET_MSG_GET]);
	counts->reply += stat_get(&t->count[LNET_MSG_REPLY]);
	counts->ack += stat_get(&t->count[LNET_MSG_ACK]);
}

void times_sum(const struct times *t, struct ulnet_times *times)
{
	times->n += stat_get(&t->n);
	times->ns += stat_get(&t->ns);
}

void resent_sum(const struct traffic_stats *t, struct ulnet_resends *by)
{
	by->timeout += stat_get(&t->resent[RESENT_TIMEOUT]);
	by->local += stat_get(&t->resent[RESENT_LOCAL]);
	by->remote += stat_get(&t->resent[RESENT_REMOTE]);
}

uint64_t resends_total(const struct ulnet_resends *by)
{
	return by->timeout + by->local + by->remote;
}

uint64_t counts_total(const struct ulnet_counts *counts)
{
	return counts->put + counts->get + counts->reply + counts->ack;
}

static void traffic_zero(struct traffic *t)
{
	for (unsigned int i = 0; i < TRAFFIC_TYPES; i++)
		stat_set(&t->count[i], 0);
	stat_set(&t->length, 0);
}

static void times_zero(struct times *t)
{
	stat_set(&t->n, 0);
	stat_set(&t->ns, 0);
}

void traffic_reset(struct traffic_stats *t)
{
	traffic_zero(&t->send);
	traffic_zero(&t->recv);
	traffic_zero(&t->drop);
	for (unsigned int i = 0; i < RESENT_COUNT; i++)
		stat_set(&t->resent[i], 0);
	times_zero(&t->sending);
	times_zero(&t->answered);
}

/* ---- names ---- */

static const char *stat_name_of(const char *const *names, unsigned int n,
				unsigned int i)
{
	return i < n && names[i] ? names[i] : "?";
}

const char *lnet_event_name(enum ulnet_event_type type)
{
	static const char *const names[] = {
		[LNET_EVENT_GET] = "GET",     [LNET_EVENT_PUT] = "PUT",
		[LNET_EVENT_REPLY] = "REPLY", [LNET_EVENT_ACK] = "ACK",
		[LNET_EVENT_SEND] = "SEND",   [LNET_EVENT_UNLINK] = "UNLINK",
	};

	return stat_name_of(names, ARRAY_SIZE(names), type);
}

const char *lnet_outcome_name(enum ulnet_outcome outcome)
{
	static const char *const names[] = {
		[LNET_OUTCOME_NONE] = "none",
		[LNET_OUTCOME_DELIVERED] = "delivered",
		[LNET_OUTCOME_NOT_DELIVERED] = "not delivered",
		[LNET_OUTCOME_UNKNOWN] = "unknown",
	};

	return stat_name_of(names, ARRAY_SIZE(names), outcome);
}

const char *lnet_cause_name(enum ulnet_cause cause)
{
	return (unsigned int)cause < LNET_CAUSE_COUNT ? causes[cause].name
						      : "?";
}
