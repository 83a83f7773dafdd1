/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket and its clients, when poll() returns early or fails. */
#include "tests/unit/config/rig.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* how many more waits of INT32_MAX ms return at once, as if they were over */
static atomic_int days_over;
/* how many more waits without a time-out fail with ENOMEM */
static atomic_int no_memory;

static bool take_one(atomic_int *n)
{
	int left = atomic_load(n);

	while (left > 0)
		if (atomic_compare_exchange_weak(n, &left, left - 1))
			return true;
	return false;
}

/* Replaces the C library's poll(). */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec t = { timeout / 1000, timeout % 1000 * 1000000L };

	if (timeout == INT32_MAX && take_one(&days_over))
		return 0;
	if (timeout == -1 && take_one(&no_memory)) {
		errno = ENOMEM;
		return -1;
	}
	return ppoll(fds, n, timeout < 0 ? NULL : &t, NULL);
}

static char dir[64], path[96];

static struct rig serve(void)
{
	struct ulnet_control_conf conf = { .path = path };

	strcpy(dir, "/tmp/ulnet-poll-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	return rig_open_with(1, &conf);
}

static void serve_end(struct rig *rig)
{
	rig_close(rig);
	cr_assert_eq(rmdir(dir), 0);
}

static void served(uint64_t timeout)
{
	struct lnet_ctl *ctl;
	char *answer;

	cr_assert_eq(lnet_ctl_connect(path, 0, &ctl), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(
			lnet_ctl_request(ctl, "net show:", timeout, &answer),
			0);
		free(answer);
	}
	lnet_ctl_close(ctl);
}

/* A request with a time-out of 200 days is waited for in several calls of
 * poll(), each of at most INT32_MAX ms. It is a ping of a NID that never
 * answers. */
Test(poll, waits_of_months)
{
	const uint64_t months = UINT64_C(200) * 24 * 3600 * 1000000;
	struct rig rig = serve();
	struct lnet_ctl *ctl;
	char *answer;

	cr_assert_eq(lnet_ctl_connect(path, 0, &ctl), 0);
	ask_out(&rig, "net add: {net: tcp, interfaces: [eth0]}", "");
	atomic_store(&days_over, 3);
	cr_assert_eq(lnet_ctl_request(ctl,
				      "ping: {nids: 10.77.0.97@tcp, timeout: "
				      "1}",
				      months, &answer),
		     0);
	cr_assert_eq(atomic_load(&days_over), 0);
	free(answer);
	lnet_ctl_close(ctl);
	serve_end(&rig);
}

/* The server goes on after poll() has failed. */
Test(poll, no_memory)
{
	struct rig rig = serve();

	served(0);
	atomic_store(&no_memory, 4);
	served(UINT64_C(60) * 1000000);
	served(UINT64_C(60) * 1000000);
	cr_assert_eq(atomic_load(&no_memory), 0);
	atomic_store(&no_memory, 1);
	serve_end(&rig);
}
