/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/box.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATTERN_SIZE   (LNET_MTU + 4096)
#define GUARD	       0x5a
#define POISON	       0xa5
#define STEP	       UINT64_C(1000)	  /* us */
#define REAL_SLACK     UINT64_C(60000000) /* us: machines may be slow */
#define COMPLAINTS_MAX 8
#define STATS_MAX      128

/* ---- complaints ---- */

void fx_complain(struct fx *fx, const char *what, const char *file, int line)
{
	atomic_fetch_add(&fx->failures, 1);
	if (atomic_fetch_add(&fx->complaints, 1) < COMPLAINTS_MAX)
		printf("  %s:%d: not true: %s\n", file, line, what);
}

/* ---- memory ---- */

static uint8_t pattern[PATTERN_SIZE];

static const uint8_t *pattern_of(uint32_t seed)
{
	return pattern + seed * 61 % 4096;
}

static void pattern_init(void)
{
	uint32_t x = 2463534242u;

	for (size_t i = 0; i < sizeof(pattern); i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		pattern[i] = (uint8_t)(x >> 24);
	}
}

/* Lays out the box's memory: one piece, or LNET_MAX_IOV pieces of odd sizes,
 * with a guard in front of each and behind the last one. */
static void cut(struct box *b, enum box_cut how)
{
	unsigned int n = how == CUT_NONE ? 1 : LNET_MAX_IOV;
	uint32_t step = how == CUT_ODD ? 7919 : 104729;
	uint32_t mean = b->size / n, left = b->size;
	size_t at = 0;

	for (unsigned int i = 0; i < n; i++) {
		uint32_t rest = mean ? n - 1 - i : 0;
		uint32_t len = mean ? 1 + i * step % (2 * mean - 1) : 0;

		len = i == n - 1 ? left : MIN(len, left - rest);
		at += how == CUT_NONE ? 16 : 1 + (i * 5 + how) % 9;
		b->iov[i] = (struct iovec){ (void *)at, len };
		at += len;
		left -= len;
	}
	b->niov = n;
	b->mem_size = at + 16;
}

struct box *box_new(struct fx *fx, uint32_t size, enum box_cut how)
{
	struct box *b = calloc(1, sizeof(*b));

	BUG_ON(!b);
	b->fx = fx;
	b->size = size;
	cut(b, how);
	b->mem = malloc(b->mem_size);
	BUG_ON(!b->mem);
	memset(b->mem, GUARD, b->mem_size);
	for (unsigned int i = 0; i < b->niov; i++) {
		b->iov[i].iov_base = b->mem + (size_t)b->iov[i].iov_base;
		memset(b->iov[i].iov_base, 0, b->iov[i].iov_len);
	}
	pthread_mutex_lock(&fx->lock);
	list_add_tail(&fx->boxes, &b->link);
	pthread_mutex_unlock(&fx->lock);
	return b;
}

void box_track(struct box *b, uint32_t n)
{
	b->track = n;
	b->outcome = calloc(n, 1);
	b->arrived = calloc(n, 1);
	BUG_ON(!b->outcome || !b->arrived);
}

static void box_free(struct box *b)
{
	list_del(&b->link);
	free(b->mem);
	free(b->outcome);
	free(b->arrived);
	free(b);
}

/* Walks the pieces of [@offset, @offset + @length). */
struct piece {
	unsigned int i;
	uint32_t offset, left;
	uint8_t *p;
	uint32_t len;
};

static bool next_piece(const struct box *b, struct piece *pc)
{
	while (pc->left && pc->i < b->niov &&
	       pc->offset >= b->iov[pc->i].iov_len)
		pc->offset -= (uint32_t)b->iov[pc->i++].iov_len;
	if (!pc->left || pc->i == b->niov)
		return false;
	pc->p = (uint8_t *)b->iov[pc->i].iov_base + pc->offset;
	pc->len = (uint32_t)b->iov[pc->i].iov_len - pc->offset;
	pc->len = MIN(pc->len, pc->left);
	pc->left -= pc->len;
	pc->offset += pc->len;
	return true;
}

void box_fill(struct box *b, uint32_t seed)
{
	const uint8_t *want = pattern_of(seed);
	struct piece pc = { .left = b->size };

	while (next_piece(b, &pc)) {
		memcpy(pc.p, want, pc.len);
		want += pc.len;
	}
}

