/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tools for writing behaviours: a fixture, which is a rig that is up, and
 * boxes, which are MDs with guarded memory and a record of their events. When
 * the fixture goes down, each box must have got what LNet promises, whatever
 * its behaviour did: each operation ended once and in time, the MD's memory was
 * given back once, and nothing happened to it after that.
 */
#ifndef TESTS_LND_BOX_H
#define TESTS_LND_BOX_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/list.h"
#include "tests/lnd/conformance.h"

/* us, for operations that shall time out */
#define SHORT_TIMEOUT UINT64_C(100000)

/* A box's memory is one piece, or LNET_MAX_IOV of odd sizes, cut in one of two
 * ways. */
enum box_cut { CUT_NONE, CUT_ODD, CUT_OTHER };

struct fx {
	struct lnd_rig *rig;
	atomic_uint failures, complaints;
	const char *skipped; /* why */
	unsigned int files;  /* open in the process, before any connection */
	int64_t credits[2];  /* of each NI, by node, while nothing is sent */
	/* protects the boxes' records: handlers may run in threads */
	pthread_mutex_t lock;
	unsigned int
		handling; /* events whose hooks have not returned; under lock */
	struct list boxes;
};

/* A message's payload is the pattern of its seed: the upper half of hdr_data
 * for a PUT, the match bits for a GET. The lower half of hdr_data counts. */
#define HDR(seed, i)  ((uint64_t)(seed) << 32 | (i))
#define HDR_SEED(hdr) ((uint32_t)((hdr) >> 32))
#define HDR_I(hdr)    ((uint32_t)(hdr))

struct box {
	struct list link;
	struct fx *fx;
	struct lnet *node;
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;
	uint64_t timeout; /* us */
	bool used;	  /* it became an MD */
	bool lost;	  /* its node was killed: nothing is checked any more */
	/* memory */
	uint32_t size;
	struct iovec iov[LNET_MAX_IOV];
	unsigned int niov;
	uint8_t *mem;
	size_t mem_size;
	/* Called in the handler, after the event was recorded. The waiting
	 * functions of this header return only when hooks have. */
	void (*hook)(struct box *b, const struct ulnet_event *ev);
	void *hook_arg;
	/* record; under fx->lock */
	unsigned int begun;
	unsigned int n[LNET_EVENT_UNLINK + 1]; /* events with status 0 */
	unsigned int failed[LNET_EVENT_UNLINK + 1];
	unsigned int terminals, outcomes[LNET_OUTCOME_UNKNOWN + 1];
	unsigned int unlinked, after, bad, late;
	unsigned int disorder; /* PUTs that arrived out of order */
	struct ulnet_event last[LNET_EVENT_UNLINK + 1];
	struct ulnet_event terminal;
	/* the length of the two arrays, which are indexed by HDR_I */
	uint32_t track;
	uint8_t *outcome; /* of a PUT from it */
	uint8_t *arrived; /* how often a PUT to it arrived; ARRIVED_MAYBE */
};

#define ARRIVED_MAYBE 0x80 /* the event said that it failed */

/* ---- complaints ---- */

void fx_complain(struct fx *fx, const char *what, const char *file, int line);
static inline bool fx_expect(struct fx *fx, bool ok, const char *what,
			     const char *file, int line)
{
	if (!ok)
		fx_complain(fx, what, file, line);
	return ok;
}
#define expect(fx, cond) fx_expect(fx, cond, #cond, __FILE__, __LINE__)

/* ---- life ---- */

int fx_up(struct fx *fx, struct lnd_rig *rig);
/* Closes the nodes, with whatever is going on; boxes can still be looked at. */
void fx_close(struct fx *fx);
/* Closes the nodes, if they are open, and checks and frees all boxes. */
void fx_down(struct fx *fx);
/* fx_down(), and fx_up() with the same rig: a behaviour begins anew. */
bool fx_again(struct fx *fx);
/* node[1] dies; what its boxes were promised is void. */
int fx_kill(struct fx *fx);

/* ---- boxes ---- */

struct box *box_new(struct fx *fx, uint32_t size, enum box_cut cut);
void box_track(struct box *b, uint32_t n);
void box_fill(struct box *b, uint32_t seed);

/* How a box becomes a buffer for peers. */
struct post {
	unsigned int side;
	unsigned int portal;
	uint64_t bits;
	unsigned int options; /* LNET_MD_* */
	int threshold;	      /* of the MD; 0: for one operation */
	bool any_bits;
};
bool box_post(struct box *b, const struct post *p);
/* Makes of the box an MD that PUTs and GETs of node @side are begun on.
 * @threshold 0: for one operation and its answer. @timeout: us. */
bool box_bind(struct box *b, unsigned int side, int threshold,
	      uint64_t timeout);

/* Do the @length bytes from @offset on hold what box_fill(., @seed) writes? */
bool box_holds(const struct box *b, uint32_t offset, uint32_t length,
	       uint32_t seed);

/* One more operation on a bound box. Target: side @to. */
bool box_put(struct box *b, unsigned int to, bool ack, unsigned int portal,
	     uint64_t bits, uint64_t hdr_data);
bool box_get(struct box *b, unsigned int to, unsigned int portal,
	     uint64_t bits);
bool box_put_id(struct box *b, struct ulnet_id target, bool ack,
		unsigned int portal, uint64_t bits, uint64_t hdr_data);
bool box_put_to(struct box *b, const struct ulnet_nid *nid, bool ack,
		unsigned int portal, uint64_t bits, uint64_t hdr_data);
bool box_get_to(struct box *b, const struct ulnet_nid *nid, unsigned int portal,
		uint64_t bits);
/* LNetMDUnlink() */
int box_unlink(struct box *b);
/* Unlinks the box's MD, unless LNet has, and waits for its last event. */
void box_end(struct box *b);

/* ---- waiting; false: too long ---- */

uint64_t fx_patience(const struct fx *fx);
void fx_run(struct fx *fx, uint64_t us);
unsigned int fx_read(struct fx *fx, const unsigned int *field);
/* A field of a box's record reaches @n. */
bool fx_wait(struct fx *fx, const unsigned int *field, unsigned int n);
bool fx_wait_stat(struct fx *fx, unsigned int side, const char *name,
		  uint64_t value);
/* Waits until all operations of all boxes have ended. */
bool fx_wait_ops(struct fx *fx);
/* ... and LNet has nothing left to do, and all credits are back. */
bool fx_wait_idle(struct fx *fx);
/* ... and checks all boxes, and frees them: none may be used any more. */
bool fx_settle(struct fx *fx);

/* ---- numbers ---- */

uint64_t fx_stat(struct fx *fx, unsigned int side, const char *name);
/* Returns how many files the process has open, but for those of /proc: a thread
 * of a node reads some now and then. */
unsigned int open_files(void);
struct ulnet_id fx_id(const struct fx *fx, unsigned int side);

#endif
