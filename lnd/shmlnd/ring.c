/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork.h"

/* F_SEAL_SEAL: no seal comes later that forbids shm_ring_empty(). */
#define SEALS	  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NO_WRITES (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

struct shm_page {
	struct shm_side side[2];
};
_Static_assert(sizeof(struct shm_page) <= 4096, "no page is smaller");

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

uint32_t shm_ring_size(uint64_t bytes)
{
	uint32_t size = SHM_RING_MIN;

	while (size < page_size() ||
	       (size < SHM_RING_MAX && 2 * (uint64_t)size <= bytes))
		size *= 2;
	return size;
}

static size_t file_size(uint32_t size)
{
	return page_size() + 2 * (size_t)size;
}

/* ---- life ---- */

int shm_ring_create(uint32_t size)
{
	int fd = memfd_create("ulnet-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)file_size(size)) ||
	    fcntl(fd, F_ADD_SEALS, SEALS)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Would access to the memory ever fail (SIGBUS)? Not if its size is right, and
 * stays so. Only a memfd has seals. */
static int check_memory(const struct shm_ring *r, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || seals & NO_WRITES)
		return -EPROTO;
	if (fstat(fd, &st))
		return -errno;
	return st.st_size == (off_t)file_size(r->size) ? 0 : -EPROTO;
}

/* Maps @length bytes of @fd from @offset on to @at, which is reserved. */
static int map_at(uint8_t *at, size_t length, int prot, int fd, size_t offset)
{
	void *p = mmap(at, length, prot, MAP_SHARED | MAP_FIXED, fd,
		       (off_t)offset);

	return p == MAP_FAILED ? -errno : 0;
}

/* Maps ring @i to @at, twice. */
static int map_ring(const struct shm_ring *r, unsigned int i, uint8_t *at,
		    int prot, int fd)
{
	size_t offset = page_size() + i * (size_t)r->size;
	int rc = map_at(at, r->size, prot, fd, offset);

	return rc ? rc : map_at(at + r->size, r->size, prot, fd, offset);
}

static int map_all(struct shm_ring *r, int fd, unsigned int side)
{
	uint8_t *page = r->map, *out = page + page_size();
	uint8_t *in = out + 2 * (size_t)r->size;
	struct shm_page *p = r->map;
	int rc = map_at(page, page_size(), PROT_READ | PROT_WRITE, fd, 0);

	if (!rc)
		rc = map_ring(r, side, out, PROT_READ | PROT_WRITE, fd);
	if (!rc)
		rc = map_ring(r, 1 - side, in, PROT_READ, fd);
	if (!rc && madvise(r->map, r->map_size, MADV_DONTFORK))
		rc = -errno;
	r->mine = &p->side[side];
	r->theirs = &p->side[1 - side];
	r->out = out;
	r->in = in;
	return rc;
}

static int map_reserved(struct shm_ring *r, int fd, unsigned int side)
{
	void *map = mmap(NULL, r->map_size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	r->map = map;
	return map_all(r, fd, side);
}

int shm_ring_map(struct shm_ring *r, int fd, uint32_t size, unsigned int side)
{
	int rc;

	*r = (struct shm_ring){ .size = size };
	if (size < page_size() || size < SHM_RING_MIN || size > SHM_RING_MAX ||
	    size & (size - 1))
		return -EPROTO;
	rc = check_memory(r, fd);
	if (rc)
		return rc;
	r->map_size = page_size() + 4 * (size_t)size;
	/* A child that was made in the middle would keep the memory. */
	fork_hold();
	rc = map_reserved(r, fd, side);
	fork_done();
	if (rc)
		shm_ring_unmap(r);
	return rc;
}

void shm_ring_unmap(struct shm_ring *r)
{
	if (r->map)
		munmap(r->map, r->map_size);
	r->map = NULL;
}

void shm_ring_empty(struct shm_ring *r)
{
	uint8_t *page = r->map, *in;

	if (!page)
		return;
	in = page + page_size() + 2 * (size_t)r->size;
	/* Pages that are locked would stay (mlockall()). Some kernels empty
	 * only what may be written. */
	(void)!munlock(page, r->map_size);
	(void)!mprotect(in, r->size, PROT_READ | PROT_WRITE);
	(void)!madvise(page, page_size() + r->size, MADV_REMOVE);
	(void)!madvise(in, r->size, MADV_REMOVE);
}

/* ---- cursors ---- */

static out_of_line int impossible(struct shm_ring *r, const char *why)
{
	r->why = why;
	return -EPROTO;
}

int shm_ring_look_room(struct shm_ring *r)
{
	uint32_t head =
		atomic_load_explicit(&r->theirs->head, memory_order_acquire);

	/* It is between what it was and what there is to read. */
	if (unlikely(head - r->freed > r->tail - r->freed))
		return impossible(r, "has read what was not written");
	r->freed = head;
	return 0;
}

int shm_ring_look(struct shm_ring *r)
{
	uint32_t tail =
		atomic_load_explicit(&r->theirs->tail, memory_order_acquire);

	if (unlikely(tail - r->head > r->size ||
		     tail - r->head < r->given - r->head))
		return impossible(r, "has written where it may not");
	r->given = tail;
	return 0;
}

int shm_ring_next(struct shm_ring *r, struct shm_frame *f)
{
	const uint8_t *p = r->in + (r->head & (r->size - 1));
	uint32_t left = r->given - r->head;
	struct shm_frame_hdr hdr;
	uint64_t word;

	if (!left)
		return 0;
	if (unlikely(left < SHM_FRAME_HDR))
		return impossible(r, "has written half a frame");
	/* The compiler may not read it twice. */
	word = *(const volatile uint64_t *)(const void *)p;
	memcpy(&hdr, &word, sizeof(hdr));
	if (unlikely(hdr.length > left || shm_frame_space(hdr.length) > left))
		return impossible(r, "has written a frame that is too long");
	*f = (struct shm_frame){ hdr.type, hdr.length, p + SHM_FRAME_HDR };
	return 1;
}

/* ---- wake-ups ---- */

bool shm_ring_must_wake(struct shm_ring *r, uint32_t what)
{
	/* Stored again, in the order of all that is sequentially consistent. */
	if (what & SHM_WANTS_FRAMES)
		atomic_store(&r->mine->tail, r->tail);
	if (what & SHM_WANTS_ROOM)
		atomic_store(&r->mine->head, r->head);
	if (what & SHM_WANTS_ANSWERS)
		atomic_store(&r->mine->answers, r->answers);
	if (likely(!(atomic_load(&r->theirs->wants) & what)))
		return false;
	/* The peer may want something else by now. Then it has found out by
	 * itself, but whoever clears its wants has to wake it. */
	return atomic_exchange(&r->theirs->wants, 0) != 0;
}

bool shm_ring_sleep(struct shm_ring *r, uint32_t what)
{
	atomic_store(&r->mine->wants, what);
	if (what & SHM_WANTS_FRAMES && atomic_load(&r->theirs->tail) != r->head)
		goto awake;
	if (what & SHM_WANTS_ROOM && atomic_load(&r->theirs->head) != r->freed)
		goto awake;
	if (what & SHM_WANTS_ANSWERS &&
	    atomic_load(&r->theirs->answers) != r->heard)
		goto awake;
	return true;
awake:
	shm_ring_awake(r);
	return false;
}
