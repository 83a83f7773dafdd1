/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/shmlnd/lend.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <time.h>

uint8_t payload[LENGTH];

void make_payload(uint8_t *to)
{
	for (unsigned int i = 0; i < LENGTH; i++)
		to[i] = (uint8_t)(i * 2654435761u >> 24);
	if (to != payload)
		memcpy(payload, to, LENGTH);
}

/* ---- the test lends ---- */

void lend_to(const struct rig *r, struct raw *raw, uint32_t type, uint32_t loan,
	     const struct shm_segment *segments, uint32_t n, uint32_t length,
	     unsigned int portal)
{
	const struct shm_loan_hdr hdr = { loan, n };
	uint8_t body[4096];

	put_header(r, body, length);
	store_le32(body + HDR_PORTAL, portal);
	memcpy(body + LNET_HDR_SIZE, &hdr, sizeof(hdr));
	memcpy(body + LNET_HDR_SIZE + sizeof(hdr), segments,
	       n * sizeof(*segments));
	frame(raw, type, body,
	      (uint32_t)(LNET_HDR_SIZE + sizeof(hdr) + n * sizeof(*segments)));
}

uint32_t await_answer(const struct raw *raw, uint32_t loan)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	uint32_t answer;

	while (!(answer = shm_ring_answer_to(&raw->ring, loan)) &&
	       time(NULL) < end)
		sched_yield();
	return answer;
}

void check_payload(void)
{
	cr_expect(!memcmp(puts_buffer, payload, LENGTH));
	memset(puts_buffer, 0, LENGTH);
}

void go_on(struct raw *raw, uint64_t loan)
{
	uint8_t body[sizeof(loan) + 4096];

	memcpy(body, &loan, sizeof(loan));
	memcpy(body + sizeof(loan), payload, 4096);
	frame(raw, SHM_AGAIN, body, sizeof(body));
	for (uint32_t done = 4096; done < LENGTH; done += 4096)
		frame(raw, SHM_MORE, payload + done, 4096);
}

/* ---- the node lends ---- */

_Atomic unsigned int sent, failed;

static void on_send(const struct ulnet_event *event)
{
	if (event->type == LNET_EVENT_SEND)
		atomic_fetch_add(event->status ? &failed : &sent, 1);
}

struct ulnet_md_handle put(struct lnet *node, const struct ulnet_nid *nid,
			   void *from, uint64_t us)
{
	const struct ulnet_id to = { *nid, LNET_PID_LUSTRE };
	const struct ulnet_md md = { .start = from,
				     .length = LENGTH,
				     .threshold = 1,
				     .timeout = us,
				     .handler = on_send };
	struct ulnet_md_handle mdh;

	cr_assert_eq(LNetMDBind(node, &md, LNET_UNLINK, &mdh), 0);
	cr_assert_eq(
		LNetPut(LNET_NID_ANY, mdh, LNET_NOACK_REQ, to, PORTAL, 0, 0, 0),
		0);
	return mdh;
}

void await_count(_Atomic unsigned int *count, unsigned int n)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	while (atomic_load(count) < n && time(NULL) < end)
		sched_yield();
	cr_assert_eq(atomic_load(count), n);
}

bool is_about(const struct shm_frame *f, uint64_t loan)
{
	return !memcmp(f->body, &loan, sizeof(loan));
}

void next_frame(struct raw *raw, struct shm_frame *f)
{
	time_t end = time(NULL) + PATIENCE / 1000;
	int rc;

	do {
		cr_assert(!shm_ring_look(&raw->ring));
		rc = shm_ring_next(&raw->ring, f);
		sched_yield();
	} while (!rc && time(NULL) < end);
	cr_assert_eq(rc, 1);
}

void take_frame(struct raw *raw, const struct shm_frame *f)
{
	shm_ring_took(&raw->ring, f);
	shm_ring_give(&raw->ring);
	bell(raw);
}

void answer(struct raw *raw, uint32_t loan, uint32_t what)
{
	shm_ring_answer(&raw->ring, loan, what);
	bell(raw);
}
