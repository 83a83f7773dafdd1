/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tape against a node. One of the two nodes on the tape is played by a node
 * of this library, which must send what the real one has sent; the other one's
 * bytes are sent as they are.
 *
 * replay.c plays; replay_plan.c says beforehand what the node has to do for it,
 * and what it cannot; replay_check.c compares; replay_beside.c takes what the
 * node says on other connections than those of the tape; replay_far.c is the
 * node on the other side of a router; replay_lst.c and replay_console.c are the
 * self-test.
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
#define REPLAY_NIDS_MAX	  8  /* of the other node */
#define REPLAY_FAR_CONNS  3  /* as kernel nodes make them */
#define REPLAY_BESIDE_MAX 12 /* connections that are on no tape */
/* Of what stands last in a header, which depends on the type. */
#define LNET_UNION_SIZE 40
/* Of requests of the self-test. */
#define REPLAY_IDS_MAX 64
/* Bytes of a message before its payload, at most. */
#define MESSAGE_HEAD_MAX (SOCK_HDR_SIZE + LNET_HDR_LARGE_SIZE)
/* What a kernel's "lnetctl ping" asks for, and its discovery at first. */
#define PING_BY_HAND	  3960
#define PING_BY_DISCOVERY 272
/* In ping information. */
#define INFO_FEATURES 4
#define INFO_SEQUENCE 24

/* A tape, and which of its nodes is ours. */
struct replay_case {
	const char *tape;
	bool connects;			 /* ours is the one that connects */
	const char *nis[REPLAY_NIS_MAX]; /* its NIs */
	const char *gateway; /* by which it reaches the nets of others */
	const char *far;     /* a NID on such a net; of a router, who is on the
			      * net that is not on the tape */
	const char *late;    /* one more, which it gets before frame ... */
	unsigned int late_frame; /* ... this, the first being 1 */
	unsigned int left_out;	 /* frames that cannot be played */
	unsigned int by_hand;	 /* messages of discovery that the test sends */
	struct {
		unsigned int pushes, questions;
	} beside; /* that are on no tape; if questions, at least so many */
	unsigned int history;	/* of its NIs: changes that are on no tape */
	unsigned int keepalive; /* s; 0: the default */
	bool router;		/* it is one, between the other one and far */
	bool lst; /* it has the self-test; it is the console if it connects */
	unsigned int reminders; /* of the console, that are on no tape */
	bool swapped;		/* the other one's byte order is the other */
};

/* What is to be done about a frame. */
enum replay_part {
	PART_SEND,   /* theirs: sent */
	PART_PASS,   /* theirs, to the far node, which must get it */
	PART_RETURN, /* ours, of the far node, which sends it */
	PART_EXPECT, /* ours: comes by itself */
	PART_OWN,    /* ours: a PUT or GET of discovery, which the node makes */
	PART_ORIGIN, /* ours: a PUT or GET, which is asked for */
	PART_TEST,   /* ours: the self-test's own, see replay_lst.h */
	PART_LEFT_OUT /* see why */
};

/* Bytes of a message of this tape before its payload. */
static inline size_t replay_head(const struct tape *t)
{
	return SOCK_HDR_SIZE + tape_hdr_size(t);
}

/* What a frame is, and what it has led to. */
struct replay_step {
	enum replay_part part;
	const char
		*why; /* PART_LEFT_OUT, and discovery's that are PART_ORIGIN */
	bool ours;
	bool taken;	     /* it came before those before it */
	struct lnet_hdr hdr; /* TAPE_LNET */
	uint64_t cookie;     /* TAPE_LNET: asked for, by a real one;
			  * TAPE_NOOP: given */
	/* A request: its answer, ours or theirs; an answer: its request.
	 * A NOOP: what it acknowledges. -1: none. */
	int other;
	/* PART_ORIGIN, and a PUT or GET of theirs for which there is a buffer:
	 * its memory, and how it has ended. PART_OWN: how the discovery that
	 * has begun with it has. */
	uint8_t *buf;
	size_t len;
	bool begun, done;
	int status;
	uint32_t mlength;
	struct lnet_wire_handle handle; /* of our request: the node's own */
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
};

