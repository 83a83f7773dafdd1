/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints lnet_states(7) from the tables of the state machines: "make states"
 * writes the page, and tests/states_check.sh compares it. What a state means is
 * written here; a state without a meaning is an error.
 */
#include <stdio.h>

#include "base/util.h"
#include "config/request/show.h"
#include "lnet/discovery/state.h"
#include "lnet/message/in.h"
#include "lnet/message/op.h"
#include "lnet/net/ni.h"
#include "lnet/peer/peer.h"
#include "lnet/peer/provenance.h"

static const char *const ni_meaning[NI_STATES] = {
	[NI_INIT] = "Its LND starts.",
	[NI_ACTIVE] = "It can be used, unless it is down.",
	[NI_DELETING] = "It was deleted, and messages that use it end.",
};

static const char *const ni_does[DEBUG_NIS] = {
	[DEBUG_NI_ACTIVE] = "Nothing is wrong with it.",
	[DEBUG_NI_ILL] = "Failures have taken from its health: others are used "
			 "before it.",
	[DEBUG_NI_RECOVERING] =
		"The same, and pings are sent until it is well.",
	[DEBUG_NI_DOWN] = "Of this node: its link or its address is gone.\n"
			  "Of a peer: the peer says so.\n"
			  "Nothing is sent by it.",
};

static const char *const net_does[DEBUG_NETS] = {
	[DEBUG_NET_ACTIVE] = "One of them is up, and messages go over it.",
	[DEBUG_NET_INACTIVE] =
		"All of them are down: messages for peers that are on no other "
		"net fail, until one is back.",
};

static const char *const peer_meaning[PEER_STATES] = {
	[PEER_UNKNOWN] =
		("What is known of it was said by its messages, or by an "
		 "administrator."),
	[PEER_QUEUED] = "It waits for the next step of its discovery.",
	[PEER_DISCOVERING] = "It was asked for its NIDs, by a ping.",
	[PEER_MERGING] = "What it has told becomes what is known of it.",
	[PEER_PUSHING] = "It is told of the NIDs of this node, by a push.",
	[PEER_DISCOVERED] = "Both know of each other.",
	[PEER_FAILED] =
		"It has not answered, and is asked again after a pause.",
};

static const char *const place_meaning[PEER_PLACES] = {
	[PEER_HERE] = "This CPT owns it.",
	[PEER_ALIAS] =
		"Another CPT owns it, and what comes in from it by older "
		"connections comes in here.",
};

static const char *const provenance_meaning[PEER_PROVENANCES] = {
	[PEER_VERIFIED] =
		"It has said so itself, or an administrator has, or it "
		"is the only one.",
	[PEER_DISPUTED] =
		"The same, but another peer says that it is his: it "
		"is asked.",
	[PEER_UNVERIFIED] = "Only another NID of the peer has said so.",
	[PEER_QUESTIONED] = "The same, and now it is used: it is asked.",
};

static const char *const op_meaning[OP_STATES] = {
	[OP_SENDING] = "The request is on its way out.",
	[OP_SENDING_RECEIVING] = "So it is, and its REPLY is coming in.",
	[OP_SENDING_ANSWERED] = "So it is, and its answer is there.",
	[OP_WAITING] = ("The request was sent; its answer is awaited, until "
			"the deadline."),
	[OP_RECEIVING] = "The request was sent; its REPLY is coming in.",
	[OP_DONE] = "Its terminal event has come.",
};

static const char *const out_meaning[OUT_STATES] = {
	[OUT_NEW] = "Nothing has been taken for it yet.",
	[OUT_DISCOVERING] = "It waits until its peer is discovered.",
	[OUT_DELAYED] = "It has its path, and a fault rule keeps it back.",
	[OUT_PEER_QUEUE] =
		"It waits for a credit of the peer's interface, and has none "
		"of this node's.",
	[OUT_NI_QUEUE] = "It has a credit of the peer's interface, and waits "
			 "for one of this node's.",
	[OUT_CONNECTING] = "It has no credit, and waits until the LND has a "
			   "connection.",
	[OUT_LND] =
		("It has both credits, and the LND is sending it.\n"
		 "A REPLY that the LND writes to where the GET has said needs "
		 "none."),
	[OUT_REFUSED] = "It has both credits, and the LND did not take it: "
			"its try is about to fail.",
	[OUT_PAUSED] =
		"It was certainly not delivered, and waits for another try, "
		"without a credit.",
	[OUT_DONE] = "It is over.",
};

