/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/commons.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/iov.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* A mapping that can be written exists before the last seal, and stays. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

#define NONE UINT32_MAX

/* commons_unit.state of a block's first unit; 0: it is free, or the unit is no
 * first one. */
#define USED  1u
#define FREED 2u /* it is free as soon as it is lent no more */
#define HOLD  4u /* once for each time that it is lent */

struct commons_unit {
	/* The first unit of its block. Right in all units of a block in use,
	 * and in the last one of a free block. */
	uint32_t first;
	/* of a block's first unit: */
	uint32_t length;
	uint32_t next, prev; /* in the bin, if it is free */
	_Atomic uint32_t state;
};

void commons_init(struct commons *a, uint64_t max)
{
	*a = (struct commons){ .max = MIN(max, COMMONS_MAX), .fd = -1 };
	for (unsigned int i = 0; i < COMMONS_BINS; i++)
		a->bins[i] = NONE;
	pthread_mutex_init(&a->lock, NULL);
}

static uint64_t commons_size(const struct commons *a)
{
	return (uint64_t)a->nunits * COMMONS_UNIT;
}

/* Is it made, but not by this process? */
static bool is_forked(const struct commons *a)
{
	return atomic_load(&a->base) && a->generation != fork_generation();
}

void commons_fini(struct commons *a)
{
	uint8_t *base = atomic_load(&a->base);

	if (base && !is_forked(a)) {
		munmap(base, commons_size(a));
		fork_fd_close(a->fd);
	}
	free(a->units);
	pthread_mutex_destroy(&a->lock);
}

/* ---- bins ---- */

static unsigned int bin_of(uint32_t length)
{
	return 31u - (unsigned int)__builtin_clz(length);
}

/* The block [@first, @first + @length) is free, and in no bin yet. */
static void bin_add(struct commons *a, uint32_t first, uint32_t length)
{
	uint32_t *bin = &a->bins[bin_of(length)];
	struct commons_unit *u = &a->units[first];

	u->first = first;
	u->length = length;
	u->prev = NONE;
	u->next = *bin;
	if (*bin != NONE)
		a->units[*bin].prev = first;
	*bin = first;
	a->units[first + length - 1].first = first;
}

static void bin_del(struct commons *a, uint32_t first)
{
	const struct commons_unit *u = &a->units[first];

	if (u->prev != NONE)
		a->units[u->prev].next = u->next;
	else
		a->bins[bin_of(u->length)] = u->next;
	if (u->next != NONE)
		a->units[u->next].prev = u->prev;
}

/* Returns a free block of at least @length units, or NONE. */
static uint32_t bin_find(const struct commons *a, uint32_t length)
{
	unsigned int bin = bin_of(length);
	uint32_t i;

	for (i = a->bins[bin]; i != NONE; i = a->units[i].next)
		if (a->units[i].length >= length)
			return i;
	while (++bin < COMMONS_BINS)
		if (a->bins[bin] != NONE)
			return a->bins[bin];
	return NONE;
}

static bool is_free(const struct commons *a, uint32_t first)
{
	return !atomic_load_explicit(&a->units[first].state,
				     memory_order_relaxed);
}

/* The block in use @first becomes a free one, with its neighbours. */
static void reclaim(struct commons *a, uint32_t first)
{
	uint32_t length = a->units[first].length, next = first + length;

	atomic_store(&a->units[first].state, 0);
	if (next < a->nunits && is_free(a, next)) {
		bin_del(a, next);
		length += a->units[next].length;
	}
	if (first && is_free(a, a->units[first - 1].first)) {
		first = a->units[first - 1].first;
		bin_del(a, first);
		length += a->units[first].length;
	}
	bin_add(a, first, length);
}

/* ---- making it ---- */

/* Maps @fd, which then nobody can map to write it any more. */
static int map_and_seal(int fd, uint64_t size, void **map)
{
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		return -errno;
	if (!madvise(*map, size, MADV_DONTFORK) &&
	    !fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL))
		return 0;
	munmap(*map, size);
	return -EOPNOTSUPP;
}

/* A file that is larger than allowed would end the process (SIGXFSZ). */
static bool may_be(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur;
}

