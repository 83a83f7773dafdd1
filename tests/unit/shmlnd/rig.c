/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/shmlnd/rig.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"

/* how the nodes are */
struct how {
	int64_t copy_min, stall_timeout, max_conns, allow_uid;
	uint64_t accept_timeout;
};
static const struct how usual = { .copy_min = 16384,
				  .stall_timeout = 1,
				  .max_conns = CPTS * 32,
				  .allow_uid = -1,
				  .accept_timeout = PATIENCE * UINT64_C(1000) };

static void node_up(struct lnet **node_p, struct ulnet_nid *nid,
		    const struct how *how)
{
	const struct ulnet_tunable tunables[] = {
		{ "max_conns", how->max_conns },
		{ "allow_uid", how->allow_uid },
		{ "stall_timeout", how->stall_timeout },
		{ "copy_min", how->copy_min },
		{ "map_max", MAP_MAX }
	};
	struct ulnet_ni_conf ni = { .tunables = tunables,
				    .ntunables = ARRAY_SIZE(tunables) };
	struct ulnet_conf conf;
	char name[LNET_INTERFACE_SIZE];

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.accept_timeout = how->accept_timeout;
	conf.accept_max = ACCEPT_MAX;
	conf.cpts = CPTS;
	/* so few that a peer's share is used up by a ring */
	conf.messages_max = 256;
	conf.shared_max = SHARED_MAX;
	cr_assert_eq(lnet_open(&conf, node_p), 0);
	*nid = lnet_nid_make(LNET_NET(LNET_TYPE_SHM, 0), 0);
	cr_assert_eq(shm_resolve("auto", nid, name), 0);
	ni.nid = *nid;
	cr_assert_eq(lnet_ni_add(*node_p, &ni), 0);
}

static void up(struct rig *r, const struct how *how)
{
	char name[LNET_INTERFACE_SIZE];

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	node_up(&r->node, &r->nid, how);
	node_up(&r->good, &r->good_nid, how);
	r->bad_nid = lnet_nid_make(LNET_NET(LNET_TYPE_SHM, 0), 0);
	cr_assert_eq(shm_resolve("auto", &r->bad_nid, name), 0);
	r->name = shm_name_own(0, &r->bad_nid);
	cr_assert(r->name >= 0);
}

void rig_up_with(struct rig *r, int64_t copy_min, int64_t stall_timeout)
{
	struct how how = usual;

	how.copy_min = copy_min;
	how.stall_timeout = stall_timeout;
	up(r, &how);
}

void rig_up(struct rig *r)
{
	up(r, &usual);
}

void rig_up_hasty(struct rig *r)
{
	struct how how = usual;

	how.accept_timeout = 500000;
	up(r, &how);
}

void rig_up_few(struct rig *r)
{
	struct how how = usual;

	how.max_conns = CPTS * FEW;
	how.allow_uid = -2;
	up(r, &how);
}

void on_ping(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct pinged *p = arg;

	(void)info;
	cr_assert(write(p->pipe[1], &status, sizeof(status)) == sizeof(status));
}

void others_are_well(const struct rig *r)
{
	const struct ulnet_id id = { r->nid, LNET_PID_LUSTRE };
	struct pinged p;
	int status = 1;

	cr_assert_eq(pipe(p.pipe), 0);
	cr_assert_eq(
		lnet_ping(r->good, id, PATIENCE * UINT64_C(1000), on_ping, &p),
		0);
	cr_assert(read(p.pipe[0], &status, sizeof(status)) == sizeof(status));
	cr_assert_eq(status, 0);
	close(p.pipe[0]);
	close(p.pipe[1]);
}

void rig_down(struct rig *r)
{
	others_are_well(r);
	lnet_close(r->node);
	lnet_close(r->good);
	fork_fd_close(r->name);
}

_Atomic int other_pid, other_user = 1;

/* in the place of libc's */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int rc = (int)syscall(SYS_getsockopt, fd, level, name, value, len);

	if (!rc && level == SOL_SOCKET && name == SO_PEERCRED &&
	    atomic_load(&other_pid)) {
		struct ucred *cred = value;

		cred->pid = atomic_load(&other_pid);
		cred->uid = geteuid() + (uid_t)atomic_load(&other_user);
	}
	return rc;
}

/* ---- the peer's side ---- */

