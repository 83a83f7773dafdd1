/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault rules: how users give and see them (requirement H7). */
#include "tests/unit/config/rig.h"

#define STATISTICS                \
	"      statistics:\n"     \
	"            seen: 0\n"   \
	"            struck: 0\n" \
	"            put: 0\n"    \
	"            ack: 0\n"    \
	"            get: 0\n"    \
	"            reply: 0\n"
#define ANYWHERE                \
	"      source: \"*\"\n" \
	"      dest: \"*\"\n"   \
	"      local_nid: \"*\"\n"

/* Rules as they are added, and how they are shown. */
static const struct {
	const char *kind, *args, *shown;
} rules[] = {
	{ "drop", "rate: 10", ANYWHERE "      rate: 10\n" },
	{ "drop", "drop_all: true", ANYWHERE "      rate: 1\n" },
	{ "drop", "source: 10.0.0.1@tcp, dest: '*@tcp1', rate: 2",
	  "      source: 10.0.0.1@tcp\n"
	  "      dest: \"*@tcp1\"\n"
	  "      local_nid: \"*\"\n"
	  "      rate: 2\n" },
	{ "drop",
	  "source: 255.255.255.255@tcp, dest: '*', local_nid: 10.0.0.2@tcp, "
	  "interval: 3",
	  "      source: \"*@tcp\"\n"
	  "      dest: \"*\"\n"
	  "      local_nid: 10.0.0.2@tcp\n"
	  "      interval: 3\n" },
	{ "drop", "rate: 1, portal: [26, '4'], message: [get, PUT]",
	  ANYWHERE "      portal:\n"
		   "      - 4\n"
		   "      - 26\n"
		   "      message:\n"
		   "      - PUT\n"
		   "      - GET\n"
		   "      rate: 1\n" },
	{ "drop", "rate: 5, health_error: Remote_Dropped",
	  ANYWHERE "      rate: 5\n"
		   "      health_error:\n"
		   "      - remote_dropped\n" },
	{ "delay", "rate: 1, random: true, latency: 0.25",
	  ANYWHERE "      rate: 1\n"
		   "      random: true\n"
		   "      latency: 0.25\n" },
	{ "delay", "interval: 0.000001, latency: 604800",
	  ANYWHERE "      interval: 0.000001\n"
		   "      latency: 604800\n" },
	{ "duplicate", "rate: 4294967295, message: [REPLY, ACK]",
	  ANYWHERE "      message:\n"
		   "      - ACK\n"
		   "      - REPLY\n"
		   "      rate: 4294967295\n" },
	{ "corrupt", "rate: 3", ANYWHERE "      rate: 3\n" },
	{ "error", "rate: 3, health_error: [local_error, network_timeout]",
	  ANYWHERE "      rate: 3\n"
		   "      health_error:\n"
		   "      - local_error\n"
		   "      - network_timeout\n" },
	{ "error", "rate: 3, health_error: RANDOM",
	  ANYWHERE "      rate: 3\n"
		   "      health_error:\n"
		   "      - local_interrupt\n"
		   "      - local_dropped\n"
		   "      - local_aborted\n"
		   "      - local_no_route\n"
		   "      - local_error\n"
		   "      - local_timeout\n"
		   "      - remote_error\n"
		   "      - remote_dropped\n"
		   "      - remote_timeout\n"
		   "      - network_timeout\n" },
};

static void check_rule(struct rig *rig, const char *kind, const char *args,
		       const char *shown)
{
	char request[256], out[1024];

	snprintf(request, sizeof(request),
		 "fault: {rule_type: %s, action: add, %s}", kind, args);
	ask_out(rig, request, "");
	snprintf(request, sizeof(request),
		 "fault: {rule_type: %s, action: show}", kind);
	snprintf(out, sizeof(out), "fault:\n-     rule_type: %s\n%s" STATISTICS,
		 kind, shown);
	ask_out(rig, request, out);
	snprintf(request, sizeof(request),
		 "fault: {rule_type: %s, action: del, all: true}", kind);
	ask_out(rig, request, "");
}

Test(fault, rules)
{
	struct rig rig = rig_open();

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		check_rule(&rig, rules[i].kind, rules[i].args, rules[i].shown);
	rig_close(&rig);
}

Test(fault, bad_rules)
{
	static const struct {
		const char *kind, *args, *said;
	} bad[] = {
		{ "drop", "source: '*'",
		  "one of rate, interval and drop_all is needed" },
		{ "drop", "rate: 2, interval: 2", "one of rate, interval" },
		{ "drop", "rate: 2, drop_all: true", "one of rate, interval" },
		{ "drop", "drop_all: false", "one of rate, interval" },
		{ "drop", "rate: 0", "rate: 0 is not in 1..4294967295" },
		{ "drop", "rate: -1", "rate: -1 is not in" },
		{ "drop", "rate: x", "rate: a number is expected" },
		{ "drop", "rate: 1, source: nonsense@x",
		  "source: cannot parse NID 'nonsense@x'" },
		{ "drop", "rate: 1, dest: '*@x'",
		  "dest: cannot parse NID '*@x'" },
		{ "drop", "rate: 1, local_nid: ''", "local_nid" },
		{ "drop", "rate: 1, portal: 64",
		  "portal: a number is expected, 0 to 63" },
		{ "drop", "rate: 1, portal: [x]",
		  "portal: a number is expected" },
		{ "drop", "rate: 1, message: [PUT, HELLO]",
		  "message: unknown: 'HELLO'" },
		{ "drop", "rate: 1, message: ACK, portal: 4",
		  "portal: ACKs and REPLYs have none" },
		{ "drop", "rate: 1, health_error: shutdown",
		  "health_error: unknown: 'shutdown'" },
		{ "drop", "rate: 1, latency: 1",
		  "drop: latency is not for such rules" },
		{ "drop", "interval: 0", "interval: seconds are expected" },
		{ "drop", "interval: 1.x", "seconds are expected" },
		{ "drop", "interval: 0.0000001", "seconds are expected" },
		{ "drop", "interval: 604800.1", "seconds are expected" },
		{ "drop", "interval: 99999999999999999999", "seconds are" },
		{ "drop", "interval: -1", "seconds are expected" },
		{ "drop", "interval: [1]", "seconds are expected" },
		{ "delay", "rate: 1", "delay: latency is needed" },
		{ "delay", "rate: 1, latency: 1, health_error: local_error",
		  "health_error is not for such rules" },
		{ "duplicate", "rate: 1, latency: 1", "not for such rules" },
		{ "corrupt", "rate: 1, health_error: local_error",
		  "not for such rules" },
		{ "error", "rate: 1", "error: health_error is needed" },
		{ "error", "rate: 1, random: 7", "true or false is expected" },
	};
	struct rig rig = rig_open();
	char request[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(request, sizeof(request),
			 "fault: {rule_type: %s, action: add, %s}", bad[i].kind,
			 bad[i].args);
		ask_fail(&rig, request, -22, bad[i].said);
	}
	ask_out(&rig, "fault: {rule_type: drop, action: show}", "");
	rig_close(&rig);
}

