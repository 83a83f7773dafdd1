/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads that are copied straight out of the sender's memory, by peers that
 * keep to the rules, and by others: the node gets all of a message or none of
 * it, and what it has sent ends as it did.
 */
#include "tests/unit/shmlnd/lend.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "lnet/node/node.h"

static struct shm_token token;

/* In the place of libc's function: how many copies the system allows; and
 * whether the next one of a payload waits, from when it is about to begin until
 * the test lets it go on. */
_Atomic int allowed = INT32_MAX;
static _Atomic bool waits;
static sem_t begins, goes_on;

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nto,
			 const struct iovec *from, unsigned long nfrom,
			 unsigned long flags)
{
	if (atomic_fetch_sub(&allowed, 1) <= 0) {
		errno = EPERM;
		return -1;
	}
	if (nto > 1 && atomic_exchange(&waits, false)) {
		sem_post(&begins);
		sem_wait(&goes_on);
	}
	return syscall(SYS_process_vm_readv, pid, to, nto, from, nfrom, flags);
}

#define COPY_MIN 16384

/* The node takes nothing yet. */
static void lender_up(struct rig *r, struct raw *raw, int64_t copy_min,
		      int64_t stall_timeout)
{
	sem_init(&begins, 0, 0);
	sem_init(&goes_on, 0, 0);
	rig_up_with(r, copy_min, stall_timeout);
	shm_token_make(&token);
	cr_assert(token.at);
	make_payload(payload);
	raw_connect_with(r, raw, &token);
	cr_assert_eq(raw->hello.status, 0);
}

static void loans_up_with(struct rig *r, struct raw *raw, int64_t copy_min,
			  int64_t stall_timeout)
{
	lender_up(r, raw, copy_min, stall_timeout);
	take_puts(r);
}

static void loans_up(struct rig *r, struct raw *raw)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	loans_up_with(r, raw, COPY_MIN, PATIENCE / 1000);
	while (!shm_ring_peer_copies(&raw->ring) && time(NULL) < end)
		sched_yield();
	if (!shm_ring_peer_copies(&raw->ring))
		cr_skip_test("process_vm_readv() is not allowed here");
}

static void loans_down(struct rig *r, struct raw *raw)
{
	raw_close(raw);
	shm_token_free(&token);
	rig_down(r);
}

/* ---- the test lends ---- */

static void lend(const struct rig *r, struct raw *raw, uint32_t loan,
		 const struct shm_segment *segments, uint32_t n,
		 uint32_t length)
{
	lend_to(r, raw, SHM_LENT_MESSAGE, loan, segments, n, length, PORTAL);
}

Test(loan, copied)
{
	const struct shm_segment s[] = {
		{ (uintptr_t)payload, 1 },
		{ (uintptr_t)payload + 1, 40000 },
		{ (uintptr_t)payload + 40001, LENGTH - 40001 },
	};
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	for (uint32_t i = 1; i <= 100; i++) {
		shm_ring_lend(&raw.ring, i);
		lend(&r, &raw, i, s, 3, LENGTH);
		cr_assert_eq(await_answer(&raw, i), SHM_COPIED);
		await_puts(i);
		check_payload();
	}
	loans_down(&r, &raw);
}

/* Memory that is not there, or less of it than the message has, is refused, and
 * the message goes on by the ring. */
