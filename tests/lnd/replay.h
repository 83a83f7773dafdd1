/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plays a tape against a node of this library. The node takes the part of one
 * of the two nodes on the tape, and must send what that one has sent; the test
 * sends what the other one has sent, with the handles and ids that our node has
 * chosen.
 *
 * replay_plan.c decides beforehand what the node has to do, and what it cannot;
 * replay.c plays; replay_check.c compares; replay_beside.c receives what the
 * node sends on connections that are not on the tape; replay_far.c is the node
 * behind a router; replay_lst.c and replay_console.c play LNet's self-test.
 */
#ifndef TESTS_LND_REPLAY_H
#define TESTS_LND_REPLAY_H

#include <stdnoreturn.h>

#include "lnd/socklnd/proto.h"
#include "lnet/discovery/info.h"
#include "lnet/message/wire.h"
#include "tests/lnd/raw.h"
#include "tests/lnd/tape.h"

#define REPLAY_NIS_MAX	  2
#define REPLAY_NIDS_MAX	  8  /* NIDs of the other node, at most */
#define REPLAY_FAR_CONNS  3  /* connections of a kernel node with one peer */
#define REPLAY_BESIDE_MAX 12 /* connections that are on no tape */
/* bytes at the end of LNet's header whose meaning depends on its type */
#define LNET_UNION_SIZE 40
/* requests of the self-test */
#define REPLAY_IDS_MAX 64
/* bytes of a message before its payload, at most */
#define MESSAGE_HEAD_MAX (SOCK_HDR_SIZE + LNET_HDR_LARGE_SIZE)
/* lengths that kernel nodes ask for in a ping: of "lnetctl ping", and in the
 * first ping of discovery */
#define PING_BY_HAND	  3960
#define PING_BY_DISCOVERY 272
/* offsets in ping information */
#define INFO_FEATURES 4
#define INFO_SEQUENCE 24

/* A tape, and the part that our node plays in it. */
struct replay_case {
	const char *tape;
	bool connects;			 /* our node is the one that connects */
	const char *nis[REPLAY_NIS_MAX]; /* NIs of our node */
	const char *gateway; /* by which our node reaches other nets */
	/* a NID on such a net; for a router, one on the net that is not on the
	 * tape */
	const char *far;
	/* NID of an NI that our node gets before frame late_frame */
	const char *late;
	unsigned int late_frame; /* counted from 1 */
	unsigned int left_out;	 /* frames that cannot be played */
	/* messages of discovery that the node sends because the test makes it
	 */
	unsigned int by_hand;
	/* What our node sends that is on no tape: how many pushes, and at least
	 * how many pings of discovery ("questions"; 0: none). */
	struct {
		unsigned int pushes, questions;
		/* There are no questions if the push went to the NI that the
		 * tape begins with. It does if a connection to another one is
		 * not open in time. */
		bool about_other_ni;
	} beside;
	/* changes of the real node's NIs before the tape began */
	unsigned int history;
	unsigned int keepalive; /* s; 0: the default */
	/* our node is a router, between the other node and far */
	bool router;
	/* our node has the self-test; it is the console if it connects */
	bool lst;
	/* reminders of the console that are on no tape */
	unsigned int reminders;
	bool swapped; /* the other node has the other byte order */
};

/* What is done about a frame. "Theirs" are frames of the other node. */
enum replay_part {
	PART_SEND,    /* theirs: the test sends it */
	PART_PASS,    /* theirs, to the far node, which must receive it */
	PART_RETURN,  /* ours, from the far node, which sends it */
	PART_EXPECT,  /* ours: the node sends it by itself */
	PART_OWN,     /* ours: a PUT or GET of the node's discovery */
	PART_ORIGIN,  /* ours: a PUT or GET that the test begins */
	PART_TEST,    /* ours: of the self-test (replay_lst.h) */
	PART_LEFT_OUT /* left out, for the reason in "why" */
};

/* Returns how many bytes a message of this tape has before its payload. */
static inline size_t replay_head(const struct tape *t)
{
	return SOCK_HDR_SIZE + tape_hdr_size(t);
}

/* A frame, what is done about it, and what came of it. */
struct replay_step {
	enum replay_part part;
	/* why the frame is left out, or why discovery does not send it by
	 * itself */
	const char *why;
	bool ours;
	bool taken;	     /* received by replay_lst_take() */
	struct lnet_hdr hdr; /* TAPE_LNET */
	/* the cookie whose acknowledgement a TAPE_LNET asks for, or that a
	 * TAPE_NOOP acknowledges */
	uint64_t cookie;
	/* The answer of a request, the request of an answer, the message that a
	 * NOOP acknowledges. -1: none. */
	int other;
	/* The buffer of a PUT or GET, ours or theirs, and the result of the
	 * operation. For PART_OWN, the result of the discovery that began with
	 * it. */
	uint8_t *buf;
	size_t len;
	bool begun, done;
	int status;
	uint32_t mlength;
	/* the handle that our node has put into this request of ours */
	struct lnet_wire_handle handle;
};

