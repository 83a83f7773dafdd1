/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that users add and delete, by commands and by files. */
#include "tests/unit/config/rig.h"

#define A1 "10.77.0.9@tcp"
#define A2 "10.77.1.9@tcp1"
#define A3 "10.77.2.9@tcp2"
#define B1 "10.77.0.5@tcp"
#define B2 "10.77.1.5@tcp1"

#define PEER(nid, multi_rail)                \
	"-     primary nid: " nid "\n"       \
	"      Multi-Rail: " multi_rail "\n" \
	"      peer ni:\n"
#define NI(nid)	      "      -     nid: " nid "\n"
#define NI_STATE(nid) NI(nid) "            state: NA\n"

/* Checks that the peers in a backup are exactly @peers. */
static void peers_are(struct rig *rig, const char *peers)
{
	char *state = rig_state(rig);
	char *start = strstr(state, "peer:\n");
	char *end = strstr(state, "global:\n");

	cr_assert_not_null(end, "%s", state);
	*end = 0;
	cr_assert_str_eq(start ? start : "", peers);
	free(state);
}

Test(peer, add_and_del)
{
	struct rig rig = rig_open();

	ask_out(&rig, "peer add: {prim_nid: " A1 ", nids: [" A2 ", " A3 "]}",
		"");
	ask_out(&rig, "peer show:",
		"peer:\n" PEER(A1, "true") NI_STATE(A1) NI_STATE(A2)
			NI_STATE(A3));
	/* Any NID of the peer selects it, not only the primary one. */
	ask_out(&rig, "peer show: {nid: " A3 "}",
		"peer:\n" PEER(A1, "true") NI_STATE(A1) NI_STATE(A2)
			NI_STATE(A3));
	ask_out(&rig, "peer list:", "peer list:\n-     nid: " A1 "\n");
	ask_out(&rig, "peer add: {prim_nid: " B1 ", non_mr: true}", "");
	peers_are(&rig, "peer:\n" PEER(B1, "false") NI(B1) PEER(A1, "true")
				NI(A1) NI(A2) NI(A3));
	/* Deletes a NID; adds two NIDs, one of which the peer has already; then
	 * deletes the peer by its primary NID alone. */
	ask_out(&rig, "peer del: {prim_nid: " A1 ", nids: " A2 "}", "");
	ask_out(&rig, "peer add: {prim_nid: " B1 ", nids: [" B2 ", " B1 "]}",
		"");
	peers_are(&rig, "peer:\n" PEER(B1, "true") NI(B1) NI(B2)
				PEER(A1, "true") NI(A1) NI(A3));
	ask_out(&rig, "peer del: {prim_nid: " A1 "}", "");
	peers_are(&rig, "peer:\n" PEER(B1, "true") NI(B1) NI(B2));
	/* Deleting the primary NID deletes the peer. */
	ask_out(&rig, "peer del: {prim_nid: " B1 ", nids: [" B1 "]}", "");
	peers_are(&rig, "");
	rig_close(&rig);
}

/* A range stands for all NIDs in it, in both options of both commands. */
Test(peer, ranges)
{
	struct rig rig = rig_open();

	ask_out(&rig,
		"peer add: {prim_nid: 10.7.0.1@tcp, nids: ['10.7.0.[1-3]@tcp', "
		"10.8.0.1@tcp1], ip2nets: '10.8.0.[1-5/2]@tcp2'}",
		"");
	ask_out(&rig, "peer show: {nid: 10.7.0.1@tcp}",
		"peer:\n"
		"-     primary nid: 10.7.0.1@tcp\n"
		"      Multi-Rail: true\n"
		"      peer ni:\n"
		"      -     nid: 10.7.0.1@tcp\n"
		"            state: NA\n"
		"      -     nid: 10.7.0.2@tcp\n"
		"            state: NA\n"
		"      -     nid: 10.7.0.3@tcp\n"
		"            state: NA\n"
		"      -     nid: 10.8.0.1@tcp1\n"
		"            state: NA\n"
		"      -     nid: 10.8.0.1@tcp2\n"
		"            state: NA\n"
		"      -     nid: 10.8.0.3@tcp2\n"
		"            state: NA\n"
		"      -     nid: 10.8.0.5@tcp2\n"
		"            state: NA\n");
	ask_out(&rig,
		"peer del: {prim_nid: 10.7.0.1@tcp, nids: ['10.7.0.[2-3]@tcp', "
		"10.8.0.1@tcp1], ip2nets: ['10.8.0.[1,3,5]@tcp2']}",
		"");
	ask_out(&rig, "peer show: {nid: 10.7.0.1@tcp}",
		"peer:\n"
		"-     primary nid: 10.7.0.1@tcp\n"
		"      Multi-Rail: true\n"
		"      peer ni:\n"
		"      -     nid: 10.7.0.1@tcp\n"
		"            state: NA\n");
	rig_close(&rig);
}

