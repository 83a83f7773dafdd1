/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints lnet_states(7) from the tables of the state machines: "make states"
 * writes the page, and tests/states_check.sh checks that it is current. This
 * file has the text on each state; a state without a text is an error.
 */
#include <stdio.h>

#include "base/util.h"
#include "config/request/request.h"
#include "lnet/discovery/state.h"
#include "lnet/message/in.h"
#include "lnet/message/op.h"
#include "lnet/net/ni.h"
#include "lnet/peer/peer.h"
#include "lnet/peer/provenance.h"

static const char *const ni_meaning[NI_STATES] = {
	[NI_INIT] = "The LND of the interface is starting.",
	[NI_ACTIVE] = "The interface is in use, unless it is down.",
	[NI_DELETING] =
		("The interface was deleted, and the messages that still "
		 "use it are ending."),
};

static const char *const ni_does[DEBUG_NIS] = {
	[DEBUG_NI_ACTIVE] = "The interface works.",
	[DEBUG_NI_ILL] = "Failures have lowered the health of the interface: "
			 "healthier ones are used first.",
	[DEBUG_NI_RECOVERING] =
		"The interface is ill, and the node sends recovery pings until "
		"it is healthy again.",
	[DEBUG_NI_DOWN] = "The link or the address of a local interface is "
			  "gone, or a peer says so of one of its own.\n"
			  "Nothing is sent over it.",
};

static const char *const net_does[DEBUG_NETS] = {
	[DEBUG_NET_ACTIVE] =
		"At least one interface is up, and messages go over the net.",
	[DEBUG_NET_INACTIVE] =
		"All its interfaces are down: until one is back, messages fail "
		"for peers that are on no other net.",
};

static const char *const peer_meaning[PEER_STATES] = {
	[PEER_UNKNOWN] = ("The node knows only what the peer's messages, or an "
			  "administrator, have said."),
	[PEER_QUEUED] = "The peer waits for the next step of its discovery.",
	[PEER_DISCOVERING] = "A ping has asked the peer for its NIDs.",
	[PEER_MERGING] = "The node is taking over what the peer has told it.",
	[PEER_PUSHING] = "A push is telling the peer the NIDs of this node.",
	[PEER_DISCOVERED] = "Both nodes know each other's NIDs.",
	[PEER_FAILED] = "The peer has not answered, and is asked again after "
			"a pause.",
};

static const char *const place_meaning[PEER_PLACES] = {
	[PEER_HERE] = "This CPT owns the NID.",
	[PEER_ALIAS] = "Another CPT owns the NID, and messages from it still "
		       "arrive here, over older connections.",
};

static const char *const provenance_meaning[PEER_PROVENANCES] = {
	[PEER_VERIFIED] = "The NID itself or an administrator has said so, or "
			  "the peer has no other NID.",
	[PEER_DISPUTED] =
		"As \\(oqown\\(cq, but another peer names the NID as one "
		"of its own: the node asks the NID.",
	[PEER_UNVERIFIED] = "Only another NID of the peer has said so.",
	[PEER_QUESTIONED] =
		"As \\(oqhearsay\\(cq, but now the NID is used: the node "
		"asks it.",
};

static const char *const op_meaning[OP_STATES] = {
	[OP_SENDING] = "The request is being sent.",
	[OP_SENDING_RECEIVING] =
		"The request is still being sent, and its REPLY is arriving.",
	[OP_SENDING_ANSWERED] =
		"The request is still being sent, and its answer has arrived.",
	[OP_WAITING] =
		("The request was sent, and its answer is due before the "
		 "deadline."),
	[OP_RECEIVING] = "The request was sent, and its REPLY is arriving.",
	[OP_DONE] = "The terminal event was delivered.",
};

static const char *const out_meaning[OUT_STATES] = {
	[OUT_NEW] = "The message holds nothing yet: no path, no credit.",
	[OUT_DISCOVERING] =
		"The message waits until its peer has been discovered.",
	[OUT_DELAYED] = "The path is chosen, and a fault rule delays the "
			"message.",
	[OUT_PEER_QUEUE] = "The message waits for a credit of the peer's "
			   "interface.",
	[OUT_NI_QUEUE] = "The message has a credit of the peer's interface, "
			 "and waits for one of the local interface.",
	[OUT_CONNECTING] = "The message has no credit, and waits until the LND "
			   "has a connection.",
	[OUT_LND] =
		("The message has both credits, and the LND is sending it.\n"
		 "A REPLY that the LND writes straight into the memory "
		 "that the GET named needs no credits."),
	[OUT_REFUSED] = "The message has both credits, and the LND did not "
			"take it: this attempt is about to fail.",
	[OUT_PAUSED] = "The message was certainly not delivered.\nWithout any "
		       "credit it waits to be sent again.",
	[OUT_DONE] = "The message is finished.",
};

