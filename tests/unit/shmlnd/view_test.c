/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads in memory that is shared from birth: they come out of a view of it,
 * where nothing can be copied by process_vm_readv(), and a peer that gives the
 * node a commons that is none, or names what is not in it, does no harm.
 */
#include "tests/unit/shmlnd/lend.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/commons.h"
#include "base/fork.h"

#define PATIENCE_US (PATIENCE * UINT64_C(1000))

/* The test's own commons, and the payload in it. */
static struct commons mine;
static uint64_t payload_at;

static void commons_up(void)
{
	uint32_t block;
	void *p;

	commons_init(&mine, SHARED_MAX);
	cr_assert_eq(commons_alloc(&mine, 4096, &p), 0);
	cr_assert_eq(commons_alloc(&mine, LENGTH, &p), 0);
	make_payload(p);
	block = commons_hold(&mine, p, LENGTH, &payload_at);
	cr_assert(block);
	commons_release(&mine, block);
}

/* The node is ready to be sent a commons. Of the test it copies nothing, since
 * there is no token. */
static void views_up(struct rig *r, struct raw *raw)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	uint8_t body[LNET_HDR_SIZE];

	rig_up_with(r, 16384, PATIENCE / 1000);
	commons_up();
	raw_connect(r, raw);
	cr_assert_eq(raw->hello.status, 0);
	take_puts(r);
	/* It looks at the offer when a large message comes. */
	cr_assert_not(shm_ring_peer_maps(&raw->ring));
	shm_ring_offer(&raw->ring);
	put_header(r, body, LENGTH);
	frame(raw, SHM_MESSAGE, body, sizeof(body));
	for (uint32_t done = 0; done < LENGTH; done += 4096)
		frame(raw, SHM_MORE, payload + done, 4096);
	while (!shm_ring_peer_maps(&raw->ring) && time(NULL) < end)
		sched_yield();
	cr_assert(shm_ring_peer_maps(&raw->ring));
	await_puts(1);
	check_payload();
}

static void views_down(struct rig *r, struct raw *raw)
{
	raw_close(raw);
	commons_fini(&mine);
	rig_down(r);
}

static void hand_over(const struct raw *raw, int fd)
{
	cr_assert_eq(shm_pass(raw->fd, "", 1, fd), 0);
}

static void lend(const struct rig *r, struct raw *raw, uint32_t loan,
		 const struct shm_segment *s, uint32_t n)
{
	shm_ring_lend(&raw->ring, loan);
	lend_to(r, raw, SHM_SHARED_MESSAGE, loan, s, n, LENGTH, PORTAL);
}

/* ---- the node reads ---- */

/* A payload that the peer could lend is enough, even if all of it is in one
 * frame, as with large rings. */
Test(view, one_frame)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	uint8_t body[LNET_HDR_SIZE + 4096] = { 0 };
	struct raw raw;
	struct rig r;

	rig_up_with(&r, 4096, PATIENCE / 1000);
	raw_connect(&r, &raw);
	take_puts(&r);
	shm_ring_offer(&raw.ring);
	put_header(&r, body, 4095);
	frame(&raw, SHM_MESSAGE, body, sizeof(body) - 1);
	await_puts(1);
	cr_expect_not(shm_ring_peer_maps(&raw.ring));
	put_header(&r, body, 4096);
	frame(&raw, SHM_MESSAGE, body, sizeof(body));
	await_puts(2);
	while (!shm_ring_peer_maps(&raw.ring) && time(NULL) < end)
		sched_yield();
	cr_expect(shm_ring_peer_maps(&raw.ring));
	raw_close(&raw);
	rig_down(&r);
}

Test(view, read)
{
	struct shm_segment s[2];
	struct raw raw;
	struct rig r;

	views_up(&r, &raw);
	hand_over(&raw, commons_fd(&mine));
	s[0] = (struct shm_segment){ payload_at, 5000 };
	s[1] = (struct shm_segment){ payload_at + 5000, LENGTH - 5000 };
	for (uint32_t i = 1; i <= 40; i++) {
		lend(&r, &raw, i, s, 2);
		cr_assert_eq(await_answer(&raw, i), SHM_COPIED);
		await_puts(i + 1);
		check_payload();
	}
	views_down(&r, &raw);
}