bool box_holds(const struct box *b, uint32_t offset, uint32_t length,
	       uint32_t seed)
{
	const uint8_t *want = pattern_of(seed);
	struct piece pc = { .offset = offset, .left = length };

	while (next_piece(b, &pc)) {
		if (memcmp(pc.p, want, pc.len) != 0)
			return false;
		want += pc.len;
	}
	return pc.left == 0;
}

static bool all_are(const uint8_t *p, size_t n, uint8_t v)
{
	return n == 0 || (p[0] == v && !memcmp(p, p + 1, n - 1));
}

static void poison(struct box *b)
{
	for (unsigned int i = 0; i < b->niov; i++)
		memset(b->iov[i].iov_base, POISON, b->iov[i].iov_len);
}

static bool poison_is_whole(const struct box *b)
{
	for (unsigned int i = 0; i < b->niov; i++)
		if (!all_are(b->iov[i].iov_base, b->iov[i].iov_len, POISON))
			return false;
	return true;
}

static bool guards_are_whole(const struct box *b)
{
	const uint8_t *at = b->mem;

	for (unsigned int i = 0; i < b->niov; i++) {
		const uint8_t *p = b->iov[i].iov_base;

		if (!all_are(at, (size_t)(p - at), GUARD))
			return false;
		at = p + b->iov[i].iov_len;
	}
	return all_are(at, (size_t)(b->mem + b->mem_size - at), GUARD);
}

/* ---- events ---- */

static uint64_t slack(const struct fx *fx)
{
	return fx->rig->can & RIG_VIRTUAL_TIME ? 0 : REAL_SLACK;
}

static void note_put(struct box *b, const struct ulnet_event *ev)
{
	uint32_t i = HDR_I(ev->hdr_data);

	if (!box_holds(b, ev->offset, ev->mlength, HDR_SEED(ev->hdr_data)))
		b->bad++;
	if (i != b->n[LNET_EVENT_PUT])
		b->disorder++;
	if (b->arrived && i < b->track)
		b->arrived[i]++;
}

static void note_terminal(struct box *b, const struct ulnet_event *ev)
{
	uint32_t i = HDR_I(ev->hdr_data);

	b->terminals++;
	b->outcomes[ev->outcome]++;
	b->terminal = *ev;
	if (ev->elapsed > b->timeout + slack(b->fx))
		b->late++;
	if (!b->outcome || i >= b->track)
		return;
	if (b->outcome[i])
		b->after++; /* a second terminal event of one operation */
	b->outcome[i] = (uint8_t)ev->outcome;
}

static void note(struct box *b, const struct ulnet_event *ev)
{
	if (b->unlinked)
		b->after++;
	if (ev->type == LNET_EVENT_PUT && !ev->status)
		note_put(b, ev);
	if (ev->type == LNET_EVENT_REPLY && !ev->status &&
	    !box_holds(b, 0, ev->mlength, (uint32_t)ev->match_bits))
		b->bad++;
	/* The payload may have arrived after the user had unlinked the MD. */
	if (ev->type == LNET_EVENT_PUT && ev->status && b->arrived &&
	    HDR_I(ev->hdr_data) < b->track)
		b->arrived[HDR_I(ev->hdr_data)] |= ARRIVED_MAYBE;
	if (ev->status)
		b->failed[ev->type]++;
	else
		b->n[ev->type]++;
	b->last[ev->type] = *ev;
	if (ev->terminal)
		note_terminal(b, ev);
	else if (ev->outcome != LNET_OUTCOME_NONE)
		b->bad++;
	if (ev->unlinked && b->unlinked++ == 0)
		poison(b);
}

static void on_event(const struct ulnet_event *ev)
{
	struct box *b = ev->user_ptr;
	struct fx *fx = b->fx;

	pthread_mutex_lock(&fx->lock);
	note(b, ev);
	fx->handling++;
	pthread_mutex_unlock(&fx->lock);
	if (b->hook)
		b->hook(b, ev);
	/* From here on the box may be gone, and what its hook uses. */
	pthread_mutex_lock(&fx->lock);
	fx->handling--;
	pthread_mutex_unlock(&fx->lock);
}

/* To be called after the events were counted. */
static bool hooks_have_returned(struct fx *fx)
{
	bool returned;

	pthread_mutex_lock(&fx->lock);
	returned = fx->handling == 0;
	pthread_mutex_unlock(&fx->lock);
	return returned;
}

