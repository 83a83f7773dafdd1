/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection policies in commands and files. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/config/rig.h"
#include "ulnet/policy.h"

#define TWO                       \
	"udsp:\n"                 \
	"    - idx: 0\n"          \
	"      src: o2ib[1-3]\n"  \
	"      dst: NA\n"         \
	"      rte: NA\n"         \
	"      action:\n"         \
	"          priority: 4\n" \
	"    - idx: 1\n"          \
	"      src: NA\n"         \
	"      dst: tcp5\n"       \
	"      rte: 10.77.0.9@tcp\n"

Test(policy, added_shown_deleted)
{
	struct rig rig = rig_open();

	ask_out(&rig, "udsp show:", "");
	ask_out(&rig, "udsp add: {dst: tcp5, rte: 10.77.0.9@tcp}", "");
	ask_out(&rig, "udsp add: {src: 'o2ib[1,2-3]', priority: 4, idx: 0}",
		"");
	ask_out(&rig, "udsp show:", TWO);
	ask_out(&rig, "udsp show: {idx: 1}",
		"udsp:\n"
		"    - idx: 1\n"
		"      src: NA\n"
		"      dst: tcp5\n"
		"      rte: 10.77.0.9@tcp\n");
	ask_out(&rig, "udsp show: {idx: 7}", "");
	ask_out(&rig, "udsp add: {src: tcp0, dst: NA}", "");
	ask_out(&rig, "udsp show: {idx: 2}",
		"udsp:\n"
		"    - idx: 2\n"
		"      src: tcp\n"
		"      dst: NA\n"
		"      rte: NA\n"
		"      action:\n"
		"          priority: 0\n");
	ask_out(&rig, "udsp del: {idx: 2}", "");
	ask_out(&rig, "udsp show:", TWO);
	ask_fail(&rig, "udsp del: {idx: 2}", -ENOENT,
		 "cannot del udsp: No such file or directory");
	ask_out(&rig, "udsp del: {all: true}", "");
	ask_out(&rig, "udsp show:", "");
	rig_close(&rig);
}

Test(policy, refused)
{
	static const struct {
		const char *request;
		int rc;
		const char *why;
	} cases[] = {
		{ "udsp add: {}", -EINVAL, "one of src and dst is needed" },
		{ "udsp add: {src: nonsense}", -EINVAL,
		  "cannot add udsp: src" },
		{ "udsp add: {src: ''}", -EINVAL,
		  "src: a pattern is expected" },
		{ "udsp add: {src: tcp, rte: 10.0.0.1@tcp}", -EINVAL,
		  "rte: goes with dst alone" },
		{ "udsp add: {src: tcp, priority: -2}", -EINVAL,
		  "priority: -2 is not in" },
		{ "udsp add: {src: 10.0.0.1@tcp, dst: 10.0.0.2@tcp, priority: "
		  "1}",
		  -EINVAL, "priority: a pair has none" },
		{ "udsp add: {src: tcp, priority: -1}", -EINVAL,
		  "priority: -1 is not in" },
		{ "udsp add: {src: tcp, idx: 4294967294}", -EINVAL,
		  "idx: 4294967294 is not in" },
		{ "udsp add: {src: tcp, prio: 1}", -EINVAL,
		  "unknown key 'prio'" },
		{ "udsp del: {}", -EINVAL, "idx is missing" },
		{ "udsp del: {all: perhaps}", -EINVAL,
		  "true or false is expected" },
		{ "udsp show: {idx: x}", -EINVAL, "idx: " },
	};
	struct rig rig = rig_open();

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		ask_fail(&rig, cases[i].request, cases[i].rc, cases[i].why);
	ask_out(&rig, "udsp add: {src: tcp}", "");
	ask_fail(&rig, "udsp add: {src: tcp0, priority: 0}", -EALREADY,
		 "cannot add udsp: Operation already in progress");
	rig_close(&rig);
}

/* What public scripts do: they add a policy again, with another priority; they
 * name all nets of a type; and they delete policies by the ids that they have
 * seen. */
