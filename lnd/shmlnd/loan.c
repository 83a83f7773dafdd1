/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/loan.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fork.h"

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void shm_token_make(struct shm_token *token)
{
	uint64_t value;
	void *p;

	*token = (struct shm_token){ .at = 0 };
	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		return;
	fork_hold();
	p = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED && madvise(p, page_size(), MADV_DONTFORK)) {
		munmap(p, page_size());
		p = MAP_FAILED;
	}
	fork_done();
	if (p == MAP_FAILED)
		return;
	memcpy(p, &value, sizeof(value));
	*token = (struct shm_token){ (uintptr_t)p, value };
}

void shm_token_free(struct shm_token *token)
{
	if (token->at)
		munmap((void *)(uintptr_t)token->at, page_size());
	token->at = 0;
}

int shm_copy(int pid, const struct shm_token *token,
	     const struct shm_segment *from, unsigned int n,
	     const struct iovec *to, unsigned int nto, size_t length)
{
	struct iovec theirs[SHM_SEGMENTS + 1], mine[SHM_SEGMENTS + 1];
	uint64_t value = ~token->value;
	size_t left = length;
	unsigned int i;
	ssize_t got;

	for (i = 0; i < n && left; i++) {
		theirs[i].iov_base = (void *)(uintptr_t)from[i].at;
		theirs[i].iov_len = MIN(from[i].length, left);
		left -= theirs[i].iov_len;
	}
	if (left)
		return -EFAULT;
	theirs[i++] =
		(struct iovec){ (void *)(uintptr_t)token->at, sizeof(value) };
	if (nto)
		memcpy(mine, to, nto * sizeof(*to));
	mine[nto++] = (struct iovec){ &value, sizeof(value) };
	got = process_vm_readv(pid, mine, nto, theirs, i, 0);
	if (got < 0)
		return -errno;
	if ((size_t)got != length + sizeof(value))
		return -EFAULT;
	return value == token->value ? 0 : -ESRCH;
}