/* What was called back is not believed. */
Test(view, called_back)
{
	struct shm_segment s = { 0, LENGTH };
	struct raw raw;
	struct rig r;

	views_up(&r, &raw);
	hand_over(&raw, commons_fd(&mine));
	lend_to(&r, &raw, SHM_SHARED_MESSAGE, 3, &s, 1, LENGTH, PORTAL);
	cr_assert_eq(await_answer(&raw, 3), SHM_CALLED_BACK);
	s.at = payload_at;
	lend(&r, &raw, 4, &s, 1);
	cr_assert_eq(await_answer(&raw, 4), SHM_COPIED);
	await_puts(2);
	check_payload();
	views_down(&r, &raw);
}

/* What is not in the commons, or less than the payload. */
Test(view, outside)
{
	const struct shm_segment wrong[][2] = {
		{ { SHARED_MAX, LENGTH }, { 0, 0 } },
		{ { SHARED_MAX - LENGTH + 1, LENGTH }, { 0, 0 } },
		{ { 0, UINT64_MAX }, { 0, 0 } },
		{ { UINT64_MAX, LENGTH }, { 0, 0 } },
		{ { UINT64_MAX - LENGTH + 1, LENGTH }, { 0, 0 } },
		{ { 0, LENGTH }, { SHARED_MAX + 1, 0 } },
		{ { 0, LENGTH - 1 }, { 0, 0 } },
	};
	struct raw raw;
	struct rig r;

	views_up(&r, &raw);
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		shm_ring_offer(&raw.ring);
		lend_to(&r, &raw, SHM_SHARED_MESSAGE, 1, wrong[i], 2, LENGTH,
			PORTAL);
		cr_assert_eq(await_answer(&raw, 1), SHM_CALLED_BACK);
		hand_over(&raw, commons_fd(&mine));
		lend(&r, &raw, 2, wrong[i], 2);
		await_end(raw.fd);
		others_are_well(&r);
		raw_close(&raw);
		raw_connect(&r, &raw);
	}
	views_down(&r, &raw);
}

/* What the peer sends in the place of a commons. */
static int unsealed(void)
{
	int fd = memfd_create("unsealed", MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, SHARED_MAX), 0);
	return fd;
}
static int sealed(off_t size)
{
	int fd = memfd_create("sealed", MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, size), 0);
	cr_assert_eq(
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
	return fd;
}
static int empty(void)
{
	return sealed(0);
}
static int no_memory(void)
{
	return open("/dev/zero", O_RDONLY);
}
static int (*const wrong_commons[])(void) = { unsealed, empty, no_memory };

/* A commons that the node does not take, or that never comes: the payload goes
 * by the ring, and the node wants no commons any more. */
Test(view, no_commons)
{
	const struct shm_segment s = { payload_at, LENGTH };
	struct raw raw;
	struct rig r;

	for (unsigned int i = 0; i <= ARRAY_SIZE(wrong_commons); i++) {
		int fd = -1;

		atomic_store(&puts_got, 0);
		views_up(&r, &raw);
		if (i < ARRAY_SIZE(wrong_commons)) {
			fd = wrong_commons[i]();
			cr_assert(fd >= 0);
			hand_over(&raw, fd);
		}
		lend(&r, &raw, 7, &s, 1);
		cr_assert_eq(await_answer(&raw, 7), SHM_REFUSED, "%u", i);
		cr_expect_eq(shm_ring_peer_maps(&raw.ring), fd < 0, "%u", i);
		go_on(&raw, 7);
		await_puts(2);
		check_payload();
		if (fd >= 0)
			close(fd);
		views_down(&r, &raw);
	}
}

/* How often are memories of sealed() mapped? */
static unsigned int count_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	char line[512];

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "/memfd:sealed") != NULL;
	fclose(f);
	return n;
}

static void await_mapped(unsigned int n)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	while (count_mapped() != n && time(NULL) < end)
		sched_yield();
	cr_assert_eq(count_mapped(), n);
}

/* The peer lends the whole of what a payload may be, at @at. */
static void lend_and_wait(const struct rig *r, struct raw *raw, uint32_t loan,
			  uint64_t at)
{
	const struct shm_segment s = { at, LENGTH };

	lend(r, raw, loan, &s, 1);
	cr_assert_eq(await_answer(raw, loan), SHM_COPIED);
}

/* What a connection had mapped is free again when it has ended. What is more
 * than its share is not mapped, but read. */
