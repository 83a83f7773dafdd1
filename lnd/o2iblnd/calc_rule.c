/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules in words, and the notes of what they did. */
#include <stdarg.h>
#include <stdio.h>

#include "lnd/o2iblnd/calc.h"

static const struct ulnet_o2ib_rule rules[RULE_COUNT] = {
	[RULE_KERNEL] = { "global_mr.kernel",
			  "RHEL 7 kernels before 3.10.0-693, and others before "
			  "4.9, have a global memory region" },
	[RULE_KERNEL_UNKNOWN] = { "global_mr.unknown",
				  "the kernel is not known; a recent one has "
				  "no "
				  "global memory region" },
	[RULE_KERNEL_BAD] = { "kernel.release",
			      "this is no release of a kernel" },
	[RULE_MR_GIVEN] = { "global_mr.given", "as it was said to be" },
	[RULE_PC_MIN] = { "peer_credits.min", "8 is the least" },
	[RULE_PC_MAX] = { "peer_credits.max", "255 is the most" },
	[RULE_PC_CREDITS] = { "peer_credits.credits",
			      "a peer has no more than all have: credits" },
	[RULE_HIW_MIN] = { "peer_credits_hiw.min",
			   "at least half of peer_credits" },
	[RULE_HIW_MAX] = { "peer_credits_hiw.max", "below peer_credits" },
	[RULE_MAP_DEFAULT] = { "map_on_demand.default",
			       "0 with a global memory region; without it 256 "
			       "in models 2.10, and 1 later" },
	[RULE_MAP_RANGE] = { "map_on_demand.range",
			     "not in the range from 0 (from 1 without global "
			     "memory region) to 256: the default" },
	[RULE_MAP_ONE] = { "map_on_demand.one", "one fragment is too few: 2" },
	[RULE_MAP_NEEDED] = { "map_on_demand.needed",
			      "without global memory region memory has to be "
			      "mapped: 1" },
	[RULE_CS_DEFAULT] = { "concurrent_sends.default",
			      "as many as peer_credits" },
	[RULE_CS_MAP] = { "concurrent_sends.map",
			  "twice peer_credits, since map_on_demand is from 1 "
			  "to 32" },
	[RULE_CS_MAX] = { "concurrent_sends.max",
			  "at most twice peer_credits" },
	[RULE_CS_MIN] = { "concurrent_sends.min",
			  "at least half of peer_credits" },
	[RULE_CS_LOW] = { "concurrent_sends.low",
			  "concurrent_sends below peer_credits: not all "
			  "credits "
			  "of a peer can be used at once" },
	[RULE_CS_IGNORED] = { "concurrent_sends.ignored",
			      "has no effect in model 2.11: the depth of the "
			      "queue is the limit" },
	[RULE_CS_V1] = { "concurrent_sends.v1",
			 "from 4 to 16 on connections of version 1" },
	[RULE_CONNS] = { "conns_per_peer.min", "at least one" },
	[RULE_CONNS_MAX] = { "conns_per_peer.max", "127 are the most" },
	[RULE_POOLS] = { "pools.exist",
			 "a node has pools of memory regions, unless "
			 "map_on_demand is 0 and there is a global memory "
			 "region" },
	[RULE_POOL_SIZE] = { "fmr_pool_size.min", "fmr_pool_size below a "
						  "quarter of ntx: the NI will "
						  "not start" },
	[RULE_REG_USUAL] = { "registration.usual",
			     "what is usual: fastreg; of model user, user" },
	[RULE_REG_MODEL] = { "registration.model",
			     "model user registers by itself, and no kernel "
			     "does as it does" },
	[RULE_REG_NO_MR] = { "registration.no_global",
			     "there is no global memory region: fastreg" },
	[RULE_REG_NO_POOLS] = { "registration.no_pools",
				"there are no pools: global" },
	[RULE_EXTRA] = { "registration.wrs",
			 "fastreg takes two work requests more: to invalidate "
			 "and to register" },
	[RULE_FRAGS_MAP] = { "frags.map",
			     "models 2.10: map_on_demand; 256 if that is 0" },
	[RULE_FRAGS_MODEL] = { "frags.model",
			       "256 up to 2.14, 257 since 2.15" },
	[RULE_FRAGS_USER] = { "frags.user",
			      "model user asks for 256 and allows 257" },
	[RULE_DEPTH] = { "depth.limit", "peer_credits" },
	[RULE_DEPTH_V1] = { "depth.v1", "fixed by version 1 of the protocol" },
	[RULE_NO_NI] = { "connect.no_ni",
			 "no connection to or from an NI that does not start" },
	[RULE_ASK_VERSION] = { "connect.version",
			       "the acceptor speaks version 1: rejected, and "
			       "asked again in version 1" },
	[RULE_ASK_DEPTH] = { "connect.queue_size",
			     "more than the acceptor's peer_credits: rejected, "
			     "and asked again with these" },
	[RULE_ASK_FRAGS] = { "connect.frags",
			     "more fragments than the acceptor allows: "
			     "rejected, and asked again with what it allows" },
	[RULE_ASK_FIXED] = { "connect.frags_fixed",
			     "up to 2.14, an initiator with global memory "
			     "region and map_on_demand 0 cannot use fewer "
			     "fragments: no connection" },
	[RULE_ASK_DEMANDED] = { "connect.frags_demanded",
				"an acceptor without pools rejects fewer "
				"fragments than its own, and no initiator can "
				"raise them: no connection" },
	[RULE_ASK_V1] = { "connect.frags_v1",
			  "more fragments than the acceptor allows, and no way "
			  "to say so in version 1: no connection" },
	[RULE_ASK_NO_V1] = { "connect.no_v1",
			     "model user does not speak version 1: no "
			     "connection" },
	[RULE_ASK_NO_DEPTH] = { "connect.no_depth",
				"a depth of 0 is no queue: no connection" },
	[RULE_ACCEPTED] = { "connect.accepted",
			    "neither more than the acceptor allows" },
	[RULE_CAP] = { "depth.device",
		       "since 2.12: no deeper than the device's max_qp_wr "
		       "work requests are enough for; model user: and its "
		       "max_cqe" },
	[RULE_FLOW_SCALED] = { "hiw.scaled",
			       "since 2.16: of the depth as much as "
			       "peer_credits_hiw is of peer_credits" },
	[RULE_FLOW_BELOW] = { "hiw.below",
			      "2.12 to 2.15: peer_credits_hiw, but below the "
			      "depth" },
	[RULE_FLOW_CONFIGURED] = { "hiw.configured",
				   "up to 2.11: peer_credits_hiw, whatever the "
				   "depth is" },
	[RULE_FLOW_V1] = { "hiw.v1", "fixed by version 1 of the protocol" },
	[RULE_FLOW_STALL] = { "hiw.stall",
			      "hiw above the depth: credits are never returned "
			      "at once, and traffic that goes one way stalls "
			      "until the next keepalive" },
	[RULE_FLOW_ZERO] = { "hiw.zero",
			     "hiw 0: each message that returns credits is "
			     "answered by another one, without end" },
	[RULE_RX] = { "recv.version2",
		      "as many messages as the depth, as many answers, and 2 "
		      "to return credits" },
	[RULE_RX_V1] = { "recv.version1",
			 "as many messages as the depth, and as many answers" },
	[RULE_RX_BYTES] = { "recv.bytes", "4096 bytes each" },
	[RULE_RX_PAGES] = { "recv.pages", "in pages of the node" },
	[RULE_SEND_CS] = { "send.concurrent",
			   "2.10.54: fragments and one more, times "
			   "concurrent_sends" },
	[RULE_SEND_DEPTH] = { "send.depth",
			      "2.10: fragments and one more, times the depth" },
	[RULE_SEND_EXTRA] = { "send.registration",
			      "since 2.11: fragments, one more, and what "
			      "registration takes, times the depth" },
	[RULE_SEND_USER] = { "send.user",
			     "model user: max_writes and one more, times the "
			     "depth; at least 64, if there is room" },
	[RULE_SEND_SHRINKS] = { "send.shrinks", "more than the device's "
						"max_qp_wr: lowered by a "
						"quarter until it is enough, "
						"and sends may fail "
						"for lack of work requests" },
	[RULE_SEND_FAILS] = { "send.fails",
			      "more than the device's max_qp_wr: creating the "
			      "queue pair may fail" },
	[RULE_SEND_CAPPED] = { "send.capped",
			       "model user: no more than the device's "
			       "max_qp_wr; what is more takes turns" },
	[RULE_CQ] = { "cq.all", "max_recv_wr and max_send_wr" },
	[RULE_CQ_DEPTH] = { "cq.depth",
			    "2.11: max_recv_wr and twice the depth" },
	[RULE_CQ_CAPPED] = { "cq.device", "max_recv_wr and the device's "
					  "max_qp_wr, which has "
					  "lowered the depth" },
	[RULE_CQ_MAX] = { "cq.max",
			  "more than the device's max_cqe: no connection" },
	[RULE_POSTED] = { "posted.concurrent", "concurrent_sends" },
	[RULE_POSTED_DEPTH] = { "posted.depth", "2.11: the depth" },
	[RULE_BULK_GLOBAL] = { "bulk.global", "a write for each page of 1 MiB, "
					      "and the message "
					      "that it is done" },
	[RULE_BULK_FMR] = { "bulk.fmr", "a write, and the message that it is "
					"done" },
	[RULE_BULK_FASTREG] = { "bulk.fastreg",
				"invalidate, register, write, and the message "
				"that it is done" },
	[RULE_BULK_USER] = { "bulk.user",
			     "a write for each wrq_sge pieces, and the message "
			     "that it is done" },
	[RULE_TYPICAL] = { "send.typical",
			   "posted messages times the work requests of a bulk "
			   "message" },
	[RULE_TYPICAL_MANY] = { "send.many",
				"bulk messages need more work requests than "
				"there are: sends may fail" },
	[RULE_WORST] = { "send.worst",
			 "posted messages, each with all fragments" },
	[RULE_WORST_PERCENT] = { "send.worst_percent",
				 "of max_send_wr; above 100 work requests "
				 "would "
				 "be missing if all messages had all "
				 "fragments" },
	[RULE_WIRE] = { "wire.depth", "the depth" },
	[RULE_PEER] = { "peer.conns",
			"times conns_per_peer of the node that connects" },
	[RULE_TX_POOL] = { "tx.pool",
			   "each CPT has its part of ntx, at least 256" },
	[RULE_MR_POOL] = { "mr.pool",
			   "each CPT has its part of fmr_pool_size, at least "
			   "256; none without pools" },
	[RULE_NODE_RX] = { "node.rx", "of all peers" },
};

