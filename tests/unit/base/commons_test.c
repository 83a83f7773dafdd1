/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/commons.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNITS 64u
#define SIZE  (UNITS * COMMONS_UNIT)

static void *alloc(struct commons *a, uint32_t units)
{
	void *p;

	cr_assert_eq(commons_alloc(a, units * COMMONS_UNIT, &p), 0);
	return p;
}

Test(commons, all_of_it)
{
	struct commons a;
	void *p, *q;

	commons_init(&a, SIZE + 1);
	cr_expect_eq(commons_alloc(&a, 0, &p), -EINVAL);
	cr_expect_eq(commons_free(&a, &a), -EINVAL);
	cr_expect_eq(commons_alloc(&a, SIZE + 1, &p), -ENOSPC);
	cr_assert_eq(commons_alloc(&a, SIZE - 1, &p), 0);
	memset(p, 1, SIZE);
	cr_expect_eq(commons_alloc(&a, 1, &q), -ENOSPC);
	cr_expect_eq(commons_free(&a, (char *)p + COMMONS_UNIT), -EINVAL);
	cr_expect_eq(commons_free(&a, (char *)p + SIZE), -EINVAL);
	cr_expect_eq(commons_free(&a, (char *)p - COMMONS_UNIT), -EINVAL);
	cr_expect_eq(commons_free(&a, p), 0);
	cr_expect_eq(commons_free(&a, p), -EINVAL);
	cr_expect_eq(alloc(&a, UNITS), p);
	commons_fini(&a);

	commons_init(&a, COMMONS_UNIT - 1);
	cr_expect_eq(commons_alloc(&a, 1, &p), -ENOSPC);
	commons_fini(&a);
}

/* Blocks do not overlap, whatever is allocated and freed before them, and when
 * all are freed, all is one again. */
Test(commons, any_order)
{
	struct {
		uint8_t *p;
		uint32_t units;
	} block[UNITS] = { 0 };
	uint32_t seed = 1, used = 0;
	struct commons a;
	void *p;

	commons_init(&a, SIZE);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t at = (seed = seed * 1103515245 + 12345) >> 16;
		uint32_t n = 1 + (at >> 6) % 9;

		at %= UNITS;
		if (block[at].p) {
			for (uint32_t j = 0; j < block[at].units; j++)
				cr_assert_eq(block[at].p[j * COMMONS_UNIT], at);
			cr_assert_eq(commons_free(&a, block[at].p), 0);
			used -= block[at].units;
			block[at].p = NULL;
			continue;
		}
		if (commons_alloc(&a, n * COMMONS_UNIT, &p))
			continue;
		block[at].p = p;
		block[at].units = n;
		used += n;
		cr_assert_leq(used, UNITS);
		for (uint32_t j = 0; j < n; j++)
			block[at].p[j * COMMONS_UNIT] = (uint8_t)at;
	}
	for (uint32_t i = 0; i < UNITS; i++)
		if (block[i].p)
			cr_assert_eq(commons_free(&a, block[i].p), 0);
	alloc(&a, UNITS);
	commons_fini(&a);
}

Test(commons, lent)
{
	uint32_t first, second;
	uint64_t at;
	struct commons a;
	char *p, *q;

	commons_init(&a, SIZE);
	cr_expect_eq(commons_hold(&a, &a, 1, &at), 0);
	p = alloc(&a, UNITS / 2);
	q = alloc(&a, UNITS / 2);
	cr_expect_eq(commons_hold(&a, p - 1, 1, &at), 0);
	cr_expect_eq(commons_hold(&a, p + 5, SIZE / 2 - 4, &at), 0);
	cr_expect_eq(commons_hold(&a, p + 5, SIZE_MAX, &at), 0);
	cr_expect_eq(commons_hold(&a, p + SIZE, 1, &at), 0);
	first = commons_hold(&a, p + 5, SIZE / 2 - 5, &at);
	cr_assert(first);
	cr_expect_eq(at, 5);
	second = commons_hold(&a, p + SIZE / 2 - 1, 1, &at);
	cr_assert_eq(second, first);
	cr_expect_eq(at, SIZE / 2 - 1);
	cr_expect_neq(commons_hold(&a, q, 1, &at), first);
	cr_expect_eq(at, SIZE / 2);
	/* p waits until it was returned twice. */
	cr_expect_eq(commons_free(&a, p), 0);
	cr_expect_eq(commons_free(&a, p), -EINVAL);
	cr_expect_eq(commons_hold(&a, p, 1, &at), 0);
	cr_expect_eq(commons_alloc(&a, 1, (void **)&q), -ENOSPC);
	commons_release(&a, first);
	cr_expect_eq(commons_alloc(&a, 1, (void **)&q), -ENOSPC);
	commons_release(&a, second);
	cr_expect_eq(alloc(&a, UNITS / 2), p);
	commons_fini(&a);
}