/* What is deleted is gone, unless it is in use. */
Test(peer, deleted_is_gone)
{
	struct rig rig = rig_open();

	ask_out(&rig, "peer add: {prim_nid: " A1 ", nids: [" A2 ", " A3 "]}",
		"");
	ask_out(&rig, "peer del: {prim_nid: " A1 ", nids: " A2 "}", "");
	ask_out(&rig, "peer show:",
		"peer:\n" PEER(A1, "true") NI_STATE(A1) NI_STATE(A3));
	ask_out(&rig, "peer del: {prim_nid: " A1 "}", "");
	ask_out(&rig, "peer show:", "");
	rig_close(&rig);
}

Test(peer, state)
{
	struct rig rig = rig_open();
	struct result r;

	ask_out(&rig, "peer add: {prim_nid: " A1 ", lock_prim: true}", "");
	r = ask(&rig, "peer show: {verbose: 3}");
	cr_assert(strstr(r.out, "      Multi-Rail: true\n"
				"      peer state: 9\n"),
		  "%s", r.out);
	result_free(&r);
	rig_close(&rig);
}

/* A command that fails leaves the peers unchanged, even if it had done a part
 * of its work. */
Test(peer, errors)
{
	static const struct {
		const char *request;
		int status;
		const char *words;
	} cases[] = {
		{ "peer add:", -EINVAL, "prim_nid is missing" },
		{ "peer add: {nids: [" A1 "]}", -EINVAL,
		  "prim_nid is missing" },
		{ "peer add: {prim_nid: x@y}", -EINVAL,
		  "cannot parse NID 'x@y'" },
		{ "peer add: {prim_nid: 0@lo}", -EINVAL,
		  "no peer has NID '0@lo'" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, nids: [1.2.3.5@tcp, 5]}",
		  -EINVAL, "cannot parse NID '5'" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, non_mr: 2}", -EINVAL,
		  "true or false is expected" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, frob: 2}", -EINVAL,
		  "unknown key 'frob'" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, lock_prim: 2}", -EINVAL,
		  "true or false is expected" },
		{ "peer del: {prim_nid: 1.2.3.4@tcp, ip2nets: x}", -EINVAL,
		  "cannot parse NID 'x'" },
		{ "peer add: {prim_nid: '1.2.3.[4-5]@tcp'}", -EINVAL,
		  "cannot parse NID '1.2.3.[4-5]@tcp'" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, nids: ['1.2.[3@tcp']}",
		  -EINVAL, "cannot parse NID '1.2.[3@tcp'" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, nids: ['*@tcp']}", -E2BIG,
		  "'*@tcp': ranges of more than 256 NIDs" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, nids: "
		  "['1.2.3.[0-199]@tcp', '1.2.4.[0-199]@tcp']}",
		  -E2BIG, "'1.2.4.[0-199]@tcp': ranges of more than 256" },
		{ "peer add: {prim_nid: 10.77.0.2@tcp}", -EINVAL,
		  "cannot add peer 10.77.0.2@tcp: that is a NID of this "
		  "node" },
		{ "peer add: {prim_nid: " A2 "}", -EEXIST,
		  "add:\n-     peer:\n      errno: -17\n      descr: ! "
		  "\"cannot add peer " A2
		  ": another configured peer has it\"" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, nids: [1.2.3.5@tcp, " A2
		  "]}",
		  -EEXIST,
		  "\"cannot add NID " A2 " to peer 1.2.3.4@tcp: another "
		  "configured peer has it\"" },
		{ "peer add: {prim_nid: 1.2.3.4@tcp, nids: [1.2.3.5@tcp, "
		  "10.77.0.2@tcp]}",
		  -EINVAL,
		  "\"cannot add NID 10.77.0.2@tcp to peer 1.2.3.4@tcp: that is "
		  "a NID of this node" },
		{ "peer add: {prim_nid: " B1 ", nids: [1.2.3.5@tcp, " A2
		  "], non_mr: true}",
		  -EEXIST, "\"cannot add NID " A2 " to peer " B1 ": " },
		{ "peer del: {prim_nid: 1.2.3.4@tcp}", -ENOENT,
		  "del:\n-     peer:\n      errno: -2\n      descr: ! "
		  "\"cannot del peer 1.2.3.4@tcp: no such peer was "
		  "configured\"" },
		{ "peer del: {prim_nid: " A2 "}", -ENOENT,
		  "no such peer was configured" },
		{ "peer del: {prim_nid: " A1 ", nids: [" A2 ", " B2 "]}",
		  -ENOENT,
		  "\"cannot del NID " B2 " from peer " A1 ": the peer has not "
		  "got it\"" },
	};
	struct rig rig = rig_open();
	char *before, *after, *peers, *peers_after;

	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_out(&rig, "peer add: {prim_nid: " A1 ", nids: [" A2 "]}", "");
	ask_out(&rig, "peer add: {prim_nid: " B1 ", nids: [" B2 "]}", "");
	before = rig_state(&rig);
	peers = rig_peers(&rig);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		ask_fail(&rig, cases[i].request, cases[i].status,
			 cases[i].words);
		after = rig_state(&rig);
		cr_assert_str_eq(after, before, "%s", cases[i].request);
		free(after);
		/* no NID either that was to belong to a peer, and is one */
		peers_after = rig_peers(&rig);
		cr_assert_str_eq(peers_after, peers, "%s", cases[i].request);
		free(peers_after);
	}
	free(before);
	free(peers);
	rig_close(&rig);
}

