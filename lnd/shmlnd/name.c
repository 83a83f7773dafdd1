/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/shmlnd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/siphash.h"

/* Connections that the system keeps until they are accepted. */
#define BACKLOG 4096
/* How many numbers are tried for an NI that is to have any. */
#define TRIES 64
/* The name of an interface that stands for any number. */
#define ANY "auto"

/* Writes the address of the socket of @nid; returns its length. */
static unsigned int name_of(uint64_t world, const struct ulnet_nid *nid,
			    struct sockaddr_un *addr)
{
	char simulation[32] = "";
	int n;

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	/* An abstract name: it needs no file, and goes with its socket. */
	if (world)
		snprintf(simulation, sizeof(simulation), "sim%" PRIx64 ".",
			 world);
	n = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1,
		     "ulnet.%sshm%u.%u", simulation,
		     LNET_NET_NUM(lnet_nid_net(nid)),
		     (unsigned int)lnet_nid_to_nid4(nid));
	return (unsigned int)(offsetof(struct sockaddr_un, sun_path) + 1) +
	       (unsigned int)n;
}

static int new_socket(void)
{
	int fd;

	fork_hold();
	fd = fork_fd_made(socket(
		AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	return fd < 0 ? -errno : fd;
}

int shm_name_own(uint64_t world, const struct ulnet_nid *nid)
{
	struct sockaddr_un addr;
	unsigned int len = name_of(world, nid, &addr);
	int fd = new_socket(), rc;

	if (fd < 0)
		return fd;
	if (!bind(fd, (struct sockaddr *)&addr, len) && !listen(fd, BACKLOG))
		return fd;
	rc = -errno;
	fork_fd_close(fd);
	return rc;
}

int shm_name_connect(uint64_t world, const struct ulnet_nid *nid)
{
	struct sockaddr_un addr;
	unsigned int len = name_of(world, nid, &addr);
	int fd = new_socket(), rc;

	if (fd < 0)
		return fd;
	if (!connect(fd, (struct sockaddr *)&addr, len))
		return fd;
	rc = -errno;
	fork_fd_close(fd);
	return rc;
}

int shm_who(int fd, struct shm_who *who)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*who = (struct shm_who){ cred.pid, cred.uid, cred.gid };
	return 0;
}

bool shm_who_may(const struct shm_ni *sni, const struct shm_who *who)
{
	int64_t uid = sni->tunables[SHM_allow_uid];
	int64_t gid = sni->tunables[SHM_allow_gid];

	return who->uid == geteuid() || uid == -2 || uid == who->uid ||
	       gid == who->gid;
}

/* ---- the host ---- */

#define BOOT_ID	  "/proc/sys/kernel/random/boot_id"
#define NAMESPACE "/proc/thread-self/ns/net"
#define BOOT_SIZE 36 /* bytes of a number as text */

/* What makes a host: names are those of a network namespace, whose number in
 * turn is that of a running kernel. */
struct host {
	char boot[BOOT_SIZE];
	uint64_t dev, ino;
	uint64_t world;
};

static int read_boot_id(char boot[BOOT_SIZE])
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot, BOOT_SIZE);
	int rc = n < 0 ? -errno : n < BOOT_SIZE ? -ENODATA : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

int shm_host(uint64_t world, uint64_t *host)
{
	static const uint8_t key[SIPHASH_SIZE] = "ulnet shm host";
	uint8_t digest[SIPHASH_SIZE];
	struct host h = { 0 };
	struct stat ns;
	int rc = read_boot_id(h.boot);

	if (!rc && stat(NAMESPACE, &ns))
		rc = -errno;
	if (rc)
		return rc;
	h.dev = ns.st_dev;
	h.ino = ns.st_ino;
	h.world = world;
	/* Nobody can tell from the result what he could not guess. */
	siphash(key, &h, sizeof(h), digest);
	memcpy(host, digest, sizeof(*host));
	*host |= 1; /* 0 is none */
	return 0;
}

/* ---- numbers ---- */

static bool is_free(const struct ulnet_nid *nid)
{
	int fd = shm_name_own(0, nid);

	if (fd >= 0)
		fork_fd_close(fd);
	return fd >= 0;
}

/* Sets the address of @nid to a number that nobody has. It is drawn by lot,
 * since two containers may have processes of one pid; should another node take
 * it before this one does, the NI does not start. */
static int any_number(struct ulnet_nid *nid)
{
	uint32_t n;

	for (unsigned int i = 0; i < TRIES; i++) {
		if (getrandom(&n, sizeof(n), 0) != sizeof(n))
			return -EAGAIN;
		n &= INT32_MAX;
		*nid = lnet_nid_make(lnet_nid_net(nid), n);
		if (n && is_free(nid))
			return 0;
	}
	return -EADDRINUSE;
}

static int number_of(const char *text, struct ulnet_nid *nid)
{
	char *end;
	unsigned long n;

	if (*text < '1' || *text > '9')
		return -ENODEV;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || n > UINT32_MAX)
		return -ENODEV;
	*nid = lnet_nid_make(lnet_nid_net(nid), (uint32_t)n);
	return 0;
}

int shm_resolve(const char *interface, struct ulnet_nid *nid,
		char name[LNET_INTERFACE_SIZE])
{
	int rc = 0;

	if (interface)
		rc = strcmp(interface, ANY) ? number_of(interface, nid)
					    : any_number(nid);
	if (rc)
		return rc;
	if (!lnet_nid_is_nid4(nid) || !(uint32_t)lnet_nid_to_nid4(nid))
		return -EADDRNOTAVAIL;
	snprintf(name, LNET_INTERFACE_SIZE, "%u",
		 (unsigned int)(uint32_t)lnet_nid_to_nid4(nid));
	return 0;
}

int shm_source(const struct ulnet_nid *target, struct ulnet_nid *nid)
{
	struct ulnet_nid any = *target;
	int rc = any_number(&any);

	if (!rc)
		*nid = any;
	return rc;
}