Test(fault, format_of_errors)
{
	struct rig rig = rig_open();

	ask_fail(&rig, "fault: {rule_type: drop, action: add, rate: 0}", -22,
		 "---\nadd:\n-     fault:\n      errno: -22\n      descr: ! "
		 "\"rate: 0 is not in 1..4294967295\"\n...\n");
	ask_fail(&rig, "fault: {rule_type: drop, action: del, source: '*'}", -2,
		 "---\ndel:\n-     fault:\n      errno: -2\n      descr: ! "
		 "\"there is no such rule\"\n...\n");
	ask_fail(&rig, "fault: {rule_type: drop, action: del}", -22,
		 "either source and dest, or all, is needed");
	ask_fail(&rig,
		 "fault: {rule_type: drop, action: del, all: yes, dest: '*'}",
		 -22, "either source and dest, or all, is needed");
	ask_fail(&rig, "fault: {rule_type: drop}", -22, "action is missing");
	ask_fail(&rig, "fault: {rule_type: drop, action: lose}", -22,
		 "action: unknown: ");
	ask_fail(&rig, "fault: {action: reset}", -22, "rule_type is missing");
	ask_fail(&rig, "fault: {action: show, rule_type: lose}", -22,
		 "rule_type: unknown: 'lose'");
	ask_fail(&rig, "fault: {rule_type: drop, action: show, rat: 1}", -22,
		 "unknown key ");
	ask_fail(&rig, "fault:", -22, "action is missing");
	rig_close(&rig);
}

Test(fault, delete_and_reset)
{
	struct rig rig = rig_open();

	ask_out(&rig,
		"fault: {rule_type: drop, action: add, source: 10.0.0.1@tcp, "
		"rate: 1}",
		"");
	ask_out(&rig,
		"fault: {rule_type: drop, action: add, source: 10.0.0.2@tcp, "
		"rate: 1}",
		"");
	ask_out(&rig, "fault: {rule_type: corrupt, action: add, rate: 1}", "");
	ask_out(&rig, "fault: {rule_type: drop, action: reset}", "");
	ask_out(&rig, "fault: {action: show}",
		"fault:\n-     rule_type: drop\n"
		"      source: 10.0.0.1@tcp\n      dest: \"*\"\n"
		"      local_nid: \"*\"\n      rate: 1\n" STATISTICS
		"-     rule_type: drop\n"
		"      source: 10.0.0.2@tcp\n      dest: \"*\"\n"
		"      local_nid: \"*\"\n      rate: 1\n" STATISTICS
		"-     rule_type: corrupt\n" ANYWHERE
		"      rate: 1\n" STATISTICS);
	ask_out(&rig,
		"fault: {rule_type: drop, action: del, source: 10.0.0.1@tcp, "
		"dest: '*'}",
		"");
	ask_out(&rig, "fault: {rule_type: drop, action: show}",
		"fault:\n-     rule_type: drop\n"
		"      source: 10.0.0.2@tcp\n      dest: \"*\"\n"
		"      local_nid: \"*\"\n      rate: 1\n" STATISTICS);
	ask_out(&rig, "fault: {rule_type: drop, action: del, all: true}", "");
	ask_out(&rig, "fault: {rule_type: drop, action: del, all: true}", "");
	ask_out(&rig, "fault: {rule_type: drop, action: show}", "");
	ask_out(&rig, "lnet unconfigure:", "");
	ask_fail(&rig, "fault: {rule_type: corrupt, action: show}", -100,
		 "not configured");
	ask_out(&rig, "lnet configure:", "");
	ask_out(&rig, "fault: {rule_type: corrupt, action: show}", "");
	rig_close(&rig);
}

Test(fault, too_many_rules)
{
	struct rig rig = rig_open();
	char request[64];

	for (unsigned int i = 0; i < 256; i++) {
		snprintf(request, sizeof(request),
			 "fault: {rule_type: drop, action: add, rate: %u}",
			 i + 1);
		ask_out(&rig, request, "");
		ask_fail(&rig, request, -17, "fault drop: there is this rule");
	}
	ask_fail(&rig,
		 "fault: {rule_type: delay, action: add, rate: 1, "
		 "latency: 1}",
		 -28, "fault delay: No space left on device");
	rig_close(&rig);
}