Test(loan, no_memory)
{
	uint8_t *gone = mmap(NULL, 2 * LENGTH, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct shm_segment wrong[][2] = {
		{ { 0, LENGTH }, { 0, 0 } },
		{ { UINT64_MAX - 4096, LENGTH }, { 0, 0 } },
		{ { (uintptr_t)gone, LENGTH }, { 0, 0 } },
		{ { (uintptr_t)payload, LENGTH - 1 }, { 0, 1 } },
		{ { (uintptr_t)payload, LENGTH - 1 }, { 0, 0 } },
		{ { (uintptr_t)payload, 0 }, { 0, UINT64_MAX } },
	};
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	for (uint32_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		shm_ring_lend(&raw.ring, 7 + i);
		lend(&r, &raw, 7 + i, wrong[i], 2, LENGTH);
		cr_assert_eq(await_answer(&raw, 7 + i), SHM_REFUSED, "%u", i);
		go_on(&raw, 7 + i);
		await_puts(i + 1);
		check_payload();
	}
	cr_expect(shm_ring_peer_copies(&raw.ring));
	munmap(gone, 2 * LENGTH);
	loans_down(&r, &raw);
}

/* Another process, or another program in it, does not have the token. Nothing
 * that is lent later is looked at. */
Test(loan, other_memory)
{
	const struct shm_segment s = { (uintptr_t)payload, LENGTH };
	struct raw raw;
	struct rig r;
	int before;

	loans_up(&r, &raw);
	*(uint64_t *)(uintptr_t)token.at ^= 1;
	shm_ring_lend(&raw.ring, 5);
	lend(&r, &raw, 5, &s, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, 5), SHM_REFUSED);
	cr_expect_not(shm_ring_peer_copies(&raw.ring));
	go_on(&raw, 5);
	await_puts(1);
	check_payload();
	*(uint64_t *)(uintptr_t)token.at ^= 1;
	before = atomic_load(&allowed);
	shm_ring_lend(&raw.ring, 6);
	lend(&r, &raw, 6, &s, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, 6), SHM_REFUSED);
	cr_expect_eq(atomic_load(&allowed), before);
	go_on(&raw, 6);
	await_puts(2);
	check_payload();
	loans_down(&r, &raw);
}

/* A node that is not to copy, as with peers of another user, reads nothing of
 * the memory of a peer that lends to it all the same. */
Test(loan, unasked)
{
	const struct shm_segment s = { (uintptr_t)payload, LENGTH };
	struct raw raw;
	struct rig r;

	loans_up_with(&r, &raw, 0, PATIENCE / 1000);
	shm_ring_lend(&raw.ring, 5);
	lend(&r, &raw, 5, &s, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, 5), SHM_REFUSED);
	cr_expect_eq(atomic_load(&allowed), INT32_MAX);
	go_on(&raw, 5);
	await_puts(1);
	check_payload();
	loans_down(&r, &raw);
}

/* What was called back is not believed, whether it was copied or not. */
Test(loan, called_back)
{
	const struct shm_segment s = { (uintptr_t)payload, LENGTH };
	const struct shm_segment wrong = { 0, LENGTH };
	const uint64_t number = 9;
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	lend(&r, &raw, 8, &s, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, 8), SHM_CALLED_BACK);
	lend(&r, &raw, 8 + SHM_LOANS, &wrong, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, 8 + SHM_LOANS), SHM_CALLED_BACK);
	shm_ring_lend(&raw.ring, number);
	lend(&r, &raw, number, &wrong, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, number), SHM_REFUSED);
	frame(&raw, SHM_CALL_BACK, &number, sizeof(number));
	/* the connection goes on */
	shm_ring_lend(&raw.ring, 10);
	lend(&r, &raw, 10, &s, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, 10), SHM_COPIED);
	await_puts(1);
	cr_expect_eq(atomic_load(&puts_failed), 3);
	loans_down(&r, &raw);
}

/* ---- memory that is withdrawn ---- */

static _Atomic bool was_given_back;

static void on_withdrawn(const struct ulnet_event *event)
{
	if (event->unlinked)
		atomic_store(&was_given_back, true);
}

/* Posts @memory to portal PORTAL - 1, on another CPT than that which receives
 * from the test: it is free while a copy waits. */
static struct ulnet_md_handle post_elsewhere(const struct rig *r, void *memory)
{
	const struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	const struct ulnet_md md = { .start = memory,
				     .length = LENGTH,
				     .threshold = LNET_MD_THRESH_INF,
				     .options = LNET_MD_OP_PUT |
						LNET_MD_MANAGE_REMOTE,
				     .handler = on_withdrawn };
	struct ulnet_me_handle me;
	struct ulnet_md_handle mdh;