struct replay_plan {
	unsigned int left_out, by_hand;
	struct replay_step step[TAPE_FRAMES_MAX];
};

enum beside_stage { BESIDE_REQUEST, BESIDE_HELLO, BESIDE_UP };

struct beside_conn {
	struct raw_conn raw;
	enum beside_stage stage;
};

struct replay_beside {
	union netif_addr at[REPLAY_NIDS_MAX];
	int listen_fd[REPLAY_NIDS_MAX];
	unsigned int nlisten, nconns;
	struct beside_conn conn[REPLAY_BESIDE_MAX];
	unsigned int pushes, questions;
	bool known_ni; /* a push went to the NI that the tape begins with */
};

struct replay {
	const struct replay_case *c;
	struct tape tape;
	struct replay_plan plan;
	struct lnet *node;
	int listen_fd;
	struct raw_conn conn[TAPE_CONNS_MAX];
	struct raw_conn far[REPLAY_FAR_CONNS]; /* if our node is a router */
	/* what the HELLOs of our node's NIs have said */
	struct {
		struct ulnet_nid nid;
		uint64_t incarnation;
	} told[REPLAY_NIS_MAX];
	/* HELLO of the other node on the first connection */
	struct sock_hello hello;
	struct replay_beside beside;
	struct lst *lst;
	unsigned int nids, reminders;
	/* match bits in our requests: on the tape, and as our node has chosen
	 * them */
	struct {
		uint64_t real, own;
	} id[REPLAY_IDS_MAX];
	unsigned int now;	       /* the frame that is being played */
	unsigned int next;	       /* the next one to be played */
	int64_t patient_until, pumped; /* ms */
	bool stalled;
};

/* Makes the plan. Returns false after a message on stderr. */
bool replay_plan(const struct tape *tape, const struct replay_case *c,
		 struct replay_plan *plan) must_check;
void replay_plan_free(struct replay_plan *plan);

/* Compares @got with the real bytes of frame @i, as many as that has. Bytes
 * that may differ are noted, and made equal. */
bool replay_check(struct replay *r, unsigned int i, uint8_t *got) must_check;

/* As replay_check(), but nothing may differ. */
bool replay_compare(const struct replay *r, unsigned int i,
		    const uint8_t *got) must_check;

/* Plays the next frame. */
bool replay_next(struct replay *r) must_check;
/* Ends the process. */
noreturn void replay_give_up(const struct replay *r);

/* Runs one round of the node and of all connections, for frame @i. */
bool replay_pump(struct replay *r, unsigned int i) must_check;

/* What the far node of a router does: it connects; it sends frame @i for the
 * router to forward; it receives frame @i from the router. */
bool replay_far_open(struct replay *r) must_check;
bool replay_far_sends(struct replay *r, unsigned int i) must_check;
bool replay_far_takes(struct replay *r, unsigned int i) must_check;
bool replay_far_fill(struct replay *r) must_check;
/* Once our node is closed: has the far node received no more? */
bool replay_far_is_empty(struct replay *r) must_check;
void replay_far_close(struct replay *r);

/* Makes equal what may differ in our node's ping information. */
void replay_take_info(const struct replay *r, uint8_t *info);

/* Adds an address to the test's own network namespace. Returns 0 or a negative
 * errno. */
int replay_add_addr(const union netif_addr *a) must_check;

/* Listens at the NIDs that the other node announces: our node may send there
 * what is on no tape. */
bool replay_beside_open(struct replay *r) must_check;
void replay_beside_close(struct replay *r);
/* Runs one round of all connections that are on no tape. */
bool replay_beside(struct replay *r) must_check;
/* Takes one push or ping of discovery, if @c has received one next, and answers
 * it. */
enum replay_taken { TAKEN_NONE, TAKEN, TAKEN_BAD };
enum replay_taken replay_beside_take(struct replay *r, struct raw_conn *c);
/* Finds what the other node has announced last up to frame @last, or else what
 * it announces first: REPLAY_NIDS_MAX entries at @ni. Returns false if it
 * announces nothing. */
bool replay_told(const struct replay *r, unsigned int last,
		 struct ulnet_ping_info *info,
		 struct ulnet_ping_ni *ni) must_check;
/* Have the messages arrived that are on no tape? */
bool replay_beside_is_over(const struct replay *r);
/* Once our node is closed: has it sent no other messages beside the tape? */
bool replay_beside_is_empty(struct replay *r) must_check;

/* Prints on stderr what is wrong with frame @i. Returns false. */
bool replay_complain(const struct replay *r, unsigned int i, const char *what);
/* Prints the bytes around @at. */
void replay_dump(const char *who, const uint8_t *p, size_t len, size_t at);

/* Is frame @i a ping or a push of discovery? */
bool replay_is_asked(const struct replay_plan *plan, unsigned int i);
/* Does our node send messages of discovery by itself? */
bool replay_discovers(const struct replay_plan *plan);
/* Is frame @i ping information, pushed or in a REPLY? */
bool replay_is_info(const struct replay_plan *plan, unsigned int i);

#endif
