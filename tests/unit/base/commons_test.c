/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/commons.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"

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

static void view_up(struct commons_view *v, int fd)
{
	int64_t size = commons_view_size(fd);

	cr_assert(size > 0);
	fork_hold();
	commons_view_open(v, fork_fd_made(dup(fd)), (uint64_t)size);
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
	cr_expect_eq(commons_view_size(fd), SIZE);
	view_up(&v, fd);
	cr_assert_eq(commons_view_map(&v), 0);
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
	commons_view_close(&v);
	commons_view_close(&v);
	cr_expect_null(v.map);
	commons_fini(&a);
}

/* Reads two bytes from @at on, into two places. */
static int read_two(struct commons_view *v, uint64_t at, char two[2])
{
	const struct iovec to[] = { { two, 0 }, { two, 1 }, { two + 1, 1 } };

	two[0] = two[1] = 'x';
	return commons_view_read(v, at, 2, to, 3, 0);
}

static blkcnt_t pages_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st.st_blocks;
}

/* Reading makes no page that the owner has not written, mapped or not. What is
 * known to be there is read without the system. */
Test(commons, read)
{
	struct commons_view v;
	struct commons a;
	char *p, two[2];
	int fd;

	commons_init(&a, SIZE);
	p = alloc(&a, UNITS);
	fd = commons_fd(&a);
	for (int mapped = 0; mapped <= 1; mapped++) {
		view_up(&v, fd);
		if (mapped)
			cr_assert_eq(commons_view_map(&v), 0);
		for (uint64_t at = 0; at < SIZE - 1; at += COMMONS_UNIT / 2) {
			blkcnt_t before = pages_of(fd);

			cr_assert_eq(read_two(&v, at, two), 0);
			cr_expect(!two[0] && !two[1]);
			cr_expect_eq(pages_of(fd), before);
		}
		/* They are in two pages, of which one is written first. */
		p[COMMONS_UNIT] = 2;
		cr_assert_eq(read_two(&v, COMMONS_UNIT - 1, two), 0);
		cr_expect(!two[0] && two[1] == 2);
		p[COMMONS_UNIT - 1] = 1;
		cr_assert_eq(read_two(&v, COMMONS_UNIT - 1, two), 0);
		cr_expect(two[0] == 1 && two[1] == 2);
		close(v.fd);
		cr_expect_eq(read_two(&v, COMMONS_UNIT - 1, two),
			     mapped ? 0 : -EBADF);
		/* Systems with larger pages have that one by now, too. */
		if (pages_of(fd) == 2 * COMMONS_UNIT / 512)
			cr_expect_eq(read_two(&v, 5 * COMMONS_UNIT, two),
				     -EBADF);
		v.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		commons_view_close(&v);
		p[COMMONS_UNIT - 1] = p[COMMONS_UNIT] = 0;
	}
	commons_fini(&a);
}

/* The system is asked for so many pages in several steps. */
Test(commons, read_many)
{
	const uint32_t units = 150;
	const size_t length = units * COMMONS_UNIT - 2;
	struct iovec to = { malloc(length), length };
	struct commons_view v;
	struct commons a;
	uint8_t *p;

	commons_init(&a, units * COMMONS_UNIT);
	p = alloc(&a, units);
	for (size_t i = 0; i < units * COMMONS_UNIT; i++)
		p[i] = (uint8_t)(i * 2654435761u >> 24);
	view_up(&v, commons_fd(&a));
	cr_assert_eq(commons_view_map(&v), 0);
	close(v.fd);
	cr_assert_eq(commons_view_read(&v, 1, length, &to, 1, 0), 0);
	cr_expect(!memcmp(to.iov_base, p + 1, length));
	v.fd = fcntl(commons_fd(&a), F_DUPFD_CLOEXEC, 0);
	commons_view_close(&v);
	commons_fini(&a);
	free(to.iov_base);
}

/* What another user owns, or could make holes in, is read by the system. */
Test(commons, not_mapped)
{
	struct commons_view v;
	struct commons a;
	char *p, two[2];
	int fd;

	fd = memfd_create("holes", MFD_ALLOW_SEALING);
	cr_assert_eq(ftruncate(fd, SIZE), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	view_up(&v, fd);
	cr_expect_eq(commons_view_map(&v), -EPERM);
	cr_expect_eq(read_two(&v, 0, two), 0);
	commons_view_close(&v);
	close(fd);
	commons_init(&a, SIZE);
	p = alloc(&a, 1);
	p[1] = 5;
	if (fchown(commons_fd(&a), geteuid() + 1, (gid_t)-1)) {
		commons_fini(&a);
		return;
	}
	view_up(&v, commons_fd(&a));
	cr_expect_eq(commons_view_map(&v), -EPERM);
	cr_expect_eq(read_two(&v, 0, two), 0);
	cr_expect_eq(two[1], 5);
	commons_view_close(&v);
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