struct replay {
	const struct replay_case *c;
	struct tape tape;
	struct replay_plan plan;
	struct lnet *node;
	int listen_fd;
	struct raw_conn conn[TAPE_CONNS_MAX];
	struct raw_conn far[REPLAY_FAR_CONNS]; /* if it is a router */
	struct {
		struct ulnet_nid nid;
		uint64_t incarnation;
	} told[REPLAY_NIS_MAX];	 /* by its HELLOs */
	struct sock_hello hello; /* the other node's, of the first */
	struct replay_beside beside;
	struct lst *lst;
	unsigned int nids, reminders;
	struct {
		uint64_t real, own;
	} id[REPLAY_IDS_MAX];	       /* of our requests */
	unsigned int now;	       /* the frame that is played */
	unsigned int next;	       /* the one that is to be played then */
	int64_t patient_until, pumped; /* ms */
	bool stalled;
};

/* False after having said on stderr what is wrong. */
bool replay_plan(const struct tape *tape, const struct replay_case *c,
		 struct replay_plan *plan) must_check;
void replay_plan_free(struct replay_plan *plan);

/* The bytes @got for frame @i, as many as it has, against the real ones. What
 * may differ is made equal, and noted. */
bool replay_check(struct replay *r, unsigned int i, uint8_t *got) must_check;

/* The same; nothing may differ. */
bool replay_compare(const struct replay *r, unsigned int i,
		    const uint8_t *got) must_check;

/* Plays the next frame. */
bool replay_next(struct replay *r) must_check;
/* The process ends. */
noreturn void replay_give_up(const struct replay *r);

/* One round of the node and of all connections, for frame @i. */
bool replay_pump(struct replay *r, unsigned int i) must_check;

/* The far node of a router: connects; sends frame @i, for the router to pass it
 * on; gets it from there. */
bool replay_far_open(struct replay *r) must_check;
bool replay_far_sends(struct replay *r, unsigned int i) must_check;
bool replay_far_takes(struct replay *r, unsigned int i) must_check;
bool replay_far_fill(struct replay *r) must_check;
/* Once the node has gone: was that all? */
bool replay_far_is_empty(struct replay *r) must_check;
void replay_far_close(struct replay *r);

/* What may differ in the node's ping information, made equal. */
void replay_take_info(const struct replay *r, uint8_t *info);

/* One more address of the network that is the test's own. 0 or a negative
 * errno. */
int replay_add_addr(const union netif_addr *a) must_check;

/* What the node says that is on no tape, and where it may say it. */
bool replay_beside_open(struct replay *r) must_check;
void replay_beside_close(struct replay *r);
/* One round of all connections that are on no tape. */
bool replay_beside(struct replay *r) must_check;
/* Takes one push, or question, of discovery, if it is what comes next there,
 * and answers it. */
enum replay_taken { TAKEN_NONE, TAKEN, TAKEN_BAD };
enum replay_taken replay_beside_take(struct replay *r, struct raw_conn *c);
/* The last that the other node has told up to frame @last, or what it tells
 * first: REPLAY_NIDS_MAX entries at @ni. False: it tells nothing. */
bool replay_told(const struct replay *r, unsigned int last,
		 struct ulnet_ping_info *info,
		 struct ulnet_ping_ni *ni) must_check;
/* Has all come that is to come? */
bool replay_beside_is_over(const struct replay *r);
/* Once the node has gone: was it all that there should be? */
bool replay_beside_is_empty(struct replay *r) must_check;

/* Says on stderr what is wrong with frame @i; false. */
bool replay_complain(const struct replay *r, unsigned int i, const char *what);
/* Bytes around @at. */
void replay_dump(const char *who, const uint8_t *p, size_t len, size_t at);

/* Is it a ping or a push; is it ping information, pushed or in reply? */
bool replay_is_asked(const struct replay_plan *plan, unsigned int i);
/* Does the node make messages of discovery of its own? */
bool replay_discovers(const struct replay_plan *plan);
bool replay_is_info(const struct replay_plan *plan, unsigned int i);

#endif