struct shm_hello hello_of(const struct rig *r)
{
	return (struct shm_hello){
		.magic = SHM_MAGIC,
		.version = SHM_VERSION,
		.src = (uint32_t)lnet_nid_to_nid4(&r->bad_nid),
		.dst = (uint32_t)lnet_nid_to_nid4(&r->nid),
		.src_pid = LNET_PID_LUSTRE,
		.ring_size = SIZE,
		.incarnation = 1,
	};
}

void send_hello(int fd, const void *hello, size_t len, const int *fds,
		unsigned int nfds)
{
	char control[CMSG_SPACE(16 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)hello, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		struct cmsghdr *c;

		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	cr_assert_eq(sendmsg(fd, &m, MSG_NOSIGNAL), (ssize_t)len);
}

void await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	cr_assert_eq(poll(&p, 1, PATIENCE), 1, "the node does nothing");
}

void await_end(int fd)
{
	char bytes[256];
	ssize_t n;

	do {
		await(fd);
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	} while (n > 0);
	cr_assert(n == 0 || errno == ECONNRESET);
}

void raw_connect_with(const struct rig *r, struct raw *raw,
		      const struct shm_token *token)
{
	struct shm_hello h = hello_of(r);

	h.token = *token;
	*raw = (struct raw){ .fd = shm_name_connect(0, &r->nid) };
	cr_assert(raw->fd >= 0);
	raw->memory = shm_ring_create(SIZE);
	cr_assert(!shm_ring_map(&raw->ring, raw->memory, SIZE, 0));
	send_hello(raw->fd, &h, sizeof(h), &raw->memory, 1);
	await(raw->fd);
	cr_assert_eq(recv(raw->fd, &raw->hello, sizeof(raw->hello), 0),
		     sizeof(raw->hello));
}

void raw_connect(const struct rig *r, struct raw *raw)
{
	static const struct shm_token none;

	raw_connect_with(r, raw, &none);
}

void raw_close(struct raw *raw)
{
	shm_ring_unmap(&raw->ring);
	close(raw->memory);
	fork_fd_close(raw->fd);
}

void bell(const struct raw *raw)
{
	(void)!send(raw->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void frame(struct raw *raw, uint32_t type, const void *body, uint32_t length)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	while (shm_ring_room(&raw->ring) < shm_frame_space(length)) {
		cr_assert(!shm_ring_look_room(&raw->ring));
		cr_assert(time(NULL) < end, "the node reads nothing");
		sched_yield();
	}
	if (length)
		memcpy(shm_ring_body(&raw->ring), body, length);
	shm_ring_commit(&raw->ring, type, length);
	shm_ring_publish(&raw->ring);
	bell(raw);
}

void put_header(const struct rig *r, uint8_t hdr[LNET_HDR_SIZE],
		uint32_t length)
{
	memset(hdr, 0, LNET_HDR_SIZE);
	store_le64(hdr, lnet_nid_to_nid4(&r->nid));
	store_le64(hdr + 8, lnet_nid_to_nid4(&r->bad_nid));
	store_le32(hdr + 16, LNET_PID_LUSTRE);
	store_le32(hdr + 20, LNET_PID_LUSTRE);
	store_le32(hdr + 24, 1);
	store_le32(hdr + 28, length);
	store_le32(hdr + HDR_PORTAL, PORTAL);
}

/* ---- what the node receives ---- */

_Atomic unsigned int puts_got, puts_failed;
uint8_t puts_buffer[1u << 20];

static void on_put(const struct ulnet_event *event)
{
	if (event->type == LNET_EVENT_PUT)
		atomic_fetch_add(event->status ? &puts_failed : &puts_got, 1);
}

void take_puts(const struct rig *r)
{
	const struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	const struct ulnet_md md = { .start = puts_buffer,
				     .length = sizeof(puts_buffer),
				     .threshold = LNET_MD_THRESH_INF,
				     .max_size = 0,
				     .options = LNET_MD_OP_PUT |
						LNET_MD_MANAGE_REMOTE,
				     .handler = on_put };
	struct ulnet_me_handle me;
	struct ulnet_md_handle mdh;

	cr_assert_eq(LNetMEAttach(r->node, PORTAL, any, 0, UINT64_MAX,
				  LNET_RETAIN, LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &md, LNET_RETAIN, &mdh), 0);
}

void await_puts(unsigned int n)
{
	time_t end = time(NULL) + PATIENCE / 1000;

	while (atomic_load(&puts_got) < n && time(NULL) < end)
		sched_yield();
	cr_expect_eq(atomic_load(&puts_got), n, "%u", atomic_load(&puts_got));
}