Test(view, given_back)
{
	int fd = sealed(MAP_MAX / CPTS), larger;
	struct raw raw, next;
	struct rig r;

	views_up(&r, &raw);
	larger = sealed(MAP_MAX / CPTS + 4096);
	hand_over(&raw, fd);
	lend_and_wait(&r, &raw, 1, 0);
	await_mapped(1);
	for (int i = 0; i < 3; i++) {
		raw_connect(&r, &next);
		shm_ring_offer(&next.ring);
		lend_to(&r, &next, SHM_SHARED_MESSAGE, 1,
			&(struct shm_segment){ 0, LENGTH }, 1, LENGTH, PORTAL);
		cr_assert_eq(await_answer(&next, 1), SHM_CALLED_BACK);
		await_end(raw.fd);
		await_mapped(0);
		hand_over(&next, i == 1 ? larger : fd);
		lend_and_wait(&r, &next, 2, MAP_MAX / CPTS - LENGTH);
		await_mapped(i == 1 ? 0 : 1);
		raw_close(&raw);
		raw = next;
	}
	close(fd);
	close(larger);
	views_down(&r, &raw);
}

/* Another user has one share of what is mapped, however many processes it
 * makes. */
Test(view, by_a_user)
{
	int fd = sealed(MAP_MAX / CPTS * 5 / 16);
	char name[LNET_INTERFACE_SIZE];
	struct raw raw[3];
	struct rig r;

	rig_up_few(&r);
	take_puts(&r);
	for (unsigned int i = 0; i < ARRAY_SIZE(raw); i++) {
		fork_fd_close(r.name);
		do
			cr_assert_eq(shm_resolve("auto", &r.bad_nid, name), 0);
		while (lnet_cpt_of(r.node, &r.bad_nid) != 1);
		r.name = shm_name_own(0, &r.bad_nid);
		atomic_store(&other_pid, 1000000 + (int)i);
		raw_connect(&r, &raw[i]);
		cr_assert_eq(raw[i].hello.status, 0);
		shm_ring_offer(&raw[i].ring);
		lend_to(&r, &raw[i], SHM_SHARED_MESSAGE, 1,
			&(struct shm_segment){ 0, LENGTH }, 1, LENGTH, PORTAL);
		cr_assert_eq(await_answer(&raw[i], 1), SHM_CALLED_BACK);
		hand_over(&raw[i], fd);
		lend_and_wait(&r, &raw[i], 2, 0);
	}
	atomic_store(&other_pid, 0);
	/* There is room for all three, but then less is free than it has. */
	cr_expect_eq(count_mapped(), 2, "%u", count_mapped());
	for (unsigned int i = 0; i < ARRAY_SIZE(raw); i++)
		raw_close(&raw[i]);
	close(fd);
	rig_down(&r);
}

/* A peer that comes back again and again, and lends what it has never written,
 * keeps no memory that this process would have to pay for. */
Test(view, never_written)
{
	int fd[20];
	struct stat st;
	struct raw raw;
	struct rig r;

	views_up(&r, &raw);
	for (unsigned int i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = sealed(MAP_MAX / CPTS);
		hand_over(&raw, fd[i]);
		for (uint32_t j = 2; j <= 4; j++)
			lend_and_wait(&r, &raw, j, j * LENGTH - 7);
		raw_close(&raw);
		raw_connect(&r, &raw);
		shm_ring_offer(&raw.ring);
		lend_to(&r, &raw, SHM_SHARED_MESSAGE, 1,
			&(struct shm_segment){ 0, LENGTH }, 1, LENGTH, PORTAL);
		cr_assert_eq(await_answer(&raw, 1), SHM_CALLED_BACK);
	}
	await_mapped(0);
	for (unsigned int i = 0; i < ARRAY_SIZE(fd); i++) {
		cr_assert_eq(fstat(fd[i], &st), 0);
		cr_expect_eq(st.st_blocks, 0, "%u", i);
		close(fd[i]);
	}
	views_down(&r, &raw);
}

/* ---- the node lends ---- */

static void *shared(struct lnet *node, size_t length)
{
	void *p;

	cr_assert_eq(lnet_mem_alloc(node, length, &p), 0);
	return p;
}