	for (;;) {
		cr_assert_eq(LNetMEAttach(r->node, PORTAL - 1, any, 0,
					  UINT64_MAX, LNET_UNLINK,
					  LNET_INS_AFTER, &me),
			     0);
		cr_assert_eq(LNetMDAttach(me, &md, LNET_UNLINK, &mdh), 0);
		if (node_cpt_of_id(r->node, mdh.cookie)->index !=
		    node_cpt_of(r->node, &r->bad_nid))
			return mdh;
		cr_assert_eq(LNetMDUnlink(mdh), 0);
		while (!atomic_exchange(&was_given_back, false))
			sched_yield();
	}
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The CPT of @mdh has done all that it had to do. */
static void await_cpt(const struct ulnet_md_handle *mdh)
{
	unsigned int cpt = node_cpt_of_id(mdh->node, mdh->cookie)->index;

	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(lnet_call(mdh->node, cpt, nothing, NULL), 0);
}

/* Memory that is being copied to is its owner's again only after the copy. */
Test(loan, withdrawn_at_the_receiver)
{
	const struct shm_segment s = { (uintptr_t)payload, LENGTH };
	uint8_t *memory = calloc(1, LENGTH);
	time_t end = time(NULL) + PATIENCE / 1000;
	struct ulnet_md_handle mdh;
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	mdh = post_elsewhere(&r, memory);
	atomic_store(&waits, true);
	shm_ring_lend(&raw.ring, 1);
	lend_to(&r, &raw, SHM_LENT_MESSAGE, 1, &s, 1, LENGTH, PORTAL - 1);
	sem_wait(&begins);
	cr_expect_eq(LNetMDUnlink(mdh), 0);
	await_cpt(&mdh);
	cr_expect_not(atomic_load(&was_given_back));
	sem_post(&goes_on);
	cr_expect_eq(await_answer(&raw, 1), SHM_COPIED);
	while (!atomic_load(&was_given_back) && time(NULL) < end)
		sched_yield();
	cr_assert(atomic_load(&was_given_back));
	cr_expect(!memcmp(memory, payload, LENGTH));
	free(memory);
	loans_down(&r, &raw);
}

/* What no lender does. */
static const struct wrong_loan {
	const char *what;
	uint32_t type, number, segments, more; /* bytes more in the frame */
} wrong_loans[] = {
	{ "no number", SHM_LENT_MESSAGE, 0, 1, 0 },
	{ "no segment", SHM_LENT_MESSAGE, 1, 0, 0 },
	{ "too many segments", SHM_LENT_MESSAGE, 1, 257, 0 },
	{ "a frame that is too long", SHM_LENT_MESSAGE, 1, 1, 8 },
	{ "a large header", SHM_LENT_LARGE_MESSAGE, 1, 1, 0 },
	{ "more of no loan", SHM_AGAIN, 1, 1, 0 },
	{ "no loan called back", SHM_CALL_BACK, 1, 1, 0 },
};

Test(loan, wrong)
{
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong_loans); i++) {
		const struct wrong_loan *w = &wrong_loans[i];
		const struct shm_loan_hdr hdr = { w->number, w->segments };
		uint8_t body[8192] = { 0 };

		put_header(&r, body, LENGTH);
		memcpy(body + LNET_HDR_SIZE, &hdr, sizeof(hdr));
		frame(&raw, w->type, body,
		      (uint32_t)(LNET_HDR_SIZE + sizeof(hdr) +
				 w->segments * sizeof(struct shm_segment)) +
			      w->more);
		await_end(raw.fd);
		others_are_well(&r);
		raw_close(&raw);
		raw_connect_with(&r, &raw, &token);
	}
	loans_down(&r, &raw);
}

/* More than it may lend is refused, and it goes on with none of it. */
Test(loan, too_many)
{
	const struct shm_segment wrong = { 0, LENGTH };
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	for (uint32_t i = 1; i <= SHM_LOANS + 1; i++) {
		shm_ring_lend(&raw.ring, i);
		lend(&r, &raw, i, &wrong, 1, LENGTH);
		/* The last one has the slot of the first. */
		cr_assert_eq(await_answer(&raw, i), SHM_REFUSED);
	}
	await_end(raw.fd);
	loans_down(&r, &raw);
}