static const char *const in_meaning[IN_STATES] = {
	[IN_NEW] = "Nobody has been told of it yet.",
	[IN_DELAYED] = "A fault rule keeps it back.",
	[IN_PARKED] = "It waits: its sender has its share of messages.",
	[IN_BUFFERLESS] = "It is for another node, and waits for a buffer of "
			  "this router.",
	[IN_OFFERED] = "The CPTs are asked for a match entry, one after the "
		       "other.",
	[IN_HELD] = "A lazy portal keeps it until there is a match entry.",
	[IN_RECV] = "The LND stores its payload.",
	[IN_DONE] = "It is over, or answered, or passed on: then it goes out.",
};

static const char *const events[DISC_EVENTS] = {
	[DISC_ON_WANTED] = "a message is for it, or there is news to tell it",
	[DISC_ON_NEWS] = "it pushed, or somebody asks for its discovery",
	[DISC_ON_STEP_PING] = "its turn: it must be asked",
	[DISC_ON_STEP_MERGE] = "its turn: it has told something",
	[DISC_ON_STEP_PUSH] = "its turn: it must be told",
	[DISC_ON_STEP_END] = "its turn: nothing is missing",
	[DISC_ON_ANSWER] = "it has answered",
	[DISC_ON_CUT] = "the answer did not fit",
	[DISC_ON_SILENT] = "one of its NIDs gives no answer",
	[DISC_ON_PING_FAILED] = "none of its NIDs gives an answer",
	[DISC_ON_MERGED] = "what it told is known now",
	[DISC_ON_MERGE_FAILED] = "that could not be done",
	[DISC_ON_ACK] = "it has acknowledged the push",
	[DISC_ON_PUSH_FAILED] = "it has not",
	[DISC_ON_PAUSE_OVER] = "the pause is over",
	[DISC_ON_GIVE_UP] = "it has failed often enough",
	[DISC_ON_OVER] = "another peer has its NIDs, or the node closes",
};

static const char *const actions[DISC_ACTIONS] = {
	[DISC_IGNORE] = "seen in the next step",
	[DISC_ENQUEUE] = "wait for a turn",
	[DISC_LOOK] = "the next step at once",
	[DISC_PING] = "ping",
	[DISC_MERGE] = "merge",
	[DISC_PUSH] = "push",
	[DISC_END] = "messages go on",
	[DISC_PAUSE] = "messages go to the NIDs that they name",
	[DISC_FORGET] = "messages go to the NIDs that they name",
};

static bool missing; /* a meaning */

static const char *meaning(const char *const *texts, unsigned int i)
{
	if (texts[i])
		return texts[i];
	missing = true;
	return "";
}

/* The states, an arrow from each to those that may follow, and what they mean.
 */
static void machine(const struct fsm_state *table, unsigned int n,
		    const char *const *texts)
{
	puts(".Bd -literal -offset indent");
	for (unsigned int i = 0; i < n; i++) {
		const char *before = "-->";

		printf("%-12s", table[i].name);
		for (unsigned int to = 0; to < n; to++) {
			if (!(table[i].next & FSM_TO(to)))
				continue;
			printf(" %s %s", before, table[to].name);
			before = "|";
		}
		puts(table[i].next ? "" : " (the end)");
	}
	puts(".Ed\n.Bl -tag -width discovering");
	for (unsigned int i = 0; i < n; i++)
		printf(".It Ql %s\n%s\n", table[i].name, meaning(texts, i));
	puts(".El");
}

/* The same, where more follow a state than a line has room for. */
static void listed(const struct fsm_state *table, unsigned int n,
		   const char *const *texts)
{
	puts(".Bl -tag -width Ds");
	for (unsigned int i = 0; i < n; i++) {
		const char *before = "\nThen:\n";

		printf(".It Ql %s\n%s", table[i].name, meaning(texts, i));
		for (unsigned int to = 0; to < n; to++) {
			if (!(table[i].next & FSM_TO(to)))
				continue;
			printf("%s%s", before, table[to].name);
			before = ";\n";
		}
		puts(table[i].next ? "." : "");
	}
	puts(".El");
}