/* Takes the commons that the node sends, among wake-ups. */
static void get_commons(const struct raw *raw, struct commons_view *v)
{
	char byte;
	int fd;

	do {
		await(raw->fd);
		cr_assert_eq(shm_take(raw->fd, &byte, 1, &fd), 1);
	} while (fd == -1);
	cr_assert(fd >= 0);
	cr_assert_eq(commons_view_size(fd), SHARED_MAX);
	commons_view_open(v, fd, SHARED_MAX);
	cr_assert_eq(commons_view_map(v), 0);
}

/* The node lends what is at @from; returns the loan, and sets *@at. */
static uint32_t be_lent(struct rig *r, struct raw *raw, void *from,
			uint64_t *at, struct ulnet_md_handle *mdh)
{
	struct shm_loan_hdr hdr;
	struct shm_segment s;
	struct shm_frame f;

	*mdh = put(r->node, &r->bad_nid, from, PATIENCE_US);
	next_frame(raw, &f);
	cr_assert_eq(f.type, SHM_SHARED_MESSAGE);
	memcpy(&hdr, f.body + LNET_HDR_SIZE, sizeof(hdr));
	memcpy(&s, f.body + LNET_HDR_SIZE + sizeof(hdr), sizeof(s));
	cr_assert_eq(hdr.segments, 1);
	cr_assert_eq(s.length, LENGTH);
	*at = s.at;
	take_frame(raw, &f);
	return hdr.loan;
}

/* Of memory that is not shared nothing is lent to a peer that cannot copy. */
static void ring_only(const struct rig *r, struct raw *raw, void *from)
{
	uint32_t done = 0;
	struct shm_frame f;

	put(r->node, &r->bad_nid, from, PATIENCE_US);
	while (done < LENGTH) {
		next_frame(raw, &f);
		cr_assert_eq(f.type, done ? SHM_MORE : SHM_MESSAGE);
		done += f.length - (done ? 0 : LNET_HDR_SIZE);
		take_frame(raw, &f);
	}
}

Test(view, lends)
{
	struct commons_view v;
	struct raw raw;
	struct rig r;
	struct ulnet_md_handle mdh;
	uint64_t at;
	void *p;

	views_up(&r, &raw);
	p = shared(r.node, LENGTH);
	make_payload(p);
	ring_only(&r, &raw, payload);
	cr_expect_not(shm_ring_peer_offers(&raw.ring));
	ring_only(&r, &raw, p);
	cr_expect(shm_ring_peer_offers(&raw.ring));
	shm_ring_set_maps(&raw.ring, true);
	ring_only(&r, &raw, payload);
	await_count(&sent, 3);
	for (unsigned int i = 0; i < 40; i++) {
		uint32_t loan = be_lent(&r, &raw, p, &at, &mdh);

		if (!i)
			get_commons(&raw, &v);
		cr_assert(commons_view_has(&v, at, LENGTH));
		cr_assert(!memcmp(v.map + at, payload, LENGTH));
		cr_expect_eq(atomic_load(&sent), i + 3, "before it was read");
		answer(&raw, loan, SHM_COPIED);
		await_count(&sent, i + 4);
	}
	/* The peer changes its mind. */
	shm_ring_set_maps(&raw.ring, false);
	ring_only(&r, &raw, p);
	await_count(&sent, 44);
	cr_expect_eq(lnet_mem_free(r.node, p), 0);
	commons_view_close(&v);
	views_down(&r, &raw);
}

/* Memory that is freed while a peer may still read it waits for the peer. */
Test(view, freed_while_lent)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	struct raw raw;
	struct rig r;
	uint32_t loan;
	struct ulnet_md_handle mdh;
	uint64_t at;
	void *p, *other;
	int rc;

	views_up(&r, &raw);
	p = shared(r.node, SHARED_MAX);
	ring_only(&r, &raw, p);
	shm_ring_set_maps(&raw.ring, true);
	loan = be_lent(&r, &raw, p, &at, &mdh);
	cr_assert_eq(LNetMDUnlink(mdh), 0);
	await_count(&failed, 1);
	cr_expect_eq(lnet_mem_free(r.node, p), 0);
	cr_expect_eq(lnet_mem_free(r.node, p), -EINVAL);
	cr_expect_eq(lnet_mem_alloc(r.node, LENGTH, &other), -ENOSPC);
	answer(&raw, loan, SHM_COPIED);
	while ((rc = lnet_mem_alloc(r.node, SHARED_MAX, &p)) == -ENOSPC &&
	       time(NULL) < end)
		sched_yield();
	cr_assert_eq(rc, 0);
	/* So it does for the end of the connection. */
	be_lent(&r, &raw, p, &at, &mdh);
	cr_expect_eq(lnet_mem_free(r.node, p), 0);
	cr_expect_eq(lnet_mem_alloc(r.node, LENGTH, &other), -ENOSPC);
	shutdown(raw.fd, SHUT_RDWR);
	await_count(&failed, 2);
	while ((rc = lnet_mem_alloc(r.node, LENGTH, &other)) == -ENOSPC &&
	       time(NULL) < end)
		sched_yield();
	cr_assert_eq(rc, 0);
	views_down(&r, &raw);
}