/* Bytes that this process has allocated. */
static size_t allocated(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* Payloads that are refused while nobody knows where they go cost the node no
 * memory before they come, be that known by then or not. */
Test(loan, refused_early)
{
	const struct shm_segment wrong = { 0, LENGTH };
	const uint32_t n = 16;
	struct raw raw;
	struct rig r;
	size_t before;

	lender_up(&r, &raw, COPY_MIN, PATIENCE / 1000);
	cr_assert_eq(LNetSetLazyPortal(r.node, PORTAL), 0);
	before = allocated();
	for (uint32_t i = 1; i <= n; i++) {
		shm_ring_lend(&raw.ring, i);
		lend(&r, &raw, i, &wrong, 1, LENGTH);
		cr_assert_eq(await_answer(&raw, i), SHM_REFUSED);
	}
	cr_expect_lt(allocated(), before + n * LENGTH / 2);
	for (uint32_t i = 1; i <= n / 2; i++)
		go_on(&raw, i);
	take_puts(&r);
	await_puts(n / 2);
	check_payload();
	for (uint32_t i = n / 2 + 1; i <= n; i++)
		go_on(&raw, i);
	await_puts(n);
	check_payload();
	loans_down(&r, &raw);
}

/* A loan's number has 64 bits where a frame names it: one with more than the
 * lower half names none. */
Test(loan, long_number)
{
	const struct shm_segment wrong = { 0, LENGTH };
	const uint64_t number = UINT64_C(1) << 32 | 9;
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	shm_ring_lend(&raw.ring, 9);
	lend(&r, &raw, 9, &wrong, 1, LENGTH);
	cr_assert_eq(await_answer(&raw, 9), SHM_REFUSED);
	frame(&raw, SHM_CALL_BACK, &number, sizeof(number));
	await_end(raw.fd);
	loans_down(&r, &raw);
}

/* A process that has lent a payload, and is killed before the node looks. */
Test(loan, killed)
{
	const struct shm_segment s = { (uintptr_t)payload, LENGTH };
	time_t end = time(NULL) + PATIENCE / 1000;
	int ready[2], status;
	struct raw raw;
	struct rig r;
	char byte;
	pid_t pid;

	rig_up(&r);
	take_puts(&r);
	fork_fd_close(r.name);
	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		r.name = shm_name_own(0, &r.bad_nid);
		shm_token_make(&token);
		raw_connect_with(&r, &raw, &token);
		byte = raw.hello.status == 0;
		shm_ring_lend(&raw.ring, 3);
		lend(&r, &raw, 3, &s, 1, LENGTH - 1);
		(void)!write(ready[1], &byte, 1);
		pause();
	}
	cr_assert(read(ready[0], &byte, 1) == 1 && byte == 1);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert(waitpid(pid, &status, 0) == pid);
	/* It was copied before, or not at all. */
	while (!atomic_load(&puts_failed) && !atomic_load(&puts_got) &&
	       time(NULL) < end)
		sched_yield();
	cr_expect_eq(atomic_load(&puts_failed) + atomic_load(&puts_got), 1);
	close(ready[0]);
	close(ready[1]);
	r.name = shm_name_own(0, &r.bad_nid);
	rig_down(&r);
}

/* ---- the node lends ---- */

/* The node lends a payload to the test, which copies. Returns the loan. */
static uint32_t be_lent(struct rig *r, struct raw *raw, uint64_t us)
{
	struct shm_loan_hdr hdr;
	struct shm_segment s;
	struct shm_frame f;

	shm_ring_set_copies(&raw->ring, true);
	put(r->node, &r->bad_nid, payload, us);
	next_frame(raw, &f);
	cr_assert_eq(f.type, SHM_LENT_MESSAGE);
	memcpy(&hdr, f.body + LNET_HDR_SIZE, sizeof(hdr));
	memcpy(&s, f.body + LNET_HDR_SIZE + sizeof(hdr), sizeof(s));
	cr_assert_eq(hdr.segments, 1);
	cr_assert_eq(s.at, (uintptr_t)payload);
	cr_assert_eq(s.length, LENGTH);
	take_frame(raw, &f);
	return hdr.loan;
}

Test(loan, lends)
{
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	for (unsigned int i = 0; i < 100; i++) {
		uint32_t loan = be_lent(&r, &raw, 60000000);

		cr_assert(shm_ring_is_lent(&raw.ring, loan));
		cr_expect_eq(atomic_load(&sent), i, "before it was copied");
		answer(&raw, loan, SHM_COPIED);
		await_count(&sent, i + 1);
		cr_assert_not(shm_ring_is_lent(&raw.ring, loan));
	}
	cr_expect_eq(atomic_load(&failed), 0);
	loans_down(&r, &raw);
}