/* ---- MDs ---- */

static struct ulnet_md box_md(struct box *b, unsigned int options,
			      int threshold)
{
	struct ulnet_md umd = { .start = b->iov[0].iov_base,
				.length = b->size,
				.threshold = threshold,
				.options = options,
				.user_ptr = b,
				.handler = on_event,
				.timeout = b->timeout };

	if (b->niov > 1) {
		umd.start = b->iov;
		umd.length = b->niov;
		umd.options |= LNET_MD_IOVEC;
	}
	b->used = true;
	return umd;
}

bool box_post(struct box *b, const struct post *p)
{
	const struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_md umd =
		box_md(b, p->options, p->threshold ? p->threshold : 1);
	int rc;

	b->node = b->fx->rig->node[p->side];
	rc = LNetMEAttach(b->node, p->portal, any, p->bits,
			  p->any_bits ? UINT64_MAX : 0, LNET_UNLINK,
			  LNET_INS_AFTER, &b->me);
	if (!rc)
		rc = LNetMDAttach(b->me, &umd, LNET_UNLINK, &b->md);
	b->used = !rc;
	return expect(b->fx, rc == 0);
}

bool box_bind(struct box *b, unsigned int side, int threshold, uint64_t timeout)
{
	struct ulnet_md umd;
	int rc;

	b->timeout = timeout;
	/* one event of the operation, one of its answer */
	umd = box_md(b, 0, threshold ? threshold : 2);
	b->node = b->fx->rig->node[side];
	rc = LNetMDBind(b->node, &umd, LNET_UNLINK, &b->md);
	b->used = !rc;
	return expect(b->fx, rc == 0);
}

/* LNet unlinks the MD of an operation that is not answered in time. With a
 * short timeout and a busy machine, operations that are begun later may find
 * the MD gone. */
static bool is_timed_out(const struct box *b)
{
	return b->failed[LNET_EVENT_UNLINK] > 0;
}

static bool begun(struct box *b, int rc)
{
	bool gone;

	if (likely(rc == 0))
		return true;
	pthread_mutex_lock(&b->fx->lock);
	b->begun--;
	gone = rc == -ENOENT && is_timed_out(b);
	pthread_mutex_unlock(&b->fx->lock);
	if (!expect(b->fx, gone))
		printf("  not begun: %s\n", strerror(-rc));
	return false;
}

/* Counts the operation before the call, which may return after its end. */
static void begin(struct box *b)
{
	pthread_mutex_lock(&b->fx->lock);
	b->begun++;
	pthread_mutex_unlock(&b->fx->lock);
}

bool box_put_id(struct box *b, struct ulnet_id target, bool ack,
		unsigned int portal, uint64_t bits, uint64_t hdr_data)
{
	begin(b);
	return begun(b, LNetPut(LNET_NID_ANY, b->md,
				ack ? LNET_ACK_REQ : LNET_NOACK_REQ, target,
				portal, bits, 0, hdr_data));
}

static bool get_from(struct box *b, struct ulnet_id target, unsigned int portal,
		     uint64_t bits)
{
	begin(b);
	return begun(b, LNetGet(LNET_NID_ANY, b->md, target, portal, bits, 0));
}

bool box_put_to(struct box *b, const struct ulnet_nid *nid, bool ack,
		unsigned int portal, uint64_t bits, uint64_t hdr_data)
{
	struct ulnet_id target = { *nid, LNET_PID_LUSTRE };

	return box_put_id(b, target, ack, portal, bits, hdr_data);
}

bool box_get_to(struct box *b, const struct ulnet_nid *nid, unsigned int portal,
		uint64_t bits)
{
	return get_from(b, (struct ulnet_id){ *nid, LNET_PID_LUSTRE }, portal,
			bits);
}

bool box_put(struct box *b, unsigned int to, bool ack, unsigned int portal,
	     uint64_t bits, uint64_t hdr_data)
{
	return box_put_id(b, fx_id(b->fx, to), ack, portal, bits, hdr_data);
}

bool box_get(struct box *b, unsigned int to, unsigned int portal, uint64_t bits)
{
	return get_from(b, fx_id(b->fx, to), portal, bits);
}

int box_unlink(struct box *b)
{
	return LNetMDUnlink(b->md);
}