/* ---- both are correct ---- */

static void on_reply(const struct ulnet_event *event)
{
	if (event->type == LNET_EVENT_REPLY)
		atomic_fetch_add(event->status ? &failed : &sent, 1);
}

/* @node offers @from to GETs at PORTAL - 2. */
static void offer(struct lnet *node, void *from)
{
	const struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	const struct ulnet_md md = { .start = from,
				     .length = LENGTH,
				     .threshold = LNET_MD_THRESH_INF,
				     .options = LNET_MD_OP_GET |
						LNET_MD_MANAGE_REMOTE };
	struct ulnet_me_handle me;
	struct ulnet_md_handle mdh;

	cr_assert_eq(LNetMEAttach(node, PORTAL - 2, any, 0, UINT64_MAX,
				  LNET_RETAIN, LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &md, LNET_RETAIN, &mdh), 0);
}

static void get(struct lnet *node, const struct ulnet_nid *nid, void *to)
{
	const struct ulnet_id id = { *nid, LNET_PID_LUSTRE };
	const struct ulnet_md md = { .start = to,
				     .length = LENGTH,
				     .threshold = LNET_MD_THRESH_INF,
				     .handler = on_reply };
	struct ulnet_md_handle mdh;

	cr_assert_eq(LNetMDBind(node, &md, LNET_UNLINK, &mdh), 0);
	cr_assert_eq(LNetGet(LNET_NID_ANY, mdh, id, PORTAL - 2, 0, 0), 0);
}

/* PUTs and GETs between two nodes, out of memory that is shared, and back into
 * it. */
Test(view, both_ways)
{
	struct raw raw;
	uint8_t *from, *to;
	int before = 0;
	struct rig r;

	views_up(&r, &raw);
	from = shared(r.good, 3 * LENGTH);
	to = shared(r.node, LENGTH);
	make_payload(from + 4096);
	offer(r.good, from + 4096);
	for (unsigned int i = 0; i < 10; i++) {
		put(r.good, &r.nid, from + 4096, PATIENCE_US);
		await_puts(i + 2);
		check_payload();
		await_count(&sent, 2 * i + 1);
		memset(to, 0, LENGTH);
		get(r.node, &r.good_nid, to);
		await_count(&sent, 2 * i + 2);
		cr_expect(!memcmp(to, payload, LENGTH));
		/* The first ones had to be copied, or went by the ring. */
		if (i == 1)
			before = atomic_load(&allowed);
	}
	cr_expect_eq(atomic_load(&allowed), before);
	cr_expect_eq(atomic_load(&failed), 0);
	views_down(&r, &raw);
}

Test(view, arguments)
{
	struct raw raw;
	struct rig r;
	void *p, *q;

	views_up(&r, &raw);
	cr_expect_eq(lnet_mem_free(r.node, payload), -EINVAL);
	cr_expect_eq(lnet_mem_alloc(r.node, 0, &p), -EINVAL);
	cr_expect_eq(lnet_mem_alloc(r.node, SHARED_MAX + 1, &p), -ENOSPC);
	cr_expect_eq(lnet_mem_alloc(r.node, SIZE_MAX, &p), -ENOSPC);
	cr_assert_eq(lnet_mem_alloc(r.node, 1, &p), 0);
	cr_assert_eq(lnet_mem_alloc(r.node, 1, &q), 0);
	cr_expect_eq(lnet_mem_free(r.node, NULL), -EINVAL);
	cr_expect_eq(lnet_mem_free(r.node, (char *)p + 1), -EINVAL);
	cr_expect_eq(lnet_mem_free(r.good, p), -EINVAL);
	cr_expect_eq(lnet_mem_free(r.node, p), 0);
	views_down(&r, &raw);
}