Test(loan, refused)
{
	struct shm_frame f;
	uint32_t done = 0, loan;
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	loan = be_lent(&r, &raw, 60000000);
	answer(&raw, loan, SHM_REFUSED);
	while (done < LENGTH) {
		uint32_t at = done ? 0 : 8;

		next_frame(&raw, &f);
		cr_assert_eq(f.type, done ? SHM_MORE : SHM_AGAIN);
		cr_assert(done || is_about(&f, loan));
		cr_assert_leq(f.length - at, LENGTH - done);
		cr_assert(!memcmp(f.body + at, payload + done, f.length - at));
		done += f.length - at;
		take_frame(&raw, &f);
	}
	await_count(&sent, 1);
	loans_down(&r, &raw);
}

/* A message that is given up is lent no more, whatever the peer says later. */
Test(loan, given_up)
{
	uint32_t loan, late;
	struct shm_frame f;
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	late = be_lent(&r, &raw, 50000);
	await_count(&failed, 1);
	cr_expect_not(shm_ring_is_lent(&raw.ring, late));
	answer(&raw, late, SHM_REFUSED);
	next_frame(&raw, &f);
	cr_expect_eq(f.type, SHM_CALL_BACK);
	cr_expect(is_about(&f, late));
	take_frame(&raw, &f);
	late = be_lent(&r, &raw, 50000);
	await_count(&failed, 2);
	answer(&raw, late, SHM_COPIED);
	answer(&raw, 12345, SHM_REFUSED);
	loan = be_lent(&r, &raw, 60000000);
	answer(&raw, loan, SHM_COPIED);
	await_count(&sent, 1);
	loans_down(&r, &raw);
}

/* A peer that goes without an answer: the message is not called sent. */
Test(loan, unanswered)
{
	uint32_t loan, copied;
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	loan = be_lent(&r, &raw, 60000000);
	copied = be_lent(&r, &raw, 60000000);
	shm_ring_answer(&raw.ring, copied, SHM_COPIED);
	shutdown(raw.fd, SHUT_RDWR);
	await_count(&failed, 1);
	await_count(&sent, 1);
	cr_expect_not(shm_ring_is_lent(&raw.ring, loan));
	loans_down(&r, &raw);
}

/* A peer that is stopped before it answers is given up, although there is room
 * for all that is sent to it. */
Test(loan, never_answered)
{
	struct raw raw;
	struct rig r;

	loans_up_with(&r, &raw, COPY_MIN, 1);
	be_lent(&r, &raw, 60000000);
	await_end(raw.fd);
	await_count(&failed, 1);
	loans_down(&r, &raw);
}

/* ---- both are correct ---- */

/* At any time the system may cease to allow copies: nothing is lost. */
Test(loan, not_allowed_any_more)
{
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	for (unsigned int i = 0; i < 40; i++) {
		if (i == 20)
			atomic_store(&allowed, 3);
		put(r.good, &r.nid, payload, 60000000);
		await_puts(i + 1);
		check_payload();
	}
	await_count(&sent, 40);
	cr_expect_lt(atomic_load(&allowed), 0);
	cr_expect_eq(atomic_load(&failed) + atomic_load(&puts_failed), 0);
	loans_down(&r, &raw);
}

/* Memory that is its owner's again, and changes, while it is copied from: what
 * comes of it is no message. */
Test(loan, withdrawn_at_the_sender)
{
	struct raw raw;
	struct rig r;

	loans_up(&r, &raw);
	put(r.good, &r.nid, payload, 60000000);
	await_puts(1);
	check_payload();
	atomic_store(&waits, true);
	put(r.good, &r.nid, payload, 50000);
	sem_wait(&begins);
	await_count(&failed, 1);
	memset(payload, 0xff, LENGTH);
	sem_post(&goes_on);
	await_count(&puts_failed, 1);
	cr_expect_eq(atomic_load(&puts_got), 1);
	loans_down(&r, &raw);
}

/* Nor is it if it allows none from the beginning. */
Test(loan, not_allowed)
{
	struct raw raw;
	struct rig r;

	atomic_store(&allowed, 0);
	loans_up_with(&r, &raw, COPY_MIN, PATIENCE / 1000);
	for (unsigned int i = 0; i < 10; i++) {
		put(r.good, &r.nid, payload, 60000000);
		await_puts(i + 1);
	}
	cr_expect_not(shm_ring_peer_copies(&raw.ring));
	loans_down(&r, &raw);
}