void box_end(struct box *b)
{
	/* -ENOENT: the operation has ended, or is about to */
	box_unlink(b);
	expect(b->fx, fx_wait(b->fx, &b->unlinked, 1));
}

/* ---- waiting ---- */

uint64_t fx_patience(const struct fx *fx)
{
	return fx->rig->patience ? fx->rig->patience : 60 * 1000000;
}

static uint64_t real_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void fx_run(struct fx *fx, uint64_t us)
{
	uint64_t until = real_now() + us;

	fx->rig->ops->run(fx->rig, us);
	if (fx->rig->can & RIG_VIRTUAL_TIME)
		return;
	for (uint64_t now; (now = real_now()) < until;)
		fx->rig->ops->run(fx->rig, until - now);
}

/* Waits in steps of virtual time, or of the clock, as the rig has it. */
static bool wait_until(struct fx *fx, bool (*cond)(struct fx *fx, void *arg),
		       void *arg)
{
	uint64_t patience = fx_patience(fx), began = real_now();
	bool is_virtual = fx->rig->can & RIG_VIRTUAL_TIME;
	uint64_t waited = 0;

	while (!cond(fx, arg) || !hooks_have_returned(fx)) {
		if (waited > patience)
			return false;
		fx->rig->ops->run(fx->rig, STEP);
		waited = is_virtual ? waited + STEP : real_now() - began;
	}
	return true;
}

struct field {
	const unsigned int *field;
	unsigned int n;
};

unsigned int fx_read(struct fx *fx, const unsigned int *field)
{
	unsigned int n;

	pthread_mutex_lock(&fx->lock);
	n = *field;
	pthread_mutex_unlock(&fx->lock);
	return n;
}

static bool field_is(struct fx *fx, void *arg)
{
	const struct field *f = arg;

	return fx_read(fx, f->field) >= f->n;
}

bool fx_wait(struct fx *fx, const unsigned int *field, unsigned int n)
{
	struct field f = { field, n };

	return wait_until(fx, field_is, &f);
}

static bool ops_are_over(struct fx *fx, void *arg)
{
	struct box *b;
	bool over = true;

	(void)arg;
	pthread_mutex_lock(&fx->lock);
	list_for_each_entry (b, &fx->boxes, link)
		over = over && (b->lost || b->terminals >= b->begun);
	pthread_mutex_unlock(&fx->lock);
	return over;
}

bool fx_wait_ops(struct fx *fx)
{
	return wait_until(fx, ops_are_over, NULL);
}

/* ---- numbers ---- */

struct ulnet_id fx_id(const struct fx *fx, unsigned int side)
{
	const struct lnd_rig *rig = fx->rig;
	struct ulnet_id id;

	/* a node that does not listen has a pid of its own */
	if (!rig->node[side] || LNetGetId(rig->node[side], 0, &id))
		id.pid = LNET_PID_LUSTRE;
	id.nid = rig->nid[side];
	return id;
}

uint64_t fx_stat(struct fx *fx, unsigned int side, const char *name)
{
	struct ulnet_stat stats[STATS_MAX];
	int n = lnet_stats(fx->rig->node[side], stats, STATS_MAX);

	for (int i = 0; i < n && i < STATS_MAX; i++)
		if (!strcmp(stats[i].name, name))
			return stats[i].value;
	BUG_ON("no such statistic");
	return 0;
}

struct stat_is {
	unsigned int side;
	const char *name;
	uint64_t value;
};

static bool stat_is(struct fx *fx, void *arg)
{
	const struct stat_is *s = arg;

	return fx_stat(fx, s->side, s->name) >= s->value;
}

bool fx_wait_stat(struct fx *fx, unsigned int side, const char *name,
		  uint64_t value)
{
	struct stat_is s = { side, name, value };

	return wait_until(fx, stat_is, &s) && fx_stat(fx, side, name) == value;
}

static bool credits_are_back(struct fx *fx, unsigned int side)
{
	struct lnet *node = fx->rig->node[side];
	struct ulnet_peer_info peer = { .credits = 0 };
	struct ulnet_ni_info ni;

	if (!lnet_peer_info(node, &fx->rig->nid[1 - side], &peer) &&
	    (peer.credits != peer.credits_max || peer.queued_bytes))
		return false;
	for (unsigned int i = 0; !lnet_ni_info(node, i, &ni); i++)
		if (ni.credits != fx->credits[side])
			return false;
	return true;
}