/* Sets *@fd and *@map to memory of @size bytes. */
static int make_memory(uint64_t size, int *fd, void **map)
{
	int rc;

	if (!may_be(size))
		return -EFBIG;
	fork_hold();
	*fd = fork_fd_made(
		memfd_create("ulnet-mem", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (*fd < 0)
		return errno == ENOSYS ? -EOPNOTSUPP : -errno;
	fork_hold();
	rc = ftruncate(*fd, (off_t)size) ? -errno
					 : map_and_seal(*fd, size, map);
	fork_done();
	if (rc)
		fork_fd_close(*fd);
	return rc;
}

static int commons_make(struct commons *a)
{
	uint32_t n = (uint32_t)(a->max / COMMONS_UNIT);
	struct commons_unit *units = n ? calloc(n, sizeof(*units)) : NULL;
	void *map;
	int fd, rc;

	if (!units)
		return n ? -ENOMEM : -ENOSPC;
	rc = make_memory((uint64_t)n * COMMONS_UNIT, &fd, &map);
	if (rc) {
		free(units);
		return rc;
	}
	a->units = units;
	a->nunits = n;
	a->fd = fd;
	a->generation = fork_generation();
	bin_add(a, 0, n);
	atomic_store_explicit(&a->base, map, memory_order_release);
	return 0;
}

/* ---- blocks ---- */

static int take_block(struct commons *a, uint32_t length, uint32_t *first_p)
{
	uint32_t first = bin_find(a, length), left;

	if (first == NONE)
		return -ENOSPC;
	bin_del(a, first);
	left = a->units[first].length - length;
	if (left)
		bin_add(a, first + length, left);
	for (uint32_t i = 0; i < length; i++)
		a->units[first + i].first = first;
	a->units[first].length = length;
	atomic_store_explicit(&a->units[first].state, USED,
			      memory_order_release);
	*first_p = first;
	return 0;
}

int commons_alloc(struct commons *a, size_t length, void **p)
{
	uint64_t n = length / COMMONS_UNIT + (length % COMMONS_UNIT != 0);
	uint32_t first;
	int rc = 0;

	if (is_forked(a))
		return -ESHUTDOWN;
	if (!length)
		return -EINVAL;
	if (n > a->max / COMMONS_UNIT)
		return -ENOSPC;
	pthread_mutex_lock(&a->lock);
	if (a->fd < 0)
		rc = commons_make(a);
	if (!rc)
		rc = take_block(a, (uint32_t)n, &first);
	if (!rc)
		*p = atomic_load(&a->base) + (uint64_t)first * COMMONS_UNIT;
	pthread_mutex_unlock(&a->lock);
	return rc;
}

/* Marks the block as freed. Returns what its state was. */
static uint32_t mark_freed(struct commons_unit *u)
{
	uint32_t state = atomic_load(&u->state);

	do {
		if (!(state & USED) || state & FREED)
			return 0;
	} while (!atomic_compare_exchange_weak(&u->state, &state,
					       state | FREED));
	return state;
}

int commons_free(struct commons *a, void *p)
{
	uint8_t *base = atomic_load(&a->base);
	uint64_t offset = base ? (uint64_t)((uintptr_t)p - (uintptr_t)base) : 0;
	uint32_t state;

	if (is_forked(a))
		return -ESHUTDOWN;
	if (!base || offset >= commons_size(a) || offset % COMMONS_UNIT)
		return -EINVAL;
	pthread_mutex_lock(&a->lock);
	state = mark_freed(&a->units[offset / COMMONS_UNIT]);
	if (state == USED)
		reclaim(a, (uint32_t)(offset / COMMONS_UNIT));
	pthread_mutex_unlock(&a->lock);
	return state ? 0 : -EINVAL;
}

/* ---- lending ---- */

uint32_t commons_hold(struct commons *a, const void *p, size_t length,
		      uint64_t *offset)
{
	uint8_t *base = atomic_load_explicit(&a->base, memory_order_acquire);
	uint64_t at = (uint64_t)((uintptr_t)p - (uintptr_t)base);
	uint32_t first, state;
	struct commons_unit *u;

	if (!base || at >= commons_size(a))
		return 0;
	first = a->units[at / COMMONS_UNIT].first;
	u = &a->units[first];
	state = atomic_load_explicit(&u->state, memory_order_acquire);
	do {
		if (!(state & USED) || state & FREED ||
		    state > UINT32_MAX - HOLD)
			return 0;
	} while (
		!atomic_compare_exchange_weak(&u->state, &state, state + HOLD));
	if (length <= (uint64_t)(first + u->length) * COMMONS_UNIT - at) {
		*offset = at;
		return first + 1;
	}
	commons_release(a, first + 1);
	return 0;
}

void commons_release(struct commons *a, uint32_t block)
{
	uint32_t before = atomic_fetch_sub(&a->units[block - 1].state, HOLD);

	if (likely(before != (USED | FREED | HOLD)))
		return;
	pthread_mutex_lock(&a->lock);
	reclaim(a, block - 1);
	pthread_mutex_unlock(&a->lock);
}

int commons_fd(const struct commons *a)
{
	return a->fd;
}

/* ---- views ---- */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Would reading it ever fail? Not if it stays as large as it is, and pages that
 * are not there yet are those of ordinary memory. That nobody is to write it is
 * its owner's concern. */
int64_t commons_view_size(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPROTO;
	if (fstatfs(fd, &fs) || fstat(fd, &st))
		return -errno;
	if (fs.f_type != TMPFS_MAGIC || st.st_size <= 0)
		return -EPROTO;
	return st.st_size;
}

void commons_view_open(struct commons_view *v, int fd, uint64_t size)
{
	*v = (struct commons_view){ .fd = fd, .size = size };
}

/* Does the system tell what is there, and does that stay? The owner could make
 * holes, unless it can write only what it has mapped. */
static bool may_map(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE) &&
	       !fstat(fd, &st) && st.st_uid == geteuid();
}

/* Pages with a number below the result hold what is before @end. */
static uint64_t pages_to(uint64_t end)
{
	return end / page_size() + (end % page_size() != 0);
}

int commons_view_map(struct commons_view *v)
{
	void *map;
	int rc = 0;

	if (!may_map(v->fd))
		return -EPERM;
	v->there = calloc(1, pages_to(v->size) / 8 + 1);
	if (!v->there)
		return -ENOMEM;
	fork_hold();
	map = mmap(NULL, v->size, PROT_READ, MAP_SHARED, v->fd, 0);
	if (map == MAP_FAILED)
		rc = -errno;
	else if (madvise(map, v->size, MADV_DONTFORK)) {
		rc = -errno;
		munmap(map, v->size);
	}
	fork_done();
	if (!rc) {
		v->map = map;
	} else {
		free(v->there);
		v->there = NULL;
	}
	return rc;
}

static bool page_is_known(const struct commons_view *v, uint64_t page)
{
	return v->there[page / 8] >> page % 8 & 1;
}

/* Asks the system for the pages from @page on, at most @n. Returns how many of
 * them, from the first one on, are there. */
static unsigned int look_at(struct commons_view *v, uint64_t page, uint64_t n)
{
	unsigned char in_core[64];
	unsigned int i = 0;

	n = MIN(n, sizeof(in_core));
	if (mincore((void *)(v->map + page * page_size()), n * page_size(),
		    in_core))
		return 0;
	for (; i < n && in_core[i] & 1; i++, page++)
		v->there[page / 8] |= (uint8_t)(1u << page % 8);
	return i;
}

/* Are all pages there that hold [@offset, @offset + @length)? */
static bool is_there(struct commons_view *v, uint64_t offset, size_t length)
{
	uint64_t page = offset / page_size(), end = pages_to(offset + length);
	unsigned int found;

	while (page < end) {
		if (likely(page_is_known(v, page))) {
			page++;
			continue;
		}
		found = look_at(v, page, end - page);
		if (!found)
			return false;
		page += found;
	}
	return true;
}

int commons_view_read(struct commons_view *v, uint64_t offset, size_t length,
		      const struct iovec *to, unsigned int nto,
		      size_t to_offset)
{
	struct iovec out[COMMONS_IOV];
	ssize_t got;

	if (likely(v->map) && is_there(v, offset, length)) {
		iov_scatter(to, nto, to_offset, v->map + offset, length);
		return 0;
	}
	nto = iov_slice(out, to, nto, to_offset, length);
	got = preadv(v->fd, out, (int)nto, (off_t)offset);
	if (got < 0)
		return -errno;
	return (size_t)got == length ? 0 : -EFAULT;
}

void commons_view_close(struct commons_view *v)
{
	if (!v->size)
		return;
	if (v->map)
		munmap((void *)v->map, v->size);
	fork_fd_close(v->fd);
	free(v->there);
	*v = (struct commons_view){ .size = 0 };
}