const struct ulnet_o2ib_rule *lnet_o2ib_rule(unsigned int number)
{
	return number < RULE_COUNT ? &rules[number] : NULL;
}

static struct ulnet_o2ib_note *note_add(struct ulnet_o2ib_notes *notes,
					enum ulnet_o2ib_note_kind kind,
					enum calc_rule rule, const char *name)
{
	struct ulnet_o2ib_note *note;

	if (!notes)
		return NULL;
	if (notes->n >= LNET_O2IB_NOTES_MAX) {
		notes->lost++;
		return NULL;
	}
	note = &notes->note[notes->n++];
	*note = (struct ulnet_o2ib_note){ .kind = kind,
					  .side = notes->side,
					  .name = name,
					  .rule = &rules[rule] };
	return note;
}

void calc_changed(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		  const char *name, int64_t before, int64_t value)
{
	struct ulnet_o2ib_note *note =
		note_add(notes, LNET_O2IB_CHANGED, rule, name);

	if (!note)
		return;
	note->before = before;
	note->value = value;
}

void calc_value(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		const char *name, int64_t value)
{
	struct ulnet_o2ib_note *note =
		note_add(notes, LNET_O2IB_COMPUTED, rule, name);

	if (note)
		note->value = value;
}

void calc_note(struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_note_kind kind,
	       enum calc_rule rule, const char *name, int64_t value,
	       const char *how, ...)
{
	struct ulnet_o2ib_note *note = note_add(notes, kind, rule, name);
	va_list ap;

	if (!note)
		return;
	note->value = value;
	va_start(ap, how);
	vsnprintf(note->how, sizeof(note->how), how, ap);
	va_end(ap);
}

void calc_side(struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_side side)
{
	if (notes)
		notes->side = side;
}