static bool is_idle(struct fx *fx, void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < 2; i++) {
		if (!fx->rig->node[i])
			continue;
		if (fx_stat(fx, i, "msgs_alloc") || fx_stat(fx, i, "rst_alloc"))
			return false;
		if (!credits_are_back(fx, i))
			return false;
	}
	return true;
}

bool fx_wait_idle(struct fx *fx)
{
	const struct lnd_rig_ops *ops = fx->rig->ops;

	if (!fx_wait_ops(fx) || !wait_until(fx, is_idle, NULL))
		return false;
	return !ops->check || ops->check(fx->rig) == 0;
}

unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	unsigned int n = 0;

	BUG_ON(!d);
	while ((e = readdir(d))) {
		char to[64];
		ssize_t length =
			readlinkat(dirfd(d), e->d_name, to, sizeof(to));

		n += length > 0 &&
		     !(length > 6 && memcmp(to, "/proc/", 6) == 0);
	}
	closedir(d);
	return n;
}

/* ---- life ---- */

/* Returns the credits of an NI when nothing is under way: those of all CPTs. */
static int64_t credits_at_rest(struct lnet *node)
{
	struct ulnet_ni_info ni;

	BUG_ON(lnet_ni_info(node, 0, &ni));
	return ni.credits;
}

int fx_up(struct fx *fx, struct lnd_rig *rig)
{
	int rc;

	if (!pattern[1])
		pattern_init();
	fx->rig = rig;
	list_init(&fx->boxes);
	rig->node[0] = NULL;
	rig->node[1] = NULL;
	rc = rig->ops->up(rig);
	if (rc) {
		rig->node[0] = NULL;
		return rc;
	}
	if (rig->can & RIG_ONE_NODE) {
		rig->node[1] = rig->node[0];
		rig->nid[1] = rig->nid[0];
	}
	for (unsigned int i = 0; i < 2; i++)
		fx->credits[i] = credits_at_rest(rig->node[i]);
	fx->files = open_files();
	return 0;
}

int fx_kill(struct fx *fx)
{
	struct box *b;

	pthread_mutex_lock(&fx->lock);
	list_for_each_entry (b, &fx->boxes, link)
		b->lost = b->lost || b->node == fx->rig->node[1];
	pthread_mutex_unlock(&fx->lock);
	return fx->rig->ops->kill_peer(fx->rig);
}

static void look_at(struct fx *fx, const struct box *b)
{
	expect(fx, b->after == 0); /* events after the last */
	expect(fx, b->bad == 0);   /* contents, or an outcome too early */
	expect(fx, b->late == 0);  /* terminal events after the deadline */
	expect(fx, guards_are_whole(b));
	if (b->unlinked)
		expect(fx, poison_is_whole(b));
	if (b->lost)
		return;
	expect(fx, b->terminals == b->begun);
	expect(fx, b->unlinked == b->used);
}

static void look_at_all(struct fx *fx)
{
	struct box *b, *next;

	/* The nodes are closed or idle, so nothing changes any more. The lock
	 * makes the last changes visible here. */
	pthread_mutex_lock(&fx->lock);
	pthread_mutex_unlock(&fx->lock);
	list_for_each_entry_safe (b, next, &fx->boxes, link) {
		look_at(fx, b);
		box_free(b);
	}
}

/* Has LNet given all memory back? What it has not, it may still write to. */
static bool all_are_over(struct fx *fx)
{
	const struct box *b;
	bool over = true;

	pthread_mutex_lock(&fx->lock);
	list_for_each_entry (b, &fx->boxes, link)
		over = over && (b->lost || b->unlinked == b->used);
	pthread_mutex_unlock(&fx->lock);
	return over;
}

bool fx_settle(struct fx *fx)
{
	if (!fx_wait_idle(fx) || !expect(fx, all_are_over(fx)))
		return false;
	look_at_all(fx);
	return true;
}

void fx_close(struct fx *fx)
{
	expect(fx, fx->rig->ops->down(fx->rig) == 0);
	fx->rig->node[0] = NULL;
	fx->rig->node[1] = NULL;
}

void fx_down(struct fx *fx)
{
	if (fx->rig->node[0])
		fx_close(fx);
	look_at_all(fx);
}

bool fx_again(struct fx *fx)
{
	fx_down(fx);
	return expect(fx, fx_up(fx, fx->rig) == 0);
}