/* A node that imports what another node exports has the same peers; deleting
 * what is in that file removes them. */
static void round_trip(unsigned int cpts)
{
	static const char *const exports[] = { "export: {backup: true}",
					       "export:" };
	struct rig a = rig_open_with(cpts, NULL);
	struct result r;
	char *state;

	ask_out(&a, "net add: {net: tcp, interfaces: [eth0]}", "");
	ask_out(&a, "peer add: {prim_nid: " A1 ", nids: [" A2 ", " A3 "]}", "");
	ask_out(&a, "peer add: {prim_nid: " B1 ", nids: " B2 ", non_mr: true}",
		"");
	/* A peer that the node has only met is not configuration. */
	r = ask(&a, "ping: {nids: 10.77.0.98@tcp}");
	result_free(&r);
	state = rig_state(&a);
	peers_are(&a, "peer:\n" PEER(B1, "false") NI(B1) NI(B2) PEER(A1, "true")
			      NI(A1) NI(A2) NI(A3));
	for (unsigned int i = 0; i < ARRAY_SIZE(exports); i++) {
		struct rig b = rig_open_with(cpts, NULL);
		char *same;

		r = ask(&a, exports[i]);
		import_ok(&b, "add", r.out);
		same = rig_state(&b);
		cr_assert_str_eq(same, state);
		free(same);
		import_ok(&b, "del", r.out);
		peers_are(&b, "");
		result_free(&r);
		rig_close(&b);
	}
	free(state);
	rig_close(&a);
}

Test(peer, round_trip)
{
	round_trip(1);
}

Test(peer, round_trip_on_many_threads)
{
	round_trip(4);
}

Test(peer, files)
{
	struct rig rig = rig_open();
	struct result r;

	import_ok(&rig, "add",
		  "peer:\n- primary nid: " A1 "\n  peer ni:\n  - nid: " A2
		  "\n- primary nid: " B1 "\n  Multi-Rail: False\n"
		  "- primary nid: " B2 "\n  peer state: 273\n");
	peers_are(&rig, "peer:\n" PEER(B1, "false") NI(B1) PEER(A1, "true")
				NI(A1) NI(A2));
	r = import(&rig, "show", "peer:\n- primary nid: " B1 "\n");
	cr_assert_eq(strncmp(r.out, "peer:\n" PEER(B1, "false"), 28), 0, "%s",
		     r.out);
	result_free(&r);
	import_ok(&rig, "del",
		  "peer:\n- primary nid: " A1 "\n  peer ni:\n  - nid: " A2
		  "\n- primary nid: " B1 "\n");
	peers_are(&rig, "peer:\n" PEER(A1, "true") NI(A1));
	import_fail(&rig, "add", "peer:\n- Multi-Rail: true\n", -EINVAL,
		    "line 2, peer 1: primary nid is missing");
	import_fail(&rig, "show", "peer:\n- Multi-Rail: true\n", -EINVAL,
		    "primary nid is missing");
	import_fail(&rig, "add", "peer:\n- primary: " A1 "\n", -EINVAL,
		    "line 2, peer 1: unknown key 'primary'");
	import_fail(&rig, "add",
		    "peer:\n- primary nid: " A1 "\n  peer ni:\n  - {}\n",
		    -EINVAL, "line 4, peer 1: nid is missing");
	import_fail(&rig, "add",
		    "peer:\n- primary nid: " A1 "\n  Multi-Rail: maybe\n",
		    -EINVAL, "true or false is expected");
	rig_close(&rig);
}

