/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the calculation share: the models as a table, and the rules
 * by name. ulnet/o2ib.h is what they offer.
 */
#ifndef LND_O2IBLND_CALC_H
#define LND_O2IBLND_CALC_H

#include "ulnet/o2ib.h"

#define CALC_MSG_BYTES	 4096 /* a message, and its buffer */
#define CALC_DEPTH_MIN	 8    /* peer_credits are no fewer, or more than */
#define CALC_DEPTH_MAX	 255  /* this */
#define CALC_DEPTH_V1	 8    /* fixed by version 1 of the protocol */
#define CALC_HIW_V1	 7
#define CALC_CS_MIN_V1	 4
#define CALC_CS_MAX_V1	 16
#define CALC_MAP_MAX	 256 /* map_on_demand of models 2.10 */
#define CALC_MAP_SENDS	 32  /* up to this, it doubles concurrent_sends */
#define CALC_POOL_MIN	 256 /* entries of the pool of a CPT */
#define CALC_CONNS_MAX	 127
#define CALC_SHRINK_MIN	 16  /* model 2.10.54 gives up below */
#define CALC_LONGEST_WRS 258 /* of one message: 257 fragments and its DONE */
/* This LND's send queues: for each message it and a few WRITEs, and so many at
 * least. More WRITEs than there is room for take turns (exchange.c). */
#define CALC_USER_WRITES  4
#define CALC_USER_WRS_MIN 64
#define CALC_BULK_BYTES	  (UINT32_C(1) << 20)

/* What max_send_wr is. */
enum calc_send {
	CALC_SEND_CS,	 /* (F + 1) * concurrent_sends */
	CALC_SEND_DEPTH, /* (F + 1) * D */
	CALC_SEND_EXTRA, /* (F + 1 + X) * D */
	CALC_SEND_USER,	 /* (1 + max_writes) * D */
};

/* When credits go back at once. */
enum calc_hiw {
	CALC_HIW_CONFIGURED, /* whatever the depth is */
	CALC_HIW_BELOW,	     /* at D - 1 at the latest */
	CALC_HIW_SCALED,     /* as peer_credits_hiw is to peer_credits */
};

struct calc_model {
	const char *name;
	enum calc_send send;
	enum calc_hiw hiw;
	uint32_t frags_offered, frags_accepted;
	bool map_counts; /* map_on_demand is a number, and limits fragments */
	bool sends_ignored; /* concurrent_sends has no effect */
	bool cq_by_depth;   /* completion queue: 2 D for what is sent */
	bool capped;	    /* the depth is lowered for the device's sake */
	bool never_lowers;  /* with fixed fragments, as the initiator */
};

const struct calc_model *calc_model(enum ulnet_o2ib_model model);

enum calc_rule {
#define RULE(rule, name, text) RULE_##rule,
#include "lnd/o2iblnd/calc_rule.def"
#undef RULE
	RULE_COUNT
};

/* Notes for those who ask for them: @notes may be NULL. */
void calc_changed(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		  const char *name, int64_t before, int64_t value);
__attribute__((format(printf, 6, 7))) void calc_note(
	struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_note_kind kind,
	enum calc_rule rule, const char *name, int64_t value, const char *how,
	...);

/* Computed, with nothing to add to the rule. */
void calc_value(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		const char *name, int64_t value);
void calc_side(struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_side side);

#endif