/* Whoever has the descriptor can read the memory, and do nothing else. */
Test(commons, view)
{
	struct commons_view v;
	struct commons a;
	char *p;
	int fd;

	commons_init(&a, SIZE);
	p = alloc(&a, 2);
	strcpy(p, "written before");
	fd = commons_fd(&a);
	cr_assert_eq(commons_view_size(fd), SIZE);
	cr_assert_eq(commons_view_map(&v, fd, SIZE), 0);
	cr_expect_str_eq((const char *)v.map, "written before");
	strcpy(p, "written after");
	cr_expect_str_eq((const char *)v.map, "written after");
	cr_expect_eq(mmap(NULL, SIZE, PROT_WRITE, MAP_SHARED, fd, 0),
		     MAP_FAILED);
	cr_expect_eq(mprotect((void *)v.map, SIZE, PROT_WRITE), -1);
	cr_expect_eq(write(fd, "x", 1), -1);
	cr_expect_eq(ftruncate(fd, 0), -1);
	cr_expect_eq(ftruncate(fd, 2 * SIZE), -1);
	cr_expect(commons_view_has(&v, SIZE, 0));
	cr_expect(commons_view_has(&v, 1, SIZE - 1));
	cr_expect_not(commons_view_has(&v, 1, SIZE));
	cr_expect_not(commons_view_has(&v, SIZE + 1, 0));
	cr_expect_not(commons_view_has(&v, UINT64_MAX, 2));
	commons_view_unmap(&v);
	commons_view_unmap(&v);
	commons_fini(&a);
}

/* What a child has where its parent's commons was stays when the copy ends. */
static int end_copy(struct commons *a, char *p)
{
	int fd = commons_fd(a);
	char *other;
	void *q;

	if (commons_alloc(a, 1, &q) != -ESHUTDOWN ||
	    commons_free(a, p) != -ESHUTDOWN)
		return 1;
	other = mmap(p, SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (other != p || fcntl(fd, F_GETFD) != -1 || dup2(0, fd) != fd)
		return 2;
	commons_fini(a);
	if (fcntl(fd, F_GETFD) == -1)
		return 3;
	return msync(other, SIZE, MS_ASYNC) ? 4 : 0;
}

Test(commons, forked)
{
	struct commons a, unmade;
	int status;
	pid_t pid;
	char *p;

	commons_init(&a, SIZE);
	commons_init(&unmade, SIZE);
	p = alloc(&a, UNITS);
	strcpy(p, "the parent's");
	pid = fork();
	if (!pid) {
		/* One that was not made yet can be the child's own. */
		*(char *)alloc(&unmade, UNITS) = 1;
		commons_fini(&unmade);
		_exit(end_copy(&a, p));
	}
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_expect_eq(status, 0, "%#x", (unsigned int)status);
	cr_expect_str_eq(p, "the parent's");
	cr_expect_eq(commons_free(&a, p), 0);
	commons_fini(&a);
	commons_fini(&unmade);
}

Test(commons, no_view)
{
	int fd = memfd_create("no view", MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, SIZE), 0);
	cr_expect_eq(commons_view_size(fd), -EPROTO);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	cr_expect_eq(commons_view_size(fd), -EPROTO);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	cr_expect_eq(commons_view_size(fd), SIZE);
	close(fd);
	/* Pages that are not there may never come. */
	fd = memfd_create("huge", MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd >= 0) {
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		cr_expect_eq(commons_view_size(fd), -EPROTO);
		close(fd);
	}
	cr_expect_eq(commons_view_size(STDIN_FILENO), -EPROTO);
}