static const char *const in_meaning[IN_STATES] = {
	[IN_NEW] = "The message has arrived, and nothing was done with it yet.",
	[IN_DELAYED] = "A fault rule delays the message.",
	[IN_THROTTLED] = "The sender has used up its share: the message waits "
			 "until others from there are finished.",
	[IN_BUFFERLESS] = "The message is for another node, and waits for a "
			  "buffer of this router.",
	[IN_OFFERED] = "The CPTs are asked for a match entry, one after the "
		       "other.",
	[IN_UNEXPECTED] =
		"A lazy portal keeps the message until there is a match "
		"entry for it.",
	[IN_RECV] = "The LND is storing the payload.",
	[IN_DONE] = "The message is finished: delivered, answered, or handed "
		    "over to be forwarded.",
};

static const char *const events[DISC_EVENTS] = {
	[DISC_ON_WANTED] = "a message is for the peer, or the NIDs of this "
			   "node have changed",
	[DISC_ON_NEWS] =
		"the peer has pushed, or somebody asks for its discovery",
	[DISC_ON_STEP_PING] = "its turn comes, and it must be asked",
	[DISC_ON_STEP_MERGE] = "its turn comes, and it has told its NIDs",
	[DISC_ON_STEP_PUSH] = "its turn comes, and it must be told",
	[DISC_ON_STEP_END] = "its turn comes, and nothing is missing",
	[DISC_ON_ANSWER] = "the peer has answered",
	[DISC_ON_CUT] = "the answer was longer than the buffer",
	[DISC_ON_SILENT] = "the NID that was asked does not answer, and there "
			   "are others",
	[DISC_ON_PING_FAILED] = "no NID of the peer answers",
	[DISC_ON_MERGED] = "what the peer told has been taken over",
	[DISC_ON_MERGE_FAILED] = "what the peer told could not be taken over",
	[DISC_ON_ACK] = "the peer has acknowledged the push",
	[DISC_ON_PUSH_FAILED] = "the peer has not acknowledged the push",
	[DISC_ON_PAUSE_OVER] = "the pause is over",
	[DISC_ON_GIVE_UP] = "discovery has failed often enough",
	[DISC_ON_OVER] = "another peer has taken its NIDs, or the node closes",
};

static const char *const actions[DISC_ACTIONS] = {
	[DISC_IGNORE] = "the next step looks at it",
	[DISC_ENQUEUE] = "it waits for its turn",
	[DISC_LOOK] = "the next step follows at once",
	[DISC_PING] = "a ping is sent",
	[DISC_MERGE] = "its NIDs are taken over",
	[DISC_PUSH] = "a push is sent",
	[DISC_END] = "waiting messages are sent",
	[DISC_PAUSE] = "waiting messages are sent to the NIDs that they name",
	[DISC_FORGET] = "waiting messages are sent to the NIDs that they name",
};

static bool missing; /* some state, event or action has no text */

static const char *meaning(const char *const *texts, unsigned int i)
{
	if (texts[i])
		return texts[i];
	missing = true;
	return "";
}

/* Prints the states, an arrow from each to those that may follow, and what they
 * mean. */
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

/* As machine(), but as a list, for states that more states may follow than a
 * line has room for. */
static void listed(const struct fsm_state *table, unsigned int n,
		   const char *const *texts)
{
	puts(".Bl -tag -width Ds");
	for (unsigned int i = 0; i < n; i++) {
		const char *before = "\nNext:\n";

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

/* Prints each line of the table of discovery. */
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
				puts("no new state");
			else
				printf("then\n.Ql %s\n", peer_states[to].name);
		}
		puts(".El");
	}
}

/* A state of the design of multi-rail LNet (seed 002), which has other names in
 * part, and which of the states here it is. */
struct other {
	const char *name;
	const struct fsm_state *here; /* NULL: it has no name here */
	const char *but;	      /* more about it, or NULL */
};

static const struct other other_nis[] = {
	{ "created", &ni_states[NI_ACTIVE], NULL },
	{ "failed", &debug_nis[DEBUG_NI_DOWN], NULL },
	{ "degraded", &debug_nis[DEBUG_NI_ILL],
	  "or\n.Ql recovering :\nfailed messages say so, as links do not" },
};

