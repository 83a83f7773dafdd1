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
	/* Kernel nodes print -1 for a policy without a priority. */
	ask_out(&rig, "udsp add: {src: tcp0, dst: NA, priority: -1}", "");
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
		{ "udsp add: {src: tcp, idx: 1}", -ERANGE,
		  "idx: there are fewer policies" },
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
	ask_fail(&rig, "udsp add: {src: tcp0, priority: 3}", -EEXIST,
		 "cannot add udsp: there is one with these patterns");
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
	import_fail(&rig, "add", TWO, -EEXIST, "udsp 1: cannot add udsp");
	/* A file deletes policies by their patterns, whatever their place. */
	import_ok(&rig, "del",
		  "udsp: [{src: NA, dst: tcp5, rte: "
		  "10.77.0.9@tcp0}]");
	import_fail(&rig, "del", "udsp: [{dst: tcp5, rte: 10.77.0.9@tcp}]",
		    -ENOENT, "udsp 1: cannot del udsp");
	import_ok(&rig, "del", "udsp: [{idx: 0}]");
	ask_out(&rig, "udsp show:", "");
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