Test(policy, scripts)
{
	struct rig rig = rig_open();

	ask_out(&rig, "udsp add: {src: 'o2ib*', priority: 3}", "");
	ask_out(&rig, "udsp add: {src: tcp}", "");
	ask_out(&rig, "udsp add: {src: 'o2ib*', priority: 4}", "");
	ask_out(&rig, "udsp del: {idx: 1}", "");
	ask_out(&rig, "udsp add: {dst: tcp5, rte: 10.77.0.9@tcp, idx: 4}", "");
	ask_out(&rig, "udsp show:",
		"udsp:\n"
		"    - idx: 0\n"
		"      src: o2ib[*]\n"
		"      dst: NA\n"
		"      rte: NA\n"
		"      action:\n"
		"          priority: 4\n"
		"    - idx: 4\n"
		"      src: NA\n"
		"      dst: tcp5\n"
		"      rte: 10.77.0.9@tcp\n");
	ask_out(&rig, "udsp del: {idx: 0}", "");
	ask_out(&rig, "udsp show: {idx: 4}",
		"udsp:\n"
		"    - idx: 4\n"
		"      src: NA\n"
		"      dst: tcp5\n"
		"      rte: 10.77.0.9@tcp\n");
	rig_close(&rig);
}

/* ---- files ---- */

Test(policy, imported_and_exported)
{
	struct rig rig = rig_open();
	char *state;

	import_ok(&rig, "add", TWO);
	ask_out(&rig, "udsp show:", TWO);
	state = rig_state(&rig);
	cr_assert(strstr(state, TWO), "%s", state);
	free(state);
	import_fail(&rig, "add", TWO, -EALREADY, "udsp 1: cannot add udsp");
	/* A file deletes policies by their patterns, whatever their place. */
	import_ok(&rig, "del",
		  "udsp: [{src: NA, dst: tcp5, rte: "
		  "10.77.0.9@tcp0}]");
	import_fail(&rig, "del", "udsp: [{dst: tcp5, rte: 10.77.0.9@tcp}]",
		    -ENOENT, "udsp 1: cannot del udsp");
	import_ok(&rig, "del", "udsp: [{idx: 0}]");
	ask_out(&rig, "udsp show:", "");
	/* -1 stands for no priority where there can be none. */
	import_ok(&rig, "add",
		  "udsp: [{dst: tcp5, rte: 10.77.0.9@tcp, action: {priority: "
		  "-1}}]");
	import_fail(&rig, "add", "udsp: [{dst: tcp5, action: {priority: -1}}]",
		    -EINVAL, "udsp 1: priority: -1 is not in");
	rig_close(&rig);
}

/* A file that fails is undone, even if its steps have moved the policies. */
Test(policy, undone)
{
	struct rig rig = rig_open();

	import_ok(&rig, "add", TWO);
	import_fail(&rig, "add",
		    "udsp: [{idx: 0, src: tcp}, {src: tcp7}, {idx: 1, src: "
		    "tcp8}, {src: x}]",
		    -EINVAL, "udsp 4: cannot add udsp: src: ");
	ask_out(&rig, "udsp show:", TWO);
	import_fail(&rig, "add",
		    "udsp: [{src: 'o2ib[1-3]', action: {priority: 9}}, {src: "
		    "x}]",
		    -EINVAL, "udsp 2: cannot add udsp: src: ");
	ask_out(&rig, "udsp show:", TWO);
	import_fail(&rig, "del",
		    "udsp: [{idx: 0}, {idx: 1}]\n"
		    "route: [{net: tcp9, gateway: 10.0.0.1@tcp}]\n",
		    -ENOENT, "route 1: ");
	ask_out(&rig, "udsp show:", TWO);
	import_ok(&rig, "del", "udsp: [{idx: 0}, {idx: 1}]");
	ask_out(&rig, "udsp show:", "");
	import_fail(&rig, "add", "udsp: [{src: tcp, action: {prio: 1}}]",
		    -EINVAL, "unknown key 'prio'");
	rig_close(&rig);
}

Test(policy, unconfigured)
{
	struct rig rig = rig_open();

	import_ok(&rig, "add", TWO);
	ask_out(&rig, "lnet unconfigure:", "");
	ask_out(&rig, "lnet configure:", "");
	ask_out(&rig, "udsp show:", "");
	rig_close(&rig);
}