static const struct other other_peers[] = {
	{ "init", &peer_states[PEER_UNKNOWN], NULL },
	{ "active", &peer_states[PEER_DISCOVERED],
	  "or, without discovery,\n.Ql unknown" },
	{ "discover", &peer_states[PEER_QUEUED], NULL },
	{ "ping sent", &peer_states[PEER_DISCOVERING], NULL },
	{ "data received", &peer_states[PEER_MERGING], NULL },
	{ "push sent", &peer_states[PEER_PUSHING], NULL },
	{ "inactive", NULL,
	  "each NID of the peer is\n.Ql ill , recovering\nor\n.Ql down" },
};

static const struct other other_peer_nis[] = {
	{ "created", &debug_nis[DEBUG_NI_ACTIVE],
	  "and nothing was sent to it yet" },
	{ "activating", &debug_nis[DEBUG_NI_ACTIVE],
	  "and messages wait for its first connection:\n"
	  ".Va ulnet_peer_connecting_messages" },
	{ "connected", &debug_nis[DEBUG_NI_ACTIVE],
	  "and a message was sent to it" },
	{ "failed", &debug_nis[DEBUG_NI_ILL],
	  "or\n.Ql recovering ,\nor, if the peer says so,\n.Ql down" },
};

static void others(const struct other *o, unsigned int n)
{
	puts(".Pp\nStates with other names in the design of multi-rail LNet:\n"
	     ".Bl -tag -width discovering -compact");
	for (; n--; o++) {
		printf(".It %s\n", o->name);
		if (o->here)
			printf(".Ql %s%s\n", o->here->name, o->but ? " ," : "");
		if (o->but)
			puts(o->but);
	}
	puts(".El");
}

#define OTHERS(table)	      others(table, ARRAY_SIZE(table))
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
	     "This page lists the states of what a node has and of what it "
	     "knows about other nodes.\n"
	     ".Xr lnetctl 8\n"
	     "shows the states of interfaces, nets and peers:\n"
	     ".Ql net show -v 5 ,\n"
	     ".Ql peer show -v 5\n"
	     "and\n"
	     ".Ql debug peer .\n"
	     "The page is generated from the tables that the program follows.\n"
	     "An arrow leads from a state to those that may follow it.\n"
	     ".Ss Interfaces of this node");
	MACHINE(ni_states, ni_meaning);
	puts(".Pp\nThe state name of an interface that is\n.Ql active\nsays "
	     "how "
	     "well "
	     "it works:");
	MACHINE(debug_nis, ni_does);
	OTHERS(other_nis);
	puts(".Pp\nCounters of the interface are in its\n.Va statistics\nand\n"
	     ".Va health stats .\n"
	     ".Ss Nets\n"
	     "A net comes with its first interface and goes with its last "
	     "one.\n"
	     "Its state follows from those of its interfaces:");
	MACHINE(debug_nets, net_does);
	puts(".Pp\nA net is as healthy as the healthiest interface that is up, "
	     "and "
	     "its\n"
	     ".Va statistics\nare the sums of those of its interfaces.\n"
	     ".Ss Peers\n"
	     "The state of a peer says how far its discovery is.\n"
	     "Counters of discoveries are in\n"
	     ".Ql stats show :\n"
	     ".Va discoveries , discoveries_failed , discoveries_refused ,\n"
	     ".Va pushes , pushes_sent , pushes_bad .");
	MACHINE(peer_states, peer_meaning);
	moves();
	OTHERS(other_peers);
	puts(".Ss NIDs of peers\n"
	     "A NID of a peer has the state names of an interface of this "
	     "node that is\n"
	     ".Ql active .");
	OTHERS(other_peer_nis);
	puts(".Pp\n"
	     "A node also remembers who has said that the NID belongs to the "
	     "peer.\n"
	     "Messages to a NID that has not said so itself go to no other "
	     "NID of the peer:");
	MACHINE(peer_provenances, provenance_meaning);
	puts(".Pp\nEach CPT remembers which CPT owns the NID:");
	MACHINE(peer_places, place_meaning);
	puts(".Ss Operations\n"
	     "The states of a PUT or a GET of this node, from the call to "
	     "its terminal event\n"
	     ".Pq Xr lnet_events 7 .");
	LISTED(op_states, op_meaning);
	puts(".Ss Messages that go out\n"
	     "Requests and answers of this node, and messages that a "
	     "router forwards.");
	LISTED(out_states, out_meaning);
	puts(".Ss Messages that come in\n"
	     "Requests and answers of other nodes, and messages to be "
	     "forwarded.");
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
