/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the files of the calculation (ulnet/o2ib.h): a table of the models,
 * and notes by rule.
 */
#ifndef LND_O2IBLND_CALC_H
#define LND_O2IBLND_CALC_H

#include "ulnet/o2ib.h"

#define CALC_MSG_BYTES 4096 /* bytes of a message buffer */
#define CALC_DEPTH_MIN 8    /* bounds of peer_credits */
#define CALC_DEPTH_MAX 255
#define CALC_DEPTH_V1  8 /* depth and threshold of version 1 */
#define CALC_HIW_V1    7
#define CALC_CS_MIN_V1 4
#define CALC_CS_MAX_V1 16
#define CALC_MAP_MAX   256 /* map_on_demand of models 2.10 */
#define CALC_MAP_SENDS 32  /* concurrent_sends up to this value is doubled */
#define CALC_POOL_MIN  256 /* least entries of a CPT's pool */
#define CALC_CONNS_MAX 127
/* model 2.10.54 lowers max_send_wr no further below this */
#define CALC_SHRINK_MIN 16
/* work requests of one message: 257 fragments and the DONE */
#define CALC_LONGEST_WRS 258
/* Send queues of this LND: entries for the WRITEs of each message, and the
 * least number of entries of a queue. A message with more WRITEs is sent in
 * batches (exchange.c). */
#define CALC_USER_WRITES  4
#define CALC_USER_WRS_MIN 64
#define CALC_BULK_BYTES	  (UINT32_C(1) << 20)

/* How max_send_wr is calculated: D is the depth, F the fragments, X what
 * registration takes. */
enum calc_send {
	CALC_SEND_CS,	 /* (F + 1) * concurrent_sends */
	CALC_SEND_DEPTH, /* (F + 1) * D */
	CALC_SEND_EXTRA, /* (F + 1 + X) * D */
	CALC_SEND_USER,	 /* (1 + max_writes) * D */
};

/* How the threshold for returning credits at once is calculated. */
enum calc_hiw {
	CALC_HIW_CONFIGURED, /* peer_credits_hiw */
	CALC_HIW_BELOW,	     /* peer_credits_hiw, at most D - 1 */
	CALC_HIW_SCALED,     /* D * peer_credits_hiw / peer_credits */
};

struct calc_model {
	const char *name;
	enum calc_send send;
	enum calc_hiw hiw;
	uint32_t frags_offered, frags_accepted;
	bool map_counts;    /* map_on_demand limits the number of fragments */
	bool sends_ignored; /* concurrent_sends has no effect */
	/* the completion queue has 2 D entries for sending */
	bool cq_by_depth;
	bool capped; /* the depth is lowered to the device's limits */
	/* a rejected initiator asks for no fewer fragments */
	bool never_lowers;
};

const struct calc_model *calc_model(enum ulnet_o2ib_model model);

static inline bool calc_is_user(const struct ulnet_o2ib_node *node)
{
	return node->conf.model == LNET_O2IB_USER;
}

enum calc_rule {
#define RULE(rule, name, text) RULE_##rule,
#include "lnd/o2iblnd/calc_rule.def"
#undef RULE
	RULE_COUNT
};

/* This function, and those below, add a note to @notes, unless @notes is NULL.
 * This one says that @name was changed from @before to @value. */
void calc_changed(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		  const char *name, int64_t before, int64_t value);
__attribute__((format(printf, 6, 7))) void calc_note(
	struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_note_kind kind,
	enum calc_rule rule, const char *name, int64_t value, const char *how,
	...);

/* Says that @name was computed as @value, without further text. */
void calc_value(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		const char *name, int64_t value);
void calc_side(struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_side side);

#endif