/* A file fails after peers have been added, extended and deleted. Not even
 * peers that nobody has configured are left. */
Test(peer, files_are_all_or_nothing)
{
	struct rig rig = rig_open();
	char *before, *after;

	ask_out(&rig, "peer add: {prim_nid: " A1 ", nids: [" A2 "]}", "");
	ask_out(&rig, "peer add: {prim_nid: " B1 ", non_mr: true}", "");
	before = rig_peers(&rig);
	import_fail(&rig, "add",
		    "peer:\n- primary nid: 1.2.3.4@tcp\n  peer ni:\n"
		    "  - nid: 1.2.3.5@tcp\n"
		    "- primary nid: " A1 "\n  Multi-Rail: false\n"
		    "  peer ni:\n  - nid: " A2 "\n  - nid: " A3 "\n"
		    "- primary nid: " B1 "\n  peer ni:\n  - nid: " B2
		    "\n  - nid: " A2 "\n    seq_no: 7\n  seq_no: 5\n",
		    -EEXIST,
		    "      seq_no: 5\n      errno: -17\n      descr: ! \"line "
		    "10, peer 3: cannot add NID " A2 " to peer " B1);
	import_fail(&rig, "del",
		    "peer:\n- primary nid: " A1 "\n- primary nid: " B1
		    "\n- primary nid: " B1 "\n",
		    -ENOENT, "line 4, peer 3: cannot del peer " B1);
	import_fail(&rig, "add",
		    "peer:\n- primary nid: " A1 "\n  peer ni:\n  - nid: " A3
		    "\nnet:\n- net type: tcp\n  local NI(s):\n"
		    "  - interfaces: {0: eth9}\n",
		    -ENETDOWN, "tcp(eth9)");
	after = rig_peers(&rig);
	cr_assert_str_eq(after, before);
	free(before);
	free(after);
	rig_close(&rig);
}

/* A file has all NIDs of a peer: those that are not listed go. */
Test(peer, files_refresh)
{
	struct rig rig = rig_open();

	ask_out(&rig, "peer add: {prim_nid: " A1 ", nids: [" A2 "]}", "");
	import_ok(&rig, "add",
		  "peer:\n- primary nid: " A1 "\n  peer ni:\n  - nid: " A1
		  "\n  - nid: " A3 "\n");
	peers_are(&rig, "peer:\n" PEER(A1, "true") NI(A1) NI(A3));
	/* Without a list nothing is said of them. */
	import_ok(&rig, "add", "peer:\n- primary nid: " A1 "\n");
	peers_are(&rig, "peer:\n" PEER(A1, "true") NI(A1) NI(A3));
	/* A file that fails takes the refreshing back, too. */
	import_fail(&rig, "add",
		    "peer:\n- primary nid: " A1 "\n  peer ni:\n  - nid: " A2
		    "\nnet:\n- net type: tcp\n  local NI(s):\n"
		    "  - interfaces: {0: eth9}\n",
		    -ENETDOWN, "tcp(eth9)");
	peers_are(&rig, "peer:\n" PEER(A1, "true") NI(A1) NI(A3));
	rig_close(&rig);
}

Test(peer, unconfigure)
{
	struct rig rig = rig_open();

	ask_out(&rig, "peer add: {prim_nid: " A1 ", nids: [" A2 "]}", "");
	cr_assert_eq(lnet_control_remember(rig.control, NULL), 0);
	ask_out(&rig, "lnet unconfigure:", "");
	ask_out(&rig, "lnet configure:", "");
	peers_are(&rig, "");
	ask_out(&rig, "lnet unconfigure:", "");
	ask_out(&rig, "lnet configure: {all: true}", "");
	peers_are(&rig, "peer:\n" PEER(A1, "true") NI(A1) NI(A2));
	rig_close(&rig);
}