/* Each line of the table of discovery. */
static void moves(void)
{
	enum disc_action action;
	enum peer_state to;

	for (unsigned int s = 0; s < PEER_STATES; s++) {
		printf(".Pp\nIn\n.Ql %s :\n.Bl -bullet -compact\n",
		       peer_states[s].name);
		for (unsigned int e = 0; e < DISC_EVENTS; e++) {
			if (!disc_row((enum peer_state)s, (enum disc_event)e,
				      &action, &to))
				continue;
			printf(".It\n%s:\n%s,\n", meaning(events, e),
			       meaning(actions, action));
			if (to == s)
				puts("no move");
			else
				printf("to\n.Ql %s\n", peer_states[to].name);
		}
		puts(".El");
	}
}

#define MACHINE(table, texts) machine(table, ARRAY_SIZE(texts), texts)
#define LISTED(table, texts)  listed(table, ARRAY_SIZE(texts), texts)

int main(void)
{
	puts(".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
	     ".\\\" Written by \"make states\": change the tables, or "
	     "tests/states.c.\n"
	     ".Dd November 28, 2026\n"
	     ".Dt LNET_STATES 7\n"
	     ".Os ulnet\n"
	     ".Sh NAME\n"
	     ".Nm lnet_states\n"
	     ".Nd states of interfaces, nets, peers, operations and messages\n"
	     ".Sh DESCRIPTION\n"
	     "What a node has, and what it knows of others, has states.\n"
	     "Those of interfaces, nets and peers\n"
	     ".Xr lnetctl 8\n"
	     "shows by name:\n"
	     ".Ql net show -v 5 ,\n"
	     ".Ql peer show -v 5\n"
	     "and\n"
	     ".Ql debug peer .\n"
	     "This page is made of the tables that the program follows.\n"
	     "An arrow leads from a state to those that may follow it.\n"
	     ".Ss Interfaces of this node");
	MACHINE(ni_states, ni_meaning);
	puts("While it is\n.Ql active ,\nits state name tells how it does:");
	MACHINE(debug_nis, ni_does);
	puts("Its counters are in\n.Va statistics\nand\n"
	     ".Va health stats .\n"
	     ".Ss Nets\n"
	     "A net is there with its first interface, and goes with its last "
	     "one.\n"
	     "Its state follows from theirs:");
	MACHINE(debug_nets, net_does);
	puts("It is as healthy as the best of those that are up, and its\n"
	     ".Va statistics\nare theirs, added up.\n"
	     ".Ss Peers\n"
	     "What a node knows of the NIDs of a peer.\n"
	     "How often discovery has ended, well or not, is in\n"
	     ".Ql stats show :\n"
	     ".Va discoveries , discoveries_failed , discoveries_refused ,\n"
	     ".Va pushes , pushes_sent , pushes_bad .");
	MACHINE(peer_states, peer_meaning);
	moves();
	puts(".Ss NIDs of peers\n"
	     "A NID of a peer does as an interface of this node that is\n"
	     ".Ql active .\n"
	     "Apart from that, a node remembers by whose word it is the "
	     "peer's.\n"
	     "To one that has not spoken for itself, messages go by no other "
	     "NID of the peer:");
	MACHINE(peer_provenances, provenance_meaning);
	puts("And it remembers which CPT owns it:");
	MACHINE(peer_places, place_meaning);
	puts(".Ss Operations\n"
	     "A PUT or a GET of this node, from the call to its terminal "
	     "event\n"
	     ".Pq Xr lnet_events 7 .");
	LISTED(op_states, op_meaning);
	puts(".Ss Messages that go out\n"
	     "Requests, answers, and what a router passes on.");
	LISTED(out_states, out_meaning);
	puts(".Ss Messages that come in\n"
	     "Requests and answers of others, and what is for other nodes.");
	LISTED(in_states, in_meaning);
	puts(".Sh SEE ALSO\n"
	     ".Xr lnet_discover 3 ,\n"
	     ".Xr lnet_ni_info 3 ,\n"
	     ".Xr lnet_peer_info 3 ,\n"
	     ".Xr lnet_events 7 ,\n"
	     ".Xr lnet_multirail 7 ,\n"
	     ".Xr lnetctl 8");
	if (missing)
		fputs("states: a state, event or action has no meaning\n",
		      stderr);
	return missing;
}
